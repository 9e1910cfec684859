"""A search for ECN thresholds and buffer alpha: the shortest tail at full goodput."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from gpufabric.sim.packet import simulate_packets
from gpufabric.sim.packet_config import Ecn
from gpufabric.sim.packet_outcome import PacketOutcome
from gpufabric.sim.packet_prepared import PreparedRun
from gpufabric.sim.profile import Profile

__all__ = ["EcnSetting", "Score", "SearchResult", "search_ecn", "with_setting"]

PS_PER_S = 1e12
BITS_PER_GB = 8e-9

FIRST_GRID: Mapping[str, tuple[float, ...]] = {
    "kmin_bytes": (25_000.0, 100_000.0, 400_000.0, 1_600_000.0),
    "ratio": (1.0, 4.0),
    "pmax": (0.01, 0.2),
    "alpha_log2": (-3.0, 0.0),
}
"""Where the search begins; Kmax is Kmin times the ratio. For 100 Gb/s, as in ``Ecn``."""

STEP = 2.0
"""Kmin and the ratio of the second round are the best of the first times and over this."""
LEAST_KMIN_BYTES, MOST_KMAX_BYTES = 1_000.0, 20_000_000.0
LEAST_PMAX = 0.001
MOST_ALPHA_LOG2 = 7


class EcnSetting(NamedTuple):
    """One point of the search; thresholds for 100 Gb/s [byte]."""

    kmin_bytes: float
    kmax_bytes: float
    pmax: float
    alpha_log2: int


@dataclass(frozen=True)
class Score:
    """What a setting gave, mean over seeds.

    Parameters
    ----------
    setting
        The setting.
    goodput_gbps
        Bytes delivered over the time until the last one [Gb/s]; 0 if something was cut off.
    tail_us
        99.9th percentile of completion times of all flows of all seeds [us].
    pauses, drops, ecn_marks
        Of a run.
    """

    setting: EcnSetting
    goodput_gbps: float
    tail_us: float
    pauses: float
    drops: float
    ecn_marks: float

    def to_json(self) -> dict[str, Any]:
        """Return setting and numbers."""
        numbers = {
            name: getattr(self, name)
            for name in ("goodput_gbps", "tail_us", "pauses", "drops", "ecn_marks")
        }
        return {**self.setting._asdict(), **numbers}


@dataclass(frozen=True)
class SearchResult:
    """What was tried.

    Parameters
    ----------
    best
        The best setting.
    before
        The profile as it was.
    tried
        All, in the order in which they were tried.
    tolerance
        Part of the highest goodput that full goodput may lack [1].
    """

    best: Score
    before: Score
    tried: tuple[Score, ...]
    tolerance: float

    @property
    def equals(self) -> tuple[Score, ...]:
        """Those that lose nothing and whose tail and goodput are within the tolerance."""
        share = 1 + self.tolerance
        return tuple(
            one
            for one in self.tried
            if one.drops == 0
            and one.tail_us <= self.best.tail_us * share
            and one.goodput_gbps * share >= self.best.goodput_gbps
        )


def with_setting(profile: Profile, setting: EcnSetting, name: str) -> Profile:
    """Return the profile with the thresholds and alpha of a setting."""
    config = replace(
        profile.config,
        ecn=Ecn(setting.kmin_bytes, setting.kmax_bytes, setting.pmax),
        buffer=replace(profile.config.buffer, alpha_log2=setting.alpha_log2),
    )
    return replace(profile, name=name, config=config)


def search_ecn(
    run: PreparedRun,
    seeds: int,
    until_s: float,
    tolerance: float,
    told: Callable[[int, int], None],
) -> SearchResult:
    """Return the best setting for a traffic.

    A coarse grid first, then steps of two around its best, until none shortens tail or pauses.

    Parameters
    ----------
    run
        Fabric, traffic and the profile to begin from.
    seeds
        Runs of each setting, which differ in their marks.
    until_s
        End of a run, finished or not [s].
    tolerance
        Part of the highest goodput that full goodput may lack [1].
    told
        Called with the number of settings so far and those known to come.
    """
    before = _setting_of(run.profile)
    scores: dict[EcnSetting, Score] = {}
    wanted = [before, *_grid()]
    reached = (np.inf, np.inf)
    while wanted:
        fresh = [one for one in dict.fromkeys(wanted) if one not in scores]
        told(len(scores), len(scores) + len(fresh))
        if not fresh:
            break
        for score in _scores(run, fresh, seeds, until_s):
            scores[score.setting] = score
            told(len(scores), len(scores) + len(fresh))
        best = _best(scores.values(), tolerance)
        if (best.tail_us, best.pauses) == reached:
            break
        reached = (best.tail_us, best.pauses)
        wanted = _around(best.setting)
    tried = tuple(scores.values())
    return SearchResult(_best(tried, tolerance), scores[before], tried, tolerance)


def _setting_of(profile: Profile) -> EcnSetting:
    ecn = profile.config.ecn or Ecn()
    return EcnSetting(ecn.kmin_bytes, ecn.kmax_bytes, ecn.pmax, profile.config.buffer.alpha_log2)


def _grid() -> Iterator[EcnSetting]:
    for kmin, ratio, pmax, alpha in itertools.product(*FIRST_GRID.values()):
        yield EcnSetting(kmin, kmin * ratio, pmax, int(alpha))


def _around(best: EcnSetting) -> list[EcnSetting]:
    """Return the neighbours of a setting: one thing up or down a step."""
    found = []
    for factor in (1 / STEP, STEP):
        kmin, kmax = best.kmin_bytes * factor, best.kmax_bytes * factor
        found.append(best._replace(kmin_bytes=kmin, kmax_bytes=kmax))
        found.append(best._replace(kmax_bytes=max(best.kmin_bytes, kmax)))
        found.append(best._replace(pmax=min(1.0, best.pmax * factor)))
    found += [best._replace(alpha_log2=best.alpha_log2 + step) for step in (-1, 1)]
    return [
        one
        for one in found
        if one.kmin_bytes >= LEAST_KMIN_BYTES
        and one.kmax_bytes <= MOST_KMAX_BYTES
        and one.pmax >= LEAST_PMAX
        and abs(one.alpha_log2) <= MOST_ALPHA_LOG2
    ]


def _best(scores: Any, tolerance: float) -> Score:
    """Return the shortest tail among those at full goodput; then fewest pauses, then highest Kmin.

    A setting that drops a packet is not among them if one does not.
    """
    every: list[Score] = list(scores)
    clean = [one for one in every if one.drops == 0] or every
    full = max(one.goodput_gbps for one in clean) * (1 - tolerance)
    return min(
        (one for one in clean if one.goodput_gbps >= full),
        key=lambda one: (one.tail_us, one.pauses, -one.setting.kmin_bytes, one.setting),
    )


def _scores(
    run: PreparedRun, settings: Sequence[EcnSetting], seeds: int, until_s: float
) -> Iterator[Score]:
    yield from Parallel(return_as="generator", batch_size=1, max_nbytes=None)(
        delayed(_score)(run, setting, seeds, until_s) for setting in settings
    )


def _score(run: PreparedRun, setting: EcnSetting, seeds: int, until_s: float) -> Score:
    profile = with_setting(run.profile, setting, run.profile.name)
    problem = run.problem(profile)
    start_ps = problem.start_ps
    assert start_ps is not None
    total_bytes = float(problem.size_bytes.sum())
    times, rows = [], []
    for seed in range(seeds):
        config = run.config(run.scenario.seed + seed, profile)
        result = simulate_packets(problem, config, until_ps=round(until_s * PS_PER_S))
        ended_ps = np.where(
            result.flows.delivered_ps >= 0, result.flows.delivered_ps, round(until_s * PS_PER_S)
        )
        took_s = float(ended_ps.max(initial=0) - start_ps.min(initial=0)) / PS_PER_S
        done = bool((result.flows.delivered_ps >= 0).all())
        counters = PacketOutcome(result, run.pairs, profile, problem).counters()
        times.append((ended_ps - start_ps) / 1e6)
        goodput = total_bytes * BITS_PER_GB / took_s if done and took_s > 0 else 0.0
        rows.append(
            (goodput, *(float(counters[name]) for name in ("pauses", "drops", "ecn_marks")))
        )
    goodput, pauses, drops, marks = (float(value) for value in np.mean(rows, axis=0))
    tail_us = float(np.percentile(np.concatenate(times), 99.9, method="inverted_cdf"))
    return Score(setting, goodput, tail_us, pauses, drops, marks)
