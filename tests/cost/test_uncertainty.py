"""Draws, variance shares, tornado and flip points against what is known in closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from gpufabric.core.errors import InputError
from gpufabric.cost.finance import break_even_month, cumulative
from gpufabric.cost.outcome import evaluate
from gpufabric.cost.quantity import Quantity, draw, known_quantities, quantile
from gpufabric.cost.uncertainty import band, chance_below, flip_point, tornado, variance_shares
from tests.cost.test_outcome import CASE, quantities


def of(key: str, low: float, mid: float, high: float, spread: str = "linear") -> Quantity:
    return Quantity(key, low, mid, high, "1", "test", "2026", "assumed", spread)  # type: ignore[arg-type]


def test_quantiles_are_those_of_the_triangular_distribution() -> None:
    shares = np.linspace(0.001, 0.999, 97)
    for low, mid, high in ((0.0, 1.0, 4.0), (2.0, 2.0, 3.0), (2.0, 3.0, 3.0)):
        peer = stats.triang((mid - low) / (high - low), loc=low, scale=high - low)
        np.testing.assert_allclose(quantile(of("k", low, mid, high), shares), peer.ppf(shares))
    log = quantile(of("k", 0.01, 0.1, 1.0, "log"), np.array([0.0, 0.5, 1.0]))
    np.testing.assert_allclose(log, [0.01, 0.1, 1.0])


def test_draws_repeat_by_seed_and_do_not_hang_on_the_order() -> None:
    quantities_ = [of("b", 0, 1, 2), of("a", 1, 2, 6), of("c", 5, 5, 5)]
    first, again = draw(quantities_, 1000, 7), draw(quantities_[::-1], 1000, 7)
    assert len(first["a"]) == 1024
    for key, column in first.items():
        np.testing.assert_array_equal(column, again[key])
    assert not np.array_equal(first["a"], draw(quantities_, 1000, 8)["a"])
    assert first["a"].mean() == pytest.approx(3.0, rel=1e-3)
    assert (first["c"] == 5).all()
    with pytest.raises(InputError, match="draws"):
        draw(quantities_, 1, 7)


def test_shares_of_variance_of_a_sum() -> None:
    # y = 3 a + b: a explains 9/10 of the variance where both are alike.
    values = draw([of("a", 0, 1, 2), of("b", 0, 1, 2), of("c", 0, 1, 2)], 8192, 1)
    shares = variance_shares(3 * values["a"] + values["b"], values, values)
    assert shares["a"] == pytest.approx(0.9, abs=0.01)
    assert shares["b"] == pytest.approx(0.1, abs=0.01)
    assert shares["c"] == pytest.approx(0.0, abs=0.005)


def test_shares_of_variance_of_the_ishigami_function() -> None:
    # S1 = 0.3139, S2 = 0.4424, S3 = 0 for a = 7, b = 0.1 (Saltelli et al., 2008, section 4.5).
    rng = np.random.default_rng(1)
    x = {key: rng.uniform(-np.pi, np.pi, 1 << 16) for key in "abc"}
    y = np.sin(x["a"]) + 7 * np.sin(x["b"]) ** 2 + 0.1 * x["c"] ** 4 * np.sin(x["a"])
    shares = variance_shares(y, x, x)
    assert shares["a"] == pytest.approx(0.3139, abs=0.01)
    assert shares["b"] == pytest.approx(0.4424, abs=0.01)
    assert shares["c"] == pytest.approx(0.0, abs=0.01)


def test_tornado_puts_the_widest_first() -> None:
    found = tornado(lambda d: d["a"] * 10 + d["b"], [of("b", 0, 1, 2), of("a", 0, 1, 2)])
    assert [swing.quantity.key for swing in found] == ["a", "b"]
    assert found[0].size == pytest.approx(10 * found[1].size)


def test_a_flip_point_is_where_both_cost_the_same() -> None:
    # The second case has 6 more switches of the same price and needs no people: the price decides.
    values = quantities()
    dear = replace(CASE.facts, name="dear", parts=(replace(CASE.facts.parts[0], pieces=12),))
    lean = replace(dear, n_gpus=CASE.facts.n_gpus)
    first, second = CASE, replace(CASE, facts=lean, skill="expert")
    draws = draw(values.values(), 1024, 1)
    found = flip_point(first, second, values["price.switch"], draws, (100.0, 500_000.0))
    assert found.value is not None
    assert (found.below, found.above) == ("dear", "roce")
    at = {**draws, "price.switch": np.full(1024, found.value)}

    gap = (evaluate(first, at).total - evaluate(second, at).total).mean()
    assert abs(gap) < 1e-3 * evaluate(first, at).total.mean()
    none = flip_point(first, first, values["energy.usd_per_kwh"], draws, (0.01, 1.0))
    assert none.value is None


def test_chances_and_bands() -> None:
    assert chance_below(np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 2.0, 2.0, 2.0])) == 0.375
    assert band(np.full(4, 3.0)).p90 == 3.0


def test_the_month_in_which_buying_has_cost_no_more() -> None:
    build, rent = cumulative(1000.0, 0.0, 0.0, 24), cumulative(0.0, 1200.0, 0.0, 24)
    assert break_even_month(build, rent) == 10
    assert break_even_month(rent, build) is None
    assert break_even_month(cumulative(9999.0, 0, 0, 24), rent) is None


def test_an_unknown_key_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"energy\.usd_per_kwh"):
        known_quantities({"energy.usd_per_kw": of("x", 0, 0, 0)})
