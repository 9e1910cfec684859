"""A complete design of one candidate: switches chosen, networks sized and built, reasons given."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.host import Host
from gpufabric.catalog.joining import nic_end
from gpufabric.catalog.nic import Nic
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.model.requirement import Requirement
from gpufabric.model.spec_parts import Candidate
from gpufabric.topology.assemble import FabricHead, HostSet, ManagerLinks, Managers, assemble
from gpufabric.topology.bisection import Bandwidth, bandwidth
from gpufabric.topology.clos_build import ClosLabels, build_clos
from gpufabric.topology.clos_sizing import ClosNeed, ClosShape
from gpufabric.topology.decision import Decision, Place
from gpufabric.topology.dragonfly import (
    DragonflyPlusShape,
    DragonflyShape,
    build_dragonfly,
    build_dragonfly_plus,
)
from gpufabric.topology.explain import Facts, explain
from gpufabric.topology.explain_bandwidth import explain_bandwidth
from gpufabric.topology.explain_managers import explain_managers
from gpufabric.topology.given_host import resolve_host
from gpufabric.topology.layout import Layout, NetworkSlot, choose_layout, host_ports
from gpufabric.topology.parts import Network
from gpufabric.topology.port_plan import switch_ports
from gpufabric.topology.sizing import Sized, clos_need, managers_wanted, size_networks
from gpufabric.topology.small_build import PairShape, build_pair, build_star
from gpufabric.topology.switch_choice import SwitchSet, switch_options
from gpufabric.topology.unmet import unmet

__all__ = ["Design", "design_candidate"]

MANAGER_PORTS_EACH = 2
MANAGER_MODEL = "ufm-enterprise-appliance"


@dataclass(frozen=True)
class Design:
    """One candidate's network, complete.

    Parameters
    ----------
    candidate
        What was asked for.
    host, nic
        Catalogue entries of the host and its compute NIC.
    switches
        Catalogue entries by tier.
    layout, sized
        How hosts are joined, and the shape of each network.
    fabric
        The tables; hosts and switches of the target size, marked by stage.
    decisions
        What was chosen and why; warnings are marked.
    """

    candidate: Candidate
    host: Host
    nic: Nic
    switches: SwitchSet
    layout: Layout
    sized: Sized
    fabric: Fabric
    decisions: tuple[Decision, ...]

    @cached_property
    def bandwidth(self) -> Bandwidth:
        """Injection and bisection of today's hosts."""
        return bandwidth(self.fabric, stage=0)

    def cable_counts(self, stage: int = 0) -> dict[str, int]:
        """Return cables by tier: a cable is one link, or one breakout cable of a whole port.

        Host cables are counted by NIC cage, switch cables by the slower end's native port, as
        NVIDIA RA-11337-001 V01 Table 3 counts "800G (2x400G) cables".
        """
        links, fabric = self.fabric.links, self.fabric
        counts = {}
        today = links.stage <= stage
        owner = fabric.port_vertex[links.port_a]
        is_manager = np.zeros(len(links), bool)
        host_side = links.tier == 1
        is_manager[host_side] = fabric.hosts.role[owner[host_side]] == 1
        mask = host_side & today & ~is_manager
        counts["host_leaf"] = len(np.unique(links.cable[mask]))
        for tier, name, ends in (
            (2, "leaf_spine", ("leaf", "spine")),
            (3, "spine_core", ("spine", "core")),
            (4, "leaf_leaf", ("leaf", "leaf")),
            (5, "global", ("spine", "spine")),
        ):
            mask = (links.tier == tier) & today
            native = min(getattr(self.switches, end).ports.gbps for end in ends)
            total = float(links.gbps[mask].sum(dtype=np.float64))
            count = int(mask.sum())
            rate = float(links.gbps[mask].max(initial=0.0))
            split = switch_ports(getattr(self.switches, ends[0])).split_at(rate) if rate else 1
            counts[name] = count if split <= 1 or rate == native else round(total / (rate * split))
        counts["manager_leaf"] = int((host_side & today & is_manager).sum())
        return counts

    def link_counts(self, stage: int = 0) -> dict[str, int]:
        """Return logical links by tier, of `stage` and before."""
        today = self.fabric.links.stage <= stage
        tiers = self.fabric.links.tier
        names = {1: "host_leaf", 2: "leaf_spine", 3: "spine_core", 4: "leaf_leaf", 5: "global"}
        return {name: int((today & (tiers == tier)).sum()) for tier, name in names.items()}

    def summary(self) -> dict[str, Any]:
        """Return the design's counts and claims, as ``gpufabric design --json`` prints them.

        Counts are today's; ``growth`` has those of the target size.
        """
        fabric, candidate = self.fabric, self.candidate
        today = fabric.hosts.stage == 0
        band = self.bandwidth
        return {
            "candidate": candidate.name,
            "fabric": candidate.fabric,
            "generation": fabric.generation,
            "topology": fabric.family,
            "kind": self.sized.kind,
            "fabric_hash": fabric.content_hash,
            "gpus": int(fabric.hosts.n_gpus[today].sum()),
            "hosts": int((fabric.hosts.role[today] == 0).sum()),
            "host": self.host.name,
            "nic": self.nic.name,
            "switch": self.switch_names(),
            "leaf": fabric.n_switches(1, 0),
            "spine": fabric.n_switches(2, 0),
            "core": fabric.n_switches(3, 0),
            "links": self.cable_counts(),
            "logical_links": self.link_counts(),
            "tiers": self.sized.tiers,
            "planes": self.layout.planes,
            "rails": self.layout.n_rails,
            "pods": self.n_pods,
            "sus": self.sized.n_sus,
            "su_hosts": self.sized.su_hosts,
            "oversubscription": self.oversubscription,
            "oversubscription_by_tier": self.oversubscription_by_tier(),
            "hops": self.sized.hops,
            "injection_gbps": band.injection_gbps,
            "bisection_gbps": round(band.bisection_gbps, 3),
            "bisection_share": round(band.share, 6),
            "between_rails_gbps": band.between_rails_gbps,
            "growth": self.growth(),
            "decisions": [decision.to_json() for decision in self.decisions],
        }

    def switch_names(self) -> dict[str, str]:
        """Return the catalogue name of the switch of each tier that the fabric has."""
        tiers = {"leaf": 1, "spine": 2, "core": 3}
        return {
            name: entry.name
            for name, entry in self.switches.by_tier().items()
            if self.fabric.n_switches(tiers[name])
        }

    @property
    def n_pods(self) -> int:
        """Spine groups or dragonfly groups of one plane."""
        shape = self.sized.shape
        if isinstance(shape, ClosShape | DragonflyPlusShape | DragonflyShape):
            return shape.n_groups
        return 1

    @property
    def oversubscription(self) -> float:
        """Down over up capacity as built, all tiers multiplied; 1 is non-blocking."""
        return round(math.prod(self.oversubscription_by_tier().values()), 4)

    def oversubscription_by_tier(self) -> dict[str, float]:
        """Return down over up capacity as built, by tier, for a full leaf and a full spine."""
        shape, gbps = self.sized.shape, self.layout.host_gbps
        if isinstance(shape, PairShape):
            return {"leaf": round(shape.ratio, 4)}
        if isinstance(shape, ClosShape):
            result = {
                "leaf": round(shape.leaf_down * gbps / (shape.leaf_up * shape.uplink_gbps), 4)
            }
            if shape.tiers == 3:
                up = shape.spine_up * shape.core_gbps
                result["spine"] = round(shape.spine_down * shape.uplink_gbps / up, 4)
            return result
        if isinstance(shape, DragonflyPlusShape):
            used = shape.links_per_group_pair * (shape.n_groups - 1)
            down = shape.spine_down * shape.spines_per_group
            return {
                "leaf": round(shape.leaf_down * gbps / (shape.leaf_up * shape.gbps), 4),
                "spine": round(down / used, 4) if used else 1.0,
            }
        return {"leaf": 1.0}

    def growth(self) -> dict[str, Any] | None:
        """Return the counts of the target size and what is bought later; None without growth."""
        fabric = self.fabric
        if not (fabric.hosts.stage > 0).any():
            return None
        later = fabric.switches.stage > 0
        return {
            "gpus": fabric.n_gpus,
            "hosts": fabric.n_hosts,
            "leaf": fabric.n_switches(1),
            "spine": fabric.n_switches(2),
            "core": fabric.n_switches(3),
            "links": self.cable_counts(stage=1),
            "bought_later": {
                "hosts": int((fabric.hosts.stage > 0).sum()),
                "leaf": int((later & (fabric.switches.tier == 1)).sum()),
                "spine": int((later & (fabric.switches.tier == 2)).sum()),
                "core": int((later & (fabric.switches.tier == 3)).sum()),
                "links": self._links_later(),
            },
        }

    def _links_later(self) -> dict[str, int]:
        today, grown = self.cable_counts(stage=0), self.cable_counts(stage=1)
        return {tier: grown[tier] - today[tier] for tier in grown}


