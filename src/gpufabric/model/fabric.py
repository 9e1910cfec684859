"""The Fabric: one immutable object that every part of gpufabric reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpufabric.model.tables import LINK_TIERS, SCHEMAS, SWITCH_TIERS, Table

__all__ = ["FORMAT_VERSION", "Adjacency", "Fabric", "LinkView"]

FORMAT_VERSION = 1


class Adjacency(NamedTuple):
    """Neighbours of each vertex in CSR form; vertices are the hosts, then the switches."""

    first: npt.NDArray[np.int64]
    """int64[n_vertices + 1]: where each vertex's neighbours begin."""
    vertex: npt.NDArray[np.int32]
    """int32[2 * n_links]: the neighbour."""
    link: npt.NDArray[np.int32]
    """int32[2 * n_links]: the link that leads there."""


class LinkView(NamedTuple):
    """One link as a person reads it."""

    link: int
    tier: str
    a: str
    a_port: str
    b: str
    b_port: str
    gbps: float
    plane: int
    rail: int


def _one_form(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return `array` with every NaN and every zero in one bit pattern, so that it hashes alike."""
    if array.dtype.kind != "f":
        return array
    array = array + array.dtype.type(0)  # -0.0 becomes 0.0
    array[np.isnan(array)] = np.nan
    return array


@dataclass(frozen=True, eq=False)
class Fabric:
    """Hosts, NICs, switches, ports and links of one fabric, as column tables.

    Parameters
    ----------
    name
        Name of the candidate it was built for.
    protocol
        ``infiniband`` or ``roce``.
    generation
        ``hdr``, ``ndr``, ``xdr`` or ``ethernet``.
    family
        Topology family, such as ``rail`` or ``fat-tree``.
    models
        Catalogue names that the ``model`` columns index.
    parts
        Catalogue names of cable parts that ``links.part`` indexes.
    racks, hosts, nics, switches, ports, links
        The tables; columns in ``model/tables.py``.
    attributes
        Small JSON-like facts about the design: planes, oversubscription by tier, seed.
    """

    name: str
    protocol: str
    generation: str
    family: str
    models: tuple[str, ...]
    racks: Table
    hosts: Table
    nics: Table
    switches: Table
    ports: Table
    links: Table
    parts: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = ()  # type: ignore[assignment]

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", dict(self.attributes))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fabric) and self.content_hash == other.content_hash

    def __hash__(self) -> int:
        return hash(self.content_hash)

    def __repr__(self) -> str:
        return (
            f"<Fabric {self.name}: {self.protocol} {self.family}, {self.n_gpus} GPUs, "
            f"{len(self.switches)} switches, {len(self.links)} links, {self.content_hash[:12]}>"
        )

    def tables(self) -> dict[str, Table]:
        """Return the tables by name, in file order."""
        return {name: getattr(self, name) for name in SCHEMAS}

    def replace(self, **changes: Any) -> Fabric:
        """Return a fabric with some fields changed."""
        return replace(self, **changes)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of everything the fabric states, in hex; equal fabrics have equal hashes."""
        digest = hashlib.sha256()
        head = {
            "format_version": FORMAT_VERSION,
            "name": self.name,
            "protocol": self.protocol,
            "generation": self.generation,
            "family": self.family,
            "models": list(self.models),
            "parts": list(self.parts),
            "attributes": self.attributes,
        }
        digest.update(json.dumps(head, sort_keys=True, ensure_ascii=False).encode())
        for name, table in self.tables().items():
            digest.update(f"{name}:{len(table)}\n".encode())
            for column, array in table.columns():
                digest.update(f"{column.name}:{column.dtype}\n".encode())
                digest.update(_one_form(array).tobytes())
        return digest.hexdigest()

    # Counts ---------------------------------------------------------------------------------

    @property
    def n_gpus(self) -> int:
        """GPUs of all compute hosts, of every stage."""
        return int(self.hosts.n_gpus.sum(dtype=np.int64))

    @property
    def n_hosts(self) -> int:
        """Compute hosts, of every stage."""
        return int(np.count_nonzero(self.hosts.role == 0))

    def n_switches(self, tier: int, stage: int | None = None) -> int:
        """Return the number of switches of `tier` (1 to 3), up to one stage or of all."""
        mask = self.switches.tier == tier
        if stage is not None:
            mask &= self.switches.stage <= stage
        return int(np.count_nonzero(mask))

    # Views ----------------------------------------------------------------------------------

    @cached_property
    def port_vertex(self) -> npt.NDArray[np.int32]:
        """int32[n_ports]: vertex (host row, or n_host_rows + switch row) that owns each port."""
        owner = np.empty(len(self.ports), np.int32)
        on_switch = self.ports.is_switch == 1
        owner[on_switch] = self.ports.device[on_switch] + len(self.hosts)
        owner[~on_switch] = self.nics.host[self.ports.device[~on_switch]]
        return owner

    @cached_property
    def adjacency(self) -> Adjacency:
        """CSR adjacency over hosts then switches; parallel links appear once each."""
        n_vertices = len(self.hosts) + len(self.switches)
        a = self.port_vertex[self.links.port_a]
        b = self.port_vertex[self.links.port_b]
        tail = np.concatenate([a, b])
        head = np.concatenate([b, a])
        link = np.tile(np.arange(len(self.links), dtype=np.int32), 2)
        order = np.argsort(tail, kind="stable")
        first = np.zeros(n_vertices + 1, np.int64)
        np.cumsum(np.bincount(tail, minlength=n_vertices), out=first[1:])
        return Adjacency(first, head[order], link[order])

    def vertex_name(self, vertex: int) -> str:
        """Return the name of a host or switch by its vertex number."""
        n_hosts = len(self.hosts)
        if vertex < n_hosts:
            return str(self.hosts.name[vertex])
        return str(self.switches.name[vertex - n_hosts])

    def port_name(self, port: int) -> str:
        """Return a port's name on its device: cage from 1, and lane from 1 where it has lanes."""
        row = self.ports.row(port)
        if row["is_switch"]:
            switch = int(row["device"])
            first = int(self.switches.port_first[switch])
            last = first + int(self.switches.n_ports[switch])
            lanes = int(np.count_nonzero(self.ports.cage[first:last] == row["cage"]))
            lane = f"/{row['lane'] + 1}" if lanes > 1 else ""
            return f"{row['cage'] + 1}{lane}"
        nic = int(row["device"])
        lane = f"p{row['port']}" if self.nics.n_ports[nic] > 1 else ""
        return f"nic{int(self.nics['index'][nic])}{lane}"

    def switch_index(self, switch: str | int) -> int:
        """Return the row of a switch given by name or row.

        Raises
        ------
        KeyError
            If no switch has that name.
        """
        if isinstance(switch, int):
            return switch
        found = np.flatnonzero(self.switches.name == switch)
        if not len(found):
            raise KeyError(switch)
        return int(found[0])

    def links_of(self, switch: str | int) -> list[LinkView]:
        """Return the links of one switch, in the order of its ports, as a person reads them."""
        vertex = self.switch_index(switch) + len(self.hosts)
        adjacency = self.adjacency
        links = adjacency.link[adjacency.first[vertex] : adjacency.first[vertex + 1]]
        mine = np.where(
            self.port_vertex[self.links.port_a[links]] == vertex,
            self.links.port_a[links],
            self.links.port_b[links],
        )
        return [self.link_view(int(link)) for link in links[np.argsort(mine, kind="stable")]]

    def link_view(self, link: int) -> LinkView:
        """Return one link as a person reads it."""
        row = self.links.row(link)
        a, b = row["port_a"], row["port_b"]
        return LinkView(
            link,
            LINK_TIERS[row["tier"]],
            self.vertex_name(int(self.port_vertex[a])),
            self.port_name(a),
            self.vertex_name(int(self.port_vertex[b])),
            self.port_name(b),
            row["gbps"],
            row["plane"],
            row["rail"],
        )

    def switch_view(self, switch: str | int) -> dict[str, Any]:
        """Return one switch's row with its tier and model in words."""
        row = self.switches.row(self.switch_index(switch))
        row["tier"] = SWITCH_TIERS[row["tier"]]
        row["model"] = self.models[row["model"]]
        return row
