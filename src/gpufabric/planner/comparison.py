"""How candidates compare: one row a question, one value a candidate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpufabric.core.text import _
from gpufabric.cost.capital import CABLES, Amount
from gpufabric.planner.plan import CandidatePlan
from gpufabric.topology.racks import rack_stages
from gpufabric.workload.forecast import told_digits

__all__ = ["ComparisonRow", "Value", "comparison"]

Value = int | float | str | tuple[float, float, float] | None
"""A count, a number, a text, a range (low, middle, high), or None where unknown."""

OPTICAL = frozenset({"aoc", "fibre", "splitter"})
"""Categories of cables that carry light."""


@dataclass(frozen=True)
class ComparisonRow:
    """One question, answered for every candidate.

    Parameters
    ----------
    key
        Stable English name.
    label
        The question in words.
    unit
        Unit of the values; empty for counts and texts.
    values
        One a candidate, in the order of the plan.
    """

    key: str
    label: str
    unit: str
    values: tuple[Value, ...]


def comparison(plans: Sequence[CandidatePlan]) -> tuple[ComparisonRow, ...]:
    """Return the rows that compare `plans`; all counts are today's, without spares."""
    return tuple(
        ComparisonRow(key, label, unit, tuple(answer(plan) for plan in plans))
        for key, label, unit, answer in _questions()
    )


def _questions() -> tuple[_Question, ...]:
    return (*_network(), *_capacity(), *_work(), *_parts(), *_money(), *_end())


_Question = tuple[str, str, str, Callable[[CandidatePlan], Value]]


def _network() -> tuple[_Question, ...]:
    return (
        ("fabric", _("Fabric"), "", lambda plan: str(plan.summary["fabric"])),
        ("topology", _("Topology"), "", lambda plan: str(plan.summary["topology"])),
        ("switch", _("Switch"), "", _switch),
        ("leaf", _("Leafs"), "", lambda plan: int(plan.summary["leaf"])),
        ("spine", _("Spines"), "", lambda plan: int(plan.summary["spine"])),
        ("core", _("Cores"), "", lambda plan: int(plan.summary["core"])),
        ("switches", _("Switches"), "", lambda plan: plan.bill.count("compute", "switch")),
        ("tiers", _("Tiers"), "", lambda plan: int(plan.summary["tiers"])),
        ("planes", _("Planes"), "", lambda plan: int(plan.summary["planes"])),
        ("hops", _("Switches on the longest path"), "", lambda plan: int(plan.summary["hops"])),
        ("oversubscription", _("Oversubscription"), "", _oversubscription),
    )


def _capacity() -> tuple[_Question, ...]:
    return (
        (
            "injection_gbps",
            _("Injection, one direction"),
            "Gb/s",
            lambda plan: float(plan.design.bandwidth.injection_gbps),
        ),
        (
            "bisection_gbps",
            _("Bisection, one direction"),
            "Gb/s",
            lambda plan: float(plan.design.bandwidth.bisection_gbps),
        ),
        (
            "bisection_share",
            _("Bisection over non-blocking"),
            "",
            lambda plan: round(float(plan.design.bandwidth.share), 6),
        ),
    )


def _work() -> tuple[_Question, ...]:
    """What the workload makes of it, where it can be told: ranges are 80 % intervals."""
    return (
        (
            "all_reduce_gbytes_per_s",
            _("All-reduce of 1 GiB, busbw"),
            "GB/s",
            lambda plan: _busbw(plan, "all_reduce"),
        ),
        (
            "alltoall_gbytes_per_s",
            _("All-to-all of 1 GiB, busbw"),
            "GB/s",
            lambda plan: _busbw(plan, "alltoall"),
        ),
        ("model", _("Model"), "", _model),
        ("step_s", _("Training step"), "s", _step_s),
        ("mfu", _("MFU"), "", _mfu),
        ("first_token_s", _("Time to first token"), "s", lambda plan: _token_s(plan, 0)),
        ("token_s", _("Time per output token"), "s", lambda plan: _token_s(plan, 1)),
        ("tokens_per_s", _("Tokens a second"), "", _tokens_per_s),
        ("exposed_share", _("Waits for communication"), "", _exposed),
        (
            "lost_gpu_hours_per_day",
            _("GPU-hours a day waited"),
            "h",
            lambda plan: _digits(plan.forecast.lost_gpu_hours_per_day),
        ),
    )


def _digits(value: float | None) -> float | None:
    return None if value is None else float(told_digits(value))


