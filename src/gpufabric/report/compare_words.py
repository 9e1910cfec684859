"""What a comparison of settings says: conclusions in words with numbers, and the table's cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpufabric.core.text import _
from gpufabric.report.traffic_table import time_words
from gpufabric.sim.compare import Compared
from gpufabric.sim.compare_variants import MISCONFIGURATIONS

__all__ = [
    "cells",
    "conclusions",
    "headings",
    "key_figures",
    "labels_of",
    "mistakes",
    "notes",
    "p50_us",
    "ratio_of",
    "reference_of",
]

SAME = 0.02
"""Times closer than this count as equal [1]."""
SLOWER = 1.1
"""A mistake that makes iterations so much longer counts as slower [1]."""
MANY = 1000
"""Iterations from which on a 99.9th percentile is no longer simply the longest."""

Rows = Sequence[Compared]
Head = Mapping[str, Any]


def labels_of(found: Rows) -> list[str]:
    """Return the name of each trial, with the fabric where there are several."""
    several = len({one.trial.fabric for one in found}) > 1
    return [
        f"{one.trial.variant.name} · {one.trial.fabric}" if several else one.trial.variant.name
        for one in found
    ]


def p50_us(one: Compared) -> float | None:
    """Return the middle iteration time [us]; None where half of the iterations did not finish."""
    took = one.summary()["iteration_us"]
    value: float | None = None if took is None else took["p50"]
    return value


def reference_of(found: Rows) -> Compared:
    """Return what the others are held against: RoCE as tuned, or what comes nearest to it."""
    for name in ("roce-tuned", "roce-default"):
        for one in found:
            if one.trial.variant.name == name:
                return one
    return found[0]


def ratio_of(one: Compared, found: Rows) -> float | None:
    """Return a middle iteration time over that of the reference [1]; None where there is none."""
    mine, base = p50_us(one), p50_us(reference_of(found))
    return None if mine is None or not base else mine / base


def mistakes(found: Rows) -> tuple[list[Compared], list[Compared], list[Compared]]:
    """Return the mistakes by what they do: some iteration never finishes, slower, no harm."""
    wrong = [one for one in found if one.trial.variant.name in MISCONFIGURATIONS]
    cut = [one for one in wrong if len(one.took_s) < len(one.iterations)]
    rest = [one for one in wrong if len(one.took_s) == len(one.iterations)]
    slow = [one for one in rest if (ratio_of(one, found) or 0.0) > SLOWER]
    return cut, slow, [one for one in rest if one not in slow]


def _than(ratio: float) -> str:
    """Return a ratio of two times in words."""
    if abs(ratio - 1) <= SAME:
        return _("as long")
    if ratio >= 2:
        return _("{n:.1f} times as long").format(n=ratio)
    if ratio > 1:
        return _("{share:.0%} longer").format(share=ratio - 1)
    return _("{share:.0%} shorter").format(share=1 - ratio)


def _named(found: Rows, name: str) -> Compared | None:
    return next((one for one in found if one.trial.variant.name == name), None)


def _names(rows: Rows) -> str:
    return ", ".join(dict.fromkeys(one.trial.variant.name for one in rows))


def conclusions(found: Rows, head: Head) -> list[tuple[str, bool]]:
    """Return sentences for a reader who reads nothing else, and whether each tells of harm."""
    warned = [(words, True) for words in head["warnings"]]
    told = [*_well_run(found), *_at_defaults(found, head), *_what_mistakes_cost(found, head)]
    return [*warned, *told]


def _well_run(found: Rows) -> list[tuple[str, bool]]:
    lanes, tuned = _named(found, "infiniband"), _named(found, "roce-tuned")
    if lanes is None or tuned is None:
        return []
    ib_us, roce_us = p50_us(lanes), p50_us(tuned)
    if ib_us is None or roce_us is None:
        return []
    what = _(
        "InfiniBand, with nothing to tune, takes {infiniband} for an iteration (p50); RoCE as "
        "tuned takes {roce}: {words}."
    )
    times = {"infiniband": _us(ib_us), "roce": _us(roce_us)}
    return [(what.format(**times, words=_than(roce_us / ib_us)), False)]


def _at_defaults(found: Rows, head: Head) -> list[tuple[str, bool]]:
    default, tuned = _named(found, "roce-default"), _named(found, "roce-tuned")
    if default is None:
        return []
    mine_us = p50_us(default)
    if mine_us is None:
        what = _("At its defaults RoCE does not finish an iteration within {time}.")
        return [(what.format(time=time_words(head["until_s"])), True)]
    variation = default.summary()["coefficient_of_variation"]
    told = _("RoCE at its defaults takes {time}").format(time=_us(mine_us))
    ratio = None if tuned is None else ratio_of(default, found)
    if ratio is not None:
        told += _("; held against RoCE as tuned: {words}").format(words=_than(ratio))
    if variation is not None:
        told += _("; its iterations vary by {variation:.1%}").format(variation=variation)
    return [(told + _("."), ratio is not None and ratio > SLOWER)]


def _what_mistakes_cost(found: Rows, head: Head) -> list[tuple[str, bool]]:
    cut, slow, same = mistakes(found)
    total = len(cut) + len(slow) + len(same)
    if not total:
        return []
    if len(same) == total:
        what = _(
            "None of {n} single mistakes does harm: this traffic is too light to tell. Take longer "
            "messages or more senders to one host."
        )
        return [(what.format(n=total), True)]
    what = _(
        "Of {n} single mistakes, {cut} keep an iteration from finishing within {time}, {slow} make "
        "it longer by more than a tenth, and {same} do no harm under this traffic."
    )
    counts = {"n": total, "cut": len(cut), "slow": len(slow), "same": len(same)}
    told = [(what.format(**counts, time=time_words(head["until_s"])), bool(cut or slow))]
    if cut:
        told.append((_("Not finished: {names}.").format(names=_names(cut)), True))
    if slow:
        worst = max(slow, key=lambda one: ratio_of(one, found) or 0.0)
        what = _("Slower: {names}; the worst, {worst}, takes {words}.")
        words = _than(ratio_of(worst, found) or 0.0)
        name = worst.trial.variant.name
        told.append((what.format(names=_names(slow), worst=name, words=words), True))
    if same:
        what = _(
            "No harm here: {names}. Longer messages or more senders to one host may bring it out."
        )
        told.append((what.format(names=_names(same)), False))
    return told


def key_figures(found: Rows, head: Head) -> list[tuple[str, str]]:
    """Return values with their labels, for the first screen."""
    figures = []
    for name, label in (
        ("infiniband", _("InfiniBand: iteration, p50")),
        ("roce-tuned", _("RoCE as tuned: iteration, p50")),
        ("roce-default", _("RoCE at its defaults: iteration, p50")),
    ):
        one = _named(found, name)
        if one is not None:
            figures.append((label, _at_most(p50_us(one), head)))
    cut, slow, same = mistakes(found)
    total = len(cut) + len(slow) + len(same)
    if total:
        of = _("{n} of {total}")
        label = _("mistakes that keep an iteration from finishing")
        figures.append((label, of.format(n=len(cut), total=total)))
        label = _("mistakes that make it longer by a tenth or more")
        figures.append((label, of.format(n=len(slow), total=total)))
        drops = max(one.summary()["per_iteration"]["drops"] for one in (*cut, *slow, *same))
        figures.append((_("packets lost in an iteration, at most"), f"{drops:,.0f}"))
    return figures


# The table ---------------------------------------------------------------------------------------


def headings() -> tuple[str, ...]:
    """Return the headings of ``cells``."""
    return (
        _("iteration p50"),
        "p99",
        "p99.9",
        _("variation"),
        _("FCT p99.9"),
        _("pauses"),
        _("drops"),
        _("sent again"),
        _("cut off"),
    )


def cells(row: Mapping[str, Any], head: Head) -> list[str]:
    """Return the cells of a summary; what never came took longer than the deadline."""
    took, fct, each = row["iteration_us"] or {}, row["fct_us"] or {}, row["per_iteration"]
    variation = row["coefficient_of_variation"]
    return [
        *(_at_most(took.get(name), head) for name in ("p50", "p99", "p99.9")),
        "–" if variation is None else f"{variation:.2%}",
        _at_most(fct.get("p99.9"), head),
        *(f"{each[name]:,.0f}" for name in ("pauses", "drops", "repeats")),
        f"{row['unfinished_flows'] / row['iterations']:,.1f}".removesuffix(".0"),
    ]


def notes(found: Rows, head: Head) -> list[str]:
    """Return what a reader of the table must know."""
    told = [
        _(
            "Pauses, drops, packets sent again and flows cut off are means of an iteration; pauses "
            "of InfiniBand are waits for credits, which cost nothing by themselves."
        )
    ]
    if _named(found, "infiniband") is not None:
        told.append(
            _(
                "InfiniBand runs as most subnets do: static tables, no congestion control. Its "
                "receive buffers are just what keeps a cable's speed (assumed); with larger ones "
                "packets for a full port stop others less. Neither routes adaptively: receivers "
                "here take packets in order alone."
            )
        )
    if any(one.summary()["unfinished_flows"] for one in found):
        what = _("> {time}: not finished by then, when the iteration is cut off.")
        told.append(what.format(time=time_words(head["until_s"])))
        told.extend(_retries(found, head))
    if head["iterations"] < MANY:
        told.append(_("p99.9 of fewer than 1,000 iterations is the longest."))
    return told


def _retries(found: Rows, head: Head) -> list[str]:
    """Say that iterations are cut off before a lost last packet is sent again, if they are."""
    lossy = [one for one in found if one.summary()["unfinished_flows"] and one.has_drops]
    times_us = [one.trial.variant.profile.config.transport.timeout_us for one in lossy]
    longest_s = max(times_us, default=0.0) * 1e-6
    if head["until_s"] >= 2 * longest_s:
        return []
    what = _(
        "A packet whose loss no later one shows is sent again one to two retry time-outs of "
        "{time} after: beyond the cut, so some that are cut off for losses would end later. "
        "--until {until:g} waits for two."
    )
    return [what.format(time=time_words(longest_s), until=math.ceil(2e2 * longest_s + 1) / 1e2)]


def _us(value: float) -> str:
    return time_words(value * 1e-6)


def _at_most(value_us: float | None, head: Head) -> str:
    return f"> {time_words(head['until_s'])}" if value_us is None else _us(value_us)