def design_candidate(requirement: Requirement, candidate: Candidate, catalog: Catalog) -> Design:
    """Return the complete design of one candidate of a requirement.

    Raises
    ------
    InputError
        If the candidate cannot be built: the message names the limit and the remedy.
    """
    where = _place(requirement, candidate)
    host = resolve_host(requirement, catalog)
    nic = catalog.nic(host.nics.model)
    if candidate.fabric not in nic.protocols:
        raise InputError(
            Fault(
                where("fabric"),
                _("the {nic} of {host} does not speak {fabric}.").format(
                    nic=nic.name, host=host.name, fabric=candidate.fabric
                ),
                ", ".join(nic.protocols),
                _("Choose another host, or leave this candidate out."),
            )
        )
    layout = choose_layout(candidate, host, nic, where)
    counts = _host_counts(requirement, host)
    host_end = nic_end(host, nic, layout.ports_per_nic if layout.mode == "split" else 1)
    options = switch_options(candidate, layout, host_end, catalog, where)
    chosen, need, sized, rejected = _best_option(candidate, layout, counts, options, where)
    set_ = _host_set(host, layout, sized, counts)
    network, managers, short = _build(candidate, layout, need, sized, set_)
    kit = Managers(MANAGER_MODEL, 0, MANAGER_PORTS_EACH)
    fabric = assemble(
        _head(candidate, chosen, layout, sized, requirement), set_, network, managers, kit
    )
    facts = Facts(candidate, host, nic, chosen, layout, need, sized, *counts)
    reasons = explain(facts)
    missed = unmet(candidate, layout, sized)
    kept_free = explain_managers(candidate, sized.kind, need.leaf, managers, short)
    shown = explain_bandwidth(bandwidth(fabric, stage=0))
    decisions = (*reasons, shown, *rejected, *missed, *kept_free)
    return Design(candidate, host, nic, chosen, layout, sized, fabric, decisions)


