"""Bills of materials against published ones, and against a slow count of every cage."""

from __future__ import annotations

import functools
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from gpufabric.catalog.groups import Range
from gpufabric.catalog.load import load_catalog
from gpufabric.core.errors import InputError
from gpufabric.model.requirement import parse_requirement
from gpufabric.planner.plan import CandidatePlan, plan_all
from gpufabric.topology.bill import Bill
from gpufabric.topology.bill_devices import host_lines, manager_line, switch_line
from gpufabric.topology.bom import CONTROLLER
from gpufabric.topology.design import MANAGER_MODEL, design_candidate
from gpufabric.topology.spares import spares_of, with_spares
from gpufabric.topology.storage_network import design_storage

MANAGERS = (CONTROLLER, MANAGER_MODEL)
FAMILIES = (
    "{fabric: infiniband}",
    "{fabric: infiniband, fill_cages: true}",
    "{fabric: infiniband, topology: rail-only}",
    "{fabric: infiniband, topology: dragonfly+}",
    "{fabric: roce, switch: sn5600}",
    "{fabric: roce, switch: sn5600, topology: fat-tree, oversubscription: 3}",
    "{fabric: roce, switch: sn5600, topology: multi-plane, planes: 2}",
    "{fabric: roce, switch: sn5600, topology: dual-tor}",
    "{fabric: roce, switch: sn5600, topology: rail, tiers: 3}",
)


@functools.cache
def planned(candidate: str, hosts: int, host: str = "dgx-h100", more: str = "") -> CandidatePlan:
    text = f"hosts: {hosts}\nhost: {host}\ncandidates: [{candidate}]\n{more}"
    (plan,) = plan_all(parse_requirement(text.encode(), "spec.yaml"), load_catalog()).candidates
    return plan


def drawn(candidate: str, hosts: int) -> CandidatePlan:
    """Plan of a drawn size; draws that no network holds are left out."""
    try:
        return planned(candidate, hosts)
    except InputError:
        assume(False)
        raise


def pieces(bill: Bill, section: str, *categories: str) -> int:
    return sum(bill.count(section, category) for category in categories)


# Published bills ----------------------------------------------------------------------------


@pytest.mark.parametrize("fill", ["true", "false"])
def test_the_bill_of_the_h100_superpod(shared: Path, fill: str) -> None:
    """NVIDIA RA-11333-001 V11, Tables 7 and 8: 4 SU, 127 nodes.

    Twin-port modules are bought whole for each switch, and 31 host links of a leaf take 16: so
    every cage is filled even where nobody asks for it, and half of the link ends (1,534) is not
    a number that can be bought.
    """
    published = YAML(typ="safe").load(shared / "reference/reference_architectures.yaml")
    (entry,) = (e for e in published["architectures"] if e["id"] == "nvidia-superpod-h100")
    expected = entry["cable_bill_4su"]
    bill = planned(f"{{fabric: infiniband, fill_cages: {fill}}}", 127).bill
    ends = {use: bill.count("compute", "transceiver", use) for use in ("switch-end", "host-end")}
    assert ends["switch-end"] == expected["compute_switch_transceivers"] == 1536
    assert ends["host-end"] == expected["compute_node_transceivers"] == 508
    by_use = {
        use: bill.count("compute", use=use) for use in ("host_leaf", "leaf_spine", "manager_leaf")
    }
    assert by_use == {"host_leaf": 1016, "leaf_spine": 1024, "manager_leaf": 2}
    assert sum(by_use.values()) == expected["compute_ib_cables"] == 2042
    assert pieces(bill, "compute", "switch") == 48
    managers = bill.count("compute", "manager") + bill.count("storage", "manager")
    assert managers == entry["ufm_appliances"] == 4


def test_the_parts_are_those_of_the_published_bill() -> None:
    """Table 8 of the same: all multimode.

    980-9I510 is MMA4Z00-NS, 980-9I51A its flat form, 980-9I570 MFP7E10 and 980-9I557 MFP7E20.
    """
    bill = planned("{fabric: infiniband}", 127).bill
    names = {(line.use, line.name) for line in bill.of("compute") if line.category != "switch"}
    assert ("switch-end", "mma4z00-ns") in names
    assert ("host-end", "mma4z00-ns-flt") in names
    assert {name for use, name in names if use in ("host_leaf", "leaf_spine")} == {"mfp7e10-n"}
    assert {name for use, name in names if use == "manager_leaf"} == {"mfp7e20-n"}


