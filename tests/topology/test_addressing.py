"""Address plans of designed fabrics: nothing twice, everything in its prefix, limits told."""

from __future__ import annotations

import csv
import ipaddress
import itertools
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gpufabric.catalog.load import load_catalog
from gpufabric.core.errors import InputError
from gpufabric.core.ids import Lid
from gpufabric.model.fabric import Fabric
from gpufabric.model.requirement import parse_requirement
from gpufabric.topology.address_pools import AddressPools, ipv4_text, power_of_two
from gpufabric.topology.addressing import (
    AddressWishes,
    EthernetAddressing,
    InfinibandAddressing,
    address,
    peer_31,
)
from gpufabric.topology.design import design_candidate
from tests.model.make_fabric import Shape, make_fabric

CANDIDATES = (
    "{fabric: roce}",
    "{fabric: roce, topology: fat-tree}",
    "{fabric: roce, topology: fat-tree, oversubscription: 3}",
    "{fabric: roce, topology: rail-only}",
    "{fabric: roce, topology: multi-plane, planes: 2}",
    "{fabric: roce, topology: dragonfly+}",
    "{fabric: roce, topology: rail, tiers: 3}",
    "{fabric: roce, topology: fat-tree, tiers: 3, oversubscription: [1, 7]}",
    "{fabric: roce, manager_ports: 2, topology: rail, leafs: 32}",
)
INFINIBAND = (
    "{fabric: infiniband}",
    "{fabric: infiniband, topology: rail-only}",
    "{fabric: infiniband, topology: multi-plane, planes: 4}",
    "{fabric: infiniband, topology: rail, tiers: 3}",
)


def fabric_of(candidate: str, hosts: int, growth: int = 0) -> Fabric:
    text = f"hosts: {hosts}\nhost: dgx-h100\ncandidates: [{candidate}]\n"
    if growth:
        text += f"growth: {{hosts: {growth}}}\n"
    requirement = parse_requirement(text.encode(), "spec.yaml")
    return design_candidate(requirement, requirement.candidates[0], load_catalog()).fabric


def drawn(candidate: str, hosts: int) -> Fabric:
    """Fabric of a drawn size; draws that no network holds are left out."""
    try:
        return fabric_of(candidate, hosts)
    except InputError:
        assume(False)
        raise


def ethernet(fabric: Fabric, **wishes: Any) -> EthernetAddressing:
    plan = address(fabric, AddressWishes(**wishes))
    assert isinstance(plan, EthernetAddressing)
    return plan


def infiniband(fabric: Fabric, lmc: int = 0) -> InfinibandAddressing:
    plan = address(fabric, AddressWishes(lmc=lmc))
    assert isinstance(plan, InfinibandAddressing)
    return plan


def lids(plan: InfinibandAddressing) -> list[tuple[int, int]]:
    return list(zip(plan.port.tolist(), plan.port_lid.tolist(), strict=True))


def networks(rows: list[dict[str, Any]], column: str) -> list[ipaddress.IPv4Network]:
    return [ipaddress.ip_network(row[column]) for row in rows]


def overlapping(prefixes: list[ipaddress.IPv4Network]) -> bool:
    ordered = sorted(prefixes)
    return any(a.overlaps(b) for a, b in itertools.pairwise(ordered))


@given(st.sampled_from(CANDIDATES), st.integers(1, 300))
@settings(max_examples=40)
def test_no_address_is_given_twice(candidate: str, hosts: int) -> None:
    fabric = drawn(candidate, hosts)
    plan = ethernet(fabric)
    every = np.concatenate(
        [plan.loopback_ipv4, plan.lower_ipv4, plan.upper_ipv4, plan.nic_ipv4, plan.gateway_ipv4]
    )
    assert len(every) == len(fabric.switches) + 2 * len(fabric.links)
    assert len(np.unique(every)) == len(every)
    links = np.concatenate([plan.upper_ipv4, plan.gateway_ipv4])
    assert len(np.unique(links >> 1)) == len(fabric.links), "one /31 a link, parallel ones too"
    for use in plan.use:
        assert use.used <= use.capacity


