from __future__ import annotations

import io

import numpy as np
import pytest
from openpyxl import Workbook, load_workbook

from gpufabric.cost.outcome import evaluate
from gpufabric.cost.quantity import one_draw
from gpufabric.planner.advice import Advice
from gpufabric.report.cell_terms import Term, annuity, exp, greatest, least, log, root, term, total
from gpufabric.report.report_xlsx import report_xlsx
from tests.report.advices import BOTH, ONE, SERVING, advice
from tests.report.workbook_reckoning import Reckoned

INPUTS, COSTS, KEY, VALUE = "Inputs", "Costs", 2, 3


def totals(book: Reckoned) -> list[float]:
    """What the workbook says each way costs, in the order of the ranking."""
    sheet = book.book[COSTS]
    row = next(
        cells[0].row for cells in sheet.iter_rows() if "Total, present" in str(cells[0].value)
    )
    return [book.value(COSTS, row, column) for column in range(3, sheet.max_column + 1)]


def costs(told: Advice, at: int | None = None) -> list[float]:
    """What the model says: at the most likely values, or of one draw."""
    money = told.economics
    if at is not None:
        return [float(money.cost(case.name).outcome.total[at]) for case in told.ranking]
    middle = one_draw(money.quantities.values())
    cases = [money.cost(case.name).case for case in told.ranking]
    return [float(evaluate(case, middle).total[0]) for case in cases]


@pytest.mark.parametrize("text", [BOTH, ONE, SERVING], ids=["both", "one", "serving"])
def test_the_totals_are_the_models_and_follow_the_inputs(text: str) -> None:
    told = advice(text)
    book = Reckoned(report_xlsx(told))
    assert totals(book) == pytest.approx(costs(told), rel=1e-9)
    sheet = book.book[INPUTS]
    keys = {sheet.cell(row, KEY).value: row for row in range(2, sheet.max_row + 1)}
    assert keys.keys() == told.economics.draws.keys()
    for at in (0, 17, 63):
        for key, row in keys.items():
            book.change(INPUTS, row, VALUE, float(told.economics.draws[key][at]))
        assert totals(book) == pytest.approx(costs(told, at), rel=1e-9)


def rows_of(book: Reckoned) -> dict[str, int]:
    """Rows of the sheet of costs by their words; of words that come twice, the first."""
    sheet = book.book[COSTS]
    return {str(sheet.cell(row, 1).value): row for row in range(sheet.max_row, 0, -1)}


@pytest.mark.parametrize("text", [BOTH, SERVING], ids=["training", "serving"])
def test_what_a_unit_costs_follows_the_inputs(text: str) -> None:
    told = advice(text)
    book = Reckoned(report_xlsx(told))
    sheet = book.book[INPUTS]
    keys = {sheet.cell(row, KEY).value: row for row in range(2, sheet.max_row + 1)}
    for key, row in keys.items():
        book.change(INPUTS, row, VALUE, float(told.economics.draws[key][17]))
    row_of = rows_of(book)
    for column, case in enumerate(told.ranking, start=3):
        outcome = told.economics.cost(case.name).outcome
        found = {
            "a GPU": outcome.per_gpu,
            "a GPU-hour, levelised": outcome.per_gpu_hour,
            "a million tokens: the network": outcome.network_per_work,
            "a million tokens: with GPU-hours at their value": outcome.per_work,
            "an EFLOP-day: the network": outcome.network_per_eflop_day,
            "an EFLOP-day: with GPU-hours at their value": outcome.per_eflop_day,
        }
        for words, values in found.items():
            shown = book.value(COSTS, row_of[words], column)
            if values is None:
                assert shown == "unknown"
                assert text == SERVING
                continue
            factor = 1e6 if "million" in words else 1.0
            assert shown == pytest.approx(float(values[17]) * factor, rel=1e-9), words


