"""How far a design can grow: the most hosts that its kind of network and its tiers hold."""

from __future__ import annotations

from dataclasses import replace

from gpufabric.core.errors import InputError
from gpufabric.model.spec_parts import MAX_HOSTS
from gpufabric.topology.clos_sizing import ClosNeed, largest_hosts
from gpufabric.topology.design import Design
from gpufabric.topology.port_plan import switch_ports
from gpufabric.topology.sizing import Sized, clos_need, size_networks

__all__ = ["most_hosts"]


def most_hosts(design: Design) -> int:
    """Return the most hosts that the same switches hold in the same kind of network and tiers.

    Notes
    -----
    Exact for leaf-spine networks. Other kinds are tried out: the largest number that can still
    be sized, to the host, up to the largest number of hosts that a spec may name.
    """
    need = _need(design, design.fabric.n_hosts)
    if design.sized.kind == "clos":
        return largest_hosts(need, design.sized.tiers)
    low, high = design.fabric.n_hosts, 2 * design.fabric.n_hosts
    while high < MAX_HOSTS and _fits(design, high):
        low, high = high, 2 * high
    high = min(high, MAX_HOSTS + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(design, middle):
            low = middle
        else:
            high = middle
    return low


def _need(design: Design, n_hosts: int) -> ClosNeed:
    tiers = design.switches.by_tier()
    leaf, spine, core = (switch_ports(tiers[name]) for name in ("leaf", "spine", "core"))
    counts = (n_hosts, n_hosts)
    return clos_need(design.candidate, design.layout, counts, (leaf, spine, core))


def _fits(design: Design, n_hosts: int) -> bool:
    layout = replace(design.layout, kinds=(design.sized.kind,))
    sized: Sized | None = None
    try:
        sized = size_networks(design.candidate, layout, _need(design, n_hosts), lambda *_path: "")
    except InputError:
        return False
    return sized.tiers == design.sized.tiers