@given(st.sampled_from(CANDIDATES), st.integers(1, 100))
@settings(max_examples=20)
def test_both_families_agree_and_stay_in_their_pools(candidate: str, hosts: int) -> None:
    fabric = drawn(candidate, hosts)
    plan = ethernet(fabric)
    pools = plan.pools
    for row in plan.switch_rows(fabric):
        assert ipaddress.ip_network(row["ipv4"]).subnet_of(pools.loopbacks)
        assert ipaddress.ip_network(row["ipv6"]).subnet_of(pools.ipv6_loopbacks)
    for row in plan.link_rows(fabric):
        for family, pool in (("ipv4", pools.links), ("ipv6", pools.ipv6_links)):
            lower = ipaddress.ip_interface(row[f"lower_{family}"])
            upper = ipaddress.ip_interface(row[f"upper_{family}"])
            assert lower.network == upper.network
            assert lower.ip == upper.ip + 1
            assert lower.network.subnet_of(pool)
    for row in plan.host_rows(fabric):
        for family in ("ipv4", "ipv6"):
            nic = ipaddress.ip_interface(row[family])
            gateway = ipaddress.ip_address(row[f"gateway_{family}"])
            assert gateway in nic.network
            assert gateway != nic.ip


@given(st.sampled_from(CANDIDATES), st.integers(1, 200))
@settings(max_examples=30)
def test_hosts_are_in_the_prefix_of_their_leaf_and_rail(candidate: str, hosts: int) -> None:
    fabric = drawn(candidate, hosts)
    plan = ethernet(fabric)
    rails, subnets = list(plan.rail_rows()), list(plan.subnet_rows(fabric))
    assert not overlapping(networks(rails, "ipv4"))
    assert not overlapping(networks(subnets, "ipv4"))
    of_rail = {
        (row["plane"], row["rail"]): ipaddress.ip_network(row["ipv4"], strict=True) for row in rails
    }
    of_leaf = {
        (row["leaf"], row["plane"], row["rail"]): ipaddress.ip_network(row["ipv4"])
        for row in subnets
    }
    counted: Counter[tuple[int, int]] = Counter()
    for row in plan.host_rows(fabric):
        nic = ipaddress.ip_interface(row["ipv4"])
        place = row["plane"], row["rail"]
        assert nic.ip in of_leaf[row["leaf"], *place]
        assert of_leaf[row["leaf"], *place].subnet_of(of_rail[place])
        counted[place] += 1
    assert counted == {(row["plane"], row["rail"]): row["ports"] for row in rails}
    assert all(row["ports"] <= row["capacity"] for row in rails)


@given(st.sampled_from(CANDIDATES), st.integers(1, 300))
@settings(max_examples=40)
def test_every_session_is_external(candidate: str, hosts: int) -> None:
    fabric = drawn(candidate, hosts)
    plan = ethernet(fabric)
    switches, ports, links = fabric.switches, fabric.ports, fabric.links
    leafs = switches.tier == 1
    assert len(set(plan.asn[leafs].tolist())) == int(leafs.sum())
    lower = ports.device[links.port_a[plan.link]]
    upper = ports.device[links.port_b[plan.link]]
    assert (plan.asn[lower] != plan.asn[upper]).all()
    groups = {
        (plane, pod, rail if fabric.family == "rail-only" else 0)
        for plane, pod, rail in zip(
            switches.plane[~leafs & (switches.tier == 2)].tolist(),
            switches.pod[~leafs & (switches.tier == 2)].tolist(),
            switches.rail[~leafs & (switches.tier == 2)].tolist(),
            strict=True,
        )
    }
    assert len(set(plan.asn[switches.tier == 2].tolist())) == len(groups)
    assert plan.asn.min() >= 4_200_000_000
    assert plan.asn.max() <= 4_294_967_294


def test_cores_of_one_plane_share_a_number_and_pods_do_not() -> None:
    fabric = fabric_of("{fabric: roce, topology: rail, tiers: 3, pod_hosts: 64}", 256)
    plan = ethernet(fabric)
    by_tier = {tier: set(plan.asn[fabric.switches.tier == tier].tolist()) for tier in (2, 3)}
    assert by_tier[3] == {4_200_000_000}
    assert len(by_tier[2]) == len(set(fabric.switches.pod[fabric.switches.tier == 2].tolist())) > 1


def test_two_cables_between_a_leaf_and_a_spine_have_two_subnets() -> None:
    """aristanetworks/avd#1054: the same /31 was used again for a second cable."""
    fabric = make_fabric(Shape(generation="ethernet"))
    plan = ethernet(fabric)
    rows = list(plan.link_rows(fabric))
    pairs = Counter((row["lower"], row["upper"]) for row in rows)
    assert max(pairs.values()) > 1, "the fabric has parallel links"
    subnets = [ipaddress.ip_interface(row["upper_ipv4"]).network for row in rows]
    assert len(set(subnets)) == len(rows)


