from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpufabric.model.check import check_fabric
from gpufabric.model.fabric import Fabric
from tests.model.make_fabric import Shape, make_fabric

SHAPES = [
    Shape(),
    Shape(hosts=3),
    Shape(spines=0, generation="ethernet"),
    Shape(planes=2, managers=2, radix=12, spines=3),
    Shape(hosts=124, rails=8, su_hosts=31, spines=16, radix=64),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_sound_fabric_has_no_faults(shape: Shape) -> None:
    assert check_fabric(make_fabric(shape)) == []


def put(table: str, column: str, row: int, value: Any) -> Callable[[Fabric], Fabric]:
    """Change one value."""

    def change(fabric: Fabric) -> Fabric:
        old = getattr(fabric, table)
        array = old[column].copy()
        array[row] = value
        return fabric.replace(**{table: old.replace(**{column: array})})

    return change


def head(**changes: Any) -> Callable[[Fabric], Fabric]:
    return lambda fabric: fabric.replace(**changes)


def drop(table: str) -> Callable[[Fabric], Fabric]:
    """Take away the last row."""

    def change(fabric: Fabric) -> Fabric:
        old = getattr(fabric, table)
        return fabric.replace(**{table: old.take(np.arange(len(old) - 1))})

    return change


def use_port_twice(fabric: Fabric) -> Fabric:
    return put("links", "port_a", 1, int(fabric.links.port_a[0]))(fabric)


# host00001 has NIC ports 0 and 1; the first leaf has ports 9 to 16.
FAULTS = [
    (head(protocol="token ring"), "protocol", "token ring"),
    (head(generation="ethernet"), "generation", "ethernet"),
    (head(name=""), "name", "is empty"),
    (head(name="x" * 201), "name", "too long"),
    (head(family="rail\n"), "family", "other characters"),
    (head(models=("a", "b", "a")), "models", '"a" is there twice'),
    (head(parts=("\x00",)), "parts", "other characters"),
    (head(models=("a", "b", "=cmd()")), "models", "other characters"),
    (put("hosts", "name", 1, ""), "hosts.name[1]", "empty"),
    (put("hosts", "name", 1, "a b"), "hosts.name[1]", "other characters"),
    (put("hosts", "name", 1, "a\x00b"), "hosts.name[1]", "other characters"),
    (put("hosts", "name", 1, "=cmd"), "hosts.name[1]", "other characters"),
    (put("hosts", "name", 1, '"'), "hosts.name[1]", "other characters"),
    (put("hosts", "name", 1, "主机"), "hosts.name[1]", "other characters"),
    (put("switches", "name", 0, "-x"), "switches.name[0]", "other characters"),
    (put("racks", "name", 1, " R02"), "racks.name[1]", "other characters"),
    (put("hosts", "name", 1, "host00001"), "hosts, switches", '"host00001" is there twice'),
    (put("switches", "name", 0, "host00001"), "hosts, switches", '"host00001" is there twice'),
    (put("racks", "name", 1, "R01"), "racks.name", '"R01" is there twice'),
    (put("hosts", "model", 0, 3), "hosts.model[0]", "0 to 2"),
    (put("hosts", "model", 0, -1), "hosts.model[0]", "0 to 2"),
    (put("hosts", "role", 0, 2), "hosts.role[0]", "0 to 1"),
    (put("hosts", "stage", 0, 2), "hosts.stage[0]", "0 to 1"),
    (put("hosts", "n_gpus", 0, -1), "hosts.n_gpus[0]", "0 or more"),
    (put("hosts", "rack", 0, 2), "hosts.rack[0]", "-1 to 1"),
    (put("nics", "host", 0, 5), "nics.host[0]", "0 to 4"),
    (put("nics", "host", 0, -1), "nics.host[0]", "0 to 4"),
    (put("nics", "gbps", 0, np.nan), "nics.gbps[0]", "above 0"),
    (put("nics", "gbps", 0, np.inf), "nics.gbps[0]", "above 0"),
    (put("nics", "gbps", 0, 0), "nics.gbps[0]", "above 0"),
    (put("nics", "n_ports", 0, 0), "nics.n_ports[0]", "1 or more"),
    (put("nics", "index", 1, 0), "nics.index[1]", "one NIC for each index"),
    (put("nics", "port_first", 1, 2), "nics.port_first[1]", "one after the other"),
    (put("switches", "port_first", 1, 18), "switches.port_first[1]", "one after the other"),
    (put("switches", "n_ports", 5, 7), "ports", "state 56 ports"),
    (put("switches", "tier", 0, 4), "switches.tier[0]", "1 to 3"),
    (put("switches", "plane", 0, 1), "links.plane[", "plane of its switches"),
    (drop("ports"), "links.port_b[", "0 to 55"),
    (put("ports", "device", 0, 1), "ports.device[0]", "owner of the block"),
    (put("ports", "is_switch", 0, 1), "ports.is_switch[0]", "owner of the block"),
    (put("ports", "port", 9, 1), "ports.port[9]", "place in the block"),
    (put("ports", "lane", 10, 0), "ports.lane[10]", "one port for each lane"),
    (put("ports", "use", 0, 0), "ports.use[0]", "1 for the ports that a link uses"),
    (put("ports", "use", 15, 0), "ports.use[15]", "1 for the ports that a link uses"),
    (put("ports", "use", 12, 1), "ports.use[12]", "1 for the ports that a link uses"),
    (put("ports", "use", 9, 2), "ports.use[9]", "1 for the ports that a link uses"),
    (put("ports", "gbps", 0, 200), "links.gbps[0]", "the rate of both ports"),
    (put("ports", "gbps", 9, 200), "links.gbps[0]", "the rate of both ports"),
    (put("links", "gbps", 2, -np.inf), "links.gbps[2]", "above 0"),
    (put("links", "port_a", 3, -1), "links.port_a[3]", "0 to 56"),
    (put("links", "port_b", 3, 57), "links.port_b[3]", "0 to 56"),
    (put("links", "port_b", 3, 2**31 - 1), "links.port_b[3]", "0 to 56"),
    (use_port_twice, "ports[0]", "host00001 port nic0 is used by 2 links"),
    (put("links", "tier", 0, 2), "links.tier[0]", "the tiers of the two ends"),
    (put("links", "tier", 8, 3), "links.tier[8]", "the tiers of the two ends"),
    (put("links", "plane", 0, 1), "links.plane[0]", "plane of its switches"),
    (put("hosts", "stage", 0, 1), "links.stage[0]", "not before its host"),
    (put("switches", "stage", 0, 1), "links.stage[0]", "not before its switches"),
    (put("links", "length_m", 0, np.inf), "links.length_m[0]", "finite"),
    (put("links", "length_m", 0, -1), "links.length_m[0]", "0 or more"),
    (put("links", "part", 0, 1), "links.part[0]", "-1 to 0"),
]


@pytest.mark.parametrize(("change", "where", "says"), FAULTS)
def test_each_fault_is_found_and_named(
    change: Callable[[Fabric], Fabric], where: str, says: str
) -> None:
    faults = check_fabric(change(make_fabric()))
    found = [fault for fault in faults if fault.where.startswith(where)]
    assert any(says in str(fault) for fault in found), [str(fault) for fault in faults]
    assert len(faults) <= 4


def test_faults_are_counted_and_not_repeated() -> None:
    fabric = make_fabric()
    bad = fabric.replace(links=fabric.links.replace(gbps=100.0))
    [fault] = {str(fault) for fault in check_fabric(bad)}
    assert fault == (
        "links.gbps[0]: 100.0 is wrong; rows wrong in the same way: 25 of 25. "
        "Expected: the rate of both ports."
    )


def test_impossible_code_points_are_a_fault_and_not_a_crash() -> None:
    fabric = make_fabric()
    codes = fabric.hosts["name"].copy()
    codes.view("<u4")[0] = 0x7FFFFFFF
    bad = fabric.replace(hosts=fabric.hosts.replace(name=codes))
    assert [fault.where for fault in check_fabric(bad)] == ["hosts.name[0]"]


def test_131072_gpus_are_checked() -> None:
    fabric = make_fabric(
        Shape(hosts=8192, rails=16, su_hosts=512, spines=128, radix=1024, managers=0)
    )
    assert fabric.n_gpus == 131072
    assert check_fabric(fabric) == []
