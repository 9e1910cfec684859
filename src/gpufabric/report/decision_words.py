"""The decision in words: what to do, how sure that is, why, and what would turn it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpufabric.core.text import _, listed, sentences, titled
from gpufabric.cost.outcome import evaluate
from gpufabric.cost.quantity import one_draw
from gpufabric.planner.advice import Advice, RankedCase
from gpufabric.planner.argument import Contrast, Reason, reason_words
from gpufabric.planner.compare import CandidatePlan
from gpufabric.report.amounts import Currency, currency_of
from gpufabric.report.chart import percent
from gpufabric.report.cost_charts import crossing_words
from gpufabric.report.flip_chart import nearest_flips
from gpufabric.report.topology_words import family_words, protocol_words
from gpufabric.report.work_words import work_words

__all__ = ["Decision", "decision_of", "money_words", "network_words", "spec_words"]

MOST_CONDITIONS = 5
SURE, LIKELY, LEANING = 0.9, 0.75, 0.6


@dataclass(frozen=True)
class Decision:
    """What the first screen says.

    Parameters
    ----------
    headline, network, answer
        What to do, what network that is, and what it costs beside the next best.
    sure
        How sure that is, a sentence.
    keys
        Key figures: value and what it is.
    reasons, objections
        Why, and what speaks against it: sentences with numbers.
    conditions
        What would change the advice.
    wrong
        What it costs if another turns out better.
    ownership
        From when on owning costs no more than the subscription; empty without an offer.
    fabrics
        The winner beside the best of the other fabric; empty where that is the next best.
    work
        What the workload gets, beside the next best network.
    pitfalls
        Mistakes found in the spec: what is wrong, and what to do.
    """

    headline: str
    network: str
    answer: str
    sure: str
    keys: tuple[tuple[str, str], ...]
    reasons: tuple[str, ...]
    objections: tuple[str, ...]
    conditions: tuple[str, ...]
    wrong: str
    ownership: str
    fabrics: str
    work: str
    pitfalls: tuple[tuple[str, str], ...]


def decision_of(advice: Advice) -> Decision:
    """Return the decision in words."""
    plan = advice.economics.plan
    currency = currency_of(plan.requirement.site)
    winner = advice.ranked(advice.winner)
    first = advice.contrast("runner_up")
    return Decision(
        headline=_headline(winner),
        network=network_words(plan.candidate(winner.candidate)),
        answer=sentences(_unaffordable(advice, currency), _answer(advice, winner, currency)),
        sure=_sure(advice),
        keys=_keys(advice, winner, currency),
        reasons=() if first is None else _against(first, first.reasons, currency),
        objections=(
            *_skewed(advice, currency),
            *(() if first is None else _against(first, first.objections, currency)),
        ),
        conditions=_conditions(advice),
        wrong=_wrong(advice, currency),
        ownership=sentences(
            *(
                crossing_words(one)
                for one in advice.break_evens
                if advice.winner in (one.bought, one.subscribed)
            )
        ),
        fabrics=_fabrics(advice, currency),
        work=_work(advice),
        pitfalls=tuple(
            (
                titled(pitfall.candidate, pitfall.sentence)
                if pitfall.candidate
                else pitfall.sentence,
                pitfall.remedy,
            )
            for pitfall in advice.pitfalls
        ),
    )


def spec_words(advice: Advice) -> str:
    """Return for what cluster the decision is."""
    plan = advice.economics.plan
    first = plan.candidates[0]
    words = _("{gpus} GPUs on {hosts} × {host}").format(
        gpus=f"{first.n_gpus:,}",
        hosts=f"{int(first.summary['hosts']):,}",
        host=first.design.host.name,
    )
    name = plan.requirement.name
    return titled(name, words) if name else words


def network_words(plan: CandidatePlan) -> str:
    """Return a candidate's network in words: protocol, topology, switches."""
    switches = dict.fromkeys(one.name for one in plan.design.switches.by_tier().values())
    return listed([protocol_words(plan.fabric), family_words(plan.fabric), " + ".join(switches)])


def money_words(amount_usd: float, currency: Currency) -> str:
    """Return an amount to three digits: what a decision needs.

    Examples
    --------
    >>> money_words(559_153.0, Currency("USD", 1.0)), money_words(8_664_988.0, Currency("USD", 1.0))
    ('559,000 USD', '8.66 M USD')
    """
    amount = amount_usd * currency.per_usd
    if abs(amount) >= 999_500:
        millions = float(f"{amount / 1e6:.3g}")
        digits = 2 if abs(millions) < 10 else 1 if abs(millions) < 100 else 0
        return f"{millions:,.{digits}f} M {currency.code}"
    return f"{float(f'{amount:.3g}'):,.0f} {currency.code}"


def _against(held: Contrast, items: Sequence[Reason], currency: Currency) -> tuple[str, ...]:
    """Return items of cost in the report's currency, held against the other way."""
    return tuple(
        reason_words(
            one.label,
            (
                money_words(one.winner_usd, currency),
                money_words(one.other_usd, currency),
                money_words(abs(one.saved.mean), currency),
            ),
            held.other,
            is_less=one.saved.mean >= 0,
        )
        for one in items
    )


def _headline(winner: RankedCase) -> str:
    if winner.offer:
        return _("Subscribe to {candidate} from {offer}").format(
            candidate=winner.candidate, offer=winner.offer
        )
    if winner.is_hired:
        return _("Buy {candidate} and hire experts").format(candidate=winner.candidate)
    return _("Buy {candidate}").format(candidate=winner.candidate)


def _decided(advice: Advice, case: RankedCase) -> float:
    return case.total.p90 if advice.decide_by == "p90" else case.total.mean


