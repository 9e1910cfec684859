"""A design says what it chose, and what would have done."""

from __future__ import annotations

import pytest

from gpufabric.catalog.load import load_catalog
from gpufabric.model.requirement import parse_requirement
from gpufabric.topology.decision import Decision
from gpufabric.topology.design import Design, design_candidate
from gpufabric.topology.explain_bandwidth import explain_bandwidth


def made(spec: str, candidate: str) -> Design:
    requirement = parse_requirement(f"{spec}\ncandidates: [{candidate}]\n".encode(), "spec.yaml")
    return design_candidate(requirement, requirement.candidates[0], load_catalog())


def said(spec: str, candidate: str, topic: str) -> Decision | None:
    decisions = made(spec, candidate).decisions
    return next((decision for decision in decisions if decision.topic == topic), None)


@pytest.mark.parametrize(
    ("candidate", "choice", "why"),
    [
        ("{fabric: infiniband}", "16", "12 spines would have enough ports, but 32 uplinks"),
        ("{fabric: infiniband, spines: 8}", "16", "12 spines would have enough ports"),
        ("{fabric: infiniband, spines: 14}", "16", "12 spines would have enough ports"),
        ("{fabric: infiniband, spines: 32}", "32", "16 spines would be sufficient; 32 are"),
    ],
)
def test_spines(candidate: str, choice: str, why: str) -> None:
    decision = said("hosts: 95\nhost: dgx-h100", candidate, "spines")
    assert decision is not None
    assert decision.choice == choice
    assert why in decision.why


def test_spines_that_leave_no_choice_are_not_explained() -> None:
    spec = "hosts: 128\nhost: dgx-h100"
    assert said(spec, "{fabric: infiniband}", "spines") is None
    assert said(spec, "{fabric: infiniband}", "spines (population)") is None
    assert said(spec, "{fabric: infiniband, spines: 16}", "spines") is None


def test_spines_that_are_too_few_are_told() -> None:
    decision = said("hosts: 128\nhost: dgx-h100", "{fabric: infiniband, spines: 2}", "spines")
    assert decision is not None
    assert (decision.choice, decision.why) == (
        "16",
        "The spec asks for 2 or more; 16 have the ports for all uplinks.",
    )


@pytest.mark.parametrize("candidate", ["su_hosts: 72", "su_hosts: 32, spines: 4, leafs: 8"])
def test_two_spines_suffice_for_32_hosts_on_144_ports(candidate: str) -> None:
    """Kedios buys four Q3400 spines for 32 B300 hosts: 256 uplinks of 288 ports take two."""
    design = made("hosts: 32\nhost: dgx-b300", f"{{fabric: infiniband, {candidate}}}")
    assert (design.summary()["leaf"], design.summary()["spine"]) == (8, 4)
    assert any("2 spines would be sufficient" in decision.why for decision in design.decisions)
    band = explain_bandwidth(design.bandwidth)
    assert band.choice == "injection 204.8 Tb/s, bisection 102.4 Tb/s"
    assert "one direction" in band.why


@pytest.mark.parametrize(
    ("hosts", "candidate", "why"),
    [
        (256, "{fabric: infiniband}", "The fewest that fit: 2 tiers of these switches hold 256"),
        (512, "{fabric: infiniband}", "Two tiers end at 256 hosts."),
        (256, "{fabric: infiniband, tiers: 2}", "2 tiers of these switches hold 256 hosts."),
        (64, "{fabric: infiniband, tiers: 3}", "Two tiers end at 256 hosts."),
        (64, "{fabric: roce, switch: sn5600, tiers: 3}", "Two tiers end at 1024 hosts."),
    ],
)
def test_tiers_name_where_they_end(hosts: int, candidate: str, why: str) -> None:
    decision = said(f"hosts: {hosts}\nhost: dgx-h100", candidate, "tiers")
    assert decision is not None
    assert why in decision.why


def test_rails_without_spines_are_components_with_restrictions() -> None:
    candidate = "{fabric: infiniband, topology: rail-only}"
    design = made("hosts: 32\nhost: dgx-h100", candidate)
    decision = next(d for d in design.decisions if d.topic == "rail-only")
    assert decision.is_warning
    assert "8 disconnected components" in decision.why
    assert "Restrictions: PXN" in decision.why
    assert "between rails there is no path" in explain_bandwidth(design.bandwidth).why


def test_a_share_below_one_is_shown() -> None:
    spec, candidate = "hosts: 84\nhost: dgx-h100", "{fabric: infiniband, oversubscription: 2}"
    band = explain_bandwidth(made(spec, candidate).bandwidth)
    assert "here 50% of what the smaller half can send" in band.why


def test_the_best_switch_is_best_by_list_price_of_switches_alone() -> None:
    decision = said("gpus: 64\nhost: hgx-h100", "roce", "switch")
    assert decision is not None
    assert decision.why.endswith(
        "Only list prices of switches are compared: optics and power are not."
    )
