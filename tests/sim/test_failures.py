from __future__ import annotations

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.sim.failures import down_links, find_failures, instants
from tests.sim.plants import NON_BLOCKING, RAIL, RAIL_ONLY, fabric


def one(words: str, seed: int = 0) -> np.ndarray:
    (failure,) = find_failures(fabric(RAIL), [words], seed)
    return failure.links


def ends(link: int) -> set[str]:
    view = fabric(RAIL).link_view(link)
    return {f"{view.a}[{view.a_port}]", f"{view.b}[{view.b_port}]"}


def test_a_link_is_named_by_either_end_or_both() -> None:
    links = fabric(RAIL).links
    at = int(np.flatnonzero(links.tier == 2)[0])
    lower, upper = (f"{end}" for end in sorted(ends(at)))
    for words in (lower, upper, f"{lower}>{upper}", f" {upper} > {lower} "):
        assert one(f"link:{words}").tolist() == [at]


def test_two_devices_name_all_links_between_them() -> None:
    found = one("link:leaf-su01-r0>spine-01")
    assert len(found) > 1
    for link in found.tolist():
        assert {name.split("[")[0] for name in ends(link)} == {"leaf-su01-r0", "spine-01"}


def test_a_switch_fails_with_all_its_links() -> None:
    links = fabric(RAIL).links
    found = one("switch:leaf-su01-r0")
    assert np.bincount(links.tier[found]).tolist()[1:] == [8, 16]


def test_random_links_nest_and_spare_hosts() -> None:
    links = fabric(RAIL).links
    few, many = one("random:0.1"), one("random:50%")
    assert (len(few), len(many)) == (13, 64)
    assert set(few.tolist()) < set(many.tolist())
    assert (links.tier[many] > 1).all()
    assert not np.array_equal(few, one("random:0.1", seed=1))
    assert len(one("random:0")) == 0


def test_times_say_what_is_down_when() -> None:
    failures = find_failures(
        fabric(RAIL), ["random:0.1", "switch:spine-01@0.5..2", "switch:spine-02@2"]
    )
    assert instants(failures) == [0.0, 0.5, 2.0]
    down = [set(down_links(failures, time).tolist()) for time in (0.0, 0.5, 1.9, 2.0, 9.0)]
    always, first, second = (set(failure.links.tolist()) for failure in failures)
    assert down == [
        always,
        always | first,
        always | first,
        always | second,
        always | second,
    ]
    assert down_links((), 0.0).tolist() == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("lnk:x", 'Did you mean "link"?'),
        ("link", "is no failure"),
        ("link:", "is no failure"),
        ("switch:spine-1", 'there is no switch "spine-1". Did you mean'),
        ("link:spine-1[1]", 'there is no host or switch "spine-1".'),
        ("link:spine-01", "a link of spine-01 needs its port."),
        ("link:spine-01[999]", "spine-01 has no link on port 999."),
        ("link:spine-01>spine-02", "there is no link between spine-01 and spine-02."),
        ("link:a>b>c", "names no link"),
        ("link:spine-01[1", "names no link"),
        ("random:2", '"2" is no share. Expected: 0 to 1'),
        ("random:ten", '"ten" is no share.'),
        ("random:nan", '"nan" is no share.'),
        ("switch:spine-01@x", '"x" is no time.'),
        ("switch:spine-01@2..1", '"2..1" is no time.'),
        ("switch:spine-01@-1", '"-1" is no time.'),
        ("switch:spine-01@inf", '"inf" is no time.'),
    ],
)
def test_what_cannot_fail_is_told(words: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        find_failures(fabric(RAIL), [words])
    assert message in str(caught.value)
    assert str(caught.value).startswith("--fail ")


def test_all_faults_are_told_together() -> None:
    with pytest.raises(InputError) as caught:
        find_failures(fabric(NON_BLOCKING), ["x", "switch:y", "random:0.1"])
    assert len(caught.value.faults) == 2


def test_random_failures_need_links_between_switches() -> None:
    with pytest.raises(InputError, match="no links between switches"):
        find_failures(fabric(RAIL_ONLY), ["random:0.1"])