@pytest.mark.parametrize(("hosts", "cages", "between"), [(4, 16, 8), (8, 32, 16)])
def test_the_bills_of_the_basepod(hosts: int, cages: int, between: int) -> None:
    """NVIDIA RA-11127-001 V5, Table 4.2: twin-port modules and copper between two switches."""
    extra = "" if hosts == 4 else ", manager_ports: 0"
    bill = planned(f"{{fabric: infiniband, topology: fat-tree, leafs: 2{extra}}}", hosts).bill
    assert pieces(bill, "compute", "switch") == 2
    assert bill.count("compute", "transceiver", "host-end") == cages
    assert bill.count("compute", "transceiver", "switch-end") == cages
    assert bill.count("compute", "dac", "leaf_leaf") == between


def test_the_storage_fabric_of_the_superpod(shared: Path) -> None:
    """NVIDIA RA-11334-001 V08: 8 leafs and 4 spines of QM9700 for 4 SU."""
    published = YAML(typ="safe").load(shared / "reference/reference_architectures.yaml")
    (entry,) = (e for e in published["architectures"] if e["id"] == "nvidia-superpod-b200")
    expected = entry["storage_fabric_4su"]
    bill = planned("{fabric: infiniband}", 127, "dgx-b200").bill
    for use in ("leaf", "spine"):
        (line,) = bill.of("storage", "switch", use)
        assert line.quantity == expected[use]
        assert line.name == expected["switch"].lower()
    assert bill.count("storage", "transceiver", "host-end") == 254, "RA-11333-001 V11, Table 8"
    assert bill.count("compute", "switch") == 48, "storage switches are not among them"


def test_the_management_switches_of_the_superpod() -> None:
    """RA-11333-001 V11 has 8 SN2201 (RA-11334-001 V08 has 16: one design fills them less)."""
    bill = planned("{fabric: infiniband}", 127).bill
    (line,) = bill.of("management", "switch")
    assert (line.name, line.quantity) == ("sn2201", 8)
    assert bill.count("management", "cat6") == pytest.approx(315, rel=0.06), "Table 8: 317 of 1G"


def test_a_dual_plane_cable_is_two_fibres_of_one_module() -> None:
    """RA-11337-001 V01 Table 3, 1 SU: 512 cables of 800G (2x400G) between hosts and leafs."""
    bill = planned("{fabric: roce, switch: sn5610}", 64, "dgx-b300").bill
    assert bill.count("compute", "switch") == 16 + 8
    assert bill.count("compute", use="host_leaf") == 2 * 512
    assert bill.count("compute", "transceiver", "host-end") == 512


def test_the_power_of_48_switches() -> None:
    """prices_recommended.csv: 48 QM9700 at 1.72 kW are 83 kW beside 127 hosts of 10.2 kW."""
    bill = planned("{fabric: infiniband}", 127).bill
    managers_w = 2 * 689
    assert bill.power("compute").max_w - managers_w == pytest.approx(83_000, rel=0.01)
    assert bill.power("hosts").max_w == 127 * 10_200
    typical_w = bill.power("compute").typical_w
    assert 48 * 747 + 1536 * 15 < typical_w < 48 * 1720, "passive figures and modules"


# A slow count -------------------------------------------------------------------------------


@given(st.sampled_from(FAMILIES), st.integers(1, 150))
@settings(max_examples=40)
def test_modules_and_cables_are_counted_one_by_one(candidate: str, hosts: int) -> None:
    plan = drawn(candidate, hosts)
    fabric, media = plan.fabric, plan.cabling.media
    modules: dict[tuple[int, int], str] = {}
    fibres: dict[int, int] = {}
    for port_a, port_b, part, cable in zip(
        fabric.links.port_a.tolist(),
        fabric.links.port_b.tolist(),
        fabric.links.part.tolist(),
        fabric.links.cable.tolist(),
        strict=True,
    ):
        fibres[cable] = media[part].cables_per_link
        for port, module in ((port_a, media[part].module_a), (port_b, media[part].module_b)):
            vertex = int(fabric.port_vertex[port])
            is_manager = vertex < len(fabric.hosts) and fabric.hosts.role[vertex] == 1
            if module is not None and not is_manager:
                place = vertex, int(fabric.ports.cage[port])
                assert modules.setdefault(place, module.name) == module.name
    counted = Counter(
        (name, "host-end" if place[0] < len(fabric.hosts) else "switch-end")
        for place, name in modules.items()
    )
    billed = Counter(
        {
            (line.name, line.use): line.quantity - _filling(plan, line.name)
            for line in plan.bill.of("compute", "transceiver")
            if line.use != "manager-end"
        }
    )
    assert +billed == counted
    cables = [line for line in plan.bill.of("compute") if line.length_m is not None]
    assert sum(line.quantity for line in cables) == sum(fibres.values())


