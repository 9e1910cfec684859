"""A packet run as one HTML page that needs no network: what happened, in words, figures, tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gpufabric.core.files import write_text
from gpufabric.core.text import _
from gpufabric.report.html_page import cards, document, heading, section, table, told_list
from gpufabric.report.packet_fault_words import faults_table
from gpufabric.report.packet_figures import completion_figure, timeline_figure
from gpufabric.report.packet_names import PortNames
from gpufabric.report.packet_topology_figure import pause_figure
from gpufabric.report.packet_words import (
    busiest_table,
    circle_table,
    completion_words,
    key_figures,
    roots_table,
    timeline_words,
    what_happened,
)
from gpufabric.sim.packet import PacketProblem, PacketResult
from gpufabric.sim.packet_pauses import pause_edges, pause_roots, pause_spans

__all__ = ["packet_page", "write_packet_page"]


def write_packet_page(
    problem: PacketProblem, result: PacketResult, names: PortNames, path: Path, title: str = ""
) -> Path:
    """Write the page of one run; return `path`."""
    return write_text(path, packet_page(problem, result, names, title))


def packet_page(
    problem: PacketProblem, result: PacketResult, names: PortNames, title: str = ""
) -> str:
    """Return the page of one run; its parts are those that the run has noted.

    Parameters
    ----------
    problem, result
        What was asked and how it went; see ``Recording`` for series and pauses.
    names
        What ports are called.
    title
        Heading; a general one where empty.
    """
    title = title or _("Packet run")
    spans = None if result.pause_log is None else pause_spans(result.pause_log)
    roots = [] if spans is None else pause_roots(spans)
    told = what_happened(problem, result, names, roots)
    parts = [told_list(told) + cards(key_figures(problem, result))]
    if problem.faults:
        asked = table(*faults_table(problem, names))
        parts.append(heading(_("What was made to go wrong")) + asked)
    if result.series is not None and np.any(result.series.busy):
        figure = timeline_figure(problem, result, names)
        words = timeline_words(result, names)
        parts.append(section(_("Queues, pauses and rates"), words, figure, "timeline"))
    if result.deadlock is not None:
        parts.append(heading(_("Deadlock, hop by hop")) + table(*circle_table(result, names)))
    if spans is not None and roots:
        figure = pause_figure(problem.wires, roots, pause_edges(spans), names)
        words = _(
            "Links that stood still; the wider, the longer. Arrows go from who paused to who stood"
            " still; the red place is where the pauses come from. The table has the same in words."
        )
        parts.append(section(_("Pause tree"), words, figure, "pauses"))
        parts.append(table(*roots_table(roots, names, has_credits=result.credits is not None)))
    if (result.flows.fct_ps >= 0).any():
        figure = completion_figure(problem, result, names)
        words = completion_words(result)
        parts.append(section(_("Flow completion times"), words, figure, "completion"))
    parts.append(heading(_("Busiest ports")) + table(*busiest_table(problem, result, names)))
    return document(title, "".join(parts))
