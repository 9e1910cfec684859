from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from gpufabric.report.packet_names import plain_names
from gpufabric.report.packet_page import packet_page
from gpufabric.report.packet_rates import rate_gbps
from gpufabric.report.packet_trace import packet_trace, write_packet_trace
from gpufabric.sim.packet import Recording, simulate_packets
from gpufabric.sim.packet_config import Watchdog
from gpufabric.sim.packet_faults import LinkDown, LinkFlap, PauseStorm, SlowLink
from gpufabric.sim.packet_pauses import pause_roots, pause_spans
from gpufabric.sim.packet_profiles import infiniband
from tests.sim.packet_cases import incast
from tests.sim.test_packet_deadlock import SHALLOW, ring
from tests.sim.test_packet_pauses import PAUSING, TREE


def test_names_are_made_of_numbers() -> None:
    names = plain_names(TREE.wires)
    assert names.channels[0] == "NIC 0 → switch 0"
    assert names.channels[9] == "switch 1 → NIC 4"
    assert names.channels[10] == "switch 0 → switch 1"
    assert names.end(3, -1) == "NIC 1"
    assert names.traffic(1) == "class 1"


def test_flows_pauses_and_their_causes_stand_in_the_trace(tmp_path: Path) -> None:
    result = simulate_packets(TREE, PAUSING, recording=Recording(bins=32))
    names = plain_names(TREE.wires)
    path = write_packet_trace(TREE, result, names, tmp_path / "trace.json")
    trace = json.loads(path.read_text(encoding="utf-8"))
    events = trace["traceEvents"]
    count = Counter(event["ph"] for event in events)
    assert result.pause_log is not None
    spans = pause_spans(result.pause_log)
    assert count["b"] == count["e"] == TREE.n_flows
    assert count["X"] == len(spans)
    assert count["s"] == count["f"] == (spans.cause >= 0).sum() > 0
    ends = {event["id"]: event["ts"] for event in events if event["ph"] == "e"}
    assert ends == {flow: ps / 1e6 for flow, ps in enumerate(result.flows.delivered_ps.tolist())}
    pauses = [event for event in events if event["ph"] == "X"]
    assert sum(event["dur"] for event in pauses) * 1e6 == round(result.ports.paused_ps.sum())
    assert result.pause_log is not None
    roots = pause_roots(pause_spans(result.pause_log))
    assert {event["args"]["root"] for event in pauses} == {
        names.channels[root.channel] for root in roots
    }
    assert {event["args"]["waits_in"] for event in pauses} == {
        names.channels[9],
        names.channels[10],
    }
    # Perfetto wants a name for each line, and no event before the run.
    lines = {event["tid"] for event in events if event["name"] == "thread_name"}
    assert {event["tid"] for event in pauses} == lines
    assert min(event["ts"] for event in events) >= 0
    rates = [event["args"]["value"] for event in events if event["ph"] == "C" and event["pid"] == 4]
    assert 0 < max(rates) <= 400


def test_a_deadlock_is_an_instant_of_the_trace() -> None:
    problem = ring(4, [(at, 3) for at in range(4)], 200_000)
    result = simulate_packets(problem, SHALLOW, recording=Recording(bins=0))
    events = packet_trace(problem, result, plain_names(problem.wires))["traceEvents"]
    (instant,) = [event for event in events if event["ph"] == "i"]
    assert len(instant["args"]["circle"]) == 4


def test_a_run_that_notes_nothing_has_its_flows() -> None:
    problem = incast(2, 10_000)
    trace = packet_trace(problem, simulate_packets(problem), plain_names(problem.wires))
    assert {event["pid"] for event in trace["traceEvents"]} == {1}


def test_faults_and_what_the_watchdog_ended_stand_in_the_trace() -> None:
    storm = PauseStorm(int(TREE.wires.reverse[9]), 10.0, 60.0)
    late = LinkDown(0, 1e6)
    problem = replace(TREE, faults=(storm, late))
    config = replace(PAUSING, watchdog=Watchdog(detect_us=20.0, restore_us=20.0))
    result = simulate_packets(problem, config, recording=Recording(bins=0), until_ps=100_000_000)
    events = packet_trace(problem, result, plain_names(problem.wires))["traceEvents"]
    (fault,) = [event for event in events if event.get("cat") == "fault"]
    assert (fault["ts"], fault["dur"]) == (10.0, 50.0)
    assert fault["name"] == "pause-storm: NIC 4 → switch 1"
    assert any(event.get("args", {}).get("is_ended_by_watchdog") for event in events)
    text = packet_page(problem, result, plain_names(problem.wires))
    assert "What was made to go wrong" in text
    assert "<td>pause-storm</td>" in text or ">pause-storm<" in text
    assert "the watchdog ended" in text


def test_rates_are_those_of_the_speed_that_a_link_then_has() -> None:
    slow = SlowLink(9, 40.0, 0.0, 1e5)
    problem = replace(TREE, faults=(slow,))
    result = simulate_packets(problem, PAUSING, recording=Recording(bins=16))
    assert result.series is not None
    row = result.series.channels.tolist().index(9)
    assert max(rate_gbps(problem, result.series, row)) <= 40.0 + 1e-9
    again = replace(problem, faults=(replace(slow, end_us=result.end_ps / 2e6),))
    halves = simulate_packets(again, PAUSING, recording=Recording(bins=512))
    assert halves.series is not None
    rates = rate_gbps(again, halves.series, row)
    sent = (rates * halves.series.bin_ps).sum() / 8000
    assert sent == pytest.approx(halves.ports.wire_bytes[9], rel=0.05)


def test_links_that_wait_for_credits_are_said_to_and_no_nic_to_pause() -> None:
    wires = TREE.wires
    problem = replace(TREE, faults=(LinkFlap(9, 5.0, 60.0, 5.0, 5.0),))
    result = simulate_packets(problem, infiniband(), recording=Recording(bins=16))
    text = packet_page(problem, result, plain_names(wires))
    assert "NIC sends pauses" not in text
    assert "(the NIC pauses)" not in text
    assert "(too few credits)" in text
