"""What a refused demand is told: the limit is true, and names the demand that stands in the way."""

from __future__ import annotations

import re
from functools import cache

import pytest

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.load import load_catalog
from gpufabric.core.errors import InputError
from gpufabric.model.requirement import parse_requirement
from gpufabric.topology.design import Design, design_candidate


@cache
def catalog() -> Catalog:
    return load_catalog()


def make(n_hosts: int, host: str, candidate: str) -> Design:
    text = f"hosts: {n_hosts}\nhost: {host}\ncandidates: [{{{candidate}}}]\n"
    requirement = parse_requirement(text.encode(), "spec.yaml")
    return design_candidate(requirement, requirement.candidates[0], catalog())


def refusal(n_hosts: int, host: str, candidate: str) -> str:
    with pytest.raises(InputError) as caught:
        make(n_hosts, host, candidate)
    return str(caught.value)


@pytest.mark.parametrize(
    ("host", "candidate"),
    [
        ("dgx-h100", "fabric: infiniband, topology: single"),
        ("dgx-h100", "fabric: infiniband, tiers: 1"),
        ("dgx-h100", "fabric: infiniband, tiers: 2"),
        ("dgx-h100", "fabric: infiniband, tiers: 2, oversubscription: 3"),
        ("dgx-h100", "fabric: infiniband, tiers: 2, topology: fat-tree, leafs_per_host: 8"),
        ("dgx-h100", "fabric: infiniband, tiers: 2, su_hosts: 31"),
        ("dgx-h100", "fabric: infiniband, tiers: 3, pod_hosts: 64, su_hosts: 4"),
        ("dgx-h100", "fabric: infiniband, pod_hosts: 3, switch: qm8700, planes: 2, su_hosts: 3"),
        ("dgx-b300", "fabric: roce, tiers: 2"),
        ("dgx-b300", "fabric: roce, tiers: 2, su_hosts: 2"),
        ("dgx-rubin-nvl8", "fabric: roce, tiers: 2, topology: rail, uplink_gbps: 400"),
        ("gb300-nvl72", "fabric: infiniband, tiers: 2"),
        ("dgx-a100", "fabric: infiniband, topology: dragonfly, switch: qm8700"),
        ("gb200-nvl72", "fabric: infiniband, topology: dragonfly+, oversubscription: [1, 100]"),
        ("gb200-nvl72", "fabric: infiniband, switch: qm9700, oversubscription: 2, pod_hosts: 100"),
    ],
)
def test_so_many_hosts_fit_and_one_more_does_not(host: str, candidate: str) -> None:
    n_gpus = 72 if "nvl72" in host else 8
    told = refusal(1_048_576 // n_gpus, host, candidate)
    found = re.search(r"at most (\d+) hosts\.", told)
    assert found, told
    limit = int(found[1])
    assert make(limit, host, candidate).fabric.n_hosts == limit
    assert f"at most {limit} hosts." in refusal(limit + 1, host, candidate)


@pytest.mark.parametrize(
    ("host", "candidate", "told"),
    [
        (
            "dgx-h100",
            "fabric: infiniband, switch: qm9700, su_hosts: 33, tiers: 2",
            (
                "su_hosts: a leaf of qm9700 cannot serve 33 hosts at this oversubscription. "
                "Expected: at most 32 hosts in an SU."
            ),
        ),
        (
            "dgx-h100",
            "fabric: infiniband, switch: qm9700, spines: 100, tiers: 2",
            (
                "candidates[0].spines: a leaf of qm9700 has 32 uplinks, too few for 100 spines. "
                "Expected: at most 32."
            ),
        ),
        (
            "dgx-h100",
            "fabric: infiniband, switch: qm9700, leafs: 100, tiers: 2",
            "candidates[0].leafs: 2 tiers of qm9700 cannot join 100 leafs. Expected: at most 64.",
        ),
        (
            "dgx-h100",
            "fabric: infiniband, switch: qm9700, pod_hosts: 5000, tiers: 3",
            "candidates[0].pod_hosts: the spines of a pod have too few ports for 5000 hosts.",
        ),
        (
            "dgx-h100",
            "fabric: infiniband, switch: qm9700, uplink_gbps: 3200, tiers: 2",
            (
                "candidates[0].uplink_gbps: qm9700 and qm9700 have no common port of 3200 Gb/s. "
                "Expected: one of 400, 200."
            ),
        ),
        (
            "gb200-nvl72",
            "fabric: infiniband, switch: qm9700, uplink_gbps: 123.4, tiers: 2",
            (
                "candidates[0].uplink_gbps: qm9700 and qm9700 have no common port of 123.4 Gb/s. "
                "Expected: one of 400, 200."
            ),
        ),
        (
            "{gpus: 72, nics: 72, nic_gbps: 200}",
            "fabric: infiniband, switch: qm8700, topology: rail, tiers: 3",
            "one host is cabled to 72 leafs, more than 3 tiers of qm8700 join.",
        ),
        (
            "{gpus: 8, nics: 72, nic_gbps: 400, rails: 1}",
            "fabric: infiniband, switch: qm9700, topology: rail",
            "one host has 72 ports for a leaf, more than qm9700 can take",
        ),
        (
            "dgx-h100",
            "fabric: infiniband, topology: dragonfly+, su_hosts: 64",
            "candidates[0].su_hosts: a leaf of qm9700 cannot serve 64 hosts",
        ),
    ],
)
def test_the_demand_in_the_way_is_named(host: str, candidate: str, told: str) -> None:
    assert told in refusal(2, host, candidate)


@pytest.mark.parametrize(
    ("candidate", "topic", "choice"),
    [
        ("fabric: infiniband, leafs_per_host: 3", "leafs_per_host", "8"),
        ("fabric: infiniband, topology: dragonfly, spines: 3", "spines", "0"),
        ("fabric: infiniband, topology: dragonfly, oversubscription: 2", "oversubscription", "–"),
        ("fabric: infiniband, tiers: 2, pod_hosts: 64", "pod_hosts", "–"),
    ],
)
def test_a_demand_that_is_not_followed_is_a_warning(
    candidate: str, topic: str, choice: str
) -> None:
    found = [entry for entry in make(4, "dgx-h100", candidate).decisions if entry.topic == topic]
    assert [(entry.choice, entry.is_warning) for entry in found] == [(choice, True)]


def test_a_demand_that_is_followed_is_no_warning() -> None:
    candidate = (
        "fabric: infiniband, topology: fat-tree, tiers: 3, leafs_per_host: 4, su_hosts: 8, "
        "pod_hosts: 16, leafs: 8, spines: 4, uplink_gbps: 400, oversubscription: [1, 1]"
    )
    topics = {"leafs_per_host", "su_hosts", "pod_hosts", "leafs", "spines", "uplink_gbps"}
    warned = {
        entry.topic for entry in make(32, "dgx-h100", candidate).decisions if entry.is_warning
    }
    assert not warned & topics


def test_more_leafs_of_a_dragonfly_plus_are_built() -> None:
    design = make(3, "dgx-h100", "fabric: infiniband, topology: dragonfly+, leafs: 6")
    assert design.fabric.n_switches(1) >= 6


def test_a_generation_is_looked_for_before_the_cables() -> None:
    """QM9700 has ports of 200 Gb/s, so the catalogue has such a switch."""
    host = "{gpus: 4, nics: 6, nic_gbps: 200}"
    assert make(2, host, "fabric: infiniband, generation: ndr").fabric.generation == "ndr"