def _unaffordable(advice: Advice, currency: Currency) -> str:
    """Tell that nothing is within the budget, and the least that would be; empty otherwise."""
    budget = advice.economics.plan.requirement.cost.budget_usd
    if advice.is_within_budget or budget is None:
        return ""
    least = min(advice.ranking, key=lambda case: case.start_usd.mean)
    return _(
        "No way is within the budget of {budget} at the start: the least is {usd} for {least}."
    ).format(
        budget=money_words(budget, currency),
        usd=money_words(least.start_usd.mean, currency),
        least=least.label,
    )


def _answer(advice: Advice, winner: RankedCase, currency: Currency) -> str:
    cost = money_words(_decided(advice, winner), currency)
    if not advice.runner_up:
        return _("It costs {cost} over {years} years. No other way was there to compare.").format(
            cost=cost, years=advice.horizon_years
        )
    other = advice.ranked(advice.runner_up)
    gap = _decided(advice, other) - _decided(advice, winner)
    words = (
        _(
            "In nine of ten draws it stays under {cost} over {years} years, {gap} ({share}) less "
            "than the next best, {other}."
        )
        if advice.decide_by == "p90"
        else _(
            "It costs {cost} over {years} years, {gap} ({share}) less than the next best, {other}."
        )
    )
    return words.format(
        cost=cost,
        years=advice.horizon_years,
        gap=money_words(gap, currency),
        share=percent(gap / abs(_decided(advice, other))),
        other=other.label,
    )


def _sure(advice: Advice) -> str:
    """Return how sure the advice is: by its chance against all others, not the next alone."""
    if advice.confidence is None:
        return ""
    best = advice.ranked(advice.winner).best_chance
    words = {
        "best": percent(best),
        "other": advice.runner_up,
        "share": percent(advice.confidence),
    }
    if best >= SURE:
        told = _(
            "Sure: the cheapest of all in {best} of the draws, cheaper than {other} in {share}."
        )
    elif best >= LIKELY:
        told = _(
            "Likely: the cheapest of all in {best} of the draws, cheaper than {other} in {share}."
        )
    elif best >= LEANING:
        told = _(
            "Leaning: the cheapest of all in {best} of the draws, cheaper than {other} in {share}. "
            "Settle what would change it before you sign."
        )
    else:
        told = _(
            "Close: the cheapest of all in {best} of the draws, cheaper than {other} in {share}. "
            "Choose by what you know better than these numbers."
        )
    return told.format(**words)


def _keys(advice: Advice, winner: RankedCase, currency: Currency) -> tuple[tuple[str, str], ...]:
    found = [
        (
            money_words(winner.total.mean, currency),
            _("in all, over {n} years").format(n=advice.horizon_years),
        ),
        (money_words(winner.start_usd.mean, currency), _("due at the start")),
    ]
    if advice.confidence is not None and advice.margin is not None:
        found.append((percent(winner.best_chance), _("chance to be the cheapest of all")))
        regret = next(one for one in advice.regrets if one.name == winner.name)
        found.append(
            (money_words(regret.if_wrong_usd, currency), _("lost if it is the wrong choice"))
        )
    return tuple(found)


def _fabrics(advice: Advice, currency: Currency) -> str:
    """Tell what the other fabric would cost, where the next best is of the same."""
    held = advice.contrast("other_fabric")
    if held is None or held.other == advice.runner_up:
        return ""
    other = advice.ranked(held.other)
    name = {"infiniband": "InfiniBand", "roce": "RoCE"}[other.fabric]
    told = _(
        "The best with {fabric} is {other}: {gap} more, the cheaper one in {share} of the draws."
    )
    return told.format(
        fabric=name,
        other=other.label,
        gap=money_words(held.saved.mean, currency),
        share=percent(1 - held.chance),
    )


def _work(advice: Advice) -> str:
    plan = advice.economics.plan
    names = [advice.ranked(name).candidate for name in _rivals(advice)]
    mine = advice.ranked(advice.winner).candidate
    other = next((name for name in names if name != mine), None)
    words = work_words(plan.candidate(mine), None if other is None else plan.candidate(other))
    return words[:1].upper() + words[1:]


def _rivals(advice: Advice) -> list[str]:
    """Return the ways that the winner is held against, the next best first."""
    return [name for name in (advice.runner_up, advice.other_fabric, advice.other_way) if name]


def _skewed(advice: Advice, currency: Currency) -> tuple[str, ...]:
    """Tell where the advice rests on what may go wrong, not on what is most likely."""
    if not advice.runner_up:
        return ()
    money = advice.economics
    best, other = money.cost(advice.winner).case, money.cost(advice.runner_up).case
    middle = one_draw(money.quantities.values())
    gap = float((evaluate(other, middle).total - evaluate(best, middle).total)[0])
    if gap >= 0:
        return ()
    return (
        _(
            "With every number at its most likely {other} costs {gap} less: the advice rests on "
            "what may go wrong with it."
        ).format(other=other.name, gap=money_words(-gap, currency)),
    )


def _conditions(advice: Advice) -> tuple[str, ...]:
    return tuple(one.sentence for one in nearest_flips(advice.flips)[:MOST_CONDITIONS])


def _wrong(advice: Advice, currency: Currency) -> str:
    regret = next((one for one in advice.regrets if one.name == advice.winner), None)
    other = next((one for one in advice.regrets if one.name == advice.runner_up), None)
    if regret is None or other is None:
        return ""
    return _(
        "In {share} of all draws another way is cheaper, then by {usd} in the mean. With {other} "
        "that is {other_share}, by {other_usd}."
    ).format(
        share=percent(regret.chance),
        usd=money_words(regret.if_wrong_usd, currency),
        other=other.name,
        other_share=percent(other.chance),
        other_usd=money_words(other.if_wrong_usd, currency),
    )
