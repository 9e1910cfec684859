"""The cost model as a workbook's formulas: one case, step by step, from the cells of its inputs.

Written from ``gpufabric.cost``; a test reckons all cases by both and compares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpufabric.catalog.cost_constants import gpu_hour_key
from gpufabric.cost.case import Case, Offer
from gpufabric.cost.facts import Tools
from gpufabric.cost.finance import RESIDUAL_YEARS
from gpufabric.cost.owning import CAPITAL, OPERATING
from gpufabric.cost.subscription import FACILITY
from gpufabric.report.cell_terms import (
    Term,
    annuity,
    exp,
    greatest,
    least,
    log,
    root,
    term,
    total,
    where_at_most,
)

__all__ = ["ITEMS", "LATE", "ONCE", "CaseCells", "write_case"]

HOURS_A_YEAR, HOURS_A_WEEK = 8760.0, 168.0
LOSSES = ("communication", "jitter", "failures", "misconfiguration")
EQUIPMENT = ("switches", "transceivers", "cables", "managers", "other_networks")
ONCE = (*CAPITAL, "training", "financing", "residual", "setup", "exit", "deployment")
YEARLY = (*OPERATING, "fees", "credits", *LOSSES)
LATE = ("residual", "exit")
ITEMS = (*ONCE, *YEARLY)


@dataclass(frozen=True)
class CaseCells:
    """The cells that a case is reckoned from, and where its results go.

    Parameters
    ----------
    case
        The case.
    given
        Cell of a quantity, by its key.
    design
        Cell of a number of the design, by its name.
    bought
        Sum of today's pieces of an item, or of spares, at the prices of the inputs [USD].
    put
        Writes a result, by its name, and returns its cell.
    """

    case: Case
    given: Callable[[str], Term]
    design: Callable[[str], Term]
    bought: Callable[[str], Term]
    put: Callable[[str, Term], Term]

    @property
    def fabric(self) -> str:
        """``infiniband`` or ``roce``."""
        return self.case.facts.fabric


def write_case(cells: CaseCells) -> Term:
    """Write all steps of a case; return its total in present value [USD]."""
    equipment = _equipment(cells)
    running = _running(cells, equipment)
    offer = cells.case.offer
    if offer is None:
        amounts = _owning(cells, equipment, running)
    else:
        amounts = _subscription(cells, offer, equipment, running)
    amounts |= _lost(cells)
    return _summed(cells, amounts)


def _summed(cells: CaseCells, amounts: dict[str, Term]) -> Term:
    rate, years = cells.given("finance.discount_rate"), cells.design("years")
    spread = cells.put("annuity", annuity(rate, years))
    values = []
    for name in ITEMS:
        if name not in amounts:
            continue
        amount = cells.put(f"amount.{name}", amounts[name])
        if name in YEARLY:
            amount = amount * spread
        elif name in LATE:
            amount = amount / (1 + rate) ** years
        values.append(cells.put(f"value.{name}", amount))
    return cells.put("total", total(values))


# Owning --------------------------------------------------------------------------------------


def _equipment(cells: CaseCells) -> dict[str, Term]:
    """Write the price of what is built, whoever buys it."""
    found = {
        name: cells.put(f"equipment.{name}", cells.bought(name)) for name in (*EQUIPMENT, "spares")
    }
    minutes = cells.design("cables") * cells.given("installation.minutes_per_cable") + cells.design(
        "switches"
    ) * cells.given("installation.minutes_per_switch")
    hours = minutes / 60
    found["installation"] = cells.put(
        "equipment.installation", hours * cells.given("installation.usd_per_hour")
    )
    return found


def _engineers(cells: CaseCells, skill: str) -> Term:
    hundreds = cells.design("switches") / 100
    needed = cells.given(f"staff.base_fte.{cells.fabric}") + hundreds * cells.given(
        f"staff.fte_per_100_switches.{cells.fabric}"
    )
    return needed if skill == "expert" else needed * cells.given(f"staff.factor.{skill}")


def _running(cells: CaseCells, equipment: dict[str, Term]) -> dict[str, Term]:
    """Return what running the network costs in a year, whoever runs it."""
    q, d = cells.given, cells.design
    watts = d("typical_w") + q("energy.load") * greatest(0, d("max_w") - d("typical_w"))
    kwh = watts / 1000 * HOURS_A_YEAR * q("energy.pue")
    supported = equipment["switches"] + equipment["managers"]
    links = d("optical_links") + d("copper_links") * q("failure.copper_factor")
    each = (equipment["transceivers"] + equipment["cables"]) / d("pieces")
    failed = q("failure.optical_link") * links * each
    failed = failed + equipment["switches"] * q("failure.switch")
    return {
        "energy": kwh * q("energy.usd_per_kwh"),
        "space": 12 * d("rack_units") * q("space.usd_per_unit_month"),
        "support": supported * q(f"support.share.{cells.fabric}"),
        "licences": _licences(cells, cells.case.operator_tools),
        "replacement": failed * q("replacement.paid_share"),
    }


def _licences(cells: CaseCells, tools: Tools) -> Term:
    each = cells.given(f"licence.usd_per_switch_year.{cells.fabric}")
    if tools != "none":
        each = each + cells.given(f"tools.usd_per_switch_year.{tools}")
    return cells.design("switches") * each


def _owning(
    cells: CaseCells, equipment: dict[str, Term], running: dict[str, Term]
) -> dict[str, Term]:
    q = cells.given
    amounts: dict[str, Term] = dict(equipment)
    amount = cells.put("capital", total(equipment.values()))
    resold = total(equipment[name] for name in EQUIPMENT if name != "cables")
    years = cells.design("years")
    financed = amount * q("finance.financed_share")
    share = annuity(q("finance.discount_rate"), years) / annuity(q("finance.interest_rate"), years)
    people = cells.put("engineers", _own_people(cells))
    amounts["financing"] = financed * share - financed
    left = q("finance.residual_share") ** (years / RESIDUAL_YEARS)
    amounts["residual"] = -(resold * left)
    amounts["training"] = _training(cells, people)
    return amounts | running | {"staff": people * q("staff.usd_per_year")}


def _own_people(cells: CaseCells) -> Term:
    if cells.case.is_hired:
        return greatest(_engineers(cells, "expert"), cells.given("hiring.least_fte"))
    return _engineers(cells, cells.case.skill)


def _training(cells: CaseCells, people: Term) -> Term:
    if cells.case.is_hired:
        return people * cells.given("hiring.usd_per_engineer")
    if cells.case.skill == "expert":
        return term(0)
    return people * cells.given("training.usd_per_engineer")


# Subscription --------------------------------------------------------------------------------


def _subscription(
    cells: CaseCells, offer: Offer, equipment: dict[str, Term], running: dict[str, Term]
) -> dict[str, Term]:
    q, d = cells.given, cells.design
    capital = cells.put("capital", total(equipment.values()))
    fee = cells.put("fee", _fee(cells, offer, capital, running))
    setup = term(offer.setup_usd) if offer.setup_usd is not None else None
    credit = term(offer.credit_share) if offer.credit_share is not None else None
    months = term(offer.exit_months) if offer.exit_months is not None else None
    left = greatest(0, term(float(offer.term_months)) - 12 * d("years"))
    amounts = {
        "setup": setup if setup is not None else q("subscription.setup_share") * capital,
        "exit": fee * least(months if months is not None else q("subscription.exit_months"), left),
        "fees": 12 * fee,
        "credits": -(
            12
            * fee
            * (credit if credit is not None else q("subscription.outage_credit"))
            * q("subscription.missed_months_share")
        ),
    }
    if offer.includes_operation:
        people = cells.put("engineers", q("subscription.own_fte"))
        staff = people * q("staff.usd_per_year")
        return amounts | {name: running[name] for name in FACILITY} | {"staff": staff}
    people = cells.put("engineers", _engineers(cells, cells.case.skill))
    own = running | {"staff": people * q("staff.usd_per_year")}
    return amounts | own | {"training": _training(cells, people)}


def _fee(cells: CaseCells, offer: Offer, capital: Term, running: dict[str, Term]) -> Term:
    """Return what is asked each month: as offered, or what a provider must ask."""
    if offer.usd_per_port_month is not None:
        return offer.usd_per_port_month * cells.design("gpus")
    if offer.usd_per_gbps_month is not None:
        return offer.usd_per_gbps_month * cells.design("injection_gbps")
    q = cells.given
    tools: Tools = "telemetry" if offer.includes_operation else "none"
    upkeep = running | {"licences": _licences(cells, tools)}
    yearly = total(amount for name, amount in upkeep.items() if name not in FACILITY)
    if offer.includes_operation:
        people = _engineers(cells, "expert") * q("staff.usd_per_year")
        yearly = yearly + people * q("subscription.staff_share")
    years = max(3.0, offer.term_months / 12)
    rate = q("finance.discount_rate")
    residual = q("finance.residual_share") / (1 + rate) ** years
    recovered = capital * (1 - residual) / annuity(rate, years)
    return (recovered + yearly) * (1 + q("subscription.margin")) / 12


# GPU-hours lost --------------------------------------------------------------------------------


def _lost(cells: CaseCells) -> dict[str, Term]:
    """Return what lost GPU-hours are worth: a year's by cause, and those until all works [USD]."""
    q, d = cells.given, cells.design
    wanted = cells.put("wanted", d("gpus") * HOURS_A_YEAR * q("cluster.utilisation"))
    value = q(gpu_hour_key(cells.case.facts.gpu))
    events = _events(cells)
    stops = cells.put("stops", _stops(cells, events))
    hours = cells.put("stop_hours", _stop_hours(cells, stops))
    alone = {
        "communication": _communication(cells),
        "jitter": _jitter(cells),
        "failures": _failures(cells, events, stops, hours),
        "misconfiguration": _misconfiguration(cells, hours),
    }
    shares = {name: cells.put(f"share.{name}", share) for name, share in alone.items()}
    logs = {
        name: cells.put(f"log.{name}", -log(1 - least(greatest(share, 0), 0.999)))
        for name, share in shares.items()
    }
    every = cells.put("log.all", total(logs.values()))
    together = 1 - exp(-every)
    part = cells.put("part", together / greatest(every, 1e-300))
    lost = {name: part * share * wanted * value for name, share in logs.items()}
    return lost | {"deployment": cells.put("idle", _deployment(cells)) * value}


