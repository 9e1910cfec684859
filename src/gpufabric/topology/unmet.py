"""What a spec asks of a candidate that its kind of network cannot have: told, never passed over."""

from __future__ import annotations

from collections.abc import Iterator

from gpufabric.core.text import _
from gpufabric.model.spec_parts import Candidate
from gpufabric.topology.clos_sizing import ClosShape
from gpufabric.topology.decision import Decision
from gpufabric.topology.dragonfly import DragonflyPlusShape
from gpufabric.topology.layout import Layout
from gpufabric.topology.sizing import Sized
from gpufabric.topology.small_build import PairShape

__all__ = ["unmet"]

_NONE = "–"


def unmet(candidate: Candidate, layout: Layout, sized: Sized) -> tuple[Decision, ...]:
    """Return a warning for each demand that the design does not follow."""
    asked_and_got: tuple[tuple[str, float | None, float | None], ...] = (
        ("leafs_per_host", candidate.leafs_per_host, layout.leafs_per_host),
        ("su_hosts", candidate.su_hosts, _su_hosts(sized)),
        ("pod_hosts", candidate.pod_hosts, _pod_hosts(sized)),
        ("uplink_gbps", candidate.uplink_gbps, _uplink_gbps(sized, layout)),
    )
    missed = [
        (key, asked, got) for key, asked, got in asked_and_got if asked is not None and asked != got
    ]
    for key, least, got in (
        ("leafs", candidate.leafs, sized.leafs),
        ("spines", candidate.spines, sized.spines),
    ):
        if least is not None and got < least:
            missed.append((key, least, got))
    told = (
        Decision(
            key,
            _NONE if got is None else f"{got:g}",
            _("The spec asks for {asked:g}, which this kind of network does not follow.").format(
                asked=asked
            ),
            is_warning=True,
        )
        for key, asked, got in missed
    )
    return (*told, *_oversubscription(candidate, sized))


def _su_hosts(sized: Sized) -> int | None:
    return sized.su_hosts if sized.kind in ("clos", "dragonfly+") else None


def _pod_hosts(sized: Sized) -> int | None:
    shape = sized.shape
    if not isinstance(shape, ClosShape) or shape.tiers == 2:
        return None
    return shape.sus_per_block * shape.su_hosts


def _uplink_gbps(sized: Sized, layout: Layout) -> float | None:
    shape = sized.shape
    if shape is None:
        return None
    if isinstance(shape, ClosShape):
        return shape.uplink_gbps
    if isinstance(shape, PairShape):
        return shape.cross_gbps
    if isinstance(shape, DragonflyPlusShape):
        return shape.gbps
    return layout.host_gbps


def _oversubscription(candidate: Candidate, sized: Sized) -> Iterator[Decision]:
    """A single switch has no upper tier, and a balanced dragonfly has ratios of its own."""
    ratio = candidate.oversubscription
    if sized.kind == "dragonfly" and (ratio.leaf, ratio.spine) != (1.0, 1.0):
        yield Decision(
            "oversubscription",
            _NONE,
            _("A balanced dragonfly shares its ports by a rule of its own (a = 2p = 2h)."),
            "Kim et al., ISCA 2008, section 3.1",
            is_warning=True,
        )
