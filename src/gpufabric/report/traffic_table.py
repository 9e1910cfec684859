"""A run of traffic on a terminal: what was asked, times, bandwidth, tiers, busiest channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpufabric.core.text import _
from gpufabric.report.side_by_side import decision_texts
from gpufabric.sim.traffic_result import TrafficResult

__all__ = [
    "bytes_words",
    "completion_words",
    "flow_words",
    "packet_facts",
    "print_traffic",
    "status_words",
    "time_words",
]


def time_words(seconds: float | None) -> str:
    """Return a time with a unit that reads well.

    Examples
    --------
    >>> time_words(0.0201), time_words(3.2e-6), time_words(None)
    ('20.1 ms', '3.2 µs', '–')
    """
    if seconds is None:
        return "–"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns" if seconds else "0 s"


def bytes_words(count: float) -> str:
    """Return a number of bytes in decimal units.

    Examples
    --------
    >>> bytes_words(1.024e12), bytes_words(512)
    ('1.024 TB', '512 B')
    """
    for unit, size in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count:g} B"


def status_words() -> dict[str, str]:
    """Return what each status of flows is called, in the language in use."""
    return {
        "finished": _("finished"),
        "unreachable": _("unreachable"),
        "stalled": _("stalled"),
        "waiting": _("waiting"),
        "running": _("running"),
        "pending": _("pending"),
        "failed": _("failed"),
    }


def print_traffic(result: TrafficResult, console: Console, n_busiest: int = 10) -> None:
    """Print a run: its head, its numbers, its tiers and its warnings."""
    summary = result.summary(n_busiest)
    console.print(Text(_headline(summary), "bold"))
    console.print(_numbers(summary))
    if summary["fct_us"] is not None:
        console.print(_times(summary))
    if "packets" in summary:
        console.print(_packets(summary["packets"]))
    console.print()
    console.print(_tiers(summary["tiers"]))
    if summary["busiest"]:
        console.print()
        console.print(_busiest(summary["busiest"]))
    told = result.decisions
    if told:
        console.print()
        console.print(Text(_("Assumptions and choices"), "bold"))
        for text in decision_texts(told):
            console.print(text)


def _headline(summary: dict[str, Any]) -> str:
    return _("{pattern}, {routing}: {flows} flows, {bytes}").format(
        pattern=summary["traffic"]["pattern"],
        routing=summary["routing"]["mode"],
        flows=f"{summary['flows']['total']:,}",
        bytes=bytes_words(summary["bytes"]["total"]),
    )


def _plain(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for at, heading in enumerate(headings):
        table.add_column(heading, justify="left" if at == 0 else "right", overflow="fold")
    return table


def flow_words(flows: Mapping[str, int]) -> str:
    """Return how many flows there are of each status."""
    words = status_words()
    return ", ".join(f"{n:,} {words[word]}" for word, n in flows.items() if word != "total")


def completion_words(summary: dict[str, Any]) -> str:
    """Return the completion time, and that it is not that of all flows where some are not there."""
    finished, total = summary["flows"].get("finished", 0), summary["flows"]["total"]
    time = time_words(summary["completion_s"])
    if finished in (0, total):
        return time
    return _("{time}, of the {n} flows that finished").format(time=time, n=f"{finished:,}")


def _numbers(summary: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    band = summary["bandwidth"]
    rows = [
        (_("Flows"), flow_words(summary["flows"])),
        (_("Completion time"), completion_words(summary)),
        (_("Bandwidth"), _bandwidth(band)),
        (_("Jain index"), _number(summary["jain_index"])),
    ]
    if summary["bytes"]["undelivered"]:
        rows.append((_("Not delivered"), bytes_words(summary["bytes"]["undelivered"])))
    rows += [
        (_("Failure"), _("{what}: {n} links").format(what=failure["what"], n=failure["links"]))
        for failure in summary["failures"]
    ]
    for label, words in rows:
        table.add_row(label, Text(words))
    return table


def _bandwidth(band: dict[str, float | None]) -> str:
    if band["achieved_gbps"] is None or band["share"] is None or not band["ideal_gbps"]:
        return "–"
    return _("{achieved} of {ideal} Gb/s that the endpoints allow: {share}").format(
        achieved=f"{band['achieved_gbps']:,.0f}",
        ideal=f"{band['ideal_gbps']:,.0f}",
        share=f"{band['share']:.1%}",
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _times(summary: dict[str, Any]) -> Table:
    names = list(summary["fct_us"])
    table = _plain("", *names)
    finished, total = summary["flows"].get("finished", 0), summary["flows"]["total"]
    label = _("Flow completion time") if finished == total else _("Time of the finished")
    table.add_row(label, *(time_words(summary["fct_us"][name] * 1e-6) for name in names))
    table.add_row(_("Slowdown"), *(f"{summary['slowdown'][name]:.3f}" for name in names))
    return table


def _packets(packets: dict[str, Any]) -> Table:
    """Return the counters of the packet engine, in one row each."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for label, words in packet_facts(packets):
        table.add_row(label, Text(words))
    return table


