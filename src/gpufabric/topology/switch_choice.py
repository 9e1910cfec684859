"""Which switches a candidate may be built from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.joining import PortEnd, join_options, switch_end
from gpufabric.catalog.switch import Switch
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.model.spec_parts import Candidate
from gpufabric.topology.decision import Place
from gpufabric.topology.layout import Layout

__all__ = ["BEST", "SwitchSet", "switch_options"]

BEST = "best"
_GENERATION_GBPS = {"hdr": 200.0, "ndr": 400.0, "xdr": 800.0}


@dataclass(frozen=True)
class SwitchSet:
    """The switch of each tier."""

    leaf: Switch
    spine: Switch
    core: Switch

    def by_tier(self) -> dict[str, Switch]:
        """Return the switches by the name of their tier."""
        return {"leaf": self.leaf, "spine": self.spine, "core": self.core}


def switch_options(
    candidate: Candidate, layout: Layout, host_end: PortEnd, catalog: Catalog, where: Place
) -> tuple[SwitchSet, ...]:
    """Return the switch sets to size: one where they are named, else all that could serve.

    `host_end` is the cage of the hosts: a switch serves only if parts can join the two.

    A tier left at "best" beside named ones takes the switch of the tier below it (of the tier
    above, for the leaf).

    Raises
    ------
    InputError
        If a named switch is unknown, is for the other fabric, or no switch can serve.
    """
    names = (candidate.switch.leaf, candidate.switch.spine, candidate.switch.core)
    named = [
        None if name.lower() == BEST else _named(candidate, tier, name, catalog, where)
        for tier, name in zip(("leaf", "spine", "core"), names, strict=True)
    ]
    if any(named):
        leaf = named[0] or named[1] or named[2]
        spine = named[1] or leaf
        core = named[2] or spine
        assert leaf is not None, "one of the three is named"
        assert spine is not None, "it falls back to the leaf"
        assert core is not None, "it falls back to the spine"
        return (SwitchSet(leaf, spine, core),)
    found = tuple(SwitchSet(s, s, s) for s in _serving(candidate, layout, host_end, catalog))
    if not found:
        raise InputError(
            Fault(
                where("switch"),
                _("the catalogue has no {fabric} switch with ports of {gbps:g} Gb/s.").format(
                    fabric=candidate.generation or candidate.fabric, gbps=layout.host_gbps
                ),
                remedy=_("Name a switch, or add one with --catalog."),
            )
        )
    return found


def _named(candidate: Candidate, tier: str, name: str, catalog: Catalog, where: Place) -> Switch:
    try:
        switch = catalog.switch(name)
    except InputError as error:
        raise InputError(
            [Fault(where("switch"), f.what, f.expected, f.remedy) for f in error.faults]
        ) from error
    if switch.fabric != candidate.fabric:
        raise InputError(
            Fault(
                where("switch"),
                _("{switch} is an {found} switch.").format(switch=switch.name, found=switch.fabric),
                _("a switch for {fabric} as {tier}").format(fabric=candidate.fabric, tier=tier),
            )
        )
    if not switch.deployable:
        raise InputError(
            Fault(
                where("switch"),
                _("{switch} cannot be a {tier} of a compute fabric.").format(
                    switch=switch.name, tier=tier
                ),
                remedy=_("See the switches with: gpufabric catalog list --kind switch."),
            )
        )
    return switch


def _serving(
    candidate: Candidate, layout: Layout, host_end: PortEnd, catalog: Catalog
) -> Iterable[Switch]:
    """Return deployable compute switches of the fabric that have the hosts' port rate.

    Switches that no part of the catalogue joins to the hosts' cages are left out where others
    serve.

    Switches that are only announced come in only where nothing else serves.

    InfiniBand: the generation asked for, else that of the NIC; managed ones first, since one
    managed switch can run the subnet manager.
    """
    found = [
        switch
        for switch in catalog.switches.values()
        if switch.fabric == candidate.fabric
        and switch.deployable
        and switch.role_hint == "compute"
        and switch.port_count_at(layout.host_gbps)
        and candidate.generation in (None, switch.generation)
    ]
    found = [switch for switch in found if _joins(switch, layout, host_end, catalog)] or found
    found = [switch for switch in found if switch.availability is None] or found
    if candidate.fabric == "infiniband":
        wanted = candidate.generation or _generation(layout, found)
        found = [switch for switch in found if switch.generation == wanted]
        managed = [switch for switch in found if switch.managed is not False]
        return managed or found
    return [switch for switch in found if switch.price is not None] or found


def _joins(switch: Switch, layout: Layout, host_end: PortEnd, catalog: Catalog) -> bool:
    """Whether some part joins the switch to the hosts' cages, be it over a very short way."""
    end = switch_end(switch.ports, layout.host_gbps)
    parts = catalog.parts.values()
    return bool(join_options(parts, (end, host_end), layout.host_gbps, 0.0, switch.fabric))


def _generation(layout: Layout, switches: list[Switch]) -> str | None:
    """Return the slowest generation whose native port runs at the hosts' rate, or can."""
    rates = sorted(
        (_GENERATION_GBPS[s.generation], s.generation)
        for s in switches
        if s.generation in _GENERATION_GBPS and _GENERATION_GBPS[s.generation] >= layout.host_gbps
    )
    return rates[0][1] if rates else None
