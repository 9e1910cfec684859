"""The knobs that an advice is tested by: quantities of the cost model, and the question itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpufabric.catalog.cost_constants import gpu_hour_key
from gpufabric.core.text import _
from gpufabric.cost.case import Case
from gpufabric.cost.facts import Skill, Tools
from gpufabric.cost.outcome import evaluate
from gpufabric.cost.quantity import Draws, Quantity, draw
from gpufabric.cost.subscription import monthly_fee
from gpufabric.planner.economics import CaseCost, Economics
from gpufabric.planner.flips import Flip, Knob, flip
from gpufabric.planner.quantity_words import quantity_label
from gpufabric.planner.ranking import measure

__all__ = ["FLIP_DRAWS", "SKILLS", "flips_of"]

FLIP_DRAWS = 1024
"""Draws over which each value of a knob is judged."""

GRID = 9
"""Values of a knob that are looked at first."""

SKILLS: tuple[Skill, ...] = ("none", "basic", "expert")
TOOLS: tuple[Tools, ...] = ("none", "counters", "telemetry")
MOST_CASES = 5
"""Cases that are held against each other; the others of the ranking are too far behind."""

MAIN_QUANTITIES = (
    "misconfiguration.per_gpu_year",
    "failure.optical_link",
    "failure.switch",
    "repair.hours",
    "energy.usd_per_kwh",
    "staff.usd_per_year",
    "support.share.infiniband",
    "support.share.roce",
    "deployment.extra_weeks.infiniband",
    "deployment.extra_weeks.roce",
    "finance.discount_rate",
)
"""Quantities of the cost model that are turned, besides the GPU-hour's value."""

LARGEST = {"deployment.extra_weeks.infiniband": 52.0, "deployment.extra_weeks.roce": 52.0}
"""Ends of ranges that do not follow from a quantity's own."""

WIDER = 4.0
"""Factor beyond a quantity's own range that is searched too."""


