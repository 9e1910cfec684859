"""Designs and plans that the tests of drawings and files share, each made once."""

from __future__ import annotations

import functools

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.load import load_catalog
from gpufabric.model.requirement import Requirement, parse_requirement
from gpufabric.planner.compare import Plan, plan_all
from gpufabric.topology.design import Design, design_candidate

FAMILIES = {
    "pair": "{gpus: 64, host: dgx-h100, candidates: [infiniband]}",
    "single": "{gpus: 64, host: dgx-h100, candidates: [roce]}",
    "managers": "{gpus: 128, host: dgx-h100, candidates: [infiniband]}",
    "dual-tor": "{gpus: 128, host: dgx-h100, candidates: [{fabric: roce, topology: dual-tor}]}",
    "rail-only-128": (
        "{gpus: 128, host: dgx-h100, candidates: [{fabric: roce, topology: rail-only}]}"
    ),
    "nvl72-2": "{hosts: 2, host: gb300-nvl72, candidates: [roce]}",
    "one-gpu-hosts": "{hosts: 40, host: {gpus: 1, nics: 1, nic_gbps: 100}, candidates: [roce]}",
    "su-31": "{hosts: 31, host: dgx-h100, candidates: [infiniband]}",
    "rail-1024": "{gpus: 1024, host: dgx-h100, candidates: [infiniband]}",
    "rail-only-1024": (
        "{gpus: 1024, host: dgx-h100, candidates: [{fabric: roce, topology: rail-only}]}"
    ),
    "tor-1024": "{gpus: 1024, host: dgx-h100, candidates: [{fabric: roce, topology: fat-tree}]}",
    "grows": "{gpus: 768, host: dgx-h100, growth: {gpus: 2048}, candidates: [infiniband]}",
    "nvl72-16": "{hosts: 16, host: gb300-nvl72, candidates: [roce]}",
    "nvl72-128": "{hosts: 64, host: gb300-nvl72, growth: {hosts: 128}, candidates: [roce]}",
    "three-tiers-4096": "{gpus: 4096, host: dgx-h100, candidates: [infiniband]}",
    "two-planes-8192": (
        "{gpus: 8192, host: dgx-b300, candidates: "
        "[{fabric: roce, topology: multi-plane, planes: 2}]}"
    ),
    "four-planes-8192": (
        "{gpus: 8192, host: dgx-b300, candidates: "
        "[{fabric: roce, topology: multi-plane, planes: 4}]}"
    ),
    "three-tiers-16384": "{gpus: 16384, host: dgx-h100, candidates: [infiniband]}",
    "tor-24576": (
        "{gpus: 24576, host: grand-teton-h100, candidates: "
        "[{fabric: roce, topology: fat-tree, oversubscription: [1, 7], tiers: 3}]}"
    ),
    "dragonfly+": (
        "{gpus: 4096, host: dgx-h100, candidates: [{fabric: infiniband, topology: dragonfly+}]}"
    ),
    "dragonfly": (
        "{gpus: 4096, host: dgx-h100, candidates: [{fabric: infiniband, topology: dragonfly}]}"
    ),
    "dragonfly-64-groups": (
        "{gpus: 32768, host: dgx-h100, candidates: [{fabric: infiniband, topology: dragonfly}]}"
    ),
    "three-tiers-131072": "{gpus: 131072, host: dgx-h100, candidates: [{fabric: roce, tiers: 3}]}",
}


@functools.cache
def catalog() -> Catalog:
    """The packaged catalogue."""
    return load_catalog()


def requirement(text: str) -> Requirement:
    """Return the spec in `text`."""
    return parse_requirement(text.encode(), "spec.yaml", catalog().known_names())


@functools.cache
def design(name: str) -> Design:
    """Return the first candidate of one of ``FAMILIES``, designed."""
    spec = requirement(FAMILIES[name])
    return design_candidate(spec, spec.candidates[0], catalog())


@functools.cache
def plan(text: str) -> Plan:
    """Return the plan of a spec."""
    return plan_all(requirement(text), catalog())
