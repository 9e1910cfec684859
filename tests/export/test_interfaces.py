from __future__ import annotations

import numpy as np
import pytest

from gpufabric.export.interfaces import interface_names
from gpufabric.model.fabric import Fabric
from tests.export.designs import NDR_1024, by_hand, designed, options
from tests.model.make_fabric import Shape


def names(fabric: Fabric, switch: int, ports: list[int], nos: str = "") -> list[str]:
    first = int(fabric.switches["port_first"][switch])
    return interface_names(fabric, np.array(ports) + first, options(nos=nos))


# SN5600: one 800G port in an OSFP of 8 electrical lanes, here split in two.
SPLIT = [
    ("cumulus", ["swp1s0", "swp1s1", "swp2s0"]),
    ("sonic", ["Ethernet0", "Ethernet4", "Ethernet8"]),
    ("eos", ["Ethernet1/1", "Ethernet1/5", "Ethernet2/1"]),
    ("nxos", ["Ethernet1/1/1", "Ethernet1/1/2", "Ethernet1/2/1"]),
    ("junos", ["et-0/0/0:0", "et-0/0/0:1", "et-0/0/1:0"]),
    ("nvos", ["sw1p1s1", "sw1p1s2", "sw2p1s1"]),
]
WHOLE = [
    ("cumulus", ["swp1", "swp2"]),
    ("sonic", ["Ethernet0", "Ethernet8"]),
    ("eos", ["Ethernet1/1", "Ethernet2/1"]),
    ("nxos", ["Ethernet1/1", "Ethernet1/2"]),
    ("junos", ["et-0/0/0", "et-0/0/1"]),
    ("nvos", ["sw1p1", "sw2p1"]),
]


@pytest.mark.parametrize(("nos", "expected"), SPLIT)
def test_split_ports(nos: str, expected: list[str]) -> None:
    fabric = by_hand(Shape(generation="ethernet", lanes=2))
    assert names(fabric, 0, [0, 1, 2], nos) == expected


@pytest.mark.parametrize(("nos", "expected"), WHOLE)
def test_whole_ports(nos: str, expected: list[str]) -> None:
    fabric = by_hand(Shape(generation="ethernet", lanes=1))
    assert names(fabric, 0, [0, 1], nos) == expected


def test_a_twin_port_cage_has_two_ports_that_are_no_breakout() -> None:
    fabric = designed(NDR_1024, 0)  # QM9700: 64 ports in 32 cages
    assert names(fabric, 0, [0, 1, 2, 63]) == ["sw1p1", "sw1p2", "sw2p1", "sw32p2"]


def test_four_electrical_lanes_in_a_qsfp() -> None:
    fabric = by_hand(Shape(generation="hdr", lanes=2))  # QM8700: QSFP56
    assert names(fabric, 0, [0, 1, 2], "sonic") == ["Ethernet0", "Ethernet2", "Ethernet4"]


def test_the_vendor_chooses_the_nos() -> None:
    fabric = designed(NDR_1024, 1)
    assert fabric.models[int(fabric.switches["model"][0])] == "sn5600"
    assert names(fabric, 0, [0])[0].startswith("swp1")
    other = fabric.replace(
        models=tuple("7060x6-64pe" if m == "sn5600" else m for m in fabric.models)
    )
    assert names(other, 0, [0])[0].startswith("Ethernet1/1")
    unknown = fabric.replace(models=tuple("mystery" if m == "sn5600" else m for m in fabric.models))
    assert names(unknown, 0, [0]) == ["Ethernet0"]


def test_nics_are_named_as_in_the_design() -> None:
    fabric = by_hand(Shape(planes=2))
    ports = np.arange(int(fabric.switches["port_first"][0]))
    expected = [fabric.port_name(int(port)) for port in ports]
    assert interface_names(fabric, ports, options()) == expected
    assert expected[:3] == ["nic0p0", "nic0p1", "nic1p0"]


@pytest.mark.parametrize("nos", ["cumulus", "sonic", "eos", "nxos", "junos", "nvos"])
def test_names_are_unique_on_each_device(nos: str) -> None:
    for fabric in (designed(NDR_1024, 0), designed(NDR_1024, 1), by_hand(Shape(planes=2))):
        ports = np.arange(len(fabric.ports))
        found = interface_names(fabric, ports, options(nos=nos))
        owners = fabric.port_vertex.tolist()
        assert len(set(zip(owners, found, strict=True))) == len(ports)
