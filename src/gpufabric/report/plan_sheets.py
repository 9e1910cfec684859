"""The sheets of ``bom.xlsx`` that list: racks, cables, decisions, sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpufabric.core.text import _
from gpufabric.planner.compare import CandidatePlan, Plan
from gpufabric.report.workbook_format import Book, Column, Formula, cell, column_range
from gpufabric.topology.rack_power import BTU_PER_H_PER_W, rack_power
from gpufabric.topology.racks import rack_stages

__all__ = ["cable_sheet", "decision_sheet", "rack_sheet", "source_sheet"]


def rack_sheet(book: Book, name: str, plan: Plan) -> None:
    """Append the racks of all candidates, with power and heat."""
    page = book.page(
        name,
        [
            Column(_("Candidate"), 20),
            Column(_("Rack"), 10),
            Column(_("Kind"), 10),
            Column(_("Row"), 7, "count"),
            Column(_("Position"), 9, "count"),
            Column(_("Hosts"), 8, "count"),
            Column(_("Switches"), 9, "count"),
            Column(_("Typical [W]"), 12, "count"),
            Column(_("Largest [W]"), 12, "count"),
            Column(_("Largest heat [BTU/h]"), 14, "count"),
            Column(_("Assumed figure in it"), 12),
            Column(_("Stage"), 9),
        ],
    )
    for candidate in plan.candidates:
        for row in _rack_rows(candidate):
            at = page.row
            heat = Formula(
                f"={cell(at, 8)}*{BTU_PER_H_PER_W!r}", round(float(row[7]) * BTU_PER_H_PER_W, 1)
            )
            page.add([candidate.name, *row[:8], heat, *row[8:]])
    page.filter_to(max(page.row - 1, 1))


def _rack_rows(plan: CandidatePlan) -> Iterator[list[Any]]:
    fabric = plan.fabric
    power = rack_power(fabric, plan.placement.footprints, plan.cabling)
    racks = fabric.racks
    counts = [
        [0] * len(racks),
        [0] * len(racks),
    ]
    stages = rack_stages(fabric).tolist()
    for table, found in zip((fabric.hosts, fabric.switches), counts, strict=True):
        for rack in table.rack.tolist():
            if rack >= 0:
                found[rack] += 1
    for rack in range(len(racks)):
        yield [
            str(racks.name[rack]),
            _("network") if racks.kind[rack] else _("compute"),
            int(racks["row"][rack]) + 1,
            int(racks.position[rack]) + 1,
            counts[0][rack],
            counts[1][rack],
            round(float(power.typical_w[rack]), 1),
            round(float(power.max_w[rack]), 1),
            _("yes") if power.is_assumed[rack] else "",
            _("later") if stages[rack] else _("today"),
        ]


def cable_sheet(book: Book, name: str, plan: Plan) -> None:
    """Append the cables of all candidates, by part and length."""
    page = book.page(
        name,
        [
            Column(_("Candidate"), 20),
            Column(_("Network"), 12),
            Column(_("Category"), 12),
            Column(_("Use"), 14),
            Column(_("Name"), 22),
            Column(_("Device"), 50, "wrapped"),
            Column(_("Length [m]"), 10, "decimal"),
            Column(_("Pieces today"), 10, "count"),
            Column(_("Pieces later"), 10, "count"),
            Column(_("Metres today"), 12, "decimal"),
        ],
    )
    first = page.row
    total_m = 0.0
    for candidate in plan.candidates:
        for line in candidate.bill.lines:
            if line.length_m is None:
                continue
            at = page.row
            metres = round(line.quantity * line.length_m, 3)
            total_m += metres
            page.add(
                [
                    candidate.name,
                    line.section,
                    line.category,
                    line.use,
                    line.name,
                    line.title,
                    line.length_m,
                    line.quantity,
                    line.later,
                    Formula(f"={cell(at, 6)}*{cell(at, 7)}", metres),
                ]
            )
    if page.row > first:
        last = page.row - 1
        page.filter_to(last)
        text = f"=SUBTOTAL(9,{column_range(9, first, last)})"
        page.add(
            [_("All that is shown"), *[None] * 8, Formula(text, round(total_m, 3))], is_bold=True
        )


# Decisions, sources -----------------------------------------------------------------------


def decision_sheet(book: Book, name: str, plan: Plan) -> None:
    """Append what every candidate chose and why."""
    page = book.page(
        name,
        [
            Column(_("Candidate"), 20),
            Column(_("Warning"), 9),
            Column(_("Topic"), 18),
            Column(_("Choice"), 24, "wrapped"),
            Column(_("Why"), 80, "wrapped"),
            Column(_("Source"), 50, "wrapped"),
        ],
    )
    for candidate in plan.candidates:
        for decision in candidate.decisions:
            page.add(
                [
                    candidate.name,
                    _("yes") if decision.is_warning else "",
                    decision.topic,
                    decision.choice,
                    decision.why,
                    decision.source,
                ],
                is_marked=decision.is_warning,
            )
    page.filter_to(max(page.row - 1, 1))


def source_sheet(book: Book, name: str, content: Mapping[str, Any]) -> None:
    """Append where the numbers come from, and what is assumed; `content` is plan.json's."""
    page = book.page(
        name,
        [
            Column(_("Device or field"), 30),
            Column(_("Numbers"), 22),
            Column(_("Kind"), 14),
            Column(_("Date"), 14),
            Column(_("Source, or why it is assumed"), 90, "wrapped"),
            Column(_("Note"), 50, "wrapped"),
        ],
    )
    for source in content["sources"]:
        primary = f" ({source['primary']})" if source["primary"] else ""
        page.add(
            [
                source["device"],
                source["group"],
                source["kind"],
                source["date"],
                f"{source['source']}{primary}",
                source["note"],
            ],
            is_marked=source["kind"] == "assumed",
        )
    for assumption in content["assumptions"]:
        page.add(
            [
                assumption["field"],
                str(assumption["value"]),
                "assumed",
                "",
                assumption["why"],
                "",
            ],
            is_marked=True,
        )
    page.filter_to(max(page.row - 1, 1))
