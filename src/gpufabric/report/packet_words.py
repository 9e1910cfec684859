"""What a packet run did, in words and tables: the text beside the figures of its page."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.text import _
from gpufabric.report.packet_figures import shown_rows
from gpufabric.report.packet_names import PortNames
from gpufabric.report.traffic_table import bytes_words, time_words
from gpufabric.sim.packet import PacketProblem, PacketResult
from gpufabric.sim.packet_ledger import KINDS
from gpufabric.sim.packet_pauses import PauseRoot

__all__ = [
    "busiest_table",
    "circle_table",
    "completion_words",
    "key_figures",
    "roots_table",
    "timeline_words",
    "what_happened",
]

MOST_ROWS = 12
"""Rows of the tables of roots and ports."""

Table = tuple[list[str], list[list[str]]]


def _time(time_ps: float) -> str:
    return time_words(time_ps * 1e-12)


def goodput_gbps(problem: PacketProblem, result: PacketResult) -> float | None:
    """Return the payload of delivered flows over the time from first start to last byte [Gb/s].

    None where no flow was delivered: then it is not known.
    """
    came = result.flows.delivered_ps >= 0
    if not came.any():
        return None
    first_ps = 0 if problem.start_ps is None else int(np.min(problem.start_ps))
    span_ps = int(result.flows.delivered_ps.max()) - first_ps
    total = int(np.asarray(problem.size_bytes)[came].sum())
    return total * 8000 / span_ps if span_ps > 0 else None


def what_happened(
    problem: PacketProblem, result: PacketResult, names: PortNames, roots: list[PauseRoot]
) -> list[tuple[str, bool]]:
    """Return sentences, and for each whether it tells of something bad."""
    flows = result.flows
    n_came, n_failed = int((flows.fct_ps >= 0).sum()), int(flows.has_failed.sum())
    told = [
        (
            _("{came} of {all} flows were delivered.").format(
                came=f"{n_came:,}", all=f"{problem.n_flows:,}"
            ),
            n_came < problem.n_flows,
        )
    ]
    if n_failed:
        what = _("{n} queue pairs are in error: their retries are used up.")
        told.append((what.format(n=f"{n_failed:,}"), True))
    told += _losses(result)
    if result.deadlock is not None:
        what = _("Deadlock since {time}: {n} buffers wait for each other in a circle.").format(
            time=_time(result.deadlock.since_ps), n=len(result.deadlock.cycle)
        )
        told.append((what, True))
    told += _pauses(result, names, roots)
    return told


def _losses(result: PacketResult) -> list[tuple[str, bool]]:
    dropped = int(result.ledger.dropped.sum())
    if not dropped:
        return [(_("No packet was dropped."), False)]
    reasons = ", ".join(f"{reason} {n:,}" for reason, n in result.drops.items() if n)
    what = _("{n} packets were dropped: {reasons}. {repeats} packets were sent again.").format(
        n=f"{dropped:,}", reasons=reasons, repeats=f"{int(result.flows.repeats.sum()):,}"
    )
    return [(what, True)]


def _pauses(
    result: PacketResult, names: PortNames, roots: list[PauseRoot]
) -> list[tuple[str, bool]]:
    n_pauses = int(result.ports.pauses.sum())
    if not n_pauses:
        return [(_("No port was paused."), False)]
    what = _("Ports stood still {n} times, {time} in all.").format(
        n=f"{n_pauses:,}", time=_time(float(result.ports.paused_ps.sum()))
    )
    told = [(what, False)]
    if roots and result.deadlock is None:
        root, total = roots[0], sum(one.paused_ps for one in roots)
        nic = (
            _(", whose NIC sends pauses")
            if result.credits is None
            else _(", where credits come too slowly")
        )
        words = _("{share:.0%} of that comes from {port}{nic}: it stopped {n} ports.").format(
            share=root.paused_ps / max(total, 1),
            port=names.channels[root.channel],
            nic=nic if root.is_nic else "",
            n=len(root.channels),
        )
        told.append((words, root.is_nic))
    return told


def key_figures(problem: PacketProblem, result: PacketResult) -> list[tuple[str, str]]:
    """Return labels and values of what everybody asks for first."""
    fct_ps = result.flows.fct_ps[result.flows.fct_ps >= 0]
    figures = []
    for share, label in ((0.5, "p50"), (0.99, "p99"), (1.0, _("slowest"))):
        words = _time(_quantile(fct_ps, share)) if fct_ps.size else "–"
        which = _("flow completion, {which}").format(which=label)
        if 0 < fct_ps.size < problem.n_flows:
            which = _("flow completion, {which} of the delivered").format(which=label)
        figures.append((which, words))
    goodput = goodput_gbps(problem, result)
    figures.append((_("goodput in all"), "–" if goodput is None else f"{goodput:,.1f} Gb/s"))
    if result.latencies is not None and result.latencies.packets.any():
        words = _time(result.latencies.quantile_ps(0.99))
        figures.append((_("packet latency, p99"), words))
    counts = (
        (_("data packets sent"), result.ledger.sent[KINDS.index("data")]),
        (_("packets dropped"), result.ledger.dropped.sum()),
        (_("packets sent again"), result.flows.repeats.sum()),
        (_("ECN marks"), result.ports.marked.sum()),
        (_("CNPs"), result.flows.cnps.sum()),
    )
    figures += [(label, f"{int(count):,}") for label, count in counts]
    figures.append((_("deepest queue"), bytes_words(_deepest(result.ports.most_queued_bytes))))
    return figures


def _quantile(values: NDArray[np.int64], share: float) -> float:
    return float(np.quantile(values, share, method="inverted_cdf"))


def _deepest(values: NDArray[np.int64]) -> float:
    return float(values.max(initial=0))


def timeline_words(result: PacketResult, names: PortNames) -> str:
    """Return what the time lines show, in words."""
    series = result.series
    assert series is not None
    rows = shown_rows(series)
    words = _("{n} of {all} ports, those with the deepest queues and the longest pauses;").format(
        n=len(rows), all=len(series.channels)
    )
    words += " " + _("each bin is {time}.").format(time=_time(series.bin_ps))
    if rows:
        row = rows[0]
        depth = series.deepest_bytes[row].sum(axis=0)
        words += " " + _("The deepest queue, {port}, reaches {depth} at {time}.").format(
            port=names.channels[int(series.channels[row])],
            depth=bytes_words(float(depth.max())),
            time=_time(float(series.time_us[int(depth.argmax())] * 1e6)),
        )
    if result.deadlock is not None:
        words += " " + _("The dashed line is the deadlock.")
    return words


def completion_words(result: PacketResult) -> str:
    """Return what the curve of completion times shows, in words."""
    came = result.flows.fct_ps >= 0
    fct_ps = result.flows.fct_ps[came]
    told = _("Half of the flows took {half} or less, 99 % {tail}, the slowest {most}.")
    if not came.all():
        told = _("Of those delivered, half took {half} or less, 99 % {tail}, the slowest {most}.")
    words = told.format(
        half=_time(_quantile(fct_ps, 0.5)),
        tail=_time(_quantile(fct_ps, 0.99)),
        most=_time(_quantile(fct_ps, 1.0)),
    )
    if not came.all():
        words += " " + _("{n} have not come.").format(n=f"{int((~came).sum()):,}")
    return words


def roots_table(roots: list[PauseRoot], names: PortNames, *, has_credits: bool = False) -> Table:
    """Return the roots of pauses, or of waits for credits, the one that cost most first."""
    heads = [_("Root"), _("First"), _("Pauses"), _("Time in all"), _("Ports"), _("Levels")]
    rows = []
    for root in roots[:MOST_ROWS]:
        port = f"{names.channels[root.channel]}, {names.traffic(root.traffic)}"
        if root.is_nic:
            words = _("{port} (too few credits)") if has_credits else _("{port} (the NIC pauses)")
            port = words.format(port=port)
        if root.n_overruled:
            port += _("; the watchdog ended {n}").format(n=root.n_overruled)
        figures: list[Any] = [f"{root.n_pauses:,}", _time(root.paused_ps)]
        rows.append(
            [port, _time(root.from_ps), *figures, str(len(root.channels)), str(root.levels)]
        )
    return heads, rows


def circle_table(result: PacketResult, names: PortNames) -> Table:
    """Return the circle of a deadlock, each queue above the one that it waits for."""
    assert result.deadlock is not None
    heads = [_("Queue"), _("Stands still since"), _("In the queue"), _("Waits for, in the next")]
    rows = [
        [
            f"{names.channels[queue.channel]}, {names.traffic(queue.traffic)}",
            _time(queue.since_ps),
            bytes_words(queue.queued_bytes),
            bytes_words(queue.buffer_bytes),
        ]
        for queue in result.deadlock.cycle
    ]
    return heads, rows


def busiest_table(problem: PacketProblem, result: PacketResult, names: PortNames) -> Table:
    """Return the ports that were busy longest, up to the last byte that was delivered."""
    ports = result.ports
    end_ps = max(1, int(result.flows.delivered_ps.max(initial=0)))
    if (result.flows.delivered_ps < 0).any():
        end_ps = max(1, result.end_ps)
    share = ports.wire_bytes * 8000 / np.asarray(problem.wires.gbps) / end_ps
    heads = [_("Port"), _("Busy"), _("Deepest queue"), _("Paused"), _("Marks"), _("Drops")]
    rows = [
        [
            names.channels[channel],
            f"{share[channel]:.1%}",
            bytes_words(float(ports.most_queued_bytes[channel].max())),
            _time(float(ports.paused_ps[channel].max())),
            f"{int(ports.marked[channel]):,}",
            f"{int(ports.dropped[channel].sum()):,}",
        ]
        for channel in np.argsort(-share, kind="stable")[:MOST_ROWS].tolist()
        if share[channel] > 0
    ]
    return heads, rows
