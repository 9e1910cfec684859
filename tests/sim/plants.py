"""Small fabrics made ready for runs, and traffic of a test's own making."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from gpufabric.catalog.load import load_catalog
from gpufabric.model.fabric import Fabric
from gpufabric.model.requirement import parse_requirement
from gpufabric.sim.run import Plant, plant_of
from gpufabric.sim.traffic import Traffic
from gpufabric.topology.design import design_candidate

NON_BLOCKING = "fabric: roce, topology: fat-tree, tiers: 2, switch: sn5400"
HALF = f"{NON_BLOCKING}, oversubscription: 2"
SMALL_LEAFS = f"{NON_BLOCKING}, su_hosts: 2"
HALF_SMALL_LEAFS = f"{HALF}, su_hosts: 2"
RAIL = "fabric: roce, tiers: 2"
RAIL_ONLY = "fabric: roce, topology: rail-only"
NICS_ON_PLANES = "fabric: roce, topology: multi-plane, planes: 4"
TWO_PLANES = "fabric: roce, topology: dual-tor"
THREE_TIERS = "fabric: roce, topology: fat-tree, tiers: 3, switch: sn5400, pod_hosts: 8"
INFINIBAND = "fabric: infiniband, tiers: 2"


@cache
def fabric(candidate: str, gpus: int = 64, host: str = "dgx-h100", grown: int = 0) -> Fabric:
    growth = f", growth: {{gpus: {grown}}}" if grown else ""
    text = f"{{gpus: {gpus}, host: {host}, candidates: [{{{candidate}}}]{growth}}}"
    requirement = parse_requirement(text.encode(), "spec.yaml")
    return design_candidate(requirement, requirement.candidates[0], load_catalog()).fabric


@cache
def plant(candidate: str, gpus: int = 64, host: str = "dgx-h100", grown: int = 0) -> Plant:
    return plant_of(fabric(candidate, gpus, host, grown), load_catalog())


def leaf_of(plant: Plant) -> NDArray[np.int32]:
    """Leaf of each GPU's first NIC port."""
    return plant.channels.leaf_of[plant.endpoints.ports[:, 0]]


def traffic(src: NDArray[np.integer], dst: NDArray[np.integer], size_bytes: float) -> Traffic:
    """Flows of one size that start at once."""
    return Traffic(
        "test",
        np.asarray(src, np.int32),
        np.asarray(dst, np.int32),
        np.full(len(src), float(size_bytes)),
        np.zeros(len(src)),
    )


def across_leafs(plant: Plant, size_bytes: float) -> Traffic:
    """Every GPU to every GPU of another leaf and another host."""
    leaf, block = leaf_of(plant), plant.endpoints.block
    apart = (leaf[:, None] != leaf[None, :]) & (block[:, None] != block[None, :])
    src, dst = np.nonzero(apart)
    return traffic(src, dst, size_bytes)
