from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.routing.channels import channels_of
from gpufabric.routing.host_path import HostLinks, HostPaths, host_links, pcie_gbps
from gpufabric.routing.modes import Router
from gpufabric.routing.paths import REACHED, UNLINKED, UNREACHABLE, WalkedPaths
from gpufabric.routing.walks import Flows
from tests.routing.small_fabrics import _catalog, designed

LINKS = HostLinks(nvlink_gbps=3600.0, pcie_gbps=460.0)
RAIL_ONLY = "{fabric: infiniband, switch: qm9700, topology: rail-only}"
RAILS = "{fabric: infiniband, switch: qm9700, topology: rail}"


def walk(
    candidate: str,
    src: list[int],
    dst: list[int],
    links: HostLinks = LINKS,
    *,
    gpudirect: bool = True,
    pxn: bool = False,
    host: str = "dgx-h100",
) -> tuple[HostPaths, WalkedPaths]:
    channels = channels_of(designed(64, candidate, host).fabric)
    router = Router(channels, "ecmp")
    paths = HostPaths.attach(channels, links, has_gpudirect=gpudirect)
    found = paths.walk(
        lambda one, other: router.walk(Flows(one, other)), np.array(src), np.array(dst), pxn=pxn
    )
    return paths, found


def names(paths: HostPaths, found: WalkedPaths, flow: int) -> list[str]:
    return [paths.channels.name(channel) for channel in found.row(flow)]


def test_gpus_of_one_host_talk_over_nvlink() -> None:
    paths, found = walk(RAILS, [1, 2], [6, 2])
    assert names(paths, found, 0) == [
        "host-01 GPU 1: GPU to NVLink",
        "host-01 GPU 6: NVLink to GPU",
    ]
    assert found.row(1) == []
    assert found.latency_s.tolist() == pytest.approx([1e-6, 0.0])
    assert paths.channels.capacity_gbps[found.row(0)].tolist() == [3600.0, 3600.0]


def test_gpus_of_two_hosts_talk_over_their_nics() -> None:
    paths, found = walk(RAILS, [3], [11])
    assert names(paths, found, 0) == [
        "host-01 GPU 3: GPU to PCIe",
        "host-01 NIC 3: PCIe to NIC",
        "host-01[nic3] > leaf-su01-r3[1/1]",
        "leaf-su01-r3[1/2] > host-02[nic3]",
        "host-02 NIC 3: NIC to PCIe",
        "host-02 GPU 3: PCIe to GPU",
    ]
    assert found.fraction is not None
    assert (found.fraction == 1.0).all()
    assert found.latency_s.tolist() == pytest.approx([1.2e-6])


def test_without_gpudirect_data_cross_the_memory_twice_at_each_end() -> None:
    paths, found = walk(RAILS, [3], [11], gpudirect=False)
    assert found.fraction is not None
    memory = [n for n, name in enumerate(names(paths, found, 0)) if "host memory" in name]
    assert memory == [1, 6]
    assert found.fraction[memory].tolist() == [2.0, 2.0]
    assert found.latency_s.tolist() == pytest.approx([4.7e-6])


def test_pxn_goes_to_the_gpu_of_the_rail_first() -> None:
    paths, found = walk(RAIL_ONLY, [3, 3], [12, 11], pxn=True)
    assert names(paths, found, 0)[:4] == [
        "host-01 GPU 3: GPU to NVLink",
        "host-01 GPU 4: NVLink to GPU",
        "host-01 GPU 4: GPU to PCIe",
        "host-01 NIC 4: PCIe to NIC",
    ]
    assert names(paths, found, 1)[0] == "host-01 GPU 3: GPU to PCIe"
    assert found.latency_s.tolist() == pytest.approx([2.2e-6, 1.2e-6])


def test_rails_without_spines_need_pxn() -> None:
    _paths, found = walk(RAIL_ONLY, [3], [12])
    assert found.status.tolist() == [UNREACHABLE]
    assert found.row(0) == []
    assert found.latency_s.tolist() == [0.0]


def test_a_host_without_nvlink_uses_pcie() -> None:
    paths, found = walk(RAILS, [1], [6], replace(LINKS, nvlink_gbps=None))
    assert names(paths, found, 0) == ["host-01 GPU 1: GPU to PCIe", "host-01 GPU 6: PCIe to GPU"]