def _communication(cells: CaseCells) -> Term:
    if cells.case.facts.performance is None:
        return term(0)
    q, d = cells.given, cells.design
    tuned = q(f"performance.tuned_share.{cells.fabric}.{cells.case.operator_skill}")
    spread = d("step_s") - d("ideal_step_s")
    hashed = d("hashed_step_s") - d("ideal_step_s")
    late = q("forecast.communication_factor") * (tuned * spread + (1 - tuned) * hashed)
    late_s = cells.put("late", greatest(0, late))
    return late_s / (d("ideal_step_s") + late_s)


def _jitter(cells: CaseCells) -> Term:
    if cells.case.facts.performance is None:
        return term(0)
    late = cells.design("jitter_s") * cells.given("forecast.communication_factor")
    return late / (cells.design("step_s") + late)


def _events(cells: CaseCells) -> dict[str, Term]:
    """Return what fails in a year."""
    q, d = cells.given, cells.design
    optical, copper, switch = (
        q(f"failure.{name}") for name in ("optical_link", "copper_factor", "switch")
    )
    access = optical * (d("access_optical") + d("access_copper") * copper)
    return {
        "access": cells.put("events.access", access + d("nics") * q("failure.nic")),
        "uplinks": cells.put(
            "events.uplinks", optical * (d("uplink_optical") + d("uplink_copper") * copper)
        ),
        "leafs": cells.put("events.leafs", d("leafs") * switch),
        "upper": cells.put("events.upper", d("upper_switches") * switch),
    }