def test_the_peer_of_an_odd_address_is_the_even_one(shared: Path) -> None:
    """Gateways that must be reported in case 24, and those that were right."""
    right = {
        "benic1": "192.168.1.1",
        "benic2": "192.168.2.0",
        "benic3": "192.168.3.5",
        "benic4": "192.168.4.4",
        "benic5": "192.168.5.7",
    }
    folder = shared / "cases/24-slash31-peer-or-instead-of-xor"
    with (folder / "routes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    own = np.array([int(ipaddress.ip_address(row["ip"])) for row in rows], np.uint32)
    found = dict(zip((row["nic"] for row in rows), ipv4_text(peer_31(own)), strict=True))
    assert found == right


def test_equal_nics_of_all_hosts_are_in_one_prefix() -> None:
    """NVIDIA/nccl#1755: one host whose addresses were exchanged broke every job with it."""
    fabric = fabric_of("{fabric: roce}", 150)
    plan = ethernet(fabric)
    by_rail: dict[int, set[int]] = {}
    size = plan.hosts.rails[0].size
    for row in plan.host_rows(fabric):
        at = int(ipaddress.ip_interface(row["ipv4"]).ip) // size
        by_rail.setdefault(row["nic"], set()).add(at)
    assert sorted(by_rail) == list(range(8))
    assert all(len(prefixes) == 1 for prefixes in by_rail.values())
    assert len({min(prefixes) for prefixes in by_rail.values()}) == 8


def test_the_worked_number_of_the_documentation() -> None:
    plan = ethernet(fabric := fabric_of("{fabric: roce, switch: sn5600}", 128))
    assert list(plan.rail_rows())[3]["ipv4"] == "10.0.3.0/24"
    second = [row for row in plan.subnet_rows(fabric) if row["rail"] == 3][1]
    assert second["ipv4"] == "10.0.3.128/25"
    row = next(row for row in plan.host_rows(fabric) if row["leaf"] == second["leaf"])
    assert (row["host"], row["ipv4"]) == ("host-065", "10.0.3.129/31")
    assert row["gateway_ipv4"] == "10.0.3.128"
    assert {use.name: use.used for use in plan.use}["hosts"] == 2048


def test_unnumbered_links_take_no_address() -> None:
    fabric = fabric_of("{fabric: roce}", 150)
    plan = ethernet(fabric, links="unnumbered")
    assert plan.link_offset is None
    assert not len(plan.upper_ipv4)
    assert {row.name: row.used for row in plan.use}["links"] == 0
    assert all("upper_ipv4" not in row for row in plan.link_rows(fabric))
    assert plan.to_json(fabric)["link_addresses"] == "unnumbered"


def test_a_pool_that_runs_out_is_told_with_the_remedy() -> None:
    fabric = fabric_of("{fabric: roce, switch: sn5600}", 150)
    small = AddressPools(
        hosts=ipaddress.IPv4Network("10.0.0.0/22"),
        links=ipaddress.IPv4Network("10.1.0.0/24"),
        loopbacks=ipaddress.IPv4Network("10.2.0.0/28"),
        spine_asn=4_200_000_001,
        leaf_asn=4_294_967_290,
    )
    with pytest.raises(InputError) as caught:
        ethernet(fabric, pools=small)
    faults = {fault.where: str(fault) for fault in caught.value.faults}
    assert sorted(faults) == ["pools.hosts", "pools.leaf_asn", "pools.links", "pools.loopbacks"]
    assert "10.1.0.0/24 has 256 addresses, and the plan takes 1,536." in faults["pools.links"]
    assert "leave the links unnumbered" in faults["pools.links"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"links": ipaddress.IPv4Network("10.0.0.0/16")}, "10.0.0.0/16 overlaps 10.0.0.0/9"),
        ({"ipv6": ipaddress.IPv6Network("fd00::/63")}, "fd00::/63 is too small"),
        ({"leaf_asn": 65_000}, "do not rise"),
    ],
)
def test_wrong_pools_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        AddressPools(**changed)


def test_every_site_has_its_own_ipv6_prefix() -> None:
    first, again, other = (AddressPools.for_site(name).ipv6 for name in ("a/ib", "a/ib", "b/ib"))
    assert first == again != other
    assert first.subnet_of(ipaddress.IPv6Network("fd00::/8"))


@given(st.integers(0, 2**20))
def test_rounding_up_to_a_power_of_two(number: int) -> None:
    size = power_of_two(number)
    assert size >= number
    assert size.bit_count() == 1
    assert size == 1 or size // 2 < number


