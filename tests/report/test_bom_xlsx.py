from __future__ import annotations

import io
import re

import openpyxl
import pytest
from openpyxl.workbook import Workbook

from gpufabric.planner.compare import Plan, plan_json
from gpufabric.report.bom_xlsx import bom_xlsx
from gpufabric.report.workbook_format import sheet_names
from tests.report.designs import plan

SPEC = "{gpus: 256, host: dgx-h100, growth: {gpus: 512}, candidates: [infiniband, roce]}"
EUROS = "{gpus: 64, host: dgx-h100, candidates: [roce], site: {currency: EUR, currency_rate: 0.9}}"


def written(made: Plan) -> bytes:
    return bom_xlsx(made, plan_json(made))


@pytest.fixture(scope="module")
def content() -> bytes:
    return written(plan(SPEC))


@pytest.fixture(scope="module")
def formulas(content: bytes) -> Workbook:
    return openpyxl.load_workbook(io.BytesIO(content))


@pytest.fixture(scope="module")
def values(content: bytes) -> Workbook:
    return openpyxl.load_workbook(io.BytesIO(content), data_only=True)


def test_it_has_the_sheets(formulas: Workbook) -> None:
    assert formulas.sheetnames == [
        "Summary",
        "BOM infiniband",
        "BOM roce",
        "Workload",
        "Racks",
        "Cables",
        "Decisions",
        "Sources",
    ]


def test_the_workload_is_that_of_the_forecast(values: Workbook) -> None:
    rows = list(values["Workload"].iter_rows(values_only=True))
    for candidate in plan(SPEC).candidates:
        mine = {row[1]: row for row in rows if row[0] == candidate.name}
        found = candidate.forecast.training
        assert found is not None
        step = [float(value) for value in mine["Training step"][2:5]]
        assert step == pytest.approx([found.step_s, found.low_s, found.high_s], rel=1e-5)
        assert mine["Plan: tensor"][2] == found.plan["tensor"]
        shown = sum(row[1] == "Assumed" for row in rows if row[0] == candidate.name)
        assert shown == len(candidate.forecast.assumed)


def test_the_same_plan_gives_the_same_bytes(content: bytes) -> None:
    assert written(plan(SPEC)) == content


def test_headings_stay_in_sight_and_columns_have_widths(formulas: Workbook) -> None:
    for page in formulas:
        assert page.freeze_panes == "A2"
        assert page.column_dimensions["A"].width > 8


def test_every_line_of_the_bill_is_there_with_its_numbers(values: Workbook) -> None:
    lines = plan(SPEC).candidates[0].bill.lines
    page = values["BOM infiniband"]
    for row, line in zip(page.iter_rows(min_row=2, max_row=1 + len(lines)), lines, strict=True):
        cells = [cell.value for cell in row]
        assert cells[0:4] == [line.section, line.category, line.use, line.name]
        assert cells[6:9] == [line.quantity, line.spares, line.later]
        expected = None if line.price is None else line.price.mid_usd
        assert cells[10] == expected


def test_totals_of_lines_are_live_formulas_with_their_value(
    formulas: Workbook, values: Workbook
) -> None:
    page, known = formulas["BOM roce"], values["BOM roce"]
    seen = 0
    for row in range(2, 2 + len(plan(SPEC).candidates[1].bill.lines)):
        formula = page.cell(row, 14).value
        if formula is None:
            assert page.cell(row, 11).value is None
            continue
        assert formula == f"=G{row}*K{row}"
        count, price = known.cell(row, 7).value, known.cell(row, 11).value
        assert known.cell(row, 14).value == pytest.approx(count * price)
        seen += 1
    assert seen > 5


