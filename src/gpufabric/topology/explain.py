"""The reasons of a design, in words with numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpufabric.catalog.host import Host
from gpufabric.catalog.nic import Nic
from gpufabric.core.text import _
from gpufabric.model.spec_parts import Candidate
from gpufabric.topology.clos_sizing import ClosNeed, ClosShape, largest_hosts
from gpufabric.topology.decision import Decision
from gpufabric.topology.dragonfly import DragonflyPlusShape, DragonflyShape
from gpufabric.topology.layout import Layout
from gpufabric.topology.sizing import Sized
from gpufabric.topology.small_build import PairShape
from gpufabric.topology.switch_choice import SwitchSet

__all__ = ["Facts", "explain"]

_RA_SU = (
    "NVIDIA DGX SuperPOD RA, network fabrics: a fabric for fewer hosts supports the full SU, "
    "leafs and leaf-spine cables included"
)
_RA_STRIPE = (
    "NVIDIA RA-11339-001 V01 Table 3 (18 and 36 spines where 16 and 32 have the ports) and "
    "RA-11333-001 V11 (95 nodes: 16 spines)"
)
_RA_GROUP = "NVIDIA RA-09950 (spine rail groups)"


@dataclass(frozen=True)
class Facts:
    """What a design knows when it explains itself; `n_today` of `n_target` hosts are built."""

    candidate: Candidate
    host: Host
    nic: Nic
    switches: SwitchSet
    layout: Layout
    need: ClosNeed
    sized: Sized
    n_today: int
    n_target: int


def explain(facts: Facts) -> tuple[Decision, ...]:
    """Return every choice that the rules left open, with its reason."""
    need, shape = facts.need, facts.sized.shape
    found = [*_topology(facts), *_planes(facts), *_rates(facts)]
    if isinstance(shape, ClosShape):
        found += _clos(facts, shape)
    elif isinstance(shape, PairShape):
        found += _pair(need, shape)
    elif isinstance(shape, DragonflyPlusShape):
        found.append(_dragonfly_groups(shape))
    elif isinstance(shape, DragonflyShape):
        found.append(
            Decision(
                "groups",
                str(shape.n_groups),
                _("Balanced routers: {p} host, {local} local and {h} global ports.").format(
                    p=shape.p, local=shape.a - 1, h=shape.h
                ),
                "Kim et al., ISCA 2008, section 3.1 (a = 2p = 2h)",
            )
        )
    found += _growth(facts)
    return tuple(found)


def _dragonfly_groups(shape: DragonflyPlusShape) -> Decision:
    if shape.n_groups == 1:
        why = _(
            "The hosts fit one group: its spines have no global links, and half of their ports "
            "stay idle. A rail-optimised fabric of two tiers uses them."
        )
        return Decision("groups", "1", why, is_warning=True)
    why = _(
        "The fewest equal groups that hold the hosts; {links} links between any two groups."
    ).format(links=shape.links_per_group_pair)
    return Decision("groups", str(shape.n_groups), why)


def _topology(facts: Facts) -> Iterator[Decision]:
    candidate, host, layout, sized = facts.candidate, facts.host, facts.layout, facts.sized
    if sized.kind == "star":
        yield Decision(
            "topology",
            _("single switch"),
            _(
                "All {ports} host ports of a network fit one switch, with its reserved ports."
            ).format(ports=sized.su_hosts * layout.leafs_per_host * layout.ports_per_leaf),
        )
    elif candidate.topology == "auto" and sized.kind == "clos":
        yield Decision(
            "topology",
            _("rail-optimised"),
            _(
                "NIC i of every host of an SU is on leaf i, so that same-rail traffic crosses one "
                "switch within an SU."
            ),
            "NVIDIA DGX SuperPOD RA-11334-001 V08",
        )
    if host.mount == "rack":
        yield Decision(
            "host",
            host.name,
            _("A rack of {gpus} GPUs counts as one host with {nics} NICs on {rails} rails.").format(
                gpus=host.gpus, nics=host.nics.count, rails=layout.n_rails
            ),
        )


def _planes(facts: Facts) -> Iterator[Decision]:
    nic, layout = facts.nic, facts.layout
    if layout.mode == "split" and facts.candidate.planes is None:
        yield Decision(
            "planes",
            str(layout.planes),
            _(
                "Each {nic} is run as {planes} x {gbps:g} Gb/s, one port a plane: a switch, optic "
                "or cable failure halves a GPU's bandwidth instead of ending it."
            ).format(nic=nic.name, planes=layout.planes, gbps=layout.host_gbps),
            "NVIDIA RA-11337-001 V01 (DGX B300, Spectrum-4 Ethernet)",
        )
    if layout.mode == "nics":
        yield Decision(
            "planes",
            str(layout.planes),
            _(
                "Whole NICs are dealt to planes ({rails} rails a plane), as the {nic} cannot be "
                "split into {planes} ports. Traffic between planes must cross NVLink in a host."
            ).format(rails=layout.n_rails // layout.planes, nic=nic.name, planes=layout.planes),
            "DeepSeek-V3 (MPFT), arXiv 2505.09343",
        )
    if layout.mode == "rails":
        yield Decision(
            "rail-only",
            str(layout.n_rails),
            _(
                "The fabric is {rails} disconnected components, one a rail, with no path between "
                "them: a GPU reaches another rail only through NVLink in its host. Restrictions: "
                "PXN or an equal relay; one NIC a GPU, in the same order on every host; no storage "
                "or control traffic across rails; a test that no collective opens a connection "
                "across rails. NCCL assumes any-to-any connections."
            ).format(rails=layout.n_rails),
            "arXiv 2307.12169v5; NCCL issues 836, 2013, 2345",
            is_warning=True,
        )


def _rates(facts: Facts) -> Iterator[Decision]:
    layout, leaf = facts.layout, facts.need.leaf
    if layout.host_gbps < leaf.gbps and layout.host_gbps not in leaf.splits:
        yield Decision(
            "host ports",
            f"{layout.host_gbps:g} Gb/s",
            _(
                "Ports of {switch} ({native:g} Gb/s) run slower for these NICs; no breakout to "
                "{gbps:g} Gb/s is known, so each takes a whole port."
            ).format(switch=leaf.name, native=leaf.gbps, gbps=layout.host_gbps),
            is_warning=True,
        )


def _clos(facts: Facts, shape: ClosShape) -> list[Decision]:
    candidate, need = facts.candidate, facts.need
    found = [_tiers(candidate, need, shape), *_su(shape, facts.n_target)]
    if shape.uplink_gbps != need.leaf.gbps:
        found.append(
            Decision(
                "uplinks",
                f"{shape.uplink_gbps:g} Gb/s",
                _(
                    "Leaf ports are split for the uplinks: whole ports of {native:g} Gb/s would "
                    "reach too few leafs in {tiers} tiers."
                ).format(native=need.leaf.gbps, tiers=shape.tiers)
                if candidate.uplink_gbps is None
                else _("Demanded by the spec."),
            )
        )
    found += _spines(candidate, need, shape)
    if shape.tiers == 3:
        found += _groups(shape)
    return found


def _tiers(candidate: Candidate, need: ClosNeed, shape: ClosShape) -> Decision:
    text = (
        _("Demanded by the spec: {tiers} tiers of these switches hold {hosts} hosts.")
        if candidate.tiers
        else _("The fewest that fit: {tiers} tiers of these switches hold {hosts} hosts.")
    )
    why = text.format(tiers=shape.tiers, hosts=largest_hosts(need, shape.tiers))
    if shape.tiers == 3:
        limit = _("Two tiers end at {hosts} hosts.").format(hosts=largest_hosts(need, 2))
        why = f"{why} {limit}"
    return Decision("tiers", str(shape.tiers), why)


def _su(shape: ClosShape, n_hosts: int) -> Iterator[Decision]:
    places = shape.n_sus * shape.su_hosts
    if places > n_hosts:
        yield Decision(
            "su",
            _("{n} × {hosts} hosts").format(n=shape.n_sus, hosts=shape.su_hosts),
            _("Leafs and uplinks fill whole SUs; {free} host places stay free.").format(
                free=places - n_hosts
            ),
            _RA_SU,
        )


def _spines(candidate: Candidate, need: ClosNeed, shape: ClosShape) -> Iterator[Decision]:
    if shape.tiers != 2:
        return
    spines, up, asked = shape.spines_per_group, shape.leaf_up, candidate.spines or 0
    leafs = shape.spine_down // shape.links_per_pair
    fewest = -(-leafs * up // need.spine.count_at(shape.uplink_gbps))
    striped = next((n for n in range(fewest, up + 1) if up % n == 0), spines)
    if striped < spines:
        yield Decision(
            "spines",
            str(spines),
            _(
                "Demanded by the spec: {striped} spines would be sufficient; {spines} are a choice "
                "for redundancy or growth, with {pair} links from every leaf to every spine."
            ).format(striped=striped, spines=spines, pair=shape.links_per_pair),
        )
    elif fewest < spines:
        yield Decision(
            "spines",
            str(spines),
            _(
                "{fewest} spines would have enough ports, but {up} uplinks of a leaf do not "
                "divide by {fewest}; with {spines}, links from a leaf to each spine: {pair}."
            ).format(fewest=fewest, up=up, spines=spines, pair=shape.links_per_pair),
            _RA_STRIPE,
        )
    elif 0 < asked < spines:
        why = _("The spec asks for {asked} or more; {spines} have the ports for all uplinks.")
        yield Decision("spines", str(spines), why.format(asked=asked, spines=spines))
    yield from _population(need, shape)


def _population(need: ClosNeed, shape: ClosShape) -> Iterator[Decision]:
    fewest, spines = _fewest_for_hosts(need, shape), shape.spines_per_group
    if not fewest or fewest >= spines:
        return
    if need.n_hosts < shape.su_hosts:
        yield Decision(
            "spines (population)",
            str(fewest),
            _(
                "{fewest} spines would be sufficient for the {hosts} hosts of the spec; "
                "{spines} serve full SUs, which is a choice for growth and redundancy."
            ).format(fewest=fewest, hosts=need.n_hosts, spines=spines),
            _RA_SU,
        )


def _fewest_for_hosts(need: ClosNeed, shape: ClosShape) -> int:
    """Return the spines that would do if leafs had uplinks for the hosts present only."""
    if shape.n_sus > 1:
        return 0
    down = need.n_hosts * need.ports_per_host
    up = max(1, round(-(-down * need.host_gbps // (need.leaf_ratio * shape.uplink_gbps))))
    ports = need.spine.count_at(shape.uplink_gbps)
    for spines in range(1, up + 1):
        if up % spines == 0 and shape.n_leafs * (up // spines) <= ports:
            return spines
    return 0


def _groups(shape: ClosShape) -> Iterator[Decision]:
    if shape.by_rail:
        why = _(
            "One spine group for each rail and block of {sus} SUs, so that a rail stays below "
            "the core; groups are equal."
        ).format(sus=shape.sus_per_block)
    else:
        why = _("Equal pods of {sus} SUs.").format(sus=shape.sus_per_block)
    yield Decision("pods", str(shape.n_groups), why, _RA_GROUP)
    yield Decision(
        "cores",
        str(shape.n_cores),
        _(
            "{cores} cores a group, each group joining {indices} spines of every pod; every spine "
            "has {links} links to each core of its group."
        ).format(
            cores=shape.cores_per_group,
            indices=shape.indices_per_core_group,
            links=shape.links_per_core,
        ),
    )


def _pair(need: ClosNeed, shape: PairShape) -> Iterator[Decision]:
    yield Decision(
        "topology",
        _("two switches back to back"),
        _(
            "{down} host ports and {cross} cross links on each switch of {ports} ports "
            "({ratio:.2f}:1 between the halves); no spine is needed, and there is no cycle."
        ).format(
            down=shape.down,
            cross=shape.cross,
            ports=need.leaf.count,
            ratio=shape.ratio,
        ),
        "NVIDIA BasePOD RA-11127-001 V5, Table 4.2",
    )


def _growth(facts: Facts) -> Iterator[Decision]:
    today, target = facts.n_today, facts.n_target
    if target > today:
        yield Decision(
            "growth",
            str(target),
            _(
                "Designed for {target} hosts, {today} of them built today. Spines and cores of "
                "populated pods are bought today, so that growth adds leafs and hosts without "
                "moving a cable."
            ).format(target=target, today=today),
        )