def _stops(cells: CaseCells, events: dict[str, Term]) -> Term:
    above = cells.given("failure.uplink_stops_job") * (events["uplinks"] + events["upper"])
    if cells.case.facts.exposure.planes > 1:
        return above
    return above + events["access"] + events["leafs"]


def _stop_hours(cells: CaseCells, stops: Term) -> Term:
    q, d, skill = cells.given, cells.design, cells.case.operator_skill
    a_year = stops * d("job_gpus") / d("gpus") + d("job_gpus") * q("failure.other_per_gpu_year")
    between = HOURS_A_YEAR / a_year
    interval = root(2 * q("job.checkpoint_stall_minutes") / 60 * between)
    waited = q(f"skill.unattended_share.{skill}") * _locate_hours(cells)
    return interval / 2 + q("job.restart_hours") + waited


def _locate_hours(cells: CaseCells) -> Term:
    case = cells.case
    return cells.given(f"locate.hours.{case.operator_tools}.{case.operator_skill}")


def _failures(cells: CaseCells, events: dict[str, Term], stops: Term, hours: Term) -> Term:
    q, d = cells.given, cells.design
    skill, located = cells.case.operator_skill, _locate_hours(cells)
    longer = term(1) if skill == "expert" else q(f"repair.skill_factor.{skill}")
    repair = cells.put("out.part", located + longer * q("repair.hours"))
    switch = cells.put("out.switch", located + longer * q("repair.switch_hours"))
    if cells.case.facts.exposure.planes == 1:
        waited = q(f"skill.unattended_share.{skill}") * located
        at_leafs = events["leafs"] * (switch - waited) * d("hosts_per_leaf")
        out = (events["access"] * (repair - waited) + at_leafs) * d("host_gpus")
        out = out * (1 - q("repair.spare_host_cover"))
    else:
        slower = _slower(cells, 1 / (d("planes") - 1))
        at_hosts = events["access"] * repair + events["leafs"] * switch
        out = d("job_gpus") * slower * _hours_with_any(at_hosts)
    thinner = _slower(cells, 1 / greatest(1, d("uplinks_per_leaf") - 1))
    above = events["uplinks"] * repair + events["upper"] * switch
    thin = d("job_gpus") * thinner * _hours_with_any(above)
    return (d("job_gpus") * stops * hours + out + thin) / (d("gpus") * HOURS_A_YEAR)