def packet_facts(packets: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a run of the packet engine counted, as labels and words."""
    drops = ", ".join(
        _("{n} {reason}").format(n=f"{count:,}", reason=reason)
        for reason, count in packets["drops_by_reason"].items()
        if count
    )
    again = _("{repeats} packets, {timeouts} time-outs, {failed} queue pairs in error").format(
        repeats=f"{packets['repeats']:,}",
        timeouts=f"{packets['timeouts']:,}",
        failed=f"{packets['failed_queue_pairs']:,}",
    )
    return [
        *_congestion(packets),
        (_("Drops"), drops or _("none")),
        (_("Sent again"), again),
        (_("Deepest queue"), bytes_words(packets["most_queued_bytes"])),
        (_("Packets"), f"{packets['packets']['data']:,}"),
    ]


def _congestion(packets: dict[str, Any]) -> list[tuple[str, str]]:
    """Return pauses and marks, under the names that they have in the fabric's protocol."""
    has_credits = packets["flow_control"] == "credits"
    if not packets["pauses"]:
        held = _("no waits for credits") if has_credits else _("no pauses")
    else:
        words = _("{n} pauses, {time} of all ports together")
        if has_credits:
            words = _("{n} waits for credits, {time} of all ports together")
        time = time_words(packets["paused_us"] * 1e-6)
        held = words.format(n=f"{packets['pauses']:,}", time=time)
    marks = _("{marks} marked, {cnps} BECNs") if has_credits else _("{marks} marked, {cnps} CNPs")
    counts = {name: f"{packets[key]:,}" for name, key in (("marks", "ecn_marks"), ("cnps", "cnps"))}
    return [
        (_("Credits") if has_credits else _("PFC"), held),
        *_causes(packets, _("Root of waits") if has_credits else _("Root of pauses")),
        (_("FECN") if has_credits else _("ECN"), marks.format(**counts)),
    ]


def _causes(packets: dict[str, Any], label: str) -> list[tuple[str, str]]:
    """Return the root of most of the pauses, and the circle of a deadlock."""
    told = []
    roots = (packets["pause_tree"] or {"roots": []})["roots"]
    if roots:
        nic = _(", whose NIC sends pauses")
        if packets["flow_control"] == "credits":
            nic = _(", where credits come too slowly")
        words = _("{port}{nic}: {share:.0%} of that time, {n} ports").format(
            port=roots[0]["channel"],
            nic=nic if roots[0]["is_nic"] else "",
            share=roots[0]["share"],
            n=roots[0]["ports"],
        )
        told.append((label, words))
    if packets["deadlock"] is not None:
        circle = "; ".join(queue["channel"] for queue in packets["deadlock"]["cycle"])
        since = time_words(packets["deadlock"]["since_us"] * 1e-6)
        words = _("since {time}: {circle}").format(time=since, circle=circle)
        told.append((_("Deadlock"), words))
    return told


def _tiers(tiers: Sequence[dict[str, Any]]) -> Table:
    table = _plain(
        _("Utilisation of channels"), _("channels"), _("mean"), _("median"), _("busiest")
    )
    for row in tiers:
        if not row["most"]:
            continue
        table.add_row(
            Text(row["tier"].replace("_", "–")),
            f"{row['channels']:,}",
            *(f"{row[key]:.1%}" for key in ("mean", "median", "most")),
        )
    return table


def _busiest(rows: Sequence[dict[str, Any]]) -> Table:
    table = _plain(_("Busiest channels"), _("utilisation"))
    for row in rows:
        table.add_row(Text(row["name"]), f"{row['utilisation']:.1%}")
    return table