def test_depreciation_ends_at_the_resale_and_is_in_no_total() -> None:
    told = advice(BOTH)
    book = Reckoned(report_xlsx(told))
    row_of, before = rows_of(book), totals(book)
    yearly, last = row_of["written off each year"], row_of["left in the books after year 4"]
    for column, case in enumerate(told.ranking, start=3):
        if case.offer:
            assert book.book[COSTS].cell(yearly, column).value is None
            continue
        bought = book.value(COSTS, row_of["together"], column)
        left = book.value(COSTS, row_of["what resale brings at the end"], column)
        assert book.value(COSTS, yearly, column) == pytest.approx((bought - left) / 4)
        assert book.value(COSTS, last, column) == pytest.approx(left)
    for row in range(row_of["what resale brings at the end"], last + 1):
        for column in range(3, 3 + len(before)):
            book.change(COSTS, row, column, 1e9)
    assert totals(book) == before


def test_what_a_reader_sees_without_reckoning_is_what_the_formulas_say() -> None:
    content = report_xlsx(advice(SERVING))
    book, seen = Reckoned(content), load_workbook(io.BytesIO(content), data_only=True)
    places = list(book.formulas())
    assert len(places) > 300
    for sheet, row, column in places:
        shown = seen[sheet].cell(row, column).value
        assert shown == pytest.approx(book.value(sheet, row, column), rel=1e-9, abs=1e-12)


def test_the_first_sheet_ranks_by_live_totals() -> None:
    told = advice(BOTH)
    book = Reckoned(report_xlsx(told))
    sheet = book.book["Decision"]
    names = [sheet.cell(2 + at, 1).value for at in range(len(told.ranking))]
    assert names == [case.label for case in told.ranking]
    shown = [book.value("Decision", 2 + at, 2) for at in range(len(names))]
    assert shown == pytest.approx(totals(book))
    texts = [str(cell.value) for row in sheet.iter_rows() for cell in row if cell.value]
    assert any(text.startswith("Subscribe to") for text in texts)
    assert any(told.economics.plan.candidates[0].fabric.content_hash in text for text in texts)


def test_another_currency_has_its_rate_in_a_cell() -> None:
    book = Reckoned(report_xlsx(advice(SERVING)))
    sheet = book.book["Decision"]
    row = next(r for r in range(2, 40) if sheet.cell(r, 1).value == "CNY for one USD")
    assert sheet.cell(row, 2).value == 7.1
    assert book.value("Decision", row + 1, 2) == pytest.approx(7.1 * totals(book)[0])
    book.change("Decision", row, 2, 8.0)
    assert book.value("Decision", row + 1, 2) == pytest.approx(8.0 * totals(book)[0])


def test_the_same_advice_gives_the_same_bytes() -> None:
    assert report_xlsx(advice(BOTH)) == report_xlsx(advice(BOTH))


def test_terms_are_worth_what_their_text_says() -> None:
    a, b = Term("A1", 3.0), Term("B1", -0.5)
    cases = [
        (a - (b - 2)) * 4,
        a / (b * 2),
        a / (b + 2) / 2,
        -(a + b) * a,
        1 - 2 * b,
        2 / (1 + a) ** 3,
        greatest(a, b) - least(a, b),
        root(a) + log(a) - exp(b),
        total([a, b, term(-2)]) * term(-3),
        annuity(Term("C1", 0.08), 4),
        annuity(Term("D1", 0.0), 4),
    ]
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet["A1"], sheet["B1"], sheet["C1"], sheet["D1"] = 3.0, -0.5, 0.08, 0.0
    for at, case in enumerate(cases):
        sheet.cell(2, 1 + at).value = f"={case.text}"
    written = io.BytesIO()
    book.save(written)
    reckoned = Reckoned(written.getvalue())
    found = [reckoned.value(sheet.title, 2, 1 + at) for at in range(len(cases))]
    assert found == pytest.approx([case.value for case in cases])
    assert np.isfinite(found).all()
