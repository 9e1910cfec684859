"""Traces played again: rules by hand, and against a plain recursion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.core.errors import InputError
from gpufabric.parse.trace import (
    COLLECTIVE,
    COMPUTE,
    RECEIVE,
    SEND,
    Message,
    RankTrace,
    TraceOperation,
)
from gpufabric.workload.replay import Job, Played, job_of, order_of, play

Ranks = tuple[int, ...]


def compute(us: float, *after: int, queue: str = "gpu", lead: float = 0.0) -> TraceOperation:
    return TraceOperation("f", f"compute {us}", COMPUTE, us, after, None, 0, 0, queue, lead)


def reduce(size: float, *after: int, group: str = "") -> TraceOperation:
    return TraceOperation("f", "sum", COLLECTIVE, 0, after, Message("all_reduce", size, group))


def rank(number: int, *operations: TraceOperation, **groups: Ranks) -> RankTrace:
    world = 1 + max((max(ranks) for ranks in groups.values()), default=-1)
    return RankTrace(f"f.{number}", "chakra", number, operations, groups, world)


def played(job: Job) -> list[list[Played]]:
    """By rank in order of place: a byte takes a microsecond, whatever the ranks."""
    rows = play(
        job,
        lambda operation: operation.duration_us,
        lambda _ranks, message: message.input_bytes,
        lambda _source, _target, message: message.input_bytes,
    )
    return [sorted(row for row in rows if row.rank == t.rank) for t in job.traces]


def test_a_collective_begins_when_the_last_rank_is_there() -> None:
    early = rank(0, compute(10), reduce(5, 0), compute(1, 1))
    late = rank(1, compute(30), reduce(5, 0), compute(1, 1))
    first, second = played(job_of([early, late]))
    assert (first[1].ready_us, first[1].start_us, first[1].end_us) == (10, 30, 35)
    assert (second[1].ready_us, second[1].end_us, second[2].end_us) == (30, 35, 36)


def test_computing_goes_on_beside_communication() -> None:
    (rows,) = played(
        job_of([rank(0, compute(10), reduce(50, 0), compute(20, 0), compute(1, 1, 2))])
    )
    assert [row.end_us for row in rows] == [10, 60, 30, 61]


def test_one_queue_does_one_thing_at_a_time() -> None:
    (rows,) = played(job_of([rank(0, compute(10), compute(5), compute(7, queue="cpu"))]))
    assert [(row.start_us, row.end_us) for row in rows] == [(0, 10), (10, 15), (0, 7)]


def test_idle_time_before_an_operation_stays() -> None:
    (rows,) = played(job_of([rank(0, compute(10), compute(5, 0, lead=3))]))
    assert (rows[1].start_us, rows[1].end_us) == (13, 18)


def test_collectives_of_a_group_keep_their_order() -> None:
    # On rank 1 the second could begin first; it waits for the first, as NCCL does.
    one = rank(0, compute(1), reduce(5, 0), compute(1), reduce(7, 2))
    two = rank(1, compute(40), reduce(5, 0), compute(1, queue="other"), reduce(7, 2))
    first, second = played(job_of([one, two]))
    assert [row.end_us for row in second if row.place in {1, 3}] == [45, 52]
    assert first[3].end_us == 52


def test_groups_meet_apart() -> None:
    traces = [
        rank(0, reduce(5, group="a"), a=(0, 1)),
        rank(1, compute(9), reduce(5, 0, group="a"), a=(0, 1)),
        rank(2, reduce(5, group="a"), a=(2, 3)),
        rank(3, reduce(5, group="a"), a=(2, 3)),
    ]
    ends = [rows[-1].end_us for rows in played(job_of(traces))]
    assert ends == [14, 14, 5, 5]


def test_messages_wait_for_both_ends() -> None:
    send = TraceOperation("f", "s", SEND, 0, (0,), Message("sendrecv", 4, "", 1, 3))
    receive = TraceOperation("f", "r", RECEIVE, 0, (), Message("sendrecv", 4, "", 0, 3))
    first, second = played(job_of([rank(0, compute(6), send), rank(1, receive, compute(2, 0))]))
    assert first[1].end_us == second[0].end_us == 10
    assert second[1].end_us == 12


def test_one_trace_stands_for_all() -> None:
    job = job_of([rank(2, compute(3), reduce(5, 0))], 8)
    assert job.members[0][1] == tuple(range(8))
    assert played(job)[0][-1].end_us == 8


@given(st.data())
def test_without_queues_the_end_is_that_of_the_longest_path(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 12))
    rows = []
    for at in range(n):
        after = data.draw(st.sets(st.integers(0, at - 1), max_size=3)) if at else set()
        rows.append(compute(data.draw(st.integers(0, 50)), *sorted(after), queue=""))
    ends: list[float] = []
    for row in rows:
        ends.append(row.duration_us + max((ends[before] for before in row.after), default=0.0))
    (found,) = played(job_of([rank(0, *rows)]))
    assert [row.end_us for row in found] == ends


@given(st.permutations(range(6)))
def test_the_order_is_the_first_possible_of_the_file(places: list[int]) -> None:
    rows: list[TraceOperation] = [compute(1)] * 6
    chain = dict(zip(places[1:], places, strict=False))
    for place, before in chain.items():
        rows[place] = compute(1, before)
    assert list(order_of(rank(0, *rows))) == places


@pytest.mark.parametrize(
    ("traces", "words"),
    [
        ([rank(0, compute(1, 1), compute(2, 0))], "in a circle: compute 1"),
        ([rank(0, reduce(4, group="5"))], 'the ranks of group "5" are not told'),
        ([rank(0, reduce(4, group="a"), a=(1, 2))], "the rank is 0 of 3"),
        ([rank(0, reduce(4, group="a"), a=(0, 2, 2))], 'group "a" is [0, 2, 2]'),
        ([rank(0, reduce(4, group="a"), a=(0, 2**30))], "the traces tell of 1073741825"),
        ([rank(0, reduce(4)), rank(1, reduce(8))], "all_reduce of 8 B; at f it is all_reduce of 4"),
        ([rank(0, reduce(4)), rank(1)], "waits for ever: 1 of 2 ranks come to it (0)"),
        (
            [rank(0, TraceOperation("f", "s", SEND, 0, (), Message("sendrecv", 4, "", 0)))],
            "from rank 0 to itself",
        ),
    ],
)
def test_what_cannot_be_played_is_refused(traces: list[RankTrace], words: str) -> None:
    with pytest.raises(InputError) as caught:
        played(job_of(traces, max(3, len(traces)) if len(traces) == 1 else None))
    assert words in str(caught.value)


def test_more_ranks_than_there_can_be_are_refused_at_once() -> None:
    with pytest.raises(InputError, match="at most 1048576"):
        job_of([RankTrace("f", "chakra", 0, (reduce(4),), {}, 2**30)])


def test_ranks_that_wait_for_each_other_crosswise_are_told() -> None:
    groups: dict[str, Ranks] = {"a": (0, 1), "b": (0, 1, 2)}
    one = rank(0, reduce(4, group="a"), reduce(4, 0, group="b"), **groups)
    two = rank(1, reduce(4, group="b"), reduce(4, 0, group="a"), **groups)
    three = rank(2, reduce(4, group="b"), b=(0, 1, 2))
    with pytest.raises(InputError, match="waits for ever: 1 of 2 ranks"):
        played(job_of([one, two, three]))
