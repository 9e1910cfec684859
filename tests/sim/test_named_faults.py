"""Faults as a person writes them: on the command line, in a file, and what they do to a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from gpufabric.core.errors import InputError
from gpufabric.sim.named_faults import KINDS, NamedFault, faults_schema, find_faults
from gpufabric.sim.packet_faults import BitErrors, LinkFlap, PauseStorm, SlowHost
from gpufabric.sim.packet_prepared import prepare
from gpufabric.sim.packet_run import run_packet_scenario
from gpufabric.sim.scenario import Scenario
from gpufabric.sim.traffic import PatternOptions
from gpufabric.sim.traffic_result import TrafficResult
from tests.sim.plants import INFINIBAND, RAIL, plant

OPTIONS = PatternOptions(fan_in=4, size_bytes=1e6)
SCENARIO = Scenario("incast", options=OPTIONS, engine="packet", n_bins=0)
NIC = "host-05[nic1]"
LEAF = "leaf-su01-r1"
WORDS = (
    f"pause-storm port={NIC} start_us=50 end_us=1050",
    f"slow-host port={NIC} gbps=100",
    f"mtu-mismatch port={NIC} frame_bytes=1518",
    f"bit-errors port={NIC} loss_per_packet=1e-2",
    f"link-down port={NIC} start_us=1 end_us=9",
    f"link-flap port={NIC} start_us=10 end_us=300 down_us=5 up_us=95",
    f"slow-link port={NIC} gbps=100",
    f"override switches={LEAF} kind=lossy has_pfc=false",
)
FILE = f"""\
faults:
  - {{fault: pause-storm, port: "{NIC}", start_us: 50, end_us: 1050}}
  - fault: override
    switches: [{LEAF}]
    kind: lossy
    has_pfc: false
