"""Whole plans: every candidate side by side, the file made of them, and what cannot be built."""

from __future__ import annotations

import copy
import functools
import json
import os
import subprocess
import sys
from typing import Any, get_args

import jsonschema
import pytest

from gpufabric.catalog.groups import Kind
from gpufabric.catalog.load import load_catalog
from gpufabric.core.errors import InputError
from gpufabric.model.requirement import Requirement, parse_requirement
from gpufabric.planner.compare import (
    CandidatePlan,
    Plan,
    comparison,
    plan_all,
    plan_json,
    plan_schema,
)
from gpufabric.topology.design import design_candidate

SHORTEST = "gpus: 1024\nhost: dgx-h100\ncandidates: [infiniband, roce]\n"


def requirement(text: str) -> Requirement:
    return parse_requirement(text.encode(), "spec.yaml")


@functools.cache
def planned(text: str = SHORTEST) -> Plan:
    return plan_all(requirement(text), load_catalog())


def one(candidate: str, hosts: int, host: str = "dgx-h100") -> CandidatePlan:
    text = f"hosts: {hosts}\nhost: {host}\ncandidates: [{candidate}]\n"
    return planned(text).candidates[0]


def answers(plan: Plan) -> dict[str, tuple[Any, ...]]:
    return {row.key: row.values for row in comparison(plan.candidates)}


# Comparison ---------------------------------------------------------------------------------


def test_the_shortest_spec_compares_infiniband_and_roce() -> None:
    plan = planned()
    found = answers(plan)
    assert found["fabric"] == ("infiniband", "roce")
    assert found["switches"] == (48, 24)
    assert found["leaf"] == (32, 16)
    assert found["cables"] == (2048, 1024 + 512)
    assert found["bisection_gbps"] == (204_800.0, 204_800.0)
    assert found["hops"] == (3, 3)
    assert found["oversubscription"] == ("1:1", "1:1")
    for low, mid, high in found["price_per_gpu_usd"]:
        assert 2000 < low < mid < high < 8000
    for low, mid, high in found["network_share"]:
        assert 0.05 < low < mid < high < 0.20


def test_every_question_has_one_answer_a_candidate() -> None:
    plan = planned()
    rows = comparison(plan.candidates)
    assert len({row.key for row in rows}) == len(rows)
    assert all(len(row.values) == len(plan.candidates) for row in rows)
    assert all(row.label for row in rows)


def test_a_price_that_is_unknown_is_none() -> None:
    text = "hosts: 20\nhost: {gpus: 8, nics: 8, nic_gbps: 400}\ncandidates: [infiniband]\n"
    found = answers(planned(text))
    assert found["network_share"] == (None,)
    assert found["unpriced_lines"] == (1,)


@pytest.mark.parametrize(
    ("candidate", "hosts", "host", "gpus"),
    [
        # "256 servers (2,048 GPUs) as the 2-tier limit", apetops-us; radix 64 of QM9700.
        ("{fabric: infiniband}", 127, "dgx-h100", 2048),
        # NVIDIA RA-11334-001 V08: 64 SU of 32 nodes are 16,384; 65,536 is FT3 of DeepSeek-V3.
        ("{fabric: infiniband}", 512, "dgx-h100", 65_536),
        # NVIDIA RA-11337-001 V01, note: two tiers up to 8,192 GPUs in two planes.
        ("{fabric: roce, switch: sn5610}", 64, "dgx-b300", 8192),
        # Q3400 two-tier limit, AIDC Studio: 10,368 endpoints.
        ("{fabric: infiniband}", 72, "dgx-b300", 10_368),
        # 64 ports, two kept for the subnet managers: 7 hosts of 8 GPUs.
        ("{fabric: infiniband, topology: single}", 4, "dgx-h100", 64),
    ],
)
def test_what_fits_when_it_grows(candidate: str, hosts: int, host: str, gpus: int) -> None:
    plan = one(candidate, hosts, host)
    assert plan.most_hosts * plan.design.host.gpus == gpus
    assert answers(Plan(planned().requirement, load_catalog(), (plan,)))["most_gpus"] == (gpus,)


