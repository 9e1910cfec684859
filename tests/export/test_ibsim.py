from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpufabric.core.errors import InputError, UnsupportedError
from gpufabric.export import export_fabric
from gpufabric.export.ibsim import ibsim_netlist, node_description
from gpufabric.model.fabric import Fabric
from tests.export.designs import (
    NDR_1024,
    PLANES,
    RAIL_ONLY,
    SMALL,
    End,
    by_hand,
    designed,
    grown,
    links,
    options,
)
from tests.export.subnet import cables, running
from tests.model.make_fabric import Shape, make_fabric

PROGRAMS = ("opensm", "ibsim", "ibnetdiscover", "libumad2sim")


def expected(fabric: Fabric, stage: int = 0) -> set[frozenset[tuple[str, int]]]:
    """Our links as (node description, port from 1) at both ends."""

    def named(end: End) -> tuple[str, int]:
        if end.nic is None:
            return end.device, end.port + 1
        n_ports = next(
            int(n)
            for host, index, n in zip(
                fabric.hosts["name"][fabric.nics["host"]],
                fabric.nics["index"],
                fabric.nics["n_ports"],
                strict=True,
            )
            if host == end.device and index == end.nic
        )
        return f"{end.device} mlx5_{end.nic * n_ports + end.port}", 1

    return {frozenset([named(a), named(b)]) for a, b, _ in links(fabric, stage)}


def quick_expected(fabric: Fabric) -> set[frozenset[tuple[str, int]]]:
    """The same for fabrics whose NICs have one port."""
    assert (fabric.nics["n_ports"][fabric.nics["rail"] >= 0] == 1).all()  # managers have one NIC
    return {
        frozenset(
            (end.device, end.port + 1)
            if end.nic is None
            else (f"{end.device} mlx5_{end.nic + end.port}", 1)
            for end in (a, b)
        )
        for a, b, _ in links(fabric)
    }


@pytest.mark.parametrize("shape", [SMALL, PLANES, RAIL_ONLY, Shape(generation="hdr")])
def test_the_netlist_has_our_links_and_no_others(shape: Shape) -> None:
    fabric = by_hand(shape)
    found = [cables(text) for text in ibsim_netlist(fabric, options()).values()]
    together = {link for subnet in found for link in subnet}
    assert together == expected(fabric)
    assert sum(map(len, found)) == len(fabric.links)


@settings(max_examples=40)
@given(
    shape=st.builds(
        Shape,
        hosts=st.integers(1, 8),
        rails=st.integers(1, 3),
        su_hosts=st.integers(4, 5),
        planes=st.sampled_from([1, 2, 4]),
        spines=st.sampled_from([0, 4, 8]),
        radix=st.just(16),
        managers=st.integers(0, 2),
        generation=st.sampled_from(["hdr", "ndr", "xdr"]),
    )
)
def test_any_netlist_has_our_links_and_no_others(shape: Shape) -> None:
    fabric = make_fabric(shape)
    found = [cables(text) for text in ibsim_netlist(fabric, options()).values()]
    assert {link for subnet in found for link in subnet} == expected(fabric)
    assert sum(map(len, found)) == len(fabric.links)


def test_only_what_is_built_today_is_there_unless_asked() -> None:
    fabric = grown(by_hand(SMALL))
    for stage in (0, 1):
        [text] = ibsim_netlist(fabric, options(stage=stage)).values()
        assert set(cables(text)) == expected(fabric, stage)
    assert len(expected(fabric, 0)) < len(expected(fabric, 1))


def test_separate_networks_are_separate_subnets() -> None:
    assert list(ibsim_netlist(by_hand(SMALL), options())) == ["fabric.net"]
    planes = ibsim_netlist(by_hand(PLANES), options())
    assert list(planes) == ["subnet-1.net", "subnet-2.net"]
    for number, text in enumerate(planes.values(), 1):
        assert all(f"-p{number}-" in name for name in re.findall(r'Switch.*# "(\S+)"', text))
    assert len(ibsim_netlist(by_hand(RAIL_ONLY), options())) == 2


def test_the_first_adapter_is_the_manager() -> None:
    for shape in (SMALL, PLANES):
        first = next(iter(ibsim_netlist(by_hand(shape), options()).values()))
        match = re.search(r'^Ca\t1 "\S+"\t\t# "(.*)"$', first, re.MULTILINE)
        assert match
        assert match[1] == "manager1 mlx5_0"


@pytest.mark.parametrize(
    ("shape", "cap", "speed"),
    [
        (Shape(), "", "4xNDR"),
        (Shape(), "hdr", "4xHDR"),
        (Shape(), "xdr", "4xNDR"),
        (Shape(planes=2), "", "2xNDR"),
        (Shape(planes=2), "hdr", "2xHDR"),
        (Shape(generation="hdr"), "ndr", "4xHDR"),
        (Shape(generation="hdr"), "edr", "4xEDR"),
        (Shape(generation="xdr"), "", "4xXDR"),
        (Shape(generation="xdr"), "ndr", "4xNDR"),
    ],
)
def test_speeds_and_their_cap(shape: Shape, cap: str, speed: str) -> None:
    for text in ibsim_netlist(by_hand(shape), options(speed_cap=cap)).values():
        assert set(cables(text).values()) == {speed}
        own = by_hand(shape).generation.upper()
        assert ("# Speed cap: links run at" in text) == (own not in speed)