"""


def run(*words: str) -> TrafficResult:
    return run_packet_scenario(plant(RAIL), replace(SCENARIO, faults=find_faults(words)))


def test_words_and_a_file_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text(FILE)
    by_file = find_faults([str(path)])
    by_words = find_faults([WORDS[0], WORDS[-1]])
    for one, other in zip(by_file, by_words, strict=True):
        assert (one.kind, one.port, dict(one.values)) == (
            other.kind,
            other.port,
            dict(other.values),
        )
    assert find_faults([one.words for one in by_file]) != ()
    assert by_file[0].at("start_us").endswith("faults.yaml:2:5: faults[0].start_us")


def test_every_kind_is_named_in_the_tests_and_in_the_schema() -> None:
    assert [words.split()[0] for words in WORDS] == list(KINDS)
    schema = faults_schema()
    Draft202012Validator.check_schema(schema)
    check = Draft202012Validator(schema)
    assert check.is_valid({"faults": [{"fault": "slow-host", "port": NIC, "gbps": 100.0}]})
    assert not check.is_valid({"faults": [{"fault": "slow-host", "port": NIC}]})
    assert not check.is_valid({"faults": [{"fault": "slow-host", "gbps": 1.0, "prt": NIC}]})


def test_a_port_is_where_the_fault_is_seen() -> None:
    named = find_faults(WORDS)
    faults = prepare(plant(RAIL), replace(SCENARIO, faults=named)).faults
    channels = plant(RAIL).channels
    names = {type(fault): channels.name(fault.channel) for fault in faults}
    up, down = f"{NIC} > {LEAF}[5]", f"{LEAF}[5] > {NIC}"
    assert names[PauseStorm] == up
    assert names[SlowHost] == names[BitErrors] == down
    assert names[LinkFlap] in {up, down}
    (storm,) = (fault for fault in faults if isinstance(fault, PauseStorm))
    assert (storm.start_us, storm.end_us, storm.traffic_class) == (50.0, 1050.0, 0)


def _took_us(result: TrafficResult) -> float:
    return float(result.summary(0)["completion_s"]) * 1e6


def _of_reason(reason: str) -> Callable[[TrafficResult], bool]:
    return lambda result: result.summary(0)["packets"]["drops_by_reason"].get(reason, 0) > 0


@pytest.fixture(scope="module")
def healthy() -> TrafficResult:
    return run()


@pytest.mark.parametrize("words", WORDS[:7], ids=lambda words: words.split()[0])
def test_every_timed_fault_costs_something(words: str, healthy: TrafficResult) -> None:
    result = run(words)
    summary, before = result.summary(0), healthy.summary(0)
    assert summary["faults"] == [words]
    assert before["faults"] == []
    assert before["packets"]["drops"] == 0
    assert (
        summary["flows"].get("finished", 0) < 4
        or summary["completion_s"] > 1.01 * before["completion_s"]
        or summary["packets"]["drops"] > 0
    )
    assert any(one.topic == "fault" and one.choice == words for one in result.decisions)


def test_a_storm_lasts_as_long_as_it_is_asked_to(healthy: TrafficResult) -> None:
    result = run(WORDS[0])
    assert _took_us(result) == pytest.approx(_took_us(healthy) + 1000.0, rel=0.02)
    tree = result.summary(0)["packets"]["pause_tree"]
    assert tree is None  # nothing was asked to be noted


def test_an_override_stands_behind_those_of_the_profile() -> None:
    prepared = prepare(plant(RAIL), replace(SCENARIO, faults=find_faults(WORDS[-1:])))
    (override,) = prepared.config(0).overrides
    assert not override.has_pfc
    assert prepared.scenario.profile is not None
    assert len(prepared.scenario.profile.config.overrides) == 1


WRONG = [
    ("pausestorm port=x", 'Did you mean "pause-storm"?'),
    ("", "it does not begin with a kind."),
    ("port=x", "it does not begin with a kind."),
    ("slow-host", "port, gbps is missing."),
    (f"slow-host port={NIC} gbps=", "gbps has no value."),
    (f"slow-host port={NIC} gbps=1 gbps=2", "gbps stands twice."),
    (f"slow-host port={NIC} gbps=fast", 'gbps: "fast" found. Expected: a number'),
    (f"slow-host port={NIC} gpbs=1", 'Did you mean "gbps"?'),
    (f"slow-host port={NIC} gbps=-1", "gbps: the value is -1.0."),
    (f"slow-host port={NIC} gbps=.nan", "gbps: the value is nan."),
    (f"slow-host port={LEAF}[5] gbps=1", f"port: {LEAF}[5] is a port of a switch."),
    ("slow-host port=host-05[nic9] gbps=1", 'port: there is no port "host-05[nic9]"'),
    ("slow-host port=hst-05[nic1] gbps=1", 'Did you mean "host-05"?'),
    (f"link-down port={NIC} end_us=1e300", "end_us: the value is 1e+300."),
    (f"link-down port={NIC} detect_us=1e300", "detect_us: the value is 1e+300."),
    (f"link-down port={NIC} start_us=2 end_us=1", "end_us: the value is 1.0."),
    (f"link-flap port={NIC} start_us=0 end_us=1e10 down_us=1 up_us=1", "end_us: the value is"),
    (f"link-flap port={NIC} start_us=1e11 end_us=1e16 down_us=1e9 up_us=1e9", "end_us: the value"),
    (f"pause-storm port={NIC} traffic_class=7", "traffic_class: the value is 7."),
    (f"bit-errors port={NIC}", "it changes nothing."),
    (f"bit-errors port={NIC} bit_error_rate=2", "bit_error_rate: the value is 2.0."),
    (f"override switches={LEAF}", "it changes nothing."),
    ("override switches=leaf-su01-r9 has_pfc=false", "switches[0]: there is no switch"),
    ("override ports=host-05[nic9] has_pfc=false", "ports[0]: there is no port"),
    ("override pmax=7", "pmax: the value is 7.0."),
    ("override kind=losy", 'Did you mean "lossy"?'),
    ("nowhere.yaml", "there is no such file"),
]


@pytest.mark.parametrize(("words", "expected"), WRONG)
def test_what_is_wrong_is_told_where_it_stands(words: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        prepare(plant(RAIL), replace(SCENARIO, faults=find_faults([words])))
    told = str(caught.value)
    assert expected in told
    assert words[:60] in told


def test_all_faults_are_told_together(tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text("faults:\n  - {fault: strom, port: x}\n  - {port: x}\n  - 3\nfalts: 1\n")
    with pytest.raises(InputError) as caught:
        find_faults([str(path), "slow-host"])
    told = str(caught.value)
    for words in (
        "faults.yaml:2:",
        "faults.yaml:3:",
        "faults.yaml:4:",
        "faults.yaml:5:",
        "gbps is missing",
    ):
        assert words in told
    for text in ("faults: []\n", "faults: 3\n", "{}\n"):
        path.write_text(text)
        with pytest.raises(InputError, match="there is no list of faults"):
            find_faults([str(path)])


def _prepared(*words: str, **change: object) -> object:
    scenario = replace(SCENARIO, faults=find_faults(words), **change)  # type: ignore[arg-type]
    return prepare(plant(RAIL), scenario)


def test_two_that_meet_are_told() -> None:
    with pytest.raises(InputError, match="another fault of this kind still holds at 60"):
        _prepared(WORDS[0], f"pause-storm port={NIC} start_us=60")
    with pytest.raises(InputError, match="another fault of this kind still holds"):
        _prepared(f"link-down port={NIC} start_us=150", fail=(f"link:{NIC}@1e-4",))


def test_storms_and_slow_hosts_need_pfc() -> None:
    scenario = replace(SCENARIO, faults=find_faults(["pause-storm port=host-05[nic1]"]))
    with pytest.raises(InputError, match="needs PFC, and InfiniBand has credits"):
        prepare(plant(INFINIBAND), scenario)


def test_a_fault_is_a_value() -> None:
    (one,) = find_faults([f"slow-host  port={NIC}   gbps=100"])
    assert isinstance(one, NamedFault)
    assert one.words == WORDS[1]
    assert hash(one.words)