def _filling(plan: CandidatePlan, name: str) -> int:
    """Modules in cages without a link: those that the switches have beyond the used cages."""
    if not plan.candidate.fill_cages or name != "mma4z00-ns":
        return 0
    fabric = plan.fabric
    port = [*fabric.links.port_a.tolist(), *fabric.links.port_b.tolist()]
    used = {
        (int(fabric.ports.device[p]), int(fabric.ports.cage[p]))
        for p in port
        if fabric.ports.is_switch[p]
    }
    return 32 * len(fabric.switches) - len(used)


def test_filling_every_cage_adds_what_is_empty() -> None:
    plain = planned("{fabric: infiniband, manager_ports: 0}", 20).bill
    filled = planned("{fabric: infiniband, manager_ports: 0, fill_cages: true}", 20).bill
    cages = 32 * plain.count("compute", "switch")
    copper = 2 * plain.count("compute", "dac", "leaf_spine")
    assert copper, "a copper cable fills a cage at both ends"
    assert filled.count("compute", "transceiver", "switch-end") == cages - copper
    assert plain.count("compute", "transceiver", "switch-end") < cages - copper
    (line,) = filled.of("compute", "transceiver", "switch-end")
    assert "in cages without one" in line.note


# What a line says ---------------------------------------------------------------------------


@pytest.mark.parametrize("candidate", FAMILIES)
def test_every_line_can_be_traced(candidate: str) -> None:
    catalog = load_catalog()
    for line in planned(candidate, 40).bill.lines:
        device = catalog.device(line.name)
        assert line.title == device.title
        assert line.quantity > 0
        assert line.is_priced
        for group in (line.price, line.power):
            if group is not None:
                assert group.source
                assert group.date
                assert group.kind


def test_the_power_of_every_device_has_a_source_and_a_date() -> None:
    catalog = load_catalog()
    nic = catalog.nic("connectx-7")
    lines = [host_lines(host, nic, (1, 1))[0] for host in catalog.hosts.values()]
    lines += [switch_line("compute", "leaf", s, (1, 1)) for s in catalog.switches.values()]
    lines += [manager_line("compute", name, (1, 1), catalog) for name in ("ufm-9", *MANAGERS)]
    for line in lines:
        power = line.power
        assert power is not None
        assert power.source
        assert re.fullmatch(r"\d{4}(-\d\d){0,2}(\.\.[\d-]+)?", power.date), line.name
    unknown = [name for name, switch in catalog.switches.items() if switch.power is None]
    kinds = {line.name: line.power.kind for line in lines if line.power is not None}
    assert {kinds[name] for name in (*unknown, "ufm-9")} == {"assumed"}


def test_nics_are_part_of_the_hosts_price_or_are_not() -> None:
    (included,) = planned("{fabric: infiniband}", 20).bill.of("hosts", "nic")
    assert (included.quantity, included.price, included.included_in) == (160, None, "host")
    host = "{gpus: 8, nics: 8, nic_gbps: 400}"
    (apart,) = planned("{fabric: infiniband}", 20, host).bill.of("hosts", "nic")
    assert apart.price is not None
    assert apart.included_in == ""


def test_an_unknown_price_is_none() -> None:
    host = "{gpus: 8, nics: 8, nic_gbps: 400}"
    (line,) = planned("{fabric: infiniband}", 20, host).bill.of("hosts", "host")
    assert line.price is None
    assert not line.is_priced


def test_growth_is_bought_later() -> None:
    candidate = "{fabric: infiniband, manager_ports: 0}"
    grown = planned(candidate, 30, more="growth: {hosts: 100}\n").bill
    at_once = planned(candidate, 100).bill
    assert grown.count("hosts", "host") == 30
    for section in ("hosts", "compute", "storage"):
        both = Counter[tuple[str, str]]()
        for line in grown.of(section):
            both[line.name, line.use] += line.quantity + line.later
        whole = Counter[tuple[str, str]]()
        for line in at_once.of(section):
            whole[line.name, line.use] += line.quantity
        assert both == whole


def test_networks_that_are_not_wanted_are_not_billed() -> None:
    bill = planned("{fabric: infiniband}", 20, more="storage: false\nmanagement: false\n").bill
    assert {line.section for line in bill.lines} == {"hosts", "compute"}


