"""InfiniBand forwarding tables of a fabric, by OpenSM's engines minhop, updn and ftree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.kernels.ftree import Leafs, Tree, route_tree, route_tree_switches
from gpufabric.kernels.lft import (
    CIRCLE,
    Rules,
    Subnet,
    Tables,
    Work,
    count_steps,
    rank_from,
    route_hosts,
    route_switches,
    walk_tables,
)
from gpufabric.routing.channels import Channels
from gpufabric.routing.fat_tree import FatTree, NoFatTreeError, find_fat_tree
from gpufabric.routing.lids import Lids, assign_lids
from gpufabric.routing.paths import (
    LOOPS,
    REACHED,
    UNREACHABLE,
    AnyInts,
    WalkedPaths,
    ends_of,
    path_latency_s,
    room_for,
)
from gpufabric.routing.roots import Roots, find_roots
from gpufabric.topology.decision import Decision

__all__ = ["ENGINES", "Engine", "ForwardingTables", "forwarding_tables"]

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Ports = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]

Engine = Literal["minhop", "updn", "ftree"]
ENGINES: tuple[Engine, ...] = ("minhop", "updn", "ftree")

OPENSM = "OpenSM 3.3, osm_ucast_mgr.c, osm_ucast_updn.c, osm_ucast_ftree.c"


@dataclass(frozen=True, eq=False)
class ForwardingTables:
    """Port of every switch for every LID.

    Parameters
    ----------
    channels
        The fabric as it was routed.
    engine
        The engine asked for.
    used
        The engine that made the tables of each subnet: minhop where the other could not.
    lids
        LIDs of switches and NIC ports.
    port
        uint8[n_switches, n_lids], or uint16 where a switch has more than 254 ports: port from 1,
        as cables are labelled; 0 for the switch itself; the largest value where no path is.
    decisions
        What was chosen and why; warnings are marked.
    """

    channels: Channels
    engine: Engine
    used: tuple[Engine, ...]
    lids: Lids
    port: Ports
    decisions: tuple[Decision, ...]

    @property
    def no_path(self) -> int:
        """The entry that says that no path is."""
        return int(np.iinfo(self.port.dtype).max)

    @cached_property
    def tables(self) -> Tables:
        """The tables as kernels take them."""
        channels = self.channels
        switches = channels.fabric.switches
        edge = np.full(len(channels.leaving), -1, np.int32)
        linked = channels.leaving >= 0
        edge[linked] = channels.edge_of[channels.leaving[linked]]
        return Tables(self.port, edge, switches.port_first.copy(), switches.n_ports.copy())

    def walk(
        self, src_port: AnyInts, dst_port: AnyInts, lid_offset: AnyInts | None = None
    ) -> WalkedPaths:
        """Return the path of each flow along the tables.

        Parameters
        ----------
        src_port, dst_port
            int[n_flows]: NIC ports.
        lid_offset
            int[n_flows]: which of the destination's LIDs, 0 to ``2 ** lmc - 1``; 0 where None.
        """
        ends, status = ends_of(self.channels, src_port, dst_port)
        dst = np.asarray(dst_port, np.int64)
        lid = self.lids.of_port[dst] + (0 if lid_offset is None else np.asarray(lid_offset))
        is_self = np.asarray(src_port) == dst
        network = self.channels.network_of
        status[(status == REACHED) & (network[ends.leaf_from] != network[ends.leaf_to])] = (
            UNREACHABLE
        )
        goes = (status == REACHED) & ~is_self
        steps = np.full(len(dst), -1, np.int32)
        found = np.empty(int(goes.sum()), np.int32)
        lid = lid.astype(np.int32)
        count_steps(
            self.channels.graph,
            self.tables,
            ends.leaf_from[goes],
            ends.leaf_to[goes],
            lid[goes],
            found,
        )
        steps[goes] = found
        status[goes & (steps < 0)] = np.where(
            steps[goes & (steps < 0)] == CIRCLE, LOOPS, UNREACHABLE
        )
        first = np.zeros(len(dst) + 1, np.int64)
        np.cumsum(np.where(steps >= 0, steps + 2, 0), out=first[1:])
        room_for(int(first[-1]))
        channel = np.empty(int(first[-1]), np.int32)
        walk_tables(self.channels.graph, self.tables, ends.leaf_from, lid, first, channel)
        kept = steps >= 0
        channel[first[:-1][kept]] = ends.channel_in[kept]
        channel[first[1:][kept] - 1] = ends.channel_out[kept]
        latency_s = path_latency_s(self.channels, first, channel)
        return WalkedPaths(first, channel, None, latency_s, status)


def forwarding_tables(
    channels: Channels,
    engine: Engine = "ftree",
    *,
    lmc: int = 0,
    roots: Sequence[int] | None = None,
) -> ForwardingTables:
    """Return the forwarding tables that OpenSM's `engine` makes for the fabric as it is.

    Parameters
    ----------
    channels
        The fabric's channels; failed ones are avoided.
    engine
        ``minhop``, ``updn`` or ``ftree``.
    lmc
        A NIC port has ``2 ** lmc`` LIDs, 0 to 3; ftree knows 0 only.
    roots
        Rows of the root switches, as root_guid_file names them; see ``roots.find_roots``.

    Raises
    ------
    InputError
        If the engine is unknown, the LMC too large, or a subnet has too few LIDs.

    Notes
    -----
    Where ftree refuses a subnet, OpenSM falls back to minhop; so does this, and says so in
    `decisions`.
    """
    if engine not in ENGINES:
        what = _('"{name}" is no engine.').format(name=engine)
        raise InputError(
            Fault("engine", what, ", ".join(ENGINES), nearest(str(engine), list(ENGINES)))
        )
    lids = assign_lids(channels, lmc)
    widest = int(channels.fabric.switches.n_ports.max(initial=1))
    dtype = np.uint8 if widest <= 254 else np.uint16
    port = np.full((len(channels.network_of), lids.n_lids), np.iinfo(dtype).max, dtype)
    maker = _Maker(channels, lids, port, _hosts_on(channels))
    used: list[Engine] = []
    decisions: list[Decision] = []
    for number in range(int(channels.network_of.max(initial=-1)) + 1):
        members = np.flatnonzero(channels.network_of == number).astype(np.int32)
        mine = None if roots is None else members[np.isin(members, np.asarray(roots))]
        made, why = maker.make(engine, members, mine)
        used.append(made)
        if maker.hosts_on[members].any():  # not a switch of a later stage, still without links
            decisions.extend(why)
    return ForwardingTables(
        channels, engine, tuple(used), lids, port, tuple(dict.fromkeys(decisions))
    )


def _hosts_on(channels: Channels) -> Ints:
    leafs = channels.leaf_of[channels.endpoints]
    return np.bincount(leafs, minlength=len(channels.network_of)).astype(np.int32)


@dataclass(frozen=True, eq=False)
class _Maker:
    """Makes the tables of one subnet after the other."""

    channels: Channels
    lids: Lids
    port: Ports
    hosts_on: Ints

    def make(
        self, engine: Engine, members: Ints, roots: Ints | None
    ) -> tuple[Engine, list[Decision]]:
        if engine == "ftree":
            try:
                return engine, self._ftree(members, roots)
            except NoFatTreeError as refusal:
                self._simple(members, None)
                return "minhop", [_fallback(str(refusal))]
        if engine == "updn":
            found = find_roots(self.channels, members, self.hosts_on, roots)
            self._simple(members, found)
            return engine, [found.decision]
        self._simple(members, None)
        return engine, []

    def _simple(self, members: Ints, roots: Roots | None) -> None:
        graph = self.channels.graph
        rank = np.empty(0 if roots is None else len(graph.tier), np.int32)
        if roots is not None:
            rank_from(graph, roots.switches, rank)
        leafs = members[self.hosts_on[members] > 0]
        # OpenSM serves the switches with most hosts first.
        leafs = leafs[np.argsort(-self.hosts_on[leafs], kind="stable")]
        first, lid, port = self._targets(leafs)
        subnet = Subnet(members, leafs, first, lid, port)
        load = np.zeros(len(graph.channel), np.int32)
        work = Work(graph, self._rules(rank), load, self.port)
        offsets, each = np.arange(self.lids.per_port), self.lids.per_port
        route_hosts(work, subnet, offsets[:1], each)
        route_switches(work, subnet, self.lids.of_switch)
        route_hosts(work, subnet, offsets[1:], each)

    def _ftree(self, members: Ints, roots: Ints | None) -> list[Decision]:
        if self.lids.lmc > 0:
            raise NoFatTreeError(_("ftree knows one LID a port, LMC 0, only"))
        found: FatTree = find_fat_tree(self.channels, members, self.hosts_on, roots)
        graph = self.channels.graph
        tree = Tree(
            found.up,
            found.down,
            np.zeros(len(graph.channel), np.int32),
            (self.hosts_on > 0).astype(np.int32),
            np.empty(len(graph.tier), np.int32),
            self._rules(np.empty(0, np.int32)),
            self.port,
        )
        leafs = Leafs(found.leafs, *self._targets(found.leafs))
        route_tree(tree, leafs, members)
        route_tree_switches(tree, members, self.lids.of_switch)
        return []

    def _rules(self, rank: Ints) -> Rules:
        channels = self.channels
        channel = channels.graph.channel
        port = channels.fabric.ports.port[channels.tail_port[channel]].astype(np.int32) + 1
        return Rules(rank, channels.edge_of[channel ^ 1], port)

    def _targets(self, leafs: Ints) -> tuple[Longs, Ints, Ints]:
        """Destinations of each leaf in order of its ports: where they begin, LID, port."""
        channels = self.channels
        ends = channels.endpoints
        leaf = channels.leaf_of[ends]
        rank = np.full(len(self.hosts_on), -1, np.int64)
        rank[leafs] = np.arange(len(leafs))
        ends = ends[rank[leaf] >= 0]
        ends = ends[np.argsort(rank[channels.leaf_of[ends]], kind="stable")]
        first = np.zeros(len(leafs) + 1, np.int64)
        np.cumsum(self.hosts_on[leafs], out=first[1:])
        far = channels.head_port[channels.leaving[ends]]
        port = channels.fabric.ports.port[far].astype(np.int32) + 1
        return first, self.lids.of_port[ends], port


def _fallback(reason: str) -> Decision:
    return Decision(
        "routing engine",
        _("minhop instead of ftree"),
        _(
            "OpenSM's ftree refuses this subnet: {reason}. It then falls back to minhop without "
            "an error, whose paths can go down and up again: check them for deadlock. "
            "root_guid_file with the roots makes ftree skip the test of regularity."
        ).format(reason=reason),
        OPENSM,
        is_warning=True,
    )