def test_sums_are_live_and_equal_the_plan(formulas: Workbook, values: Workbook) -> None:
    made = plan(SPEC).candidates[0]
    page, known = formulas["BOM infiniband"], values["BOM infiniband"]
    found = {
        page.cell(row, 1).value: row
        for row in range(1, page.max_row + 1)
        if str(page.cell(row, 14).value).startswith(("=SUM", "=SUMIF"))
    }
    total = found["Everything"]
    assert re.fullmatch(r"=SUM\(N2:N\d+\)", str(page.cell(total, 14).value))
    assert known.cell(total, 14).value == pytest.approx(made.capital.total.mid_usd)
    network = found["Compute fabric"]
    assert known.cell(network, 13).value == pytest.approx(made.capital.network.low_usd)
    assert known.cell(network, 15).value == pytest.approx(made.capital.network.high_usd)
    assert known.cell(total, 16).value == pytest.approx(made.capital.spares.mid_usd)
    assert known.cell(total, 17).value == pytest.approx(made.capital.later.mid_usd)


def test_the_summary_points_to_the_bills(formulas: Workbook, values: Workbook) -> None:
    page, known = formulas["Summary"], values["Summary"]
    rows = {page.cell(row, 1).value: row for row in range(1, page.max_row + 1)}
    row = rows["Compute fabric, middle"]
    assert re.fullmatch(r"='BOM infiniband'!N\d+", str(page.cell(row, 2).value))
    for column, made in enumerate(plan(SPEC).candidates, 2):
        assert known.cell(row, column).value == pytest.approx(made.capital.network.mid_usd)


def test_racks_cables_decisions_and_sources_are_listed(values: Workbook) -> None:
    made = plan(SPEC)
    racks = sum(len(one.fabric.racks) for one in made.candidates)
    decisions = sum(len(one.decisions) for one in made.candidates)
    assert values["Racks"].max_row == 1 + racks
    assert values["Decisions"].max_row == 1 + decisions
    kinds = {row[2].value for row in values["Sources"].iter_rows(min_row=2)}
    assert {"assumed", "measured"} <= kinds
    pieces = [row[7].value for row in values["Cables"].iter_rows(min_row=2) if row[0].value]
    assert sum(count or 0 for count in pieces) == sum(
        line.quantity
        for one in made.candidates
        for line in one.bill.lines
        if line.length_m is not None
    )


def test_another_currency_is_reckoned_with_a_rate_that_can_be_changed() -> None:
    made = plan(EUROS)
    book = openpyxl.load_workbook(io.BytesIO(written(made)))["Summary"]
    rows = {book.cell(row, 1).value: row for row in range(1, book.max_row + 1)}
    rate = rows["EUR for one USD"]
    assert book.cell(rate, 2).value == 0.9
    formula = str(book.cell(rows["Compute fabric, middle [EUR]"], 2).value)
    assert re.fullmatch(rf"='BOM roce'!N\d+\*\$B\${rate}", formula)


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (["BOM x:y", "BOM x?y"], ["BOM x-y", "BOM x-y 2"]),
        (["BOM " + "n" * 60], ["BOM " + "n" * 27]),
        (["a'b"], ["a-b"]),
        (["Racks", "racks"], ["Racks", "racks 2"]),
    ],
)
def test_names_of_sheets_are_ones_that_a_workbook_takes(
    wanted: list[str], names: list[str]
) -> None:
    assert sheet_names(wanted) == names


def test_racks_say_whether_they_stand_today(values: Workbook) -> None:
    rows = list(values["Racks"].iter_rows(values_only=True))
    at = rows[0].index("Stage")
    assert {row[at] for row in rows[1:]} == {"today", "later"}
    made = plan(SPEC).candidates[0]
    hosts = made.fabric.hosts
    later = [row[1] for row in rows[1:] if row[0] == made.name and row[at] == "later"]
    names = made.fabric.racks.name
    assert set(later) & {str(names[rack]) for rack in hosts.rack[hosts.stage == 1]}
    assert not set(later) & {str(names[rack]) for rack in hosts.rack[hosts.stage == 0]}
