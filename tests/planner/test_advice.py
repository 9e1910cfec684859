"""An advice is what its draws say: who wins, by how much, why, and what would change it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.cost.opportunity import LOSSES
from gpufabric.cost.outcome import evaluate
from gpufabric.cost.quantity import draw
from gpufabric.planner.advice import advise
from gpufabric.planner.argument import compared_items
from gpufabric.planner.cash import cash_flow
from gpufabric.planner.flips import number_text
from gpufabric.planner.knobs import FLIP_DRAWS
from gpufabric.planner.ranking import rank
from gpufabric.planner.scale import scale_chart
from gpufabric.workload.transformer import preset
from tests.planner.worked import SMALL, advice, money


def test_the_winner_has_the_least_mean_and_the_confidence_counts_draws() -> None:
    found, costs = advice(), money().costs
    means = {cost.name: float(cost.outcome.total.mean()) for cost in costs}
    assert found.winner == min(means, key=lambda name: (means[name], name))
    first = money().cost(found.winner).outcome.total
    second = money().cost(found.runner_up).outcome.total
    assert found.confidence == pytest.approx(float(np.mean(first < second)))
    assert found.margin is not None
    assert found.margin.mean == pytest.approx(float(np.mean(second - first)))
    apart = [case for case in found.ranking if not case.same_as]
    assert sum(case.best_chance for case in found.ranking) == pytest.approx(1)
    assert [case.decided_by_usd for case in apart] == sorted(c.decided_by_usd for c in apart)


def test_the_same_network_twice_is_no_runner_up() -> None:
    twins = {case.name: case.same_as for case in advice().ranking if case.same_as}
    ways = ("", "+hire", "+naas")
    assert twins == {f"roce-again{way}": f"roce{way}" for way in ways}
    assert advice().runner_up not in twins


def test_deciding_by_p90_ranks_by_it() -> None:
    question = money().plan.requirement.cost.model_copy(update={"decide_by": "p90"})
    for case in rank(money().costs, question):
        total = money().cost(case.name).outcome.total
        assert case.decided_by_usd == pytest.approx(float(np.quantile(total, 0.9)))


def test_a_budget_excludes_what_costs_more_at_the_start() -> None:
    starts = {case.name: case.start_usd.mean for case in advice().ranking}
    between = (starts["roce"] + starts["infiniband"]) / 2
    question = money().plan.requirement.cost.model_copy(update={"budget_usd": between})
    ranking = rank(money().costs, question)
    over = {case.name for case in ranking if case.exceeds_budget}
    assert over == {name for name, usd in starts.items() if usd > between}
    assert over == {"infiniband", "infiniband+hire"}
    assert {ranking[-1].name, ranking[-2].name} == over
    assert ranking[-1].best_chance == 0


def test_a_budget_below_all_excludes_nothing() -> None:
    question = money().plan.requirement.cost
    free = rank(money().costs, question)
    poor = rank(money().costs, question.model_copy(update={"budget_usd": 1.0}))
    assert all(case.exceeds_budget for case in poor)
    assert [case.name for case in poor] == [case.name for case in free]
    assert [case.best_chance for case in poor] == [case.best_chance for case in free]


def test_what_has_no_price_wins_over_nothing_that_has() -> None:
    chassis = "{name: chassis, fabric: roce, switch: {leaf: sn5600, spine: 7800r-576}, tiers: 2}"
    found = advice(SMALL.replace("{name: roce-again, fabric: roce}", chassis))
    unpriced = {case.name for case in found.ranking if case.n_unpriced}
    assert unpriced == {"chassis", "chassis+hire", "chassis+naas"}
    assert {case.name for case in found.ranking[-3:]} == unpriced
    assert found.ranked("chassis").best_chance == 0
    assert not unpriced & {one.other for one in found.contrasts}
    assert "unpriced" in {one.key for one in found.pitfalls if one.candidate == "chassis"}
    alone = SMALL.replace("[infiniband, roce, {name: roce-again, fabric: roce}]", f"[{chassis}]")
    assert advice(alone).is_lower_bound


def test_reasons_and_objections_add_up_to_the_difference() -> None:
    found = advice()
    for one in found.contrasts:
        mine, theirs = compared_items(
            money().cost(found.winner).outcome.items, money().cost(one.other).outcome.items
        )
        saved = {
            item: float(np.mean(theirs.get(item, 0.0))) - float(np.mean(mine.get(item, 0.0)))
            for item in {*mine, *theirs}
        }
        assert sum(saved.values()) == pytest.approx(one.saved.mean)
        best = sorted((usd for usd in saved.values() if usd > 0), reverse=True)
        assert [reason.saved.mean for reason in one.reasons] == pytest.approx(best[:3])
        for reason in (*one.reasons, *one.objections):
            assert reason.saved.mean == pytest.approx(saved[reason.item])
            assert one.other in reason.sentence
    assert found.reasons == found.contrasts[0].reasons
    assert [one.role for one in found.contrasts] == ["runner_up", "other_fabric", "other_way"]


def test_regret_is_what_the_best_of_each_draw_would_have_saved() -> None:
    found = advice()
    names = [case.name for case in found.ranking if not case.same_as]
    totals = np.stack([money().cost(name).outcome.total for name in names])
    lost = totals - totals.min(axis=0)
    assert [one.name for one in found.regrets] == names
    for one, row in zip(found.regrets, lost, strict=True):
        assert one.mean_usd == pytest.approx(float(row.mean()))
        assert one.p90_usd == pytest.approx(float(np.quantile(row, 0.9)))
        assert one.chance * one.if_wrong_usd == pytest.approx(one.mean_usd)
    assert found.regrets[0].mean_usd == min(one.mean_usd for one in found.regrets)


def test_on_either_side_of_a_flip_point_another_case_wins() -> None:
    found, economics = advice(), money()
    turned = [one for one in found.flips if one.key == "staff.usd_per_year"]
    assert len(turned) == 1
    change = turned[0].below
    assert change is not None
    cases = [economics.cost(case.name).case for case in found.ranking if not case.same_as]
    draws = draw(economics.quantities.values(), FLIP_DRAWS, economics.plan.requirement.seed)

    def winner(usd: float) -> str:
        column = np.full(FLIP_DRAWS, usd)
        given = {**draws, "staff.usd_per_year": column}
        return min((float(evaluate(case, given).total.mean()), case.name) for case in cases)[1]

    assert winner(1.02 * change.value) == found.winner
    assert winner(0.98 * change.value) == change.winner != found.winner
    assert f"{change.winner} is best" in turned[0].sentence
    assert turned[0].sentence in found.conditions
    order = [one.flips for one in found.flips]
    assert order == sorted(order, reverse=True)


def test_every_kind_of_knob_is_turned() -> None:
    keys = {one.key for one in advice().flips}
    assert {
        "gpu_hour.usd.h100",
        "switch_price.infiniband",
        "switch_price.roce",
        "skill.infiniband",
        "skill.roce",
        "horizon_years",
        "fee.naas",
        "misconfiguration.per_gpu_year",
        "failure.optical_link",
    } <= keys
    for one in advice().flips:
        assert len(one.values) == len(one.winners)
        assert list(one.values) == sorted(one.values)
        assert one.flips == (len({*one.winners, advice().winner}) > 1)


def test_what_is_dominated_is_worse_in_nothing_that_its_better_has() -> None:
    points = {point.name: point for point in advice().pareto}
    assert not points[advice().winner].is_dominated
    told = [point for point in points.values() if point.is_dominated]
    assert told
    for point in told:
        better = points[point.dominated_by]
        assert better.cost_usd <= point.cost_usd * (1 + 1e-9)
        assert better.performance >= point.performance * (1 - 1e-9)
        assert better.risk_usd <= point.risk_usd * (1 + 1e-9)
        assert better.staff_fte <= point.staff_fte * (1 + 1e-9)
        assert better.name in point.sentence
    assert all(0 < point.performance <= 1 for point in points.values())


def test_months_and_years_end_at_the_total() -> None:
    for cost in money().costs:
        flow = cash_flow(cost)
        total, paid = cost.outcome.total.mean(), cost.outcome.paid.mean()
        assert flow.cumulative_usd[-1] == pytest.approx(float(total))
        assert flow.cumulative_paid_usd[-1] == pytest.approx(float(paid))
        undiscounted = sum(float(v.mean()) for v in cost.outcome.once.values())
        undiscounted += 4 * sum(float(v.mean()) for v in cost.outcome.yearly.values())
        assert float((flow.paid_usd + flow.lost_usd).sum()) == pytest.approx(undiscounted)
        assert len(flow.cumulative_usd) == 49


def test_a_cheap_subscription_is_never_overtaken_and_a_dear_one_at_once() -> None:
    head = "{gpus: 128, host: dgx-h100, candidates: [roce], cost: {draws: 256}, offers: "
    cheap = advice(head + "[{name: gift, usd_per_port_month: 1}]}").break_evens[0]
    dear = advice(head + "[{name: gold, usd_per_port_month: 5000, setup_usd: 9000000}]}")
    assert cheap.month is cheap.paid_month is None
    assert (dear.break_evens[0].month, dear.break_evens[0].paid_month) == (0, 0)


def test_the_ledger_has_every_number_that_was_read_once() -> None:
    found = advice()
    keys = [row.key for row in found.ledger]
    assert len(keys) == len(set(keys))
    read = set().union(*(cost.outcome.keys for cost in money().costs))
    assert read <= set(keys)
    assert {"design.roce.switches", "design.infiniband.max_w", "forecast.roce.step_s"} <= set(keys)
    for row in found.ledger:
        assert row.label != row.key
        assert row.source
        assert row.low <= row.mid <= row.high
    free = [row for row in found.ledger if row.key in read]
    assert 0.5 < sum(row.share_of_winner for row in free) <= 1.05
    first = [(row.share_of_margin, row.share_of_winner) for row in free]
    assert first == sorted(first, reverse=True)


def test_the_chart_is_the_ranking_at_the_specs_own_size() -> None:
    economics = money()
    ranked = [economics.cost(case.name) for case in advice().ranking if not case.same_as]
    chart = scale_chart(economics, ranked, [64, 128])
    assert chart.sizes == (64, 128)
    assert len(chart.cells) == 2 * len(chart.gpu_hour_usd)
    own = next(cell for cell in chart.drawn if cell.gpus == 128)
    assert (own.winner, own.runner_up) == (advice().winner, advice().runner_up)
    assert all(cell.margin_usd >= 0 for cell in chart.cells)
    again = advise(economics, sizes=[64, 128])
    for value in (0.5, 12.0):
        fixed_at = f"draws: 512, assumptions: {{gpu_hour.usd.h100: {value}}}"
        given = advice(SMALL.replace("draws: 1024", fixed_at))
        cell = chart.cell(128, value)
        assert cell.winner == given.winner
        assert cell.margin_usd == pytest.approx(given.margin.mean if given.margin else 0, rel=0.02)
    size = next(one for one in again.flips if one.key == "gpus")
    assert size.values == (64.0, 128.0)
    assert size.winners[1] == again.winner


def test_the_mean_of_a_unit_cost_is_mean_cost_over_mean_work() -> None:
    """A mean of ratios would hang on the draws in which nearly no work is done."""
    outcomes = {cost.case.name: cost.outcome for cost in money().costs}
    for case in advice().ranking:
        found = outcomes[case.name]
        hours = found.present_gpu_hours
        assert case.per_gpu_hour.mean == pytest.approx(found.total.mean() / hours.mean())
        assert found.per_work is not None
        assert case.per_million_work is not None
        whole = (found.total + found.gpu_hour_usd * hours).mean() / hours.mean()
        of_hour = (found.per_gpu_hour + found.gpu_hour_usd) / found.per_work
        assert case.per_million_work.mean == pytest.approx(whole / of_hour[0] * 1e6)


def test_a_currency_without_its_rate_is_told() -> None:
    spec = "{gpus: 16, host: dgx-h100, candidates: [roce], cost: {draws: 64}, site: {currency: EUR"
    told = {one.key: one for one in advice(spec + "}}").pitfalls}["no_rate"]
    assert told.sentence == "EUR is asked for without its rate: all amounts are in USD."
    assert "no_rate" not in {one.key for one in advice(spec + ", currency_rate: 0.9}}").pitfalls}


def test_one_host_needs_no_network() -> None:
    alone = "gpus: 8\nhost: dgx-h100\ncandidates: [infiniband, roce]\n"
    assert "one_host" in {one.key for one in advice(alone).pitfalls}
    for more in (alone + "growth: {gpus: 64}\n", alone.replace("8", "16", 1)):
        assert "one_host" not in {one.key for one in advice(more).pitfalls}


def test_pitfalls_name_what_the_spec_gets_wrong() -> None:
    spec = (
        "{gpus: 256, host: dgx-h100, team: {ethernet: none, infiniband: none}, "
        "workload: {kind: inference, latency_sensitive: false, gpudirect: false, "
        "model: deepseek-v3, parallelism: {tp: 1, ep: 64}}, cost: {draws: 64}, "
        "candidates: [{fabric: roce, switch: sn5600, oversubscription: 2, tiers: 2}, infiniband]}"
    )
    found = {one.key: one for one in advice(spec).pitfalls}
    for key in (
        "no_lossless_skill",
        "no_infiniband_skill",
        "latency_ignored",
        "gpudirect_off",
        "oversubscribed_alltoall",
        "single_vendor",
    ):
        assert found[key].sentence, key
        assert found[key].remedy, key
    assert "2:1" in found["oversubscribed_alltoall"].sentence
    assert "64 GPUs" in found["oversubscribed_alltoall"].sentence
    quiet = {one.key for one in advice().pitfalls}
    assert not quiet & {"no_lossless_skill", "latency_ignored", "gpudirect_off"}


@pytest.mark.parametrize(
    "workload",
    ["kind: training, model: llama3-8b", "kind: inference, model: deepseek-v3, precision: fp8"],
)
def test_gpudirect_off_costs_every_candidate_what_its_pitfall_tells(workload: str) -> None:
    spec = (
        "{{gpus: 64, host: dgx-h100, candidates: [infiniband, {{fabric: roce, tiers: 2, "
        "oversubscription: 2}}], cost: {{draws: 256}}, workload: {{{0}, gpudirect: {1}}}}}"
    )
    on, off = (money(spec.format(workload, given)) for given in ("true", "false"))
    found = advice(spec.format(workload, "false"))
    told = {one.candidate: one.sentence for one in found.pitfalls if one.key == "gpudirect_off"}
    assert set(told) == {"infiniband", "roce"}
    for cost in off.costs:
        same = on.cost(cost.name).outcome
        assert (cost.outcome.yearly["communication"] > same.yearly["communication"]).all()
        more = float((cost.outcome.total - same.total).mean())
        assert more > 0
        waiting = cost.outcome.items["communication"] - same.items["communication"]
        assert float(waiting.mean()) == pytest.approx(more, rel=0.05), "it lands in waiting"
        if cost.name in told:
            hours = sum(
                float((cost.outcome.lost_gpu_hours[name] - same.lost_gpu_hours[name]).mean())
                for name in LOSSES
            )
            assert f" {number_text(hours)} GPU-hours a year" in told[cost.name]
            assert f" {number_text(more)} USD over 4 years" in told[cost.name]
    assert {one.key for one in advice(spec.format(workload, "true")).pitfalls}.isdisjoint(
        {"gpudirect_off"}
    )
    mended = next(one for one in found.flips if one.key == "gpudirect")
    assert mended.winners == (found.winner, advice(spec.format(workload, "true")).winner)
    assert "forecast.roce.direct_step_s" in {row.key for row in found.ledger}


def test_a_large_network_without_tools_is_told_what_dashboards_save() -> None:
    spec = (
        "{{gpus: {0}, host: dgx-h100, candidates: [infiniband], offers: false, "
        "team: {{infiniband: basic, tools: {1}}}, cost: {{draws: 256}}}}"
    )
    poor = money(spec.format(1024, "none"))
    draws = draw(poor.quantities.values(), 256, poor.plan.requirement.seed)
    bare = poor.cost("infiniband").case
    watched = replace(bare, tools="counters")
    saved = evaluate(bare, draws).total - evaluate(watched, draws).total
    assert money(spec.format(1024, "counters")).cost("infiniband").case == watched
    found = advice(spec.format(1024, "none"))
    told = {one.key: one for one in found.pitfalls}["no_tools"]
    assert told.candidate == "infiniband"
    assert f"saves {number_text(float(saved.mean()))} USD over 4 years" in told.sentence
    for few in (spec.format(512, "none"), spec.format(1024, "counters")):
        assert "no_tools" not in {one.key for one in advice(few).pitfalls}
    labels = {row.key: row.label for row in found.ledger}
    assert labels["locate.hours.none.basic"] == "Time to find a cause (no tools, some skill)"
    assert "locate.hours.counters.basic" in {
        row.key for row in advice(spec.format(1024, "counters")).ledger
    }
    turned = next(one for one in found.flips if one.key == "tools")
    assert turned.names == ("none", "counters", "telemetry")
    assert turned.now == 0.0


def test_a_winner_by_subscription_without_an_offer_says_that_the_fee_is_reckoned() -> None:
    assert advice().winner.endswith("+naas")
    told = next(one for one in advice().pitfalls if one.key == "fee_reckoned")
    fees = money().cost(advice().winner).outcome.yearly["fees"]
    assert f"{float(fees.mean()) / 12 / 128:,.0f} USD a month" in told.sentence
    offered = SMALL.replace("{gpus", "{offers: [{name: acme, usd_per_port_month: 20}], gpus", 1)
    assert advice(offered).winner.endswith("+acme")
    assert "fee_reckoned" not in {one.key for one in advice(offered).pitfalls}


def test_useful_flops_are_those_of_the_model_itself() -> None:
    one = money().plan.candidates[0]
    step = one.forecast.training
    performance = money().cost(one.name).case.facts.performance
    assert step is not None
    assert performance is not None
    each = preset(step.model).flops_per_token(int(step.plan["sequence_tokens"]))
    tokens = int(step.plan["global_batch"]) * int(step.plan["sequence_tokens"])
    assert performance.flops_per_step == pytest.approx(tokens * each)
    assert performance.precision == step.plan["precision"] == "bf16"


def test_a_gpu_hour_may_be_worth_nothing() -> None:
    spec = "{gpus: 8, host: dgx-h100, candidates: [roce], offers: false, team: {ethernet: expert}, "
    found = advise(money(spec + "cost: {draws: 64, assumptions: {gpu_hour.usd.h100: 0}}}"), [8])
    assert (found.winner, found.runner_up, found.margin) == ("roce", "", None)
    assert found.ranking[0].groups["opportunity"].p90 == 0
    assert found.chart is not None
    assert [cell.winner for cell in found.chart.cells] == ["roce"] * len(found.chart.gpu_hour_usd)


def test_what_no_number_can_be_is_refused() -> None:
    wrong = "assumptions: {energy.load: 5, energy.pue: 0.9, finance.discount_rate: [6, 8, 12]}"
    with pytest.raises(InputError) as caught:
        money(SMALL.replace("draws: 1024", f"draws: 64, {wrong}"))
    assert [fault.what for fault in caught.value.faults] == [
        "5 cannot be.",
        "0.9 cannot be.",
        "6 cannot be.",
    ]
    assert [fault.expected for fault in caught.value.faults] == [
        "0 to 1, as a fraction",
        "1 or more",
        "0 to 1, as a fraction",
    ]


def test_a_cluster_without_work_is_refused() -> None:
    idle = SMALL.replace("draws: 1024", "draws: 64, assumptions: {cluster.utilisation: 0}")
    with pytest.raises(InputError) as caught:
        money(idle)
    assert [fault.expected for fault in caught.value.faults] == ["0.01 to 1, as a fraction"]


def test_money_is_told_in_the_currency_of_the_site() -> None:
    site = "site: {currency: CNY, currency_rate: 7.1, currency_date: 2026-11-30}, "
    found = advice(SMALL.replace("{gpus", "{" + site + "gpus", 1)).currency
    assert (found.code, found.rate, found.date) == ("CNY", 7.1, "2026-11-30")


def test_the_same_plan_gives_the_same_advice() -> None:
    again = advise(replace(money()), sizes=())
    assert again.ranking == advice().ranking
    assert again.flips == advice().flips
    assert again.ledger == advice().ledger