@dataclass(frozen=True, eq=False)
class Contest:
    """The cases that are held against each other when a knob is turned.

    Parameters
    ----------
    cases
        Those near the top of the ranking.
    draws
        Few draws of every quantity.
    decide_by
        As in the spec.
    """

    cases: tuple[Case, ...]
    draws: Draws
    decide_by: str

    def winner(self, cases: Sequence[Case] | None = None, turned: Draws | None = None) -> str:
        """Return who costs least, with other cases of the same names, or some values fixed."""
        draws = {**self.draws, **(turned or {})}
        scores = [
            (measure(evaluate(case, draws).total, self.decide_by), case.name)
            for case in (cases or self.cases)
        ]
        return min(scores)[1]

    def column(self, value: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return a value as a column of draws."""
        return np.full(len(next(iter(self.draws.values()))), value)


def contest_of(economics: Economics, ranked: Sequence[CaseCost]) -> Contest:
    """Return the contest of the best cases, at least one of each fabric and way."""
    chosen: list[Case] = []
    kinds: set[tuple[str, bool, bool]] = set()
    for place, cost in enumerate(ranked):
        kind = (cost.case.facts.fabric, cost.case.offer is None, cost.case.is_hired)
        if place < MOST_CASES - 2 or kind not in kinds:
            chosen.append(cost.case)
            kinds.add(kind)
    requirement = economics.plan.requirement
    draws = draw(economics.quantities.values(), FLIP_DRAWS, requirement.seed)
    return Contest(tuple(chosen), draws, requirement.cost.decide_by)


def flips_of(economics: Economics, ranked: Sequence[CaseCost]) -> tuple[Flip, ...]:
    """Return what turning each knob does to the advice; knobs that change it come first.

    Parameters
    ----------
    economics
        All cases.
    ranked
        Those within the budget, the best first.
    """
    if len(ranked) < 2:
        return ()
    contest = contest_of(economics, ranked)
    advised = contest.winner()
    found = [flip(knob, winner_at, advised) for knob, winner_at in _knobs(economics, contest)]
    return tuple(sorted(found, key=lambda one: not one.flips))


_Turned = tuple[Knob, Callable[[float], str]]


def _knobs(economics: Economics, contest: Contest) -> Iterator[_Turned]:
    known = economics.quantities
    gpu = contest.cases[0].facts.gpu
    yield _of_quantity(known[gpu_hour_key(gpu)], contest)
    yield from _of_prices(contest)
    yield from _of_skills(contest)
    yield _of_tools(contest)
    yield from _of_direct(contest)
    yield _of_horizon(contest)
    yield from _of_fees(contest)
    for key in MAIN_QUANTITIES:
        yield _of_quantity(known[key], contest)


def _of_quantity(quantity: Quantity, contest: Contest) -> _Turned:
    high = LARGEST.get(quantity.key, quantity.high * WIDER)
    if quantity.unit in ("share", "1/year"):
        high = min(1.0, high)
    low = quantity.low / WIDER
    values = np.geomspace(low, high, GRID) if low > 0 else np.linspace(low, high, GRID)
    mean = float(contest.draws[quantity.key].mean())
    knob = Knob(
        quantity.key,
        quantity_label(quantity.key),
        quantity.unit,
        mean,
        _plain(values),
        is_drawn=not quantity.is_fixed,
    )
    return knob, lambda value: contest.winner(turned={quantity.key: contest.column(value)})


def _of_prices(contest: Contest) -> Iterator[_Turned]:
    """Yield the price gap: all switches of one fabric dearer or cheaper by a factor."""
    for fabric in dict.fromkeys(case.facts.fabric for case in contest.cases):
        keys = {
            part.price.key
            for case in contest.cases
            if case.facts.fabric == fabric
            for part in case.facts.parts
            if part.price is not None and part.item == "switches"
        }
        if not keys:
            continue
        label = (
            _("Price of InfiniBand switches, over what is assumed")
            if fabric == "infiniband"
            else _("Price of Ethernet switches, over what is assumed")
        )
        knob = Knob(f"switch_price.{fabric}", label, "", 1.0, _plain(np.geomspace(0.2, 5.0, GRID)))
        yield knob, _priced(contest, frozenset(keys))


def _priced(contest: Contest, keys: frozenset[str]) -> Callable[[float], str]:
    return lambda factor: contest.winner(turned={key: contest.draws[key] * factor for key in keys})


def _of_skills(contest: Contest) -> Iterator[_Turned]:
    for fabric in dict.fromkeys(case.facts.fabric for case in contest.cases):
        now = next(case.skill for case in contest.cases if case.facts.fabric == fabric)
        label = (
            _("Skill with InfiniBand")
            if fabric == "infiniband"
            else _("Skill with lossless Ethernet")
        )
        places = tuple(float(place) for place in range(len(SKILLS)))
        knob = Knob(
            f"skill.{fabric}",
            label,
            "",
            float(SKILLS.index(now)),
            places,
            names=SKILLS,
            is_continuous=False,
        )
        yield knob, _skilled(contest, fabric)


def _skilled(contest: Contest, fabric: str) -> Callable[[float], str]:
    def winner(place: float) -> str:
        skill = SKILLS[round(place)]
        return contest.winner(
            [
                case.with_skill(skill) if case.facts.fabric == fabric else case
                for case in contest.cases
            ]
        )

    return winner


def _of_tools(contest: Contest) -> _Turned:
    """Return what watches the network, the same for all that is not a provider's to run."""
    own = [case for case in contest.cases if not case.is_served] or list(contest.cases)
    places = tuple(float(place) for place in range(len(TOOLS)))
    knob = Knob(
        "tools",
        _("Tools that watch the network"),
        "",
        float(TOOLS.index(own[0].operator_tools)),
        places,
        names=TOOLS,
        is_continuous=False,
    )

    def winner(place: float) -> str:
        return contest.winner([replace(case, tools=TOOLS[round(place)]) for case in contest.cases])

    return knob, winner


def _of_direct(contest: Contest) -> Iterator[_Turned]:
    """Yield GPUDirect RDMA, where the spec has it off: what mending it does to the advice."""
    mended = [case.with_gpudirect() for case in contest.cases]
    if mended != list(contest.cases):
        names = (_("off"), _("on"))
        knob = Knob(
            "gpudirect", "GPUDirect RDMA", "", 0.0, (0.0, 1.0), names=names, is_continuous=False
        )
        yield knob, lambda place: contest.winner(mended if place else None)


def _of_horizon(contest: Contest) -> _Turned:
    years = contest.cases[0].horizon_years
    values = tuple(float(year) for year in sorted({*range(1, 11), years}))
    knob = Knob(
        "horizon_years",
        _("Years that are counted"),
        _("years"),
        float(years),
        values,
        is_continuous=False,
    )
    return knob, lambda value: contest.winner(
        [replace(case, horizon_years=round(value)) for case in contest.cases]
    )


def _of_fees(contest: Contest) -> Iterator[_Turned]:
    """Yield the fee of each offer for a port and month, of the best candidate that it delivers."""
    best: dict[str, Case] = {}
    for case in contest.cases:
        if case.offer is not None:
            best.setdefault(case.offer.name, case)
    for name, case in sorted(best.items()):
        assert case.offer is not None, "chosen so"
        fee = monthly_fee(case, case.offer, contest.draws) / case.facts.n_gpus
        now = float(np.mean(fee))
        if now <= 0:
            continue
        knob = Knob(
            f"fee.{name}",
            _("Fee of {offer} for a GPU's port ({candidate})").format(
                offer=name, candidate=case.facts.name
            ),
            "USD/month",
            now,
            _plain(np.geomspace(now / 8, now * 4, GRID)),
        )
        yield knob, _charged(contest, case)


def _charged(contest: Contest, charged: Case) -> Callable[[float], str]:
    def winner(value: float) -> str:
        return contest.winner(
            [_at_fee(case, value) if case is charged else case for case in contest.cases]
        )

    return winner


def _at_fee(case: Case, value: float) -> Case:
    assert case.offer is not None, "only subscriptions have a fee"
    offer = replace(case.offer, usd_per_port_month=value, usd_per_gbps_month=None)
    return replace(case, offer=offer)


def _plain(
    values: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]],
) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