def _place(requirement: Requirement, candidate: Candidate) -> Place:
    index = [c.name for c in requirement.candidates].index(candidate.name)
    return lambda *path: requirement.where("candidates", index, *path)


def _host_counts(requirement: Requirement, host: Host) -> tuple[int, int]:
    today = requirement.resolved_hosts(host.gpus)
    return today, requirement.resolved_growth_hosts(host.gpus)


def _best_option(
    candidate: Candidate,
    layout: Layout,
    counts: tuple[int, int],
    options: Iterable[SwitchSet],
    where: Place,
) -> tuple[SwitchSet, ClosNeed, Sized, tuple[Decision, ...]]:
    """Size every switch option; return the cheapest that fits, and what was passed over."""
    found: list[tuple[float, SwitchSet, ClosNeed, Sized]] = []
    faults: list[InputError] = []
    for option in options:
        tiers = option.by_tier()
        ports = tuple(switch_ports(tiers[name]) for name in ("leaf", "spine", "core"))
        need = clos_need(candidate, layout, counts, (ports[0], ports[1], ports[2]))
        try:
            sized = size_networks(candidate, layout, need, where)
        except InputError as error:
            faults.append(error)
            continue
        found.append((_price(option, sized) * len(layout.slots), option, need, sized))
    if not found:  # the limit of the best of them is the one that is true of all
        raise max(faults, key=lambda error: getattr(error, "max_hosts", -1))
    found.sort(key=lambda entry: (entry[0], entry[3].n_switches, entry[1].leaf.name))
    price, option, need, sized = found[0]
    if len(found) == 1:
        return option, need, sized, ()
    others = "; ".join(f"{entry[1].leaf.name} {entry[0] / 1e6:.2f} M USD" for entry in found[1:4])
    decision = Decision(
        "switch",
        option.leaf.name,
        _(
            "Lowest mid price of its switches ({price:.2f} M USD) among {n} that fit; next: "
            "{others}. Only list prices of switches are compared: optics and power are not."
        ).format(price=price / 1e6, n=len(found), others=others),
        _("catalogue prices"),
    )
    return option, need, sized, (decision,)


def _price(option: SwitchSet, sized: Sized) -> float:
    total = 0.0
    for switch, count in (
        (option.leaf, sized.leafs),
        (option.spine, sized.spines),
        (option.core, sized.cores),
    ):
        if count:
            total += count * (switch.price.mid_usd if switch.price else float("inf"))
    return total


def _host_set(host: Host, layout: Layout, sized: Sized, counts: tuple[int, int]) -> HostSet:
    shape = sized.shape
    sus_per_pod = sized.n_sus
    if isinstance(shape, ClosShape):
        sus_per_pod = shape.sus_per_block
    elif isinstance(shape, DragonflyPlusShape):
        sus_per_pod = shape.sus_per_group
    elif isinstance(shape, DragonflyShape):
        sus_per_pod = shape.a
    return HostSet(
        model=host.name,
        nic_model=host.nics.model,
        n_hosts=counts[1],
        n_today=counts[0],
        n_gpus=host.gpus,
        rails=layout.rails,
        nic_gbps=host.nics.gbps,
        ports_per_nic=layout.ports_per_nic,
        ports_share_cage=layout.mode == "split",
        nics_per_cage=host.nics.nics_per_cage,
        su_hosts=sized.su_hosts,
        sus_per_pod=sus_per_pod,
    )