@pytest.mark.parametrize(
    "candidate",
    [
        "{fabric: infiniband}",
        "{fabric: infiniband, topology: single}",
        "{fabric: infiniband, topology: fat-tree, leafs: 2, manager_ports: 0}",
        "{fabric: infiniband, topology: rail-only, tiers: 1}",
        "{fabric: roce, switch: sn5600, topology: fat-tree, oversubscription: 3}",
    ],
)
def test_one_host_more_does_not_fit(candidate: str) -> None:
    plan = one(candidate, 4)
    tiers = plan.design.sized.tiers

    def tiers_of(hosts: int) -> int | None:
        spec = requirement(f"hosts: {hosts}\nhost: dgx-h100\ncandidates: [{candidate}]\n")
        wanted = plan.design.switches.leaf.name
        try:
            design = design_candidate(spec, spec.candidates[0], load_catalog())
        except InputError:
            return None
        same = design.switches.leaf.name == wanted and design.sized.kind == plan.design.sized.kind
        return design.sized.tiers if same else None

    assert tiers_of(plan.most_hosts) == tiers
    assert tiers_of(plan.most_hosts + 1) != tiers


# What cannot be built -----------------------------------------------------------------------


def test_all_candidates_that_cannot_be_built_are_told_together() -> None:
    text = (
        "gpus: 4096\nhost: dgx-h100\ncandidates:\n"
        "- {name: fine, fabric: infiniband}\n"
        "- {name: small, fabric: infiniband, tiers: 2}\n"
        "- {name: slow, fabric: roce, switch: sn4600c}\n"
    )
    with pytest.raises(InputError) as caught:
        plan_all(requirement(text), load_catalog())
    told = [str(fault) for fault in caught.value.faults]
    assert len(told) == 2
    assert "candidates[1].tiers" in told[0]
    assert "do not fit 2 tiers of qm9700" in told[0]
    assert "candidates[2]" in told[1]
    assert "sn4600c" in told[1]


def test_a_rack_that_holds_no_host_is_told_with_the_candidate() -> None:
    text = "gpus: 8\nhost: dgx-h100\nsite: {rack_power_kw: 5}\ncandidates: [infiniband, roce]\n"
    with pytest.raises(InputError) as caught:
        plan_all(requirement(text), load_catalog())
    told = [str(fault) for fault in caught.value.faults]
    assert len(told) == 2
    assert told[0].startswith('candidate "infiniband": ')
    assert told[1].startswith('candidate "roce": ')
    assert "rack_power_kw" in told[0]


def test_an_unknown_candidate_is_named_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r'Did you mean "infiniband"\?'):
        planned().candidate("infiniban")
    assert planned().candidate("roce").name == "roce"


# The file -----------------------------------------------------------------------------------

PLANS = (
    SHORTEST,
    "gpus: 64\nhost: dgx-h100\ngrowth: {gpus: 512}\ncandidates: [infiniband, roce:sn5600]\n",
    "gpus: 576\nhost: gb300-nvl72\ncandidates: [infiniband]\nsite: {currency: EUR}\n",
    (
        "hosts: 40\nhost: {gpus: 8, nics: 8, nic_gbps: 400}\nstorage: false\nmanagement: false\n"
        "candidates: [{fabric: infiniband, topology: dragonfly+}, {fabric: roce, name: r}]\n"
    ),
)


@functools.cache
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(plan_schema())


@pytest.mark.parametrize("text", PLANS)
def test_the_file_fits_its_schema_and_is_strict_json(text: str) -> None:
    content = plan_json(planned(text))
    again = json.loads(json.dumps(content, allow_nan=False))
    assert again == content
    validator().validate(again)
    assert list(content)[:2] == ["format", "format_version"]


def test_the_schema_is_closed() -> None:
    jsonschema.Draft202012Validator.check_schema(plan_schema())
    content = plan_json(planned())
    for change in (
        {"format": "something"},
        {"more": 1},
        {"candidates": [{"name": "x"}]},
        {"format_version": 2},
    ):
        wrong = {**copy.deepcopy(content), **change}
        assert not validator().is_valid(wrong)
    short = {key: value for key, value in content.items() if key != "sources"}
    assert not validator().is_valid(short)


def test_the_hash_is_that_of_the_fabric_that_is_saved() -> None:
    plan = planned()
    for candidate, facts in zip(plan.candidates, plan_json(plan)["candidates"], strict=True):
        assert facts["design"]["fabric_hash"] == candidate.fabric.content_hash
        assert (candidate.fabric.links.part >= 0).all()
        assert (candidate.fabric.hosts.rack >= 0).all()


