"""What a network costs that nobody bills: GPU-hours lost, times what a GPU-hour is worth.

Five causes: the step waits for the network longer than it must (`communication`), it is late at
random (`jitter`), something fails (`failures`), somebody sets something wrong
(`misconfiguration`), and the network comes late or is not yet tuned (`deployment`, once).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.catalog.cost_constants import gpu_hour_key
from gpufabric.cost.case import Case
from gpufabric.cost.quantity import Draws

__all__ = [
    "LOSSES",
    "Interruptions",
    "deployment_gpu_hours",
    "gpu_hour_usd",
    "interruptions",
    "locate_hours",
    "lost_shares",
    "misconfigurations",
    "repair_factor",
    "stop_hours",
    "wanted_gpu_hours",
]

Floats = NDArray[np.float64]

LOSSES = ("communication", "jitter", "failures", "misconfiguration")
"""Causes by which part of every year's GPU-hours is lost."""

HOURS_A_YEAR = 8760.0
HOURS_A_WEEK = 168.0


def wanted_gpu_hours(case: Case, draws: Draws) -> Floats:
    """Return the GPU-hours of a year in which there is work [GPU h]."""
    return case.facts.n_gpus * HOURS_A_YEAR * draws["cluster.utilisation"]


def gpu_hour_usd(case: Case, draws: Draws) -> Floats:
    """Return what a GPU-hour is worth [USD]."""
    return draws[gpu_hour_key(case.facts.gpu)]


def lost_shares(case: Case, draws: Draws) -> dict[str, Floats]:
    """Return which share of the wanted GPU-hours each cause takes: float64[n_draws], 0 to 1.

    Notes
    -----
    Causes meet one after the other: together they take ``1 - prod(1 - share)``, and each takes the
    part of it that its logarithm has in the sum of all.
    """
    alone = {
        "communication": _communication(case, draws),
        "jitter": _jitter(case, draws),
        "failures": _failures(case, draws),
        "misconfiguration": _misconfiguration(case, draws),
    }
    logs = {name: -np.log1p(-np.clip(share, 0.0, 0.999)) for name, share in alone.items()}
    total = np.sum(list(logs.values()), axis=0)
    together = -np.expm1(-total)
    part = np.divide(together, total, out=np.ones_like(total), where=total > 0)
    return {name: log * part for name, log in logs.items()}


def _communication(case: Case, draws: Draws) -> Floats:
    """Share of a step that the network takes beyond one that never blocks."""
    performance = case.facts.performance
    if performance is None:
        return _zero(draws)
    tuned = draws[f"performance.tuned_share.{case.facts.fabric}.{case.operator_skill}"]
    factor = draws["forecast.communication_factor"]
    spread_s = performance.step_s - performance.ideal_step_s
    hashed_s = performance.hashed_step_s - performance.ideal_step_s
    late_s = factor * (tuned * spread_s + (1 - tuned) * hashed_s)
    return np.maximum(0.0, late_s) / (performance.ideal_step_s + np.maximum(0.0, late_s))


def _jitter(case: Case, draws: Draws) -> Floats:
    performance = case.facts.performance
    if performance is None:
        return _zero(draws)
    late_s = performance.jitter_s * draws["forecast.communication_factor"]
    return late_s / (performance.step_s + late_s)


@dataclass(frozen=True, eq=False)
class Interruptions:
    """Events of a year by what fails: float64[n_draws] each [1/year].

    Parameters
    ----------
    access
        Links between NICs and leafs, and the NICs themselves.
    uplinks
        Links between switches.
    leafs, upper_switches
        Switches with and without hosts.
    """

    access: Floats
    uplinks: Floats
    leafs: Floats
    upper_switches: Floats

    def stopping(self, planes: int, draws: Draws) -> Floats:
        """Return how many of them stop a job [1/year].

        With one plane every failure at a host's own link or leaf does; with more, none, since data
        change to another plane. Of failures between switches a share does.
        """
        above = draws["failure.uplink_stops_job"] * (self.uplinks + self.upper_switches)
        return above + (self.access + self.leafs if planes == 1 else 0.0)


def interruptions(case: Case, draws: Draws) -> Interruptions:
    """Return what fails in a year."""
    exposure = case.facts.exposure
    optical, copper = draws["failure.optical_link"], draws["failure.copper_factor"]
    switch = draws["failure.switch"]
    access = optical * (exposure.access_optical + exposure.access_copper * copper)
    uplinks = optical * (exposure.uplink_optical + exposure.uplink_copper * copper)
    return Interruptions(
        access=access + exposure.nics * draws["failure.nic"],
        uplinks=uplinks,
        leafs=exposure.leafs * switch,
        upper_switches=exposure.upper_switches * switch,
    )


