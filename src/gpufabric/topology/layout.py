"""How hosts meet the network: planes, rails, leafs of a host, and which shapes to try."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from gpufabric.catalog.host import Host
from gpufabric.catalog.nic import Nic
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.model.spec_parts import Candidate
from gpufabric.topology.assemble import HostSet
from gpufabric.topology.decision import Place
from gpufabric.topology.parts import HostPorts

__all__ = ["Layout", "NetworkSlot", "choose_layout", "effective_rails", "host_ports"]

Kind = Literal["star", "pair", "clos", "dragonfly+", "dragonfly"]
PlaneMode = Literal["one", "split", "ports", "nics", "rails"]

_KINDS: dict[str, tuple[Kind, ...]] = {
    "auto": ("star", "pair", "clos"),
    "single": ("star",),
    "fat-tree": ("star", "pair", "clos"),
    "rail": ("clos",),
    "rail-only": ("star", "clos"),
    "dual-tor": ("clos",),
    "multi-plane": ("star", "clos"),
    "dragonfly+": ("dragonfly+",),
    "dragonfly": ("dragonfly",),
}


@dataclass(frozen=True)
class NetworkSlot:
    """One of the separate networks that a layout makes.

    Parameters
    ----------
    plane
        Plane it is.
    nic_port
        Port of every NIC that it connects.
    rails
        Rails that it serves.
    """

    plane: int
    nic_port: int
    rails: tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """How the NICs of a host are run and on which leafs they end.

    Parameters
    ----------
    mode
        ``one`` network; NICs ``split`` over planes by breakout; NIC ``ports`` on two planes;
        whole ``nics`` dealt to planes; or every rail a network of its own (``rails``).
    planes
        Number of planes.
    ports_per_nic, host_gbps
        Ports a NIC is run with, and their rate [Gb/s].
    rails
        Rail of every NIC of a host.
    by_rail
        True if a leaf serves one rail; else a host is spread over `leafs_per_host` leafs.
    leafs_per_host
        Leafs of one network that one host is cabled to.
    ports_per_leaf
        Ports of one host on one leaf.
    kinds
        Shapes to try, in order.
    slots
        The separate networks.
    """

    mode: PlaneMode
    planes: int
    ports_per_nic: int
    host_gbps: float
    rails: tuple[int, ...]
    by_rail: bool
    leafs_per_host: int
    ports_per_leaf: int
    kinds: tuple[Kind, ...]
    slots: tuple[NetworkSlot, ...]

    @property
    def n_rails(self) -> int:
        """Rails of a host."""
        return max(self.rails) + 1


def effective_rails(candidate: Candidate, host: Host) -> tuple[int, ...]:
    """Return the rail of each NIC: the host's, or `candidate.rails` dealt round robin."""
    if candidate.rails is None:
        return host.nics.rails
    return tuple(nic % candidate.rails for nic in range(host.nics.count))