def _busbw(plan: CandidatePlan, operation: str) -> Value:
    for row in plan.forecast.collectives:
        if row.operation == operation and row.size_bytes == 2**30:
            middle = row.busbw_gbytes_per_s
            low, high = row.low_gbytes_per_s, row.high_gbytes_per_s
            return (round(low, 2), round(middle, 2), round(high, 2))
    return None


def _model(plan: CandidatePlan) -> Value:
    found = plan.forecast.training or plan.forecast.serving
    return None if found is None else found.model


def _step_s(plan: CandidatePlan) -> Value:
    found = plan.forecast.training
    if found is None:
        return None
    low, middle, high = told_digits([found.low_s, found.step_s, found.high_s])
    return (low, middle, high)


def _mfu(plan: CandidatePlan) -> Value:
    found = plan.forecast.training
    return None if found is None else round(found.mfu, 4)


def _token_s(plan: CandidatePlan, which: int) -> Value:
    found = plan.forecast.serving
    if found is None:
        return None
    middle = (found.first_token_s, found.token_s)[which]
    factors = (found.low_factor, 1.0, found.high_factor)
    low, exact, high = told_digits([middle * factor for factor in factors])
    return (low, exact, high)


def _tokens_per_s(plan: CandidatePlan) -> Value:
    found = plan.forecast.training or plan.forecast.serving
    return None if found is None else round(found.tokens_per_s)


def _exposed(plan: CandidatePlan) -> Value:
    share = plan.forecast.exposed_share
    return None if share is None else round(share, 4)


def _parts() -> tuple[_Question, ...]:
    return (
        ("cables", _("Cables"), "", lambda plan: _cables(plan, CABLES)),
        ("copper_cables", _("of them copper"), "", lambda plan: _cables(plan, CABLES - OPTICAL)),
        ("optics", _("Transceivers"), "", lambda plan: plan.bill.count("compute", "transceiver")),
        ("racks", _("Racks"), "", _racks),
        (
            "power_typical_w",
            _("Power of the network, typical"),
            "W",
            lambda plan: round(plan.bill.power("compute").typical_w, 1),
        ),
        (
            "power_max_w",
            _("Power of the network, largest"),
            "W",
            lambda plan: round(plan.bill.power("compute").max_w, 1),
        ),
    )


def _money() -> tuple[_Question, ...]:
    return (
        ("price_usd", _("List price"), "USD", lambda plan: _range(plan.capital.network)),
        (
            "price_per_gpu_usd",
            _("List price per GPU"),
            "USD",
            lambda plan: _range(plan.capital.network_per_gpu),
        ),
        ("network_share", _("Share of the cluster's hardware"), "", _share),
        (
            "all_networks_usd",
            _("With storage and management networks"),
            "USD",
            lambda plan: _range(plan.capital.all_networks),
        ),
        ("spares_usd", _("Spares"), "USD", lambda plan: _range(plan.capital.spares)),
        ("later_usd", _("Bought when it grows"), "USD", lambda plan: _range(plan.capital.later)),
        (
            "unpriced_lines",
            _("Lines without a price"),
            "",
            lambda plan: plan.capital.total.n_unpriced,
        ),
    )


def _end() -> tuple[_Question, ...]:
    return (
        ("most_hosts", _("Hosts that fit these tiers"), "", lambda plan: plan.most_hosts),
        (
            "most_gpus",
            _("GPUs that fit these tiers"),
            "",
            lambda plan: plan.most_hosts * plan.design.host.gpus,
        ),
        ("warnings", _("Warnings"), "", lambda plan: len(plan.warnings)),
    )


def _switch(plan: CandidatePlan) -> str:
    used = [line.name for line in plan.bill.of("compute", "switch")]
    return ", ".join(dict.fromkeys(used))


def _oversubscription(plan: CandidatePlan) -> str:
    return ", ".join(f"{ratio:g}:1" for ratio in plan.design.oversubscription_by_tier().values())


def _cables(plan: CandidatePlan, categories: frozenset[str]) -> int:
    lines = plan.bill.of("compute")
    return sum(
        line.quantity for line in lines if line.category in categories and line.length_m is not None
    )


def _racks(plan: CandidatePlan) -> int:
    return int((rack_stages(plan.fabric) == 0).sum())


def _share(plan: CandidatePlan) -> Value:
    share = plan.capital.share
    if share is None:
        return None
    return (round(share.low, 6), round(share.mid, 6), round(share.high, 6))


def _range(amount: Amount) -> Value:
    if amount.is_unknown:
        return None
    exact = amount.rounded()
    return (exact.low_usd, exact.mid_usd, exact.high_usd)
