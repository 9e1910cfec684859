from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.core.errors import InputError
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.collectives import messages_of, schedule_of
from gpufabric.workload.nccl_tuner import allowed
from gpufabric.workload.operations import OPERATIONS
from gpufabric.workload.pairwise import (
    Experts,
    all_to_all_messages,
    all_to_all_phases,
    expert_phases,
    mean_hosts_reached,
)
from gpufabric.workload.rings import ring_order, ring_pairs
from gpufabric.workload.schedule import Messages, merged
from gpufabric.workload.token_messages import token_messages
from gpufabric.workload.trees import depths, parents
from tests.reference.schedule import execute

SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 5)).filter(lambda s: s[0] * s[1] > 1)


def cluster(domains: int, each: int) -> Cluster:
    return Cluster("H100", each, domains, 50.0 * each, n_nics=each)


def everyone(messages: Messages) -> list[list[frozenset[int] | None]]:
    """All ranks have data of all chunks; switches have nothing."""
    n, places = messages.n_ranks, messages.n_places
    return [
        [frozenset([place]) if place < n else None] * messages.n_chunks for place in range(places)
    ]


@pytest.mark.parametrize("algorithm", ["Ring", "Tree", "NVLSTree", "CollNetDirect"])
@given(shape=SHAPES)
def test_an_all_reduce_adds_every_rank_everywhere(algorithm: str, shape: tuple[int, int]) -> None:
    messages = messages_of(cluster(*shape), "all_reduce", algorithm, 1e6)
    held = execute(messages, everyone(messages))
    every = frozenset(range(messages.n_ranks))
    assert all(piece == every for row in held[: messages.n_ranks] for piece in row)


@given(st.integers(2, 9))
def test_a_switch_of_nvlink_reduces_one_host(each: int) -> None:
    messages = messages_of(cluster(1, each), "all_reduce", "NVLS", 1e6)
    held = execute(messages, everyone(messages))
    assert all(piece == frozenset(range(each)) for row in held[:each] for piece in row)


@pytest.mark.parametrize("algorithm", ["Ring", "PAT"])
@given(n=st.integers(2, 17))
def test_an_all_gather_brings_every_piece_to_everyone(algorithm: str, n: int) -> None:
    messages = messages_of(cluster(n, 1), "all_gather", algorithm, 1e6)
    start = [[frozenset([r]) if r == c else None for c in range(n)] for r in range(n)]
    held = execute(messages, start)
    assert held == [[frozenset([c]) for c in range(n)] for _rank in range(n)]


@pytest.mark.parametrize("algorithm", ["Ring", "PAT"])
@given(n=st.integers(2, 17))
def test_a_reduce_scatter_leaves_each_piece_at_its_owner(algorithm: str, n: int) -> None:
    messages = messages_of(cluster(n, 1), "reduce_scatter", algorithm, 1e6)
    held = execute(messages, everyone(messages))
    assert all(held[rank][rank] == frozenset(range(n)) for rank in range(n))


@given(shape=SHAPES)
def test_a_broadcast_reaches_all_and_a_reduce_adds_all(shape: tuple[int, int]) -> None:
    messages = messages_of(cluster(*shape), "broadcast", "Ring", 1e6)
    n = messages.n_ranks
    start = [[frozenset([0]) if r == 0 else None] * messages.n_chunks for r in range(n)]
    assert all(p == frozenset([0]) for row in execute(messages, start) for p in row)
    messages = messages_of(cluster(*shape), "reduce", "Ring", 1e6)
    held = execute(messages, everyone(messages))
    assert all(piece == frozenset(range(n)) for piece in held[0])


