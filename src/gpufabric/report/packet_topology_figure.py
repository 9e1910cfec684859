"""The pause tree on the topology: which links stood still, for how long, and because of whom."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import plotly.graph_objects as go

from gpufabric.core.text import _
from gpufabric.report.figure_style import HAIRLINE, INK, MUTED, SPINE, WARNING
from gpufabric.report.packet_figures import frame
from gpufabric.report.packet_names import PortNames
from gpufabric.sim.packet_pauses import PauseEdge, PauseRoot
from gpufabric.sim.packet_problem import Wires

__all__ = ["pause_figure"]

MOST_LINKS = 48
"""Links that stood still in the figure: those that did so longest."""
NO_NIC = -1

Place = tuple[int, int]  # switch and -1, or -1 and the link of a NIC


@dataclass(frozen=True)
class Still:
    """A channel that stood still, for how long, and what caused it."""

    channel: int
    paused_ps: int
    causes: tuple[int, ...]


def pause_figure(
    wires: Wires, roots: list[PauseRoot], edges: list[PauseEdge], names: PortNames
) -> go.Figure:
    """Draw the links that stood still: an arrow goes from who paused to who stood still."""
    still = _still(edges)
    shown = [*(one.channel for one in still), *(root.channel for root in roots[:3])]
    places = _places(wires, shown)
    figure = go.Figure()
    longest = max((one.paused_ps for one in still), default=1)
    for channel in dict.fromkeys(shown):
        _line(figure, wires, channel, places, {"color": HAIRLINE, "width": 1})
    for one in still:
        share = one.paused_ps / longest
        causes = ", ".join(names.channels[cause] for cause in one.causes)
        words = _("{port}: stood still {time:,.1f} µs because of {causes}").format(
            port=names.channels[one.channel], time=one.paused_ps / 1e6, causes=causes
        )
        _line(
            figure,
            wires,
            one.channel,
            places,
            {"color": f"rgba(208, 97, 107, {0.35 + 0.65 * share:.2f})", "width": 2 + 5 * share},
            words,
        )
        _arrow(figure, wires, one.channel, places)
    _nodes(figure, wires, places, roots, names)
    n_layers = 1 + max((y for _x, y in places.values()), default=0)
    figure.update_layout(
        frame(150 + 130 * int(n_layers), showlegend=False, hovermode="closest"),
        xaxis={"visible": False, "range": [-0.08, 1.16]},
        yaxis={"visible": False, "range": [-0.3, n_layers - 0.4]},
    )
    figure.update_layout(margin={"l": 8, "r": 8, "t": 8, "b": 8})
    return figure


def _still(edges: list[PauseEdge]) -> list[Still]:
    rows: dict[int, list[PauseEdge]] = defaultdict(list)
    for edge in edges:
        rows[edge.channel].append(edge)
    still = [
        Still(
            channel,
            sum(edge.paused_ps for edge in mine),
            tuple(dict.fromkeys(edge.cause for edge in mine)),
        )
        for channel, mine in rows.items()
    ]
    return sorted(still, key=lambda one: (-one.paused_ps, one.channel))[:MOST_LINKS]


def _ends(wires: Wires, channel: int) -> tuple[Place, Place]:
    link = min(channel, int(wires.reverse[channel]))
    tail, head = int(wires.tail[channel]), int(wires.head[channel])
    return (tail, NO_NIC if tail >= 0 else link), (head, NO_NIC if head >= 0 else link)


def _levels(wires: Wires) -> dict[int, int]:
    """Return how far each switch is from the nearest NIC."""
    near: dict[int, set[int]] = defaultdict(set)
    for tail, head in zip(wires.tail.tolist(), wires.head.tolist(), strict=True):
        near[tail].add(head)
    level, row = {-1: 0}, [-1]
    for at in row:
        for other in sorted(near[at]):
            if other not in level:
                level[other] = level[at] + 1
                row.append(other)
    return level


def _places(wires: Wires, channels: list[int]) -> dict[Place, tuple[float, int]]:
    """Return where each end stands: NICs below, switches by their distance from them."""
    level = _levels(wires)
    layers: dict[int, list[Place]] = defaultdict(list)
    above: dict[Place, int] = {}
    for channel in channels:
        for one, other in (_ends(wires, channel), _ends(wires, channel)[::-1]):
            height = level[one[0]] if one[0] >= 0 else 0
            if one not in layers[height]:
                layers[height].append(one)
            above[one] = other[0]
    places = {}
    for height, row in layers.items():
        row.sort(key=lambda place: (above[place], *place) if place[0] < 0 else place)
        for at, place in enumerate(row):
            places[place] = ((at + 0.5) / len(row), height)
    return places


def _bend(x0: float, x1: float) -> float:
    """Return how high an arc between equal levels goes: the longer one above the shorter."""
    return 0.1 + 0.4 * abs(x1 - x0)


def _line(
    figure: go.Figure,
    wires: Wires,
    channel: int,
    places: dict[Place, tuple[float, int]],
    line: dict[str, object],
    words: str = "",
) -> None:
    (x0, y0), (x1, y1) = (places[end] for end in _ends(wires, channel))
    steps = [at / 10 for at in range(11)]
    # Levels that are the same are joined by an arc, so that a ring shows as one.
    bend = _bend(x0, x1) if y0 == y1 else 0.0
    figure.add_scatter(
        x=[x0 + (x1 - x0) * step for step in steps],
        y=[y0 + (y1 - y0) * step + bend * 4 * step * (1 - step) for step in steps],
        mode="lines",
        line=line,
        hoverinfo="text" if words else "skip",
        text=[words] * len(steps),
    )


def _arrow(
    figure: go.Figure, wires: Wires, channel: int, places: dict[Place, tuple[float, int]]
) -> None:
    """Point from the far end, which paused, to the port that stood still."""
    (x0, y0), (x1, y1) = (places[end] for end in _ends(wires, channel))
    bend = _bend(x0, x1) if y0 == y1 else 0.0
    tip, foot = (
        (x0 + (x1 - x0) * step, y0 + (y1 - y0) * step + bend * 4 * step * (1 - step))
        for step in (0.44, 0.56)
    )
    figure.add_annotation(
        x=tip[0],
        y=tip[1],
        ax=foot[0],
        ay=foot[1],
        xref="x",
        yref="y",
        axref="x",
        ayref="y",
        showarrow=True,
        text="",
        arrowhead=2,
        arrowsize=1.6,
        arrowwidth=1.5,
        arrowcolor=WARNING,
    )


def _nodes(
    figure: go.Figure,
    wires: Wires,
    places: dict[Place, tuple[float, int]],
    roots: list[PauseRoot],
    names: PortNames,
) -> None:
    worst: set[Place] = set()
    for root in roots[:1]:
        tail, head = _ends(wires, root.channel)
        worst = {head if root.is_nic else tail}
    few = len(places) <= 24
    order = list(places)
    labels = [
        (" " if switch >= 0 else "") + names.end(max(link, 0), switch) for switch, link in order
    ]
    figure.add_scatter(
        x=[places[place][0] for place in order],
        y=[places[place][1] for place in order],
        mode="markers+text",
        marker={
            "size": [18 if place[0] >= 0 else 11 for place in order],
            "symbol": ["square" if place[0] >= 0 else "circle" for place in order],
            "color": [
                WARNING if place in worst else SPINE if place[0] >= 0 else MUTED for place in order
            ],
            "line": {"color": "white", "width": 1.5},
        },
        text=[
            label if few or place in worst else ""
            for place, label in zip(order, labels, strict=True)
        ],
        textposition=["middle right" if place[0] >= 0 else "bottom center" for place in order],
        textfont={"size": 11, "color": INK},
        hovertext=[
            label.strip() + (_(": root of the pauses") if place in worst else "")
            for place, label in zip(order, labels, strict=True)
        ],
        hoverinfo="text",
    )
