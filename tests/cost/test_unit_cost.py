"""What a unit costs: by hand, in present value on both sides, and unknown where nothing tells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpufabric.cost.case import Case, Offer
from gpufabric.cost.depreciation import depreciation
from gpufabric.cost.opportunity import LOSSES
from gpufabric.cost.outcome import Outcome, evaluate
from gpufabric.cost.owning import CAPITAL
from gpufabric.cost.quantity import draw, one_draw
from tests.cost.test_outcome import CASE, FACTS, quantities

assert FACTS.performance is not None
FLOPS = 64 * 989e12 * 0.4 * 1.0
"""FLOPs of a step of 1 s on 64 GPUs at an MFU of 40 %."""
TRAINED = replace(FACTS, performance=replace(FACTS.performance, flops_per_step=FLOPS))


TRAINING = replace(CASE, facts=TRAINED)


def outcome(case: Case = TRAINING) -> Outcome:
    return evaluate(case, one_draw(quantities().values()))


def yearly_hours(found: Outcome) -> float:
    wanted = 64 * 8760 * quantities()["cluster.utilisation"].mid
    return wanted - sum(float(found.lost_gpu_hours[name][0]) for name in LOSSES)


def test_the_price_of_a_gpu_hour_brings_in_the_total_in_present_value() -> None:
    found = outcome()
    rate = float(found.discount_rate[0])
    price = float(found.per_gpu_hour[0])
    late = float(found.lost_gpu_hours["deployment"][0])
    income = sum(price * yearly_hours(found) * (1 + rate) ** -year for year in (1, 2, 3, 4))
    assert income - price * late == pytest.approx(float(found.total[0]))


def test_an_eflop_day_is_what_the_model_needs_in_hours_net_of_losses() -> None:
    found = outcome()
    assert found.network_per_eflop_day is not None
    assert found.per_eflop_day is not None
    flops_per_s = FLOPS / 0.9  # the step lasts 0.9 s in hours from which waiting is taken off
    days_of_gpu_hour = flops_per_s * 3600 / 64 / (1e18 * 86_400)
    alone = float(found.per_gpu_hour[0]) / days_of_gpu_hour
    assert float(found.network_per_eflop_day[0]) == pytest.approx(alone)
    hours = float(found.gpu_hour_usd[0]) / days_of_gpu_hour
    assert float(found.per_eflop_day[0]) == pytest.approx(alone + hours)
    assert found.per_work is not None
    tokens_of_day = 8.64e22 / FLOPS * 1e6
    assert float(found.per_work[0]) * tokens_of_day == pytest.approx(alone + hours)


def test_what_is_not_known_is_none_and_never_zero() -> None:
    served = outcome(CASE)
    assert served.per_work is not None
    assert served.per_eflop_day is served.network_per_eflop_day is None
    blind = outcome(replace(CASE, facts=FACTS.with_performance(None)))
    assert blind.per_work is blind.network_per_work is blind.per_eflop_day is None


def test_a_network_is_written_off_to_what_it_is_resold_for() -> None:
    draws = draw(quantities().values(), 256, seed=1)
    for years in (1, 4, 15):
        found = evaluate(replace(CASE, horizon_years=years), draws)
        told = depreciation(found)
        assert told is not None
        assert told.bought_usd == pytest.approx(
            sum(float(found.once[name].mean()) for name in CAPITAL)
        )
        assert told.left_usd == pytest.approx(-float(found.once["residual"].mean()))
        assert len(told.book_usd) == years + 1
        assert told.book_usd[0] == told.bought_usd
        assert told.book_usd[-1] == pytest.approx(told.left_usd)
        assert np.diff(told.book_usd) == pytest.approx(-told.yearly_usd)
        assert 0 < told.yearly_usd < told.bought_usd / years + 1e-6
    assert depreciation(evaluate(replace(CASE, offer=Offer("naas")), draws)) is None


def test_depreciation_is_in_no_total() -> None:
    # What is paid and lost, discounted year by year, is the total; there is no room for more.
    found = outcome()
    told, rate = depreciation(found), float(found.discount_rate[0])
    assert told is not None
    ends = {"residual", "exit"}
    present = sum(
        float(amount[0]) * ((1 + rate) ** -4 if name in ends else 1.0)
        for name, amount in found.once.items()
    )
    for year in range(1, 5):
        present += sum(float(amount[0]) for amount in found.yearly.values()) / (1 + rate) ** year
    assert present == pytest.approx(float(found.total[0]))
    assert set(found.items) == {*found.once, *found.yearly}
    assert not any("depreciation" in name or "written" in name for name in found.items)
    assert told.yearly_usd > 0