def _hours_with_any(hours: Term) -> Term:
    """Hours of a year in which at least one fault lasts."""
    return HOURS_A_YEAR * (1 - exp(hours * (-1 / HOURS_A_YEAR)))


def _slower(cells: CaseCells, more: Term) -> Term:
    if cells.case.facts.performance is None:
        return term(0)
    wait = cells.design("communication_share") * more
    return wait / (1 + wait)


def _misconfiguration(cells: CaseCells, hours: Term) -> Term:
    q, d, skill = cells.given, cells.design, cells.case.operator_skill
    rate = d("gpus") * q("misconfiguration.per_gpu_year")
    if cells.fabric == "infiniband":
        rate = rate * q("misconfiguration.fabric_factor.infiniband")
    if skill != "expert":
        rate = rate * q(f"misconfiguration.skill_factor.{skill}")
    incidents = cells.put("incidents", rate)
    stopped = d("job_gpus") * q("misconfiguration.affected_share")
    return incidents * hours * stopped / (d("gpus") * HOURS_A_YEAR)


def _deployment(cells: CaseCells) -> Term:
    q, fabric = cells.given, cells.fabric
    weeks = q("deployment.network_weeks") + q(f"deployment.extra_weeks.{fabric}")
    if cells.case.offer is not None:
        stock, quick = q("subscription.stock_switches"), q("subscription.weeks")
        weeks = where_at_most(cells.design("switches"), stock, quick, weeks)
    late = greatest(0, weeks - q("deployment.host_weeks"))
    tune = q(f"deployment.tune_weeks.{fabric}.{cells.case.builder_skill}")
    idle = late + tune * q("deployment.idle_share")
    return idle * cells.design("gpus") * HOURS_A_WEEK * q("cluster.utilisation")
