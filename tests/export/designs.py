"""Fabrics for tests of exports, and what their links are, said without the exports' own code."""

from __future__ import annotations

import functools
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.load import load_catalog
from gpufabric.export import ExportOptions
from gpufabric.model.fabric import Fabric
from gpufabric.model.requirement import load_requirement
from gpufabric.topology.design import design_candidate
from tests.model.make_fabric import Shape, make_fabric

SMALL = Shape()
SMALL_ROCE = Shape(generation="ethernet")
PLANES = Shape(hosts=6, rails=4, planes=2, su_hosts=3, spines=4, radix=16, managers=1)
RAIL_ONLY = Shape(hosts=3, rails=2, su_hosts=3, spines=0, managers=1)


@functools.cache
def catalog() -> Catalog:
    return load_catalog()


def options(**changes: object) -> ExportOptions:
    return ExportOptions(catalog=catalog(), **changes)  # type: ignore[arg-type]


@functools.cache
def by_hand(shape: Shape) -> Fabric:
    return make_fabric(shape)


@functools.cache
def designed(spec: str, candidate: int = 0) -> Fabric:
    """The fabric that a spec leads to, through the real builder."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "spec.yaml"
        path.write_text(spec, encoding="utf-8")
        requirement = load_requirement(path, None)
        return design_candidate(requirement, requirement.candidates[candidate], catalog()).fabric


NDR_1024 = "gpus: 1024\nhost: dgx-h100\ncandidates: [infiniband-ndr, roce:sn5600]\n"


class End(NamedTuple):
    """One end of a link: a device by name, and the port's number on it from 0."""

    device: str
    port: int
    nic: int | None = None


def end(fabric: Fabric, port: int) -> End:
    row = fabric.ports.row(port)
    if row["is_switch"]:
        return End(str(fabric.switches["name"][row["device"]]), row["port"])
    nic = fabric.nics.row(row["device"])
    return End(str(fabric.hosts["name"][nic["host"]]), row["port"], nic["index"])


def links(fabric: Fabric, stage: int = 0) -> list[tuple[End, End, float]]:
    """Both ends and the rate of each link."""
    rows = np.flatnonzero(fabric.links["stage"] <= stage)
    return [
        (
            end(fabric, int(fabric.links["port_a"][row])),
            end(fabric, int(fabric.links["port_b"][row])),
            float(fabric.links["gbps"][row]),
        )
        for row in rows
    ]


def grown(fabric: Fabric) -> Fabric:
    """The same fabric, with the hosts and leafs of the last SU bought later."""
    last = int(fabric.hosts["su"].max())
    hosts = fabric.hosts.replace(stage=fabric.hosts["su"] == last)
    switches = fabric.switches.replace(stage=fabric.switches["su"] == last)
    vertex_stage = np.concatenate([hosts["stage"], switches["stage"]])
    ends = [fabric.port_vertex[fabric.links[side]] for side in ("port_a", "port_b")]
    stage = np.maximum(vertex_stage[ends[0]], vertex_stage[ends[1]])
    return fabric.replace(hosts=hosts, switches=switches, links=fabric.links.replace(stage=stage))