def choose_layout(candidate: Candidate, host: Host, nic: Nic, where: Place) -> Layout:
    """Return how the hosts are joined to the networks of one candidate.

    Raises
    ------
    InputError
        If the NIC cannot be split as asked, or rails and planes do not go together.
    """
    rails = effective_rails(candidate, host)
    _check_rails(candidate, host, rails, where)
    mode, planes = _planes(candidate, host, nic, rails, where)
    ports = planes if mode in ("split", "ports") else 1
    by_rail = candidate.topology not in ("fat-tree", "dragonfly")
    n_rails = max(rails) + 1
    slots = _slots(mode, planes, n_rails)
    per_rail = rails.count(0)
    served = len(slots[0].rails)
    if by_rail:
        leafs, per_leaf = served, per_rail
    else:
        n_nics = served * per_rail
        per_leaf = -(-n_nics // _leafs_per_host(candidate, n_nics))
        leafs = -(-n_nics // per_leaf)
    return Layout(
        mode=mode,
        planes=planes,
        ports_per_nic=ports,
        host_gbps=host.nics.gbps / ports,
        rails=rails,
        by_rail=by_rail,
        leafs_per_host=leafs,
        ports_per_leaf=per_leaf,
        kinds=_kinds(candidate, mode),
        slots=slots,
    )


def _check_rails(candidate: Candidate, host: Host, rails: tuple[int, ...], where: Place) -> None:
    wanted = candidate.rails
    if wanted is not None and wanted > host.nics.count:
        raise InputError(
            Fault(
                where("rails"),
                _("{wanted} rails, but a {host} has {nics} NICs.").format(
                    wanted=wanted, host=host.name, nics=host.nics.count
                ),
                _("at most {nics}").format(nics=host.nics.count),
            )
        )
    if len({rails.count(rail) for rail in set(rails)}) > 1:
        raise InputError(
            Fault(
                where("rails"),
                _("{nics} NICs do not divide into {rails} equal rails.").format(
                    nics=len(rails), rails=len(set(rails))
                ),
                _("a divisor of {nics}").format(nics=len(rails)),
            )
        )


def _kinds(candidate: Candidate, mode: PlaneMode) -> tuple[Kind, ...]:
    kinds = _KINDS[candidate.topology]
    tiers = candidate.tiers
    if tiers == 1 and candidate.topology in ("rail", "dual-tor"):
        return ("star",)
    if mode != "one":
        kinds = tuple(kind for kind in kinds if kind != "pair")
    if candidate.topology in ("dragonfly", "dragonfly+"):  # they have one number of tiers only
        return kinds
    if tiers == 1:
        return tuple(kind for kind in kinds if kind in ("star", "pair"))
    if tiers in (2, 3):
        return tuple(kind for kind in kinds if kind not in ("star", "pair"))
    return kinds


def _planes(
    candidate: Candidate, host: Host, nic: Nic, rails: tuple[int, ...], where: Place
) -> tuple[PlaneMode, int]:
    topology = candidate.topology
    planes: int | None = candidate.planes
    if topology == "rail-only":
        return "rails", 1
    if topology == "dual-tor":
        return "ports", 2
    if topology in ("dragonfly+", "dragonfly", "single", "fat-tree") and planes in (None, 1):
        return "one", 1
    default = nic.ethernet_planes_default if candidate.fabric == "roce" else None
    if planes is None:
        if topology == "multi-plane":
            planes = default or 2
        elif topology == "auto" and default:
            planes = default
    if planes is None or planes == 1:
        return "one", 1
    return _split_mode(planes, host, nic, rails, where), planes


def _split_mode(
    planes: int, host: Host, nic: Nic, rails: tuple[int, ...], where: Place
) -> PlaneMode:
    rate = host.nics.gbps / planes
    if any(mode.ports == planes and mode.gbps == rate for mode in nic.port_modes):
        return "split"
    if (max(rails) + 1) % planes == 0:
        return "nics"
    modes = ", ".join(f"{mode.ports} x {mode.gbps:g}" for mode in nic.port_modes)
    raise _planes_fault(
        where,
        planes,
        _("a split that {nic} has ({modes} Gb/s), or a divisor of its host's {rails} rails").format(
            nic=nic.name, modes=modes, rails=max(rails) + 1
        ),
    )


def _planes_fault(where: Place, planes: int, expected: str) -> InputError:
    return InputError(
        Fault(
            where("planes"),
            _("{planes} planes cannot be made of this host's NICs.").format(planes=planes),
            expected,
        )
    )


def _slots(mode: PlaneMode, planes: int, n_rails: int) -> tuple[NetworkSlot, ...]:
    every = tuple(range(n_rails))
    if mode == "rails":
        return tuple(NetworkSlot(0, 0, (rail,)) for rail in every)
    if mode == "nics":
        share = n_rails // planes
        return tuple(
            NetworkSlot(plane, 0, every[plane * share : (plane + 1) * share])
            for plane in range(planes)
        )
    return tuple(
        NetworkSlot(plane, plane if mode in ("split", "ports") else 0, every)
        for plane in range(planes)
    )


def _leafs_per_host(candidate: Candidate, n_nics: int) -> int:
    """Return over how many leafs the `n_nics` of a host in one network are spread."""
    if candidate.topology == "dragonfly":
        return 1
    return min(candidate.leafs_per_host or 2, n_nics)


def host_ports(layout: Layout, hosts: HostSet, slot: NetworkSlot) -> HostPorts:
    """Return the ports of all hosts that one network connects, by leaf of the host's SU."""
    rows = hosts.port_rows()[:, :, slot.nic_port]
    rails = np.array(layout.rails)
    if layout.by_rail:
        nics = [np.flatnonzero(rails == rail) for rail in slot.rails]
    else:
        share = layout.ports_per_leaf
        served = np.flatnonzero(np.isin(rails, slot.rails))
        nics = [served[i : i + share] for i in range(0, len(served), share)]
    shape = (hosts.n_hosts, layout.leafs_per_host, layout.ports_per_leaf)
    port = np.full(shape, -1, np.int32)
    rail = np.full(shape, -1, np.int32)
    for leaf, chosen in enumerate(nics):
        port[:, leaf, : len(chosen)] = rows[:, chosen]
        rail[:, leaf, : len(chosen)] = rails[chosen]
    return HostPorts(_int32(port), _int32(rail), hosts.stage)


def _int32(array: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    return np.ascontiguousarray(array, dtype=np.int32)
