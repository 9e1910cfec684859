"""The sheets that reckon costs live: inputs to change, parts at their prices, costs by formulas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpufabric.core.text import _
from gpufabric.cost.facts import NetworkFacts
from gpufabric.planner.advice import Advice
from gpufabric.planner.cost_words import item_label
from gpufabric.planner.economics import CaseCost
from gpufabric.planner.quantity_words import unit_words
from gpufabric.planner.ranking import case_label
from gpufabric.report.cell_terms import Term
from gpufabric.report.cost_formulas import ITEMS, LATE, ONCE, CaseCells, write_case
from gpufabric.report.ledger_section import kind_words
from gpufabric.report.unit_formulas import (
    depreciation_words,
    unit_rows,
    write_depreciation,
    write_units,
)
from gpufabric.report.workbook_format import Book, Column, Formula, Kind, Page, cell

__all__ = ["CostCells", "cost_sheet", "input_sheet", "part_sheet"]

VALUE = 2
"""Column of the sheet of inputs that formulas read."""
LABELS = 2
"""Columns of the sheet of costs before those of the cases."""

Cells = Mapping[str, Term]


def _quoted(sheet: str) -> str:
    return f"'{sheet}'!"


# Inputs --------------------------------------------------------------------------------------


def input_sheet(book: Book, name: str, advice: Advice) -> Cells:
    """Write every number that may be changed; return its cell by key."""
    columns = [
        Column(_("Number"), 46, "wrapped"),
        Column(_("key"), 34),
        Column(_("value in use"), 14, "exact"),
        Column(_("low"), 12, "exact"),
        Column(_("most likely"), 12, "exact"),
        Column(_("high"), 12, "exact"),
        Column(_("unit"), 16),
        Column(_("of the margin's variance"), 12, "share"),
        Column(_("kind"), 14),
        Column(_("source"), 60, "wrapped"),
        Column(_("date"), 12),
    ]
    page = book.page(name, columns)
    found: dict[str, Term] = {}
    used = advice.economics.draws.keys()
    for row in advice.ledger:
        if row.key not in used:
            continue
        at = page.add(
            [
                row.label,
                row.key,
                row.mid,
                row.low,
                row.mid,
                row.high,
                unit_words(row.unit),
                row.share_of_margin,
                kind_words(row.kind),
                " ".join(part for part in (row.source, row.note) if part),
                row.date,
            ]
        )
        page.sheet.write_number(at, VALUE, row.mid, book.format("exact", is_marked=True))
        found[row.key] = Term(f"{_quoted(name)}{cell(at, VALUE, fixed=True)}", row.mid)
    page.filter_to(page.row - 1)
    return found


# Parts ---------------------------------------------------------------------------------------


def part_sheet(book: Book, name: str, advice: Advice, given: Cells) -> dict[str, Cells]:
    """Write what each candidate buys at the prices of the inputs; return its sums by item."""
    columns = [
        Column(_("Candidate"), 20),
        Column(_("Item"), 32),
        Column(_("Part"), 30),
        Column(_("Pieces"), 10, "count"),
        Column(_("Spares"), 10, "count"),
        Column(_("Price of one [USD]"), 16, "money"),
        Column(_("Pieces [USD]"), 16, "usd"),
        Column(_("Spares [USD]"), 16, "usd"),
    ]
    page = book.page(name, columns)
    found: dict[str, Cells] = {}
    for facts in _facts_of(advice.economics.costs):
        found[facts.name] = _parts_of(page, name, facts, given)
    return found


def _facts_of(costs: Sequence[CaseCost]) -> Iterator[NetworkFacts]:
    seen = {cost.case.facts.name: cost.case.facts for cost in costs}
    yield from seen.values()


def _parts_of(page: Page, name: str, facts: NetworkFacts, given: Cells) -> Cells:
    first = page.row
    sums = dict.fromkeys(
        ("switches", "transceivers", "cables", "managers", "other_networks", "spares"), 0.0
    )
    for part in facts.parts:
        if part.price is None:
            page.add([facts.name, item_label(part.item), part.name, part.pieces, part.spares])
            continue
        price = given[part.price.key]
        each = price * part.usd
        row = page.row
        pieces, spares = part.pieces * each.value, part.spares * each.value
        page.add(
            [
                facts.name,
                item_label(part.item),
                part.name,
                part.pieces,
                part.spares,
                Formula(f"={each.text}", each.value),
                Formula(f"={cell(row, 3)}*{cell(row, 5)}", pieces),
                Formula(f"={cell(row, 4)}*{cell(row, 5)}", spares),
            ]
        )
        sums[part.item] += pieces
        sums["spares"] += spares
    last = max(first, page.row - 1)

    def span(column: int) -> str:
        ends = f"{cell(first, column, fixed=True)}:{cell(last, column, fixed=True)}"
        return f"{_quoted(name)}{ends}"

    cells = {
        item: Term(f'SUMIF({span(1)},"{item_label(item)}",{span(6)})', value)
        for item, value in sums.items()
        if item != "spares"
    }
    cells["spares"] = Term(f"SUM({span(7)})", sums["spares"])
    page.skip()
    return cells


# Costs ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CostCells:
    """Where the total of each case stands, by its name, and what it is now [USD]."""

    totals: Cells


@dataclass(frozen=True)
class _Row:
    """One row: its name (empty for a heading), its words, its unit, how its numbers look."""

    key: str
    words: str
    unit: str = ""
    kind: Kind = "exact"


def cost_sheet(
    book: Book, name: str, advice: Advice, given: Cells, parts: Mapping[str, Cells]
) -> CostCells:
    """Write all cases side by side, a formula a step; return their totals."""
    costs = [advice.economics.cost(case.name) for case in advice.ranking]
    columns = [
        Column(_("Step"), 54, "wrapped"),
        Column(_("unit"), 14),
        *(Column(case_label(cost.case), 24, "exact") for cost in costs),
    ]
    page = book.page(name, columns)
    rows = _rows(advice.horizon_years)
    place = {row.key: page.row + at for at, row in enumerate(rows) if row.key}
    content: dict[str, dict[int, object]] = {row.key: {} for row in rows if row.key}
    totals: dict[str, Term] = {}
    for number, cost in enumerate(costs):
        total = _column(cost, LABELS + number, (given, parts), place, content)
        totals[cost.name] = Term(f"{_quoted(name)}{total.text}", total.value)
    for row in rows:
        cells = content.get(row.key, {})
        values = [cells.get(LABELS + number) for number in range(len(costs))]
        page.add(
            [row.words, row.unit, *values],
            is_bold=row.key in ("", "total"),
            numbers=row.kind,
        )
    page.sheet.freeze_panes(1, LABELS)
    return CostCells(totals)


def _column(
    cost: CaseCost,
    column: int,
    inputs: tuple[Cells, Mapping[str, Cells]],
    place: Mapping[str, int],
    content: dict[str, dict[int, object]],
) -> Term:
    given, parts = inputs
    case = cost.case

    placed: dict[str, Term] = {}

    def put(key: str, value: Term) -> Term:
        content[key][column] = Formula(f"={value.text}", value.value)
        placed[key] = Term(cell(place[key], column), value.value)
        return placed[key]

    design: dict[str, Term] = {}
    for key, number in _design(cost).items():
        content[f"design.{key}"][column] = number
        design[key] = Term(cell(place[f"design.{key}"], column), number)
    cells = CaseCells(
        case, given.__getitem__, design.__getitem__, parts[case.facts.name].__getitem__, put
    )
    total = write_case(cells)
    for key, words in write_units(cells, placed.__getitem__).items():
        content[key][column] = words
    write_depreciation(cells, placed.__getitem__)
    outcome = cost.total
    for key, value in (("mean", outcome.mean), ("p10", outcome.p10), ("p90", outcome.p90)):
        content[f"drawn.{key}"][column] = value
    return total


def _design(cost: CaseCost) -> dict[str, float]:
    """Return what formulas need of a design and its forecast."""
    case = cost.case
    facts, exposure, performance = case.facts, case.facts.exposure, case.facts.performance
    optical = exposure.access_optical + exposure.uplink_optical
    copper = exposure.access_copper + exposure.uplink_copper
    pieces = sum(part.pieces for part in facts.parts if part.item == "transceivers")
    found = {
        "years": case.horizon_years,
        "gpus": facts.n_gpus,
        "host_gpus": facts.host_gpus,
        "job_gpus": facts.job_gpus,
        "injection_gbps": case.injection_gbps,
        "switches": facts.n_switches,
        "cables": facts.n_cables,
        "rack_units": facts.switch_units,
        "typical_w": facts.typical_w,
        "max_w": facts.max_w,
        "optical_links": optical,
        "copper_links": copper,
        "pieces": max(1, pieces or optical + copper),
        "access_optical": exposure.access_optical,
        "access_copper": exposure.access_copper,
        "uplink_optical": exposure.uplink_optical,
        "uplink_copper": exposure.uplink_copper,
        "nics": exposure.nics,
        "leafs": exposure.leafs,
        "upper_switches": exposure.upper_switches,
        "planes": exposure.planes,
        "hosts_per_leaf": exposure.hosts_per_leaf,
        "uplinks_per_leaf": exposure.uplinks_per_leaf,
    }
    if performance is not None:
        found |= {
            "step_s": performance.step_s,
            "ideal_step_s": performance.ideal_step_s,
            "hashed_step_s": performance.hashed_step_s,
            "jitter_s": performance.jitter_s,
            "communication_share": performance.communication_share,
            "work_per_step": performance.work_per_step,
        }
        if performance.flops_per_step is not None:
            found["flops_per_step"] = performance.flops_per_step
    return {key: float(value) for key, value in found.items()}


def _rows(horizon_years: int) -> list[_Row]:
    years = _("USD a year")
    once = _("USD, once")
    return [
        _Row("", _("Result")),
        _Row("total", _("Total, present value, at the values in use"), "USD", "usd"),
        _Row("drawn.mean", _("Mean of all draws (as written, does not follow)"), "USD", "usd"),
        _Row("drawn.p10", "P10", "USD", "usd"),
        _Row("drawn.p90", "P90", "USD", "usd"),
        _Row("", _("What a unit costs")),
        *(_Row(key, words, unit) for key, words, unit in unit_rows()),
        _Row("", _("Design and forecast")),
        *(_Row(f"design.{key}", words, unit) for key, words, unit in _design_words()),
        _Row("", _("Price of what is built")),
        *(
            _Row(f"equipment.{name}", item_label(name), "USD", "usd")
            for name in (
                "switches",
                "transceivers",
                "cables",
                "managers",
                "other_networks",
                "spares",
                "installation",
            )
        ),
        _Row("capital", _("together"), "USD", "usd"),
        _Row("", _("Steps")),
        *(_Row(key, words, unit) for key, words, unit in _step_words()),
        _Row("", _("Amounts")),
        *(
            _Row(f"amount.{name}", item_label(name), once if name in ONCE else years, "usd")
            for name in ITEMS
        ),
        _Row("annuity", _("Present value of 1 USD a year"), "USD"),
        _Row("", _("Present values over the horizon")),
        *(_Row(f"value.{name}", _value_words(name), "USD", "usd") for name in ITEMS),
        _Row("", _("Depreciation, straight line: no payment, in no total")),
        *(_Row(key, words, unit, "usd") for key, words, unit in depreciation_words(horizon_years)),
    ]


def _value_words(name: str) -> str:
    return (
        _("{item}, due at the end").format(item=item_label(name))
        if name in LATE
        else item_label(name)
    )


def _design_words() -> tuple[tuple[str, str, str], ...]:
    return (
        ("years", _("Years that are counted"), "a"),
        ("gpus", _("GPUs"), ""),
        ("host_gpus", _("GPUs of a host"), ""),
        ("job_gpus", _("GPUs that stop together"), ""),
        ("injection_gbps", _("What all NICs send"), "Gb/s"),
        ("switches", _("Switches"), ""),
        ("cables", _("Cables"), ""),
        ("rack_units", _("Height of the switches"), "RU"),
        ("typical_w", _("Power of the networks, typical"), "W"),
        ("max_w", _("Power of the networks, largest"), "W"),
        ("optical_links", _("Optical links"), ""),
        ("copper_links", _("Copper links"), ""),
        ("pieces", _("Transceivers, or links without"), ""),
        ("access_optical", _("Optical links to hosts"), ""),
        ("access_copper", _("Copper links to hosts"), ""),
        ("uplink_optical", _("Optical links between switches"), ""),
        ("uplink_copper", _("Copper links between switches"), ""),
        ("nics", _("NICs"), ""),
        ("leafs", _("Leafs"), ""),
        ("upper_switches", _("Switches above the leafs"), ""),
        ("planes", _("Planes"), ""),
        ("hosts_per_leaf", _("Hosts of a leaf"), ""),
        ("uplinks_per_leaf", _("Uplinks of a leaf"), ""),
        ("step_s", _("Step or token, packets spread"), "s"),
        ("ideal_step_s", _("Step or token on a network that never blocks"), "s"),
        ("hashed_step_s", _("Step or token, flows hashed"), "s"),
        ("jitter_s", _("Late messages in a step or token"), "s"),
        ("communication_share", _("Share that waits for communication"), ""),
        ("work_per_step", _("Tokens of a step"), ""),
        ("flops_per_step", _("FLOPs that the model itself needs for a step"), "FLOP"),
    )


def _step_words() -> tuple[tuple[str, str, str], ...]:
    a_year = _("1/year")
    return (
        ("engineers", _("People that run the network"), "FTE"),
        ("fee", _("Subscription fee"), _("USD a month")),
        ("wanted", _("GPU-hours with work"), _("GPU h a year")),
        ("events.access", _("Links to hosts and NICs that fail"), a_year),
        ("events.uplinks", _("Links between switches that fail"), a_year),
        ("events.leafs", _("Leafs that fail"), a_year),
        ("events.upper", _("Switches above that fail"), a_year),
        ("stops", _("Stops of the job by the network"), a_year),
        ("stop_hours", _("Lost by one stop"), "h"),
        ("out.part", _("Until a link or NIC is found and exchanged"), "h"),
        ("out.switch", _("Until a switch is found and exchanged"), "h"),
        ("incidents", _("Incidents by wrong settings"), a_year),
        ("late", _("Step or token later than on a network that never blocks"), "s"),
        *(
            (f"share.{name}", _("share alone: {item}").format(item=item_label(name)), "")
            for name in ("communication", "jitter", "failures", "misconfiguration")
        ),
        *(
            (f"log.{name}", _("minus its logarithm: {item}").format(item=item_label(name)), "")
            for name in ("communication", "jitter", "failures", "misconfiguration")
        ),
        ("log.all", _("sum of the logarithms"), ""),
        ("part", _("share together, over that sum"), ""),
        ("idle", _("GPU-hours lost until the network is there and tuned"), "GPU h"),
    )