def _failures(case: Case, draws: Draws) -> Floats:
    """Share of GPU-hours that failures take.

    A job that stops loses what `stop_hours` tells. Then hosts behind the fault are out until it
    is located and repaired, unless a spare host stands in; with several planes they run on at less
    bandwidth instead, and the whole job with them, for as long as anything is out: the slowest sets
    the pace, and two faults slow it no more than one. Hours in which the whole job waits until the
    fault is located are counted once, with its stop.
    """
    facts, exposure = case.facts, case.facts.exposure
    events = interruptions(case, draws)
    stopping = events.stopping(exposure.planes, draws)
    job_hours = facts.job_gpus * stopping * stop_hours(case, draws)
    located, longer = locate_hours(case, draws), repair_factor(case, draws)
    hours = located + longer * draws["repair.hours"]
    switch_hours = located + longer * draws["repair.switch_hours"]
    if exposure.planes == 1:
        waited = draws[f"skill.unattended_share.{case.operator_skill}"] * located
        at_leafs = events.leafs * (switch_hours - waited) * exposure.hosts_per_leaf
        repair = (events.access * (hours - waited) + at_leafs) * facts.host_gpus
        out_hours = repair * (1 - draws["repair.spare_host_cover"])
    else:
        slower = _slower(case, 1 / (exposure.planes - 1))
        at_hosts = events.access * hours + events.leafs * switch_hours
        out_hours = facts.job_gpus * slower * _hours_with_any(at_hosts)
    thinner = _slower(case, 1 / max(1.0, exposure.uplinks_per_leaf - 1))
    above = events.uplinks * hours + events.upper_switches * switch_hours
    thin_hours = facts.job_gpus * thinner * _hours_with_any(above)
    share: Floats = (job_hours + out_hours + thin_hours) / (facts.n_gpus * HOURS_A_YEAR)
    return share


def _hours_with_any(hours: Floats) -> Floats:
    """Hours of a year in which at least one fault lasts, of faults that last `hours` in all [h].

    They begin independently of each other: a queue with as many servers as it needs, whose number
    busy is Poisson's (M/G/infinity).
    """
    any_hours: Floats = HOURS_A_YEAR * -np.expm1(-hours / HOURS_A_YEAR)
    return any_hours


def stop_hours(case: Case, draws: Draws) -> Floats:
    """Return the hours that a job loses when it stops.

    Notes
    -----
    Half the time between two checkpoints, the restart, and, where no automatism works around the
    fault, the time until it is located. A job saves its state every ``sqrt(2 d M)``, d the time a
    checkpoint takes and M the time between two stops of any cause [1]_, [2]_.

    References
    ----------
    .. [1] J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17
       (1974).
    .. [2] J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart
       dumps", Future Generation Computer Systems 22 (2006).
    """
    skill = case.operator_skill
    stops = interruptions(case, draws).stopping(case.facts.exposure.planes, draws)
    of_job = case.facts.job_gpus / case.facts.n_gpus
    per_year = stops * of_job + case.facts.job_gpus * draws["failure.other_per_gpu_year"]
    between_hours = HOURS_A_YEAR / per_year
    interval = np.sqrt(2 * draws["job.checkpoint_stall_minutes"] / 60 * between_hours)
    waited = draws[f"skill.unattended_share.{skill}"] * locate_hours(case, draws)
    hours: Floats = interval / 2 + draws["job.restart_hours"] + waited
    return hours


def locate_hours(case: Case, draws: Draws) -> Floats:
    """Return the hours until the cause of a fault is found, by tools and skill."""
    return draws[f"locate.hours.{case.operator_tools}.{case.operator_skill}"]


def repair_factor(case: Case, draws: Draws) -> Floats:
    """Return how many times longer than a skilled team those who run it take to repair."""
    skill = case.operator_skill
    return _zero(draws) + 1 if skill == "expert" else draws[f"repair.skill_factor.{skill}"]


def _slower(case: Case, more: float) -> float:
    """Share of time that a job loses when its network time grows by the factor ``1 + more``."""
    performance = case.facts.performance
    if performance is None:
        return 0.0
    wait = performance.communication_share * more
    return wait / (1 + wait)


def _misconfiguration(case: Case, draws: Draws) -> Floats:
    """Share of GPU-hours that wrong settings take.

    Each incident stops a share of a job, and costs what a stop costs.
    """
    rate = misconfigurations(case, draws)
    hours = stop_hours(case, draws)
    affected = case.facts.job_gpus * draws["misconfiguration.affected_share"]
    share: Floats = rate * hours * affected / (case.facts.n_gpus * HOURS_A_YEAR)
    return share


def misconfigurations(case: Case, draws: Draws) -> Floats:
    """Return the incidents by wrong settings of a year, which grow with the GPUs [1/year]."""
    skill = case.operator_skill
    rate: Floats = case.facts.n_gpus * draws["misconfiguration.per_gpu_year"]
    if case.facts.fabric == "infiniband":
        rate = rate * draws["misconfiguration.fabric_factor.infiniband"]
    if skill != "expert":
        rate = rate * draws[f"misconfiguration.skill_factor.{skill}"]
    return rate


def deployment_gpu_hours(case: Case, draws: Draws) -> Floats:
    """Return the GPU-hours that are lost once, before the network does what was planned [GPU h].

    All GPUs wait for the weeks by which the network comes after the hosts; a share of them waits
    while it is tuned. A provider serves out of its stock where that holds the network; a larger one
    it must order as everybody else.
    """
    fabric = case.facts.fabric
    weeks = draws["deployment.network_weeks"] + draws[f"deployment.extra_weeks.{fabric}"]
    if case.offer is not None:
        from_stock = case.facts.n_switches <= draws["subscription.stock_switches"]
        weeks = np.where(from_stock, draws["subscription.weeks"], weeks)
    late = np.maximum(0.0, weeks - draws["deployment.host_weeks"])
    tune = draws[f"deployment.tune_weeks.{fabric}.{case.builder_skill}"]
    idle_weeks = late + tune * draws["deployment.idle_share"]
    hours = case.facts.n_gpus * HOURS_A_WEEK * draws["cluster.utilisation"]
    return idle_weeks * hours


def _zero(draws: Draws) -> Floats:
    return np.zeros(len(next(iter(draws.values()))))
