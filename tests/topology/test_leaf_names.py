"""Every leaf has a name of its own, on however many leafs a host is spread."""

from __future__ import annotations

from gpufabric.catalog.load import load_catalog
from gpufabric.model.check import check_fabric
from gpufabric.model.requirement import parse_requirement
from gpufabric.topology.design import design_candidate

SPEC = b"""
hosts: 3
host: {gpus: 8, nics: 36, nic_gbps: 200}
candidates: [{fabric: infiniband, topology: fat-tree, leafs_per_host: 36, tiers: 2}]
"""


def test_a_host_on_more_leafs_than_there_are_letters() -> None:
    requirement = parse_requirement(SPEC, "spec.yaml")
    design = design_candidate(requirement, requirement.candidates[0], load_catalog())
    names = design.fabric.switches["name"].tolist()
    assert {"leaf-su01-a", "leaf-su01-z", "leaf-su01-aa", "leaf-su01-aj"} <= set(names)
    assert len(set(names)) == len(names)
    assert check_fabric(design.fabric) == []
