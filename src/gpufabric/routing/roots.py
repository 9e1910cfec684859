"""Which switches up/down routing takes as roots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.kernels.graph import UNREACHED
from gpufabric.routing.channels import Channels
from gpufabric.routing.shortest import measure_distances
from gpufabric.topology.decision import Decision

__all__ = ["Roots", "find_roots"]

Ints = npt.NDArray[np.int32]

# A root sees over 90 % of the hosts, and no other 5 %, at one distance (osm_ucast_updn.c).
MOST_HOSTS, SOME_HOSTS = 0.9, 0.05


@dataclass(frozen=True, eq=False)
class Roots:
    """The roots of one subnet, and why these."""

    switches: Ints
    decision: Decision


def find_roots(
    channels: Channels, members: Ints, hosts_on: Ints, given: Ints | None = None
) -> Roots:
    """Return the roots of a subnet.

    Those given; else the switches of its highest tier, where it has tiers; else those that
    OpenSM finds by counting hosts by distance; else the switch whose farthest one is nearest.

    Raises
    ------
    InputError
        If roots are given but none lies in the subnet.
    """
    if given is not None:
        if not len(given):
            name = channels.fabric.switches.name[members[0]]
            raise InputError(
                Fault(
                    "roots",
                    _("the subnet of {name} has none.").format(name=name),
                    _("at least one switch of every subnet"),
                )
            )
        return _roots(channels, given, _("They were named."), is_sure=True)
    tier = channels.graph.tier[members]
    if int(tier.max()) > 1:
        top = members[tier == tier.max()]
        return _roots(channels, top, _("They are the highest tier."), is_sure=True)
    hops = _hops(channels, members)
    counted = members[_sees_hosts_at_one_distance(hops, hosts_on[members])]
    if len(counted):
        why = _("OpenSM finds them: nearly all hosts lie at one distance from each.")
        return _roots(channels, counted, why, is_sure=True)
    center = members[[int(np.argmin(hops.max(axis=0)))]]
    why = _(
        "No switch stands out, and OpenSM would route as minhop without a word: name this one in "
        "root_guid_file."
    )
    return _roots(channels, center, why, is_sure=False)


def _hops(channels: Channels, members: Ints) -> npt.NDArray[np.int32]:
    """int32[n, n]: steps to each switch (row) from each (column)."""
    _networks, way = measure_distances(channels, members, up_down=False)
    distances = way.distances
    rows = distances.row[members][:, None] + distances.place[members][None, :]
    hops: npt.NDArray[np.int32] = distances.hops[rows].astype(np.int32)
    return hops


def _sees_hosts_at_one_distance(hops: npt.NDArray[np.int32], hosts: Ints) -> npt.NDArray[np.bool_]:
    total = hosts.sum()
    seen = np.zeros(hops.shape[1], np.bool_)
    for column in range(hops.shape[1]):
        steps = hops[:, column]
        known = steps > UNREACHED
        at = np.bincount(steps[known], hosts[known])
        seen[column] = (at > MOST_HOSTS * total).sum() == 1 and (at > SOME_HOSTS * total).sum() == 1
    return seen


def _roots(channels: Channels, switches: Ints, why: str, *, is_sure: bool) -> Roots:
    names = channels.fabric.switches.name[switches]
    shown = ", ".join(names[:3]) + (f", … ({len(names)})" if len(names) > 3 else "")
    decision = Decision(
        "roots of up/down routing",
        shown,
        why,
        "OpenSM 3.3, osm_ucast_updn.c",
        is_warning=not is_sure,
    )
    return Roots(np.asarray(switches, np.int32), decision)