def test_the_file_says_where_its_numbers_come_from() -> None:
    content = plan_json(planned())
    sources = content["sources"]
    sourced = {entry["device"] for entry in sources}
    billed = {line["name"] for facts in content["candidates"] for line in facts["bill"]}
    assert billed <= sourced
    assert {"media-by-length", "failure-rates"} <= sourced
    for entry in sources:
        assert entry["source"]
        assert entry["date"]
        assert entry["kind"] in get_args(Kind)
    assert len({(e["device"], e["group"], e["source"]) for e in sources}) > len(sourced)


def test_what_the_spec_leaves_open_is_an_assumption() -> None:
    open_fields = {entry["field"] for entry in plan_json(planned())["assumptions"]}
    assert {"site.cable_slack_m", "site.rack_units"} <= open_fields
    given = SHORTEST + "site: {cable_slack_m: 2.0}\n"
    fields = {entry["field"] for entry in plan_json(planned(given))["assumptions"]}
    assert fields == open_fields - {"site.cable_slack_m"}


def test_a_currency_without_a_rate_stays_open() -> None:
    assert plan_json(planned())["currency_rate"] == 1.0
    content = plan_json(planned(PLANS[2]))
    assert (content["currency"], content["currency_rate"]) == ("EUR", None)
    rated = SHORTEST + "site: {currency: CNY, currency_rate: 7.1}\n"
    assert plan_json(planned(rated))["currency_rate"] == 7.1


def test_racks_are_counted_today_and_say_when_they_stand() -> None:
    plan = planned(PLANS[1])
    content = plan_json(plan)
    (row,) = (row for row in content["comparison"] if row["key"] == "racks")
    for facts, candidate, count in zip(
        content["candidates"], plan.candidates, row["values"], strict=True
    ):
        fabric = candidate.fabric
        today = {
            str(fabric.racks.name[rack])
            for table in (fabric.hosts, fabric.switches)
            for rack, stage in zip(table.rack.tolist(), table.stage.tolist(), strict=True)
            if stage == 0
        }
        assert {rack["name"] for rack in facts["racks"] if rack["stage"] == 0} == today
        assert count == len(today) < len(facts["racks"])
        assert {rack["stage"] for rack in facts["racks"]} == {0, 1}


def test_power_that_no_catalogue_gives_names_the_rule() -> None:
    text = "hosts: 8\nhost: dgx-rubin-nvl8\ncandidates: [{fabric: roce, switch: th6-64x1600g}]\n"
    (facts,) = plan_json(planned(text))["candidates"]
    powers = [(line["category"], line["power"]) for line in facts["bill"] if line["power"]]
    assert all(power["source"] and power["date"] for _category, power in powers)
    host = dict(powers)["host"]
    assert "1,275 W a GPU" in host["source"]
    assert (host["date"], host["kind"]) == ("2024-06", "assumed")
    switch = next(power for category, power in powers if category == "switch")
    assert "67 W for each Tb/s" in switch["source"]
    assert (switch["date"], switch["kind"]) == ("2026-09", "assumed")


def test_cables_and_bill_agree() -> None:
    for facts in plan_json(planned(PLANS[1]))["candidates"]:
        laid = [
            line
            for line in facts["bill"]
            if line["section"] == "compute" and line["length_m"] is not None
        ]
        for key in ("quantity", "later"):
            assert sum(part[key] for part in facts["cables"]) == sum(line[key] for line in laid)
        total_m = sum(line["quantity"] * line["length_m"] for line in laid)
        assert sum(part["total_m"] for part in facts["cables"]) == pytest.approx(total_m)


def test_warnings_are_among_the_decisions() -> None:
    (first, _second) = plan_json(planned())["candidates"]
    assert [warning["topic"] for warning in first["warnings"]] == ["managers"]
    assert all(warning in first["decisions"] for warning in first["warnings"])


SCRIPT = """
import json
from gpufabric.catalog.load import load_catalog
from gpufabric.model.requirement import parse_requirement
from gpufabric.planner.compare import plan_all, plan_json
spec = parse_requirement(b"gpus: 256\\nhost: dgx-h100\\ncandidates: [infiniband, roce]\\n", "s")
print(json.dumps(plan_json(plan_all(spec, load_catalog()))))
"""


def test_the_same_spec_gives_the_same_bytes() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) > 10_000