@given(st.sampled_from(INFINIBAND), st.integers(1, 300), st.integers(0, 3))
@settings(max_examples=40)
def test_lids_are_unicast_aligned_and_given_once(candidate: str, hosts: int, lmc: int) -> None:
    fabric = drawn(candidate, hosts)
    plan = infiniband(fabric, lmc)
    links = fabric.links.tier == 1
    assert sorted(plan.port) == sorted(fabric.links.port_a[links])
    assert (plan.port_lid % (1 << lmc) == 0).all()
    assert sum(subnet.n_needed for subnet in plan.subnets) >= len(plan.port) << lmc
    switches = fabric.switches
    alone = fabric.family == "rail-only"
    networks_of = list(
        zip(
            switches.plane.tolist(),
            switches.rail.tolist() if alone else [-1] * len(switches),
            strict=True,
        )
    )
    leaf_of = dict(
        zip(
            fabric.links.port_a[links].tolist(),
            fabric.ports.device[fabric.links.port_b[links]].tolist(),
            strict=True,
        )
    )
    given_to = [
        *((networks_of[leaf_of[port]], lid, 1 << lmc) for port, lid in lids(plan)),
        *zip(networks_of, plan.switch_lid.tolist(), [1] * len(switches), strict=True),
    ]
    taken: dict[tuple[int, int], list[int]] = {}
    for network, lid, count in given_to:
        taken.setdefault(network, []).extend(range(lid, lid + count))
    assert all(len(set(mine)) == len(mine) for mine in taken.values())
    assert len(taken) == len(plan.subnets)
    assert all(Lid(lid).is_unicast for mine in taken.values() for lid in mine)
    assert len({subnet.prefix for subnet in plan.subnets}) == len(plan.subnets)


def test_descriptions_name_host_and_nic() -> None:
    fabric = fabric_of("{fabric: infiniband}", 31)
    plan = infiniband(fabric)
    rows = list(plan.port_rows(fabric))
    assert rows[0]["description"] == "host-01 mlx5_0"
    assert len({(row["description"], row["port"]) for row in rows}) == len(rows) == 31 * 8 + 4
    assert max(len(row["description"]) for row in rows) <= 64
    ranges = {part.role: part.text for part in plan.subnets[0].ranges}
    assert ranges == {
        "switch": "0x0001-0x000c",
        "manager": "0x000d-0x0010",
        "host": "0x0011-0x0108",
    }
    assert not plan.decisions


def test_more_ports_than_lids_is_a_warning() -> None:
    fabric = fabric_of("{fabric: infiniband}", 8192)
    plan = infiniband(fabric)
    (warning,) = plan.decisions
    assert warning.is_warning
    assert "needs 70,656 unicast LIDs with LMC 0, and a subnet has 49,151" in warning.why
    assert "more planes" in warning.why
    assert not plan.port_lid.any()
    assert next(plan.port_rows(fabric))["lid"] == ""


def test_an_lmc_that_takes_too_many_lids_is_to_be_lowered() -> None:
    fabric = fabric_of("{fabric: infiniband}", 2048)
    assert not infiniband(fabric, 1).decisions
    (warning,) = infiniband(fabric, 2).decisions
    assert "Lower the LMC." in warning.why


@pytest.mark.parametrize("lmc", [-1, 8])
def test_an_lmc_out_of_range_is_refused(lmc: int) -> None:
    with pytest.raises(InputError, match=f"lmc: {lmc} found. Expected: 0 to 7"):
        address(fabric_of("{fabric: infiniband}", 4), AddressWishes(lmc=lmc))


def test_separate_networks_have_their_own_subnet_prefix() -> None:
    plan = infiniband(fabric_of("{fabric: infiniband, topology: rail-only}", 16))
    assert [str(subnet.prefix) for subnet in plan.subnets] == [
        f"0xfe8000000000000{number}" for number in range(1, 9)
    ]
    assert [row.name for row in plan.use] == [f"lids-p0-r{rail}" for rail in range(8)]


def test_growth_changes_no_address() -> None:
    grown = fabric_of("{fabric: roce}", 100, growth=200)
    later = fabric_of("{fabric: roce}", 200)
    of_today = list(ethernet(grown).host_rows(grown))
    at_once = list(ethernet(later).host_rows(later))
    assert [row["ipv4"] for row in of_today] == [row["ipv4"] for row in at_once]


def test_131_072_gpus_in_seconds() -> None:
    fabric = fabric_of("{fabric: roce}", 16_384)
    begin = time.perf_counter()
    plan = ethernet(fabric)
    assert time.perf_counter() - begin < 5, "measured: 0.03 s"
    assert sum(subnet.n_ports for subnet in plan.hosts.rails) == 131_072