@given(shape=SHAPES, by_rail=st.booleans())
def test_an_all_to_all_brings_each_piece_where_it_belongs(
    shape: tuple[int, int], by_rail: bool
) -> None:
    messages = messages_of(cluster(*shape), "alltoall", "Pairwise", 1e6, by_rail=by_rail)
    n, each = messages.n_ranks, shape[1]
    start = [[frozenset([r]) if c // n == r else None for c in range(n * n)] for r in range(n)]
    held = execute(messages, start)
    assert all(held[t][r * n + t] == frozenset([r]) for r in range(n) for t in range(n))
    if by_rail:
        far = messages.source // each != messages.target // each
        assert (messages.source[far] % each == messages.target[far] % each).all()


@pytest.mark.parametrize(
    ("op", "algorithm"),
    [
        ("all_reduce", "Ring"),
        ("all_reduce", "NVLSTree"),
        ("all_reduce", "CollNetDirect"),
        ("alltoall", "Pairwise"),
    ],
)
@given(shape=SHAPES)
def test_the_merged_phases_send_what_the_messages_send(
    op: str, algorithm: str, shape: tuple[int, int]
) -> None:
    place = cluster(*shape)
    schedule = schedule_of(place, op, algorithm, 1e6)
    messages = messages_of(place, op, algorithm, 1e6)
    sent = np.bincount(messages.source, messages.n_bytes, minlength=messages.n_places)
    assert schedule.sent_bytes[: place.n_ranks].sum() == pytest.approx(sent[: place.n_ranks].sum())
    pairs = {pair for pair, size in merged(messages).items() if size}
    mine = {
        (int(s), int(t))
        for phase in schedule.phases
        for s, t in zip(phase.source, phase.target, strict=True)
    }
    assert pairs <= mine  # one ring of many uses some of the pairs of all


@given(st.integers(1, 70))
def test_both_trees_reach_every_host(n: int) -> None:
    for tree in (0, 1):
        above = parents(n, tree)
        assert (above < 0).sum() == 1
        depth = depths(above)
        assert depth.max() <= np.ceil(np.log2(max(n, 2)))
        assert (np.bincount(above[above >= 0], minlength=n) <= 2).all()


@given(st.integers(1, 32).map(lambda half: 2 * half))
def test_who_is_in_the_middle_of_one_tree_is_a_leaf_of_the_other(n: int) -> None:
    inner = [np.bincount(p[p >= 0], minlength=n) > 0 for p in (parents(n, 0), parents(n, 1))]
    assert (inner[0] & inner[1]).sum() <= 2


@given(SHAPES)
def test_rings_use_every_nic_alike(shape: tuple[int, int]) -> None:
    source, target, part = ring_pairs(*shape)
    n, each = shape[0] * shape[1], shape[1]
    assert np.bincount(source, part, minlength=n) == pytest.approx(np.ones(n))
    assert np.bincount(target, part, minlength=n) == pytest.approx(np.ones(n))
    summed: dict[tuple[int, int], float] = {}
    for channel in range(each):
        order = ring_order(*shape, channel)
        for a, b in zip(order.tolist(), np.roll(order, -1).tolist(), strict=True):
            summed[a, b] = summed.get((a, b), 0.0) + 1 / each
    pairs = zip(source.tolist(), target.tolist(), strict=True)
    assert dict(zip(pairs, part.tolist(), strict=True)) == pytest.approx(summed)


def test_a_ring_all_reduce_by_hand() -> None:
    # 16 ranks, 1 GB: each sends 2 x 15/16 GB, in 30 steps.
    schedule = schedule_of(cluster(2, 8), "all_reduce", "Ring", 1e9)
    assert schedule.sent_bytes == pytest.approx(np.full(16, 1.875e9))
    assert schedule.n_steps == 30


def test_a_ring_over_8192_ranks_is_a_few_thousand_rows() -> None:
    schedule = schedule_of(cluster(1024, 8), "all_reduce", "Ring", 1e9)
    assert sum(len(phase.source) for phase in schedule.phases) == 2 * 8192


def test_uneven_all_to_all_keeps_all_bytes_by_rail() -> None:
    rng = np.random.default_rng(1)
    parts = rng.random((12, 12))
    direct = all_to_all_phases(3, 4, 1e6, parts=parts)
    first, second = all_to_all_phases(3, 4, 1e6, by_rail=True, parts=parts)
    host = np.arange(12) // 4
    far = parts[host[:, None] != host].sum() * 1e6
    assert second.n_bytes.sum() == pytest.approx(far)
    over = host[direct[0].source] != host[direct[0].target]
    assert direct[0].n_bytes[over].sum() == pytest.approx(far)
    assert (first.source // 4 == first.target // 4).all()
    with pytest.raises(InputError, match="parts"):
        all_to_all_phases(3, 4, 1e6, parts=parts[:5])


def test_hosts_that_a_token_reaches_against_drawing() -> None:
    rng = np.random.default_rng(5)
    hosts, experts, top = 8, 64, 8
    drawn = np.array([rng.permutation(experts)[:top] // (experts // hosts) for _i in range(4000)])
    other = np.array([len(set(row.tolist()) - {0}) for row in drawn])
    assert mean_hosts_reached(hosts, experts, top, hosts) == pytest.approx(other.mean(), rel=0.02)


def test_experts_cross_the_network_once_a_host() -> None:
    # DeepSeek-V3 on 8 hosts: 4096 tokens of 7,168 B, top 8 of 256 experts, 4 hosts at most.
    experts = Experts(256, 8, 4)
    rails, nvlink = expert_phases(8, 8, experts, 4096 * 7168.0)
    reached = mean_hosts_reached(8, 256, 8, 4)
    assert 3.0 < reached < 3.5
    sent = np.bincount(rails.source, rails.n_bytes)
    assert sent == pytest.approx(np.full(64, 4096 * 7168.0 * reached))
    assert (rails.source % 8 == rails.target % 8).all()
    back = expert_phases(8, 8, experts, 4096 * 14336.0, combine=True)
    assert [phase.name for phase in back] == ["NVLink", "rails"]
    # Once to each GPU that has experts for it: of 32 GPUs of 8 experts, 8 drawn ones hit 7.2.
    drawn = np.random.default_rng(1).permuted(np.tile(np.arange(256), (4000, 1)), axis=1)[:, :8]
    hit = np.mean([len(set(row // 8)) for row in drawn])
    few = expert_phases(4, 8, Experts(256, 8), 1.0)[1].n_bytes.sum() / 32
    assert few == pytest.approx(hit * 7 / 8, rel=0.01)
    assert nvlink.n_bytes.sum() > 0


def test_what_an_algorithm_does_not_do_is_refused() -> None:
    with pytest.raises(InputError, match="Tree"):
        schedule_of(cluster(2, 8), "all_gather", "Tree", 1e6)
    with pytest.raises(InputError, match="too many"):
        messages_of(cluster(1024, 8), "all_reduce", "Ring", 1e6)


@given(st.integers(3, 9))
def test_a_switch_of_nvlink_does_halves_of_an_all_reduce(n: int) -> None:
    messages = messages_of(cluster(1, n), "all_gather", "NVLS", 1e6)
    own = [[frozenset([r]) if r == c else None for c in range(n)] for r in range(n + 2)]
    assert execute(messages, own)[:n] == [[frozenset([c]) for c in range(n)]] * n
    messages = messages_of(cluster(1, n), "reduce_scatter", "NVLS", 1e6)
    held = execute(messages, everyone(messages))
    assert all(held[rank][rank] == frozenset(range(n)) for rank in range(n))


@given(st.integers(2, 12))
def test_what_goes_from_pair_to_pair(n: int) -> None:
    own = [[frozenset([r]) if r == c else None for c in range(n)] for r in range(n)]
    sent = execute(messages_of(cluster(n, 1), "sendrecv", "Pairwise", 1e6), own)
    assert all(sent[(rank + 1) % n][rank] == frozenset([rank]) for rank in range(n))
    gathered = execute(messages_of(cluster(n, 1), "gather", "Pairwise", 1e6), own)
    assert gathered[0] == [frozenset([rank]) for rank in range(n)]
    root = [[frozenset([0]) if r == 0 else None] * n for r in range(n)]
    dealt = execute(messages_of(cluster(n, 1), "scatter", "Pairwise", 1e6), root)
    assert all(dealt[rank][rank] == frozenset([0]) for rank in range(n))


@pytest.mark.parametrize("op", list(OPERATIONS))
@given(shape=SHAPES, has_sharp=st.booleans())
def test_all_that_nccl_may_choose_can_be_run_and_sends_what_it_says(
    op: str, shape: tuple[int, int], has_sharp: bool
) -> None:
    place = cluster(*shape)
    place = Cluster("H100", shape[1], shape[0], place.wire_gbytes_per_s, has_sharp=has_sharp)
    for name in dict.fromkeys(choice.algorithm for choice in allowed(place, op)):
        schedule = schedule_of(place, op, name, 1e6)
        messages = messages_of(place, op, name, 1e6)
        assert schedule.n_places == messages.n_places
        assert schedule.n_steps >= 1
        sent = np.bincount(messages.source, messages.n_bytes, minlength=messages.n_places)
        mine = schedule.sent_bytes
        total = sent[: place.n_ranks].sum()
        assert mine[: place.n_ranks].sum() == pytest.approx(total, rel=1e-9), name
        assert len(messages) > 0


@given(shape=SHAPES, seed=st.integers(0, 99), by_rail=st.booleans())
def test_an_uneven_all_to_all_brings_each_piece_whole(
    shape: tuple[int, int], seed: int, by_rail: bool
) -> None:
    n = shape[0] * shape[1]
    parts = np.random.default_rng(seed).random((n, n))
    messages = all_to_all_messages(*shape, 1e6, by_rail=by_rail, parts=parts)
    start = [[frozenset([r]) if c // n == r else None for c in range(n * n)] for r in range(n)]
    held = execute(messages, start)
    assert all(held[t][r * n + t] == frozenset([r]) for r in range(n) for t in range(n))
    phases = all_to_all_phases(*shape, 1e6, by_rail=by_rail, parts=parts)
    together: dict[tuple[int, int], float] = {}
    for phase in phases:
        rows = zip(phase.source.tolist(), phase.target.tolist(), phase.n_bytes, strict=True)
        for source, target, size in rows:
            together[source, target] = together.get((source, target), 0.0) + float(size)
    assert {pair: size for pair, size in together.items() if size} == pytest.approx(
        merged(messages)
    )


@given(shape=SHAPES, data=st.data())
def test_tokens_reach_their_experts_once_a_host_and_come_back_added(
    shape: tuple[int, int], data: st.DataObject
) -> None:
    domains, each = shape
    n = domains * each
    ranks = st.integers(0, n - 1)
    token = st.tuples(ranks, st.frozensets(ranks, min_size=1, max_size=4))
    tokens = data.draw(st.lists(token, min_size=1, max_size=6))
    messages = token_messages(domains, each, tokens, 7168.0)
    start = [[frozenset([r]) if r == s else None for s, _to in tokens] for r in range(n)]
    held = execute(messages, start)
    for at, (source, targets) in enumerate(tokens):
        assert all(held[target][at] == frozenset([source]) for target in targets)
    far = messages.source // each != messages.target // each
    assert (messages.source[far] % each == messages.target[far] % each).all()
    hosts = [{target // each for target in to} - {source // each} for source, to in tokens]
    assert far.sum() == sum(map(len, hosts))

    back = token_messages(domains, each, tokens, 7168.0, combine=True)
    made = [[frozenset([r]) if r in to else None for _s, to in tokens] for r in range(n)]
    held = execute(back, made)
    assert all(held[source][at] == targets for at, (source, targets) in enumerate(tokens))


def test_a_token_for_nobody_is_refused() -> None:
    with pytest.raises(InputError, match="token 1 is for ranks"):
        token_messages(2, 2, [(0, frozenset([3])), (0, frozenset([4]))], 1.0)