def _build(
    candidate: Candidate, layout: Layout, need: ClosNeed, sized: Sized, hosts: HostSet
) -> tuple[Network, list[ManagerLinks], int]:
    network = Network()
    managers: list[ManagerLinks] = []
    short = 0
    wanted = managers_wanted(candidate, sized.kind, need.leaf)
    for slot in layout.slots:
        first_batch = len(network.switches)
        ports = host_ports(layout, hosts, slot)
        labels = _labels(layout, slot, sized)
        shape = sized.shape
        if isinstance(shape, ClosShape):
            build_clos(network, need, shape, ports, labels)
        elif isinstance(shape, PairShape):
            build_pair(network, need.leaf, shape, ports, labels)
        elif isinstance(shape, DragonflyPlusShape):
            build_dragonfly_plus(network, need, shape, ports, labels)
        elif isinstance(shape, DragonflyShape):
            build_dragonfly(network, need, shape, ports, labels)
        else:
            build_star(network, need.leaf, need.host_gbps, ports, labels)
        links = _manager_links(network, first_batch, slot, need.host_gbps, wanted)
        short += wanted - len(links.switch)
        managers.append(links)
    return network, managers, short


def _labels(layout: Layout, slot: NetworkSlot, sized: Sized) -> ClosLabels:
    alone = layout.mode == "rails"
    rail = slot.rails[0] if alone else -1
    prefix = f"p{slot.plane}-" if layout.planes > 1 else ""
    if alone:
        prefix = f"r{rail}-"
    if layout.by_rail and sized.kind != "star":
        tags = tuple("" if alone else f"r{r}" for r in slot.rails)
        class_rails = slot.rails
    else:
        tags = tuple(_letters(index) for index in range(layout.leafs_per_host))
        tags = ("",) if layout.leafs_per_host == 1 else tags
        class_rails = tuple([rail] * layout.leafs_per_host)
    if sized.kind == "star":
        tags = ("",)
    return ClosLabels(prefix, slot.plane, rail, tags, class_rails)


def _letters(index: int) -> str:
    """Return a, b … z, aa, ab …: the mark of one of a host's leafs."""
    rest, last = divmod(index, 26)
    return (_letters(rest - 1) if rest else "") + chr(ord("a") + last)


def _manager_links(
    network: Network, batch: int, slot: NetworkSlot, gbps: float, wanted: int
) -> ManagerLinks:
    """Find free host ports for managers, one leaf after the other from the last leafs back."""
    first = sum(len(b) * b.ports_each for b in network.switches[:batch])
    leafs = network.switches[batch]
    used = np.zeros((len(leafs), leafs.ports_each), bool)
    for links in network.links:
        for side in ("a", "b"):
            if getattr(links, f"{side}_batch") == batch:
                used[getattr(links, f"{side}_switch"), getattr(links, f"{side}_port")] = True
    free = ~used & (leafs.plan.gbps == gbps)[None, :] & (leafs.stage == 0)[:, None]
    rows, ports = np.nonzero(free)
    rank = np.concatenate([np.arange(count) for count in free.sum(axis=1)] or [np.zeros(0)])
    order = np.lexsort((rows, -(leafs.su[rows]), rank))[:wanted]
    switch = rows[order].astype(np.int32)
    return ManagerLinks(switch, (first + rows * leafs.ports_each + ports)[order], gbps, slot.plane)


def _head(
    candidate: Candidate,
    chosen: SwitchSet,
    layout: Layout,
    sized: Sized,
    requirement: Requirement,
) -> FabricHead:
    family: str = candidate.topology
    if family == "auto":
        family = {"star": "single", "pair": "fat-tree"}.get(
            sized.kind, "multi-plane" if layout.planes > 1 else "rail"
        )
    return FabricHead(
        name=candidate.name,
        protocol=candidate.fabric,
        generation=chosen.leaf.generation,
        family=family,
        attributes={
            "kind": sized.kind,
            "planes": layout.planes,
            "plane_mode": layout.mode,
            "rails": layout.n_rails,
            "tiers": sized.tiers,
            "hops": sized.hops,
            "su_hosts": sized.su_hosts,
            "oversubscription": {
                "leaf": candidate.oversubscription.leaf,
                "spine": candidate.oversubscription.spine,
            },
            "spec": requirement.name or "",
        },
    )