def test_a_gpu_with_two_nic_ports_divides_its_flow() -> None:
    candidate = "{fabric: roce, switch: sn5610, topology: multi-plane, planes: 2}"
    paths, found = walk(candidate, [0], [8], host="dgx-b300")
    assert paths.ports_of_gpu.shape == (64, 2)
    assert found.fraction is not None
    load = found.load(len(paths.channels.capacity_gbps))
    ports = paths.ports_of_gpu[0]
    assert load[paths.channels.leaving[ports]].tolist() == [0.5, 0.5]
    assert load[paths.channels.blocks[2].first] == pytest.approx(1.0)  # GPU to PCIe


def test_a_lost_plane_leaves_the_flow_to_the_other() -> None:
    candidate = "{fabric: roce, switch: sn5610, topology: multi-plane, planes: 2}"
    fabric = designed(64, candidate, "dgx-b300").fabric
    whole = channels_of(fabric)
    broken = whole.with_failures(switches=np.flatnonzero(fabric.switches.plane == 1).tolist())
    router = Router(broken, "ecmp")
    paths = HostPaths.attach(broken, LINKS)
    found = paths.walk(lambda s, d: router.walk(Flows(s, d)), np.array([0]), np.array([8]))
    assert found.status.tolist() == [REACHED]
    ports = paths.ports_of_gpu[0]
    load = found.load(len(paths.channels.capacity_gbps))
    assert load[whole.leaving[ports]].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("{gpus: 4, nics: 4, nic_gbps: 400}", [[0], [1], [2], [3]]),
        ("{gpus: 4, nics: 8, nic_gbps: 400}", [[0, 1], [2, 3], [4, 5], [6, 7]]),
        ("{gpus: 4, nics: 2, nic_gbps: 400}", [[0], [0], [1], [1]]),
    ],
)
def test_nics_are_dealt_to_gpus(host: str, expected: list[list[int]]) -> None:
    fabric = designed(64, "{fabric: infiniband, switch: qm9700, topology: fat-tree}", host).fabric
    paths = HostPaths.attach(channels_of(fabric), LINKS)
    assert paths.ports_of_gpu[:4].tolist() == expected


def test_a_gpu_whose_nic_has_no_link() -> None:
    fabric = designed(64, RAILS).fabric
    channels = channels_of(fabric)
    broken = channels.with_failures(links=[int(channels.leaving[3]) // 2])
    router = Router(broken, "ecmp")
    paths = HostPaths.attach(broken, LINKS)
    found = paths.walk(lambda s, d: router.walk(Flows(s, d)), np.array([3, 3]), np.array([11, 4]))
    assert found.status.tolist() == [UNLINKED, REACHED]


def test_wrong_gpus_are_told() -> None:
    with pytest.raises(InputError, match=r"dst_gpu\[0\]: there is no GPU 64. Expected: 0 to 63"):
        walk(RAILS, [0], [64])


def test_rates_from_the_catalogue() -> None:
    """DGX H100: 900 GB/s both ways is 3,600 Gb/s each way; Gen5 x16 is 504 Gb/s before headers."""
    catalog = _catalog()
    links = host_links(catalog.host("dgx-h100"), catalog.nic("connectx-7"))
    assert links.nvlink_gbps == 3600.0
    assert links.pcie_gbps == pytest.approx(32 * 16 * 128 / 130 * 256 / 280)
    assert links.pcie_gbps > 400.0
    assert [decision.topic for decision in links.decisions] == ["NVLink", "PCIe", "host delay"]
    assert all(decision.source for decision in links.decisions)


def test_unknown_pcie_is_said_to_be_assumed() -> None:
    catalog = _catalog()
    unknown = next(nic for nic in catalog.nics.values() if nic.pcie is None)
    links = host_links(catalog.host("generic"), unknown)
    assert links.pcie_gbps == pytest.approx(pcie_gbps(5, 16))
    assert links.decisions[-2].is_warning
    assert links.decisions[-2].source == "assumed"


def test_sprayed_flows_keep_their_parts() -> None:
    channels = channels_of(designed(64, RAILS).fabric)
    router = Router(channels, "spray")
    paths = HostPaths.attach(channels, LINKS)
    found = paths.walk(lambda s, d: router.walk(Flows(s, d)), np.array([0]), np.array([9]))
    load = found.load(len(paths.channels.capacity_gbps))
    assert load[paths.channels.leaving[0]] == 1.0
    spine = channels.graph.tier[channels.head] == 2
    assert load[: len(spine)][spine & (channels.head >= 0)].sum() == pytest.approx(1.0)
