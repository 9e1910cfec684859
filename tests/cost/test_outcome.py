"""The cost of a case: against a plain reckoning by hand, and what must hold for any draw."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpufabric.catalog.cost_constants import cost_constants
from gpufabric.cost.case import TOOLS_OF, Case, Offer
from gpufabric.cost.facts import Exposure, NetworkFacts, Performance, PricedPart
from gpufabric.cost.finance import annuity_factor
from gpufabric.cost.opportunity import (
    interruptions,
    locate_hours,
    lost_shares,
    repair_factor,
    stop_hours,
)
from gpufabric.cost.outcome import GROUPS, Outcome, evaluate, group_of
from gpufabric.cost.quantity import Quantity, draw, fixed, known_quantities, one_draw

SWITCH = Quantity("price.switch", 30_000, 40_000, 50_000, "USD", "x", "2026", "estimate")
EXPOSURE = Exposure(64, 0, 32, 0, 64, 4, 2, planes=1, hosts_per_leaf=8.0, uplinks_per_leaf=8.0)
FACTS = NetworkFacts(
    name="roce",
    fabric="roce",
    fabric_hash="",
    gpu="H100",
    n_gpus=64,
    host_gpus=8,
    job_gpus=64,
    parts=(PricedPart("switches", SWITCH, 1.0, 6, 1, 0, "switch"),),
    n_unpriced=0,
    hosts_usd=None,
    typical_w=4000.0,
    max_w=6000.0,
    n_unpowered=0,
    n_switches=6,
    n_cables=96,
    switch_units=12.0,
    exposure=EXPOSURE,
    performance=Performance(1.0, 0.9, 1.2, 0.05, 0.2, 0.8, 1.3, 1e6, "token", "test"),
)
CASE = Case(FACTS, "basic", None, 4, 25_600.0)


def quantities() -> dict[str, Quantity]:
    known = known_quantities()
    known[SWITCH.key] = SWITCH
    known["forecast.communication_factor"] = fixed("forecast.communication_factor", 1.0, "1", "x")
    return known


def test_every_item_by_hand_at_the_most_likely_values() -> None:
    q = {key: quantity.mid for key, quantity in quantities().items()}
    found = evaluate(CASE, one_draw(quantities().values()))
    rate = q["finance.discount_rate"]
    annuity = sum((1 + rate) ** -year for year in (1, 2, 3, 4))
    people = (q["staff.base_fte.roce"] + 0.06 * q["staff.fte_per_100_switches.roce"]) * q[
        "staff.factor.basic"
    ]
    watts = 4000 + q["energy.load"] * 2000
    minutes = 96 * q["installation.minutes_per_cable"] + 6 * q["installation.minutes_per_switch"]
    wanted = 64 * 8760 * q["cluster.utilisation"]
    incidents = 64 * q["misconfiguration.per_gpu_year"] * q["misconfiguration.skill_factor.basic"]
    tuned = q["performance.tuned_share.roce.basic"]
    late_s = tuned * 0.1 + (1 - tuned) * 0.3
    stops = (
        q["failure.uplink_stops_job"] * (32 * q["failure.optical_link"] + 2 * q["failure.switch"])
        + 64 * q["failure.optical_link"]
        + 64 * q["failure.nic"]
        + 4 * q["failure.switch"]
    )
    between = 8760 / (stops + 64 * q["failure.other_per_gpu_year"])
    interval = math.sqrt(2 * q["job.checkpoint_stall_minutes"] / 60 * between)
    located = q["locate.hours.counters.basic"]
    waited = q["skill.unattended_share.basic"] * located
    stopped = interval / 2 + q["job.restart_hours"] + waited
    part_hours = located + q["repair.skill_factor.basic"] * q["repair.hours"]
    switch_hours = located + q["repair.skill_factor.basic"] * q["repair.switch_hours"]
    access = 64 * q["failure.optical_link"] + 64 * q["failure.nic"]
    out = (
        access * (part_hours - waited) * 8 + 4 * q["failure.switch"] * (switch_hours - waited) * 64
    ) * (1 - q["repair.spare_host_cover"])
    thinner = (0.2 / 7) / (1 + 0.2 / 7)
    above = 32 * q["failure.optical_link"] * part_hours + 2 * q["failure.switch"] * switch_hours
    thin = 64 * thinner * 8760 * (1 - math.exp(-above / 8760))
    alone = {
        "communication": late_s / (0.9 + late_s),
        "jitter": 0.05 / 1.05,
        "failures": (64 * stops * stopped + out + thin) / (64 * 8760),
        "misconfiguration": incidents
        * stopped
        * 64
        * q["misconfiguration.affected_share"]
        / (64 * 8760),
    }
    logs = {name: -math.log(1 - share) for name, share in alone.items()}
    together = 1 - math.prod(1 - share for share in alone.values())
    lost = {name: log / sum(logs.values()) * together for name, log in logs.items()}
    value = q["gpu_hour.usd.h100"]
    late_weeks = max(0.0, q["deployment.network_weeks"] - q["deployment.host_weeks"])
    idle = q["deployment.tune_weeks.roce.basic"] * q["deployment.idle_share"]
    expected = {
        "switches": 240_000.0,
        "spares": 40_000.0,
        "installation": minutes / 60 * q["installation.usd_per_hour"],
        "residual": -240_000 * q["finance.residual_share"] * (1 + rate) ** -4,
        "training": people * q["training.usd_per_engineer"],
        "financing": 0.0,
        "energy": watts / 1000 * 8760 * q["energy.pue"] * q["energy.usd_per_kwh"] * annuity,
        "space": 12 * 12 * q["space.usd_per_unit_month"] * annuity,
        "support": 240_000 * q["support.share.roce"] * annuity,
        "licences": 6
        * (q["licence.usd_per_switch_year.roce"] + q["tools.usd_per_switch_year.counters"])
        * annuity,
        "staff": people * q["staff.usd_per_year"] * annuity,
        "replacement": 240_000 * q["failure.switch"] * q["replacement.paid_share"] * annuity,
        "deployment": (late_weeks + idle) * 168 * 64 * q["cluster.utilisation"] * value,
        **{name: share * wanted * value * annuity for name, share in lost.items()},
    }
    assert {name: float(found.items[name][0]) for name in expected} == pytest.approx(expected)
    rest = {name: float(found.items[name][0]) for name in found.items if name not in expected}
    assert all(amount == 0 for amount in rest.values()), rest
    assert float(found.total[0]) == pytest.approx(sum(expected.values()))


def test_hired_experts_run_it_as_experts_and_cost_what_hiring_does() -> None:
    draws = draw(quantities().values(), 256, seed=1)
    hired = evaluate(replace(CASE, is_hired=True), draws)
    team, experts = evaluate(CASE, draws), evaluate(replace(CASE, skill="expert"), draws)
    needed = draws["staff.base_fte.roce"] + 6 / 100 * draws["staff.fte_per_100_switches.roce"]
    people = np.maximum(needed, draws["hiring.least_fte"])
    np.testing.assert_allclose(hired.yearly["staff"], people * draws["staff.usd_per_year"])
    np.testing.assert_allclose(hired.once["training"], people * draws["hiring.usd_per_engineer"])
    np.testing.assert_array_equal(hired.once["deployment"], team.once["deployment"])
    for cause in ("communication", "failures", "misconfiguration"):
        np.testing.assert_array_equal(hired.yearly[cause], experts.yearly[cause])
    assert (hired.case.name, group_of("training")) == ("roce+hire", "operating")


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    draws = draw(quantities().values(), 512, seed=1)
    offers = (None, Offer("naas"), Offer("bare", usd_per_port_month=50, includes_operation=False))
    return [
        evaluate(Case(FACTS, skill, offer, 4, 25_600.0), draws)
        for skill in ("none", "basic", "expert")
        for offer in offers
    ]


def test_groups_add_up_to_the_total(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        groups = np.sum([outcome.group(name) for name in GROUPS], axis=0)
        np.testing.assert_allclose(groups, outcome.total, rtol=1e-12)
        assert {group_of(name) for name in outcome.items} <= set(GROUPS)


def test_more_skill_never_costs_more_gpu_hours(outcomes: list[Outcome]) -> None:
    bought = [outcome for outcome in outcomes if outcome.case.offer is None]
    lost = [
        sum(float(hours.mean()) for hours in outcome.lost_gpu_hours.values()) for outcome in bought
    ]
    assert lost[0] > lost[1] > lost[2]


def test_a_subscription_that_includes_operation_does_not_hang_on_the_team(
    outcomes: list[Outcome],
) -> None:
    totals = [o.total for o in outcomes if o.case.offer and o.case.offer.includes_operation]
    for total in totals[1:]:
        np.testing.assert_array_equal(total, totals[0])


def test_a_given_offer_costs_what_it_says() -> None:
    offer = Offer("acme", usd_per_port_month=40, setup_usd=5000, credit_share=0.0, exit_months=3)
    draws = one_draw(quantities().values())
    case = Case(FACTS, "expert", replace(offer, term_months=60), 4, 25_600.0)
    found = evaluate(case, draws)
    rate = float(draws["finance.discount_rate"][0])
    annuity = float(annuity_factor(rate, 4))
    assert float(found.items["fees"][0]) == pytest.approx(12 * 40 * 64 * annuity)
    assert float(found.items["setup"][0]) == 5000
    assert float(found.items["exit"][0]) == pytest.approx(3 * 40 * 64 * (1 + rate) ** -4)
    assert "switches" not in found.items
    own = float(draws["subscription.own_fte"][0] * draws["staff.usd_per_year"][0])
    assert float(found.yearly["staff"][0]) == pytest.approx(own)
    by_rate = Offer("acme", usd_per_gbps_month=0.1)
    fees = evaluate(Case(FACTS, "expert", by_rate, 4, 25_600.0), draws).yearly["fees"]
    assert float(fees[0]) == pytest.approx(12 * 0.1 * 25_600)


def test_what_llama_3_lost_to_its_network_is_within_the_band() -> None:
    # The Llama 3 Herd of Models, table 5: 42 interruptions by switches, cables and NICs in 54 days
    # on 16,384 GPUs, and less than 10 % of the time lost to 466 interruptions of all kinds.
    exposure = Exposure(16_384, 0, 16_384, 0, 16_384, 1024, 144, 1, 2.0, 16.0)
    facts = replace(FACTS, n_gpus=16_384, job_gpus=16_384, exposure=exposure)
    draws = draw(quantities().values(), 4096, seed=1)
    case = Case(facts, "expert", None)
    stops = interruptions(case, draws).stopping(1, draws) * 54 / 365
    low, middle, high = np.quantile(stops, (0.1, 0.5, 0.9))
    assert low < 42 < high
    assert middle == pytest.approx(42, rel=0.5)
    hours = float(np.median(stop_hours(case, draws)))
    assert 0.1 < hours < 2 * 0.28


def test_better_tools_or_more_skill_never_find_a_fault_later() -> None:
    known = cost_constants()
    tools, skills = tuple(TOOLS_OF.values()), tuple(TOOLS_OF)
    for end in ("low", "mid", "high"):
        hours = np.array(
            [[getattr(known[f"locate.hours.{t}.{s}"], end) for s in skills] for t in tools]
        )
        assert (np.diff(hours, axis=0) < 0).all()
        assert (np.diff(hours, axis=1) < 0).all()
    draws = one_draw(quantities().values())
    longer = [float(repair_factor(replace(CASE, skill=s), draws)[0]) for s in skills]
    assert longer[0] > longer[1] > longer[2] == 1.0


def test_tools_go_by_skill_where_nobody_says_and_a_provider_has_the_best() -> None:
    assert [Case(FACTS, skill).operator_tools for skill in TOOLS_OF] == list(TOOLS_OF.values())
    assert replace(CASE, is_hired=True).operator_tools == "telemetry"
    poor = replace(CASE, tools="none")
    assert poor.operator_tools == replace(poor, is_hired=True).operator_tools == "none"
    served = replace(poor, offer=Offer("naas"))
    assert (served.operator_tools, served.operator_skill) == ("telemetry", "expert")
    bare = replace(poor, offer=Offer("bare", includes_operation=False))
    assert bare.operator_tools == "none"
    draws = draw(quantities().values(), 64, seed=1)
    fees = [evaluate(replace(case, tools=None), draws).yearly["fees"] for case in (served, bare)]
    for case, fee in zip((served, bare), fees, strict=True):
        np.testing.assert_array_equal(evaluate(case, draws).yearly["fees"], fee)


@pytest.mark.parametrize("planes", [1, 2])
@pytest.mark.parametrize("skill", list(TOOLS_OF))
def test_better_tools_cost_money_and_save_hours_of_failures(skill: str, planes: int) -> None:
    draws = one_draw(quantities().values())
    facts = replace(FACTS, exposure=replace(EXPOSURE, planes=planes))
    found = [
        evaluate(Case(facts, skill, tools=tools), draws)  # type: ignore[arg-type]
        for tools in TOOLS_OF.values()
    ]
    for worse, better in itertools.pairwise(found):
        assert better.yearly["licences"] > worse.yearly["licences"]
        for cause in ("failures", "misconfiguration"):
            assert better.lost_gpu_hours[cause] < worse.lost_gpu_hours[cause]
        others = set(worse.yearly) - {"licences", "failures", "misconfiguration"}
        for item in others - {"communication", "jitter"}:
            np.testing.assert_array_equal(better.yearly[item], worse.yearly[item])
        assert locate_hours(better.case, draws) < locate_hours(worse.case, draws)
        assert stop_hours(better.case, draws) < stop_hours(worse.case, draws)


def test_planes_turn_stops_into_less_bandwidth() -> None:
    draws = one_draw(quantities().values())
    dual = replace(CASE, facts=replace(FACTS, exposure=replace(EXPOSURE, planes=2)))
    assert evaluate(dual, draws).items["failures"] < evaluate(CASE, draws).items["failures"]


@pytest.mark.parametrize("planes", [1, 8])
def test_faults_at_once_slow_a_job_no_more_than_one_does(planes: int) -> None:
    draws = one_draw(quantities().values())

    def failures(factor: int) -> float:
        exposure = replace(EXPOSURE, uplink_optical=32 * factor, planes=planes)
        facts = replace(FACTS, exposure=exposure)
        quiet = {key: values.copy() for key, values in draws.items()}
        quiet["failure.uplink_stops_job"][:] = 0.0
        return float(lost_shares(replace(CASE, facts=facts), quiet)["failures"][0])

    few, many, most = failures(1), failures(10**4), failures(10**6)
    assert few < many
    # By the definition at most the share that a job loses with one uplink of a leaf out: 1/7 more.
    thinner = (0.2 / 7) / (1 + 0.2 / 7)
    assert most - few < thinner
    assert most == pytest.approx(many, rel=0.01)


def test_unknown_performance_loses_nothing_to_it_and_has_no_price_of_work() -> None:
    found = evaluate(
        replace(CASE, facts=FACTS.with_performance(None)), one_draw(quantities().values())
    )
    assert found.per_work is None
    assert float(found.items["communication"][0]) == 0


@settings(max_examples=25, deadline=None)
@given(
    st.floats(0.0, 0.3),
    st.floats(0.0, 1.0),
    st.sampled_from(["none", "basic", "expert"]),
    st.integers(1, 10),
)
def test_costs_are_finite_and_losses_are_parts_of_what_is_wanted(
    rate: float, used: float, skill: str, years: int
) -> None:
    values = quantities()
    values["finance.discount_rate"] = values["finance.discount_rate"].at(rate)
    values["cluster.utilisation"] = values["cluster.utilisation"].at(used)
    case = Case(FACTS, skill, None, years, 25_600.0)  # type: ignore[arg-type]
    found = evaluate(case, draw(values.values(), 64, seed=3))
    assert np.isfinite(found.total).all()
    yearly = sum(hours for name, hours in found.lost_gpu_hours.items() if name != "deployment")
    assert np.all(yearly <= 64 * 8760 * used + 1e-6)


def test_every_constant_is_read_by_some_case(outcomes: list[Outcome]) -> None:
    draws = draw(quantities().values(), 4, seed=1)
    read = set().union(*(outcome.keys for outcome in outcomes))
    for fabric in ("infiniband", "roce"):
        for gpu in ("A100", "H100", "H200", "B200", "MI300X"):
            for skill in ("none", "basic", "expert"):
                for offer in (None, Offer("naas", term_months=60)):
                    facts = replace(FACTS, fabric=fabric, gpu=gpu)
                    read |= evaluate(Case(facts, skill, offer), draws).keys
    read |= evaluate(replace(CASE, is_hired=True), draws).keys
    for tools in TOOLS_OF.values():
        for skill in TOOLS_OF:
            read |= evaluate(Case(FACTS, skill, tools=tools), draws).keys
    assert set(cost_constants()) <= read


def test_what_is_resold_early_fetches_more() -> None:
    draws = one_draw(quantities().values())
    share = float(draws["finance.residual_share"][0])
    for years in (1, 4, 8):
        found = evaluate(replace(CASE, horizon_years=years), draws)
        assert float(found.once["residual"][0]) == pytest.approx(-240_000 * share ** (years / 4))