def test_guids_are_unique_and_the_same_each_time() -> None:
    text = ibsim_netlist(by_hand(PLANES), options())["subnet-1.net"]
    guids = re.findall(r"(?:switch|ca)guid=(0x[0-9a-f]{16})", text)
    assert len(set(guids)) == len(guids)
    assert all(guid.startswith("0x02") for guid in guids)
    assert text == ibsim_netlist(by_hand(PLANES), options())["subnet-1.net"]


def test_node_descriptions_count_the_ports_of_all_nics() -> None:
    fabric = by_hand(PLANES)
    assert [node_description(fabric, port) for port in range(4)] == [
        "host00001 mlx5_0",
        "host00001 mlx5_1",
        "host00001 mlx5_2",
        "host00001 mlx5_3",
    ]


def test_a_wrong_cap_gives_the_nearest() -> None:
    with pytest.raises(InputError, match=r'"ndx"\. Expected: edr'):
        ibsim_netlist(by_hand(SMALL), options(speed_cap="ndx"))


def test_a_rate_that_is_none_of_infiniband_is_refused() -> None:
    fabric = by_hand(SMALL)
    odd = fabric.replace(ports=fabric.ports.replace(gbps=150.0))
    with pytest.raises(UnsupportedError, match="150 Gb/s is no rate of NDR"):
        ibsim_netlist(odd, options())


# The real programs --------------------------------------------------------------------------


@pytest.mark.needs(*PROGRAMS, "ibdmchk")
@pytest.mark.parametrize(("gpus", "managers"), [(1024, 0), (1016, 4)])
def test_opensm_brings_the_whole_fabric_up_and_ibnetdiscover_shows_our_links(
    tmp_path: Path, gpus: int, managers: int
) -> None:
    fabric = designed(NDR_1024.replace("1024", str(gpus)))
    assert fabric.n_gpus == gpus
    files = export_fabric(fabric, "ibsim", options(speed_cap="hdr"))
    with running(files["fabric.net"], tmp_path) as subnet:
        log = subnet.opensm("-R", "ftree")
        assert "SUBNET UP" in log
        assert "ftree tables configured on all switches" in log
        assert " ERR " not in log
        seen = cables(subnet.run("ibnetdiscover"))
    assert set(seen) == quick_expected(fabric)
    assert len(seen) == len(fabric.links)
    assert set(seen.values()) == {"4xHDR"}
    check_routes(tmp_path, adapters=gpus + managers)


def check_routes(folder: Path, adapters: int) -> None:
    """Check that ibdmchk finds every path between two adapters, and no credit loop.

    It is known to crash after it has printed its verdict: the text counts, not the exit status.
    """
    dumps = ("-s", "opensm-subnet.lst", "-f", "opensm.fdbs", "-m", "opensm.mcfdbs")
    done = subprocess.run(
        ["ibdmchk", *dumps], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert f"-I- Scanned:{adapters * (adapters - 1)} CA to CA paths" in done.stdout
    assert "-I- no credit loops found" in done.stdout
    assert "-E-" not in done.stdout


@pytest.mark.needs(*PROGRAMS)
@pytest.mark.parametrize("shape", [PLANES, RAIL_ONLY], ids=["planes", "rail only"])
def test_every_subnet_of_a_fabric_comes_up(tmp_path: Path, shape: Shape) -> None:
    fabric = by_hand(shape)
    seen: set[frozenset[tuple[str, int]]] = set()
    for name, text in export_fabric(fabric, "ibsim", options(speed_cap="hdr")).items():
        folder = tmp_path / name
        folder.mkdir()
        with running(text, folder) as subnet:
            assert "SUBNET UP" in subnet.opensm()
            seen |= set(cables(subnet.run("ibnetdiscover")))
    assert seen == expected(fabric)


@pytest.mark.needs(*PROGRAMS)
def test_programs_attach_where_a_node_description_says(tmp_path: Path) -> None:
    [text] = export_fabric(by_hand(SMALL), "ibsim", options(speed_cap="hdr")).values()
    with running(text, tmp_path) as subnet:
        subnet.opensm()
        out = subnet.run("ibnetdiscover", host="host00002 mlx5_1")
        default = subnet.run("ibnetdiscover")
    started = re.search(r"Initiated from node ([0-9a-f]{16})", out)
    assert started
    assert f'"H-{started[1]}"\t\t# "host00002 mlx5_1"' in text
    assert cables(out) == cables(default)


@pytest.mark.needs(*PROGRAMS)
def test_144_port_switches_are_read(tmp_path: Path) -> None:
    shape = Shape(hosts=72, rails=4, su_hosts=36, spines=4, radix=144, generation="xdr")
    fabric = by_hand(shape)
    [text] = export_fabric(fabric, "ibsim", options(speed_cap="hdr")).values()
    with running(text, tmp_path) as subnet:
        assert "SUBNET UP" in subnet.opensm()
        assert set(cables(subnet.run("ibnetdiscover"))) == quick_expected(fabric)


@pytest.mark.needs(*PROGRAMS)
def test_nothing_is_left_running(tmp_path: Path) -> None:
    [text] = export_fabric(by_hand(SMALL), "ibsim", options(speed_cap="hdr")).values()
    with running(text, tmp_path) as subnet:
        name = subnet.environment["IBSIM_SOCKNAME"]
        assert any(_is_open(name) for _ in range(100))
    assert not all(_is_open(name) for _ in range(100))


def _is_open(name: str) -> bool:
    """Whether the kernel lists a socket; lists made while others open and close may miss one."""
    if name in Path("/proc/net/unix").read_text(encoding="utf-8"):
        return True
    time.sleep(0.01)
    return False
