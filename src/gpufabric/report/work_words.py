"""What the workload gets from two networks, in one sentence."""

from __future__ import annotations

from gpufabric.core.text import _
from gpufabric.planner.compare import CandidatePlan
from gpufabric.report.chart import percent
from gpufabric.report.forecast_words import seconds_words
from gpufabric.workload.forecast import WorkloadForecast

__all__ = ["work_words"]

SAME = 0.005
"""Relative difference of times below which two networks are as fast as each other."""


def work_words(first: CandidatePlan, second: CandidatePlan | None) -> str:
    """Return how fast the workload runs on one network, and on another where there is one."""
    mine = _time_s(first.forecast)
    if mine is None:
        return _("What the workload gets is not known: waiting for the network is not counted.")
    waits = percent(first.forecast.exposed_share or 0.0)
    what = (
        _("a step, jitter included,")
        if first.forecast.training is not None
        else _("a token, jitter included,")
    )
    words = {"what": what, "first": first.name, "mine": seconds_words(mine), "waits": waits}
    theirs = None if second is None else _time_s(second.forecast)
    if second is None or theirs is None:
        return _(
            "{what} takes {mine} on {first}, {waits} of the time waits for the network."
        ).format(**words)
    if abs(theirs / mine - 1) < SAME:
        return _(
            "The workload runs as fast on {first} and {second}: {what} takes {mine}, {waits} of "
            "the time waits for the network."
        ).format(**words, second=second.name)
    return _("{what} takes {mine} on {first} ({waits} waits) and {theirs} on {second}.").format(
        **words, second=second.name, theirs=seconds_words(theirs)
    )


def _time_s(forecast: WorkloadForecast) -> float | None:
    """Return the time of a step with jitter, or of a token; None where unknown [s]."""
    if forecast.training is not None:
        return forecast.training.jitter.mean_s
    return None if forecast.serving is None else forecast.serving.p50_s