def test_a_host_without_known_storage_ports_is_told() -> None:
    bill = planned("{fabric: infiniband}", 8, "dgx-rubin-nvl8").bill
    assert not bill.of("storage")
    (warning,) = (decision for decision in bill.decisions if decision.is_warning)
    assert "The storage ports of dgx-rubin-nvl8 are unknown." in warning.why


@pytest.mark.parametrize(
    ("asked", "ports", "is_warning"), [(200, 1, False), (401, 2, False), (1700, 4, True)]
)
def test_storage_bandwidth_of_the_spec(asked: int, ports: int, is_warning: bool) -> None:
    plan = planned("{fabric: infiniband}", 40, more=f"storage: {{gbps_per_host: {asked}}}\n")
    assert plan.bill.count("storage", use="host_leaf") == 40 * ports
    (decision,) = (d for d in plan.bill.decisions if d.topic == "storage ports")
    assert decision.is_warning is is_warning


@given(st.integers(1, 2000), st.sampled_from(["dgx-h100", "dgx-a100", "gb200-nvl72", "mi300x"]))
@settings(max_examples=30)
def test_a_storage_network_has_ports_for_all(hosts: int, host: str) -> None:
    fabric = "roce" if host == "mi300x" else "infiniband"
    text = f"hosts: {hosts}\nhost: {host}\ncandidates: [{{fabric: {fabric}}}]\n"
    requirement = parse_requirement(text.encode(), "spec.yaml")
    catalog = load_catalog()
    try:
        design = design_candidate(requirement, requirement.candidates[0], catalog)
    except InputError:
        assume(False)
    storage, _why = design_storage(design, requirement.storage, catalog)
    assert storage is not None
    ports = storage.switch.port_count_at(storage.gbps) or 0
    now = storage.today
    assert now == storage.later
    assert now.host_leaf == hosts * storage.ports_per_host
    assert now.free_ports >= now.leaf * ports // 8
    assert now.leaf * ports >= now.host_leaf + now.free_ports
    up_gbps = now.leaf_spine * storage.uplink_gbps
    if now.spine:
        assert up_gbps >= now.host_leaf * storage.gbps * 3 / 4 * 0.999
        assert now.spine >= 2


# Spares -------------------------------------------------------------------------------------

RATE = Range(low=0.001, high=0.01, use=0.004, source="x", date="2026", kind="assumed")


@pytest.mark.parametrize(
    ("quantity", "rate", "share_pct", "spares"),
    [
        (1000, RATE, None, 4),
        (1001, RATE, None, 5),
        (50, RATE, None, 1),
        (49, RATE, None, 0),
        (130, None, None, 1),
        (49, None, None, 0),
        (100, RATE, 2.0, 2),
        (101, RATE, 2.0, 3),
        (1, RATE, 0.0, 0),
        (3, RATE, 50.0, 2),
    ],
)
def test_spares(quantity: int, rate: Range | None, share_pct: float | None, spares: int) -> None:
    assert spares_of(quantity, rate, share_pct) == spares


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_more_pieces_never_need_fewer_spares(first: int, second: int) -> None:
    low, high = sorted((first, second))
    assert spares_of(low, RATE) <= spares_of(high, RATE) <= max(1, high)


def test_spares_are_reckoned_over_all_lines_of_a_thing() -> None:
    plan = planned("{fabric: infiniband}", 127, more="spares_pct: 10\n")
    leaf, spine = plan.bill.of("compute", "switch")
    assert (leaf.spares, spine.spares) == (5, 0), "10 % of 48, rounded up"
    assert not any(line.spares for line in plan.bill.of("hosts"))
    again = with_spares(plan.bill.lines, {}, None)
    assert not any(line.spares for line in again), "no rate, no spares"


def test_lengths_of_one_part_share_their_spares_and_the_longest_is_kept() -> None:
    bill = planned("{fabric: roce}", 8, "hgx-h100", "site: {rack_power_kw: 21}\n").bill
    cables = bill.of("compute", use="host_leaf")
    by_length = {line.length_m: (line.quantity, line.spares) for line in cables}
    assert by_length == {5.0: (48, 0), 10.0: (16, 1)}, "64 cables of one part"


def test_lengths_that_are_bought_later_keep_no_spares_today() -> None:
    (line, *_rest) = planned("{fabric: roce}", 8, "hgx-h100").bill.of("compute", use="host_leaf")
    lines = [
        replace(line, quantity=quantity, later=later, length_m=length_m)
        for quantity, later, length_m in ((40, 0, 3.0), (20, 0, 5.0), (0, 90, 7.0))
    ]
    spares = [kept.spares for kept in with_spares(lines, {line.name: RATE}, None)]
    assert spares == [0, 1, 0]
