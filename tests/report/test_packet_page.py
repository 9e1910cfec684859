from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpufabric.report.packet_figures import completion_figure, shown_rows, timeline_figure
from gpufabric.report.packet_names import plain_names
from gpufabric.report.packet_page import packet_page, write_packet_page
from gpufabric.report.packet_topology_figure import pause_figure
from gpufabric.report.packet_words import goodput_gbps, what_happened
from gpufabric.sim.packet import PacketProblem, PacketResult, Recording, simulate_packets
from gpufabric.sim.packet_config import SwitchBuffer
from gpufabric.sim.packet_pauses import pause_edges, pause_roots
from tests.sim.packet_cases import incast
from tests.sim.test_packet import LOSSY
from tests.sim.test_packet_deadlock import SHALLOW, ring
from tests.sim.test_packet_pauses import PAUSING, TREE, spans_of

NAMES = plain_names(TREE.wires)


@pytest.fixture(scope="module")
def tree() -> PacketResult:
    return simulate_packets(TREE, PAUSING, recording=Recording(bins=64))


def body(problem: PacketProblem, result: PacketResult, title: str = "") -> str:
    page = packet_page(problem, result, plain_names(problem.wires), title)
    return page[page.index("<body>") :]


def test_the_page_needs_no_network_and_says_in_words_what_its_figures_show(
    tree: PacketResult, tmp_path: Path
) -> None:
    path = write_packet_page(TREE, tree, NAMES, tmp_path / "page.html", "A < B")
    page = path.read_text(encoding="utf-8")
    assert "<title>A &lt; B</title>" in page
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", page)
    text = page[page.index("<body>") :]
    labels = re.findall(r'role="img" aria-label="([^"]+)"', text)
    assert len(labels) == text.count("<figcaption>") == 3
    assert all(len(label) > 40 for label in labels)
    assert "4 of 4 flows were delivered." in text
    assert "100% of that comes from switch 1 → NIC 4: it stopped 5 ports." in text
    assert '<th scope="col">Root</th>' in text


def test_a_run_that_noted_nothing_still_has_its_page() -> None:
    problem = incast(2, 10_000)
    text = body(problem, simulate_packets(problem))
    assert 'id="timeline"' not in text
    assert 'id="completion"' in text
    assert "No port was paused." in text


def test_a_deadlock_is_told_hop_by_hop() -> None:
    problem = ring(4, [(at, 3) for at in range(4)], 200_000)
    text = body(problem, simulate_packets(problem, SHALLOW, recording=Recording(bins=32)))
    assert "<li class=bad>0 of 4 flows were delivered.</li>" in text
    assert "4 buffers wait for each other in a circle" in text
    rows = re.findall(r"<td>(switch \d → switch \d), class 0</td>", text)
    assert len(set(rows[:4])) == 4
    assert all(
        one[-1] == other[7] for one, other in zip(rows[:4], [*rows[1:4], rows[0]], strict=True)
    )


def test_drops_are_told_with_their_reason() -> None:
    problem = incast(4, 400_000)
    config = replace(LOSSY, buffer=SwitchBuffer(tail_bytes=20_000, reserve_bytes=0))
    result = simulate_packets(problem, config)
    told = dict(what_happened(problem, result, plain_names(problem.wires), []))
    (words,) = [one for one, is_bad in told.items() if is_bad]
    assert f"buffer {result.drops['buffer']:,}" in words


def test_the_time_lines_are_those_of_the_series_on_one_clock(tree: PacketResult) -> None:
    series = tree.series
    assert series is not None
    rows = shown_rows(series)
    figure = timeline_figure(TREE, tree, NAMES)
    assert len(figure.data) == 3 * len(rows)
    assert {str(NAMES.channels[series.channels[row]]) for row in rows} >= {
        NAMES.channels[9],
        NAMES.channels[10],
    }
    assert all(list(line.x) == list(figure.data[0].x) for line in figure.data)
    assert max(max(line.y) for line in figure.data if line.yaxis == "y2") <= 1.0
    assert figure.layout.xaxis.matches == "x3"


def test_the_curve_of_completion_times_ends_where_flows_are_missing() -> None:
    problem = replace(incast(4, 400_000), size_bytes=np.array([40_000, 50_000, 400_000, 400_000]))
    done = completion_figure(problem, simulate_packets(problem), plain_names(problem.wires))
    assert done.data[0].y[-1] == 1.0
    cut = simulate_packets(problem, until_ps=30_000_000)
    share = float((cut.flows.fct_ps >= 0).mean())
    assert 0 < share < 1
    figure = completion_figure(problem, cut, plain_names(problem.wires))
    assert figure.data[0].y[-1] == share


def test_the_pause_tree_has_a_line_for_each_port_that_stood_still(tree: PacketResult) -> None:
    spans = spans_of(tree)
    edges = pause_edges(spans)
    figure = pause_figure(TREE.wires, pause_roots(spans), edges, NAMES)
    told = {line.text[0] for line in figure.data if line.mode == "lines" and line.text[0]}
    for channel in (0, 2, 4, 6, 10):
        assert any(words.startswith(NAMES.channels[channel]) for words in told)
    nodes = figure.data[-1]
    red = [
        nodes.hovertext[at] for at, colour in enumerate(nodes.marker.color) if "b3261e" in colour
    ]
    assert red == ["switch 1: root of the pauses"]


def test_goodput_is_payload_over_time(tree: PacketResult) -> None:
    last_ps = int(tree.flows.delivered_ps.max())
    assert goodput_gbps(TREE, tree) == pytest.approx(4 * 200_000 * 8000 / last_ps)
    assert 90 < (goodput_gbps(TREE, tree) or 0.0) < 100
    nothing = replace(tree, flows=replace(tree.flows, delivered_ps=np.full(4, -1)))
    assert goodput_gbps(TREE, nothing) is None
