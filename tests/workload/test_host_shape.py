"""Hosts from topology files: how near GPUs and NICs are, and what is found wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpufabric.core.errors import InputError
from gpufabric.parse.nccl_topology import parse_nccl_topology
from gpufabric.parse.nvidia_smi_topo import parse_nvidia_smi_topo
from gpufabric.workload.host_findings import host_findings
from gpufabric.workload.host_shape import (
    HostShape,
    cluster_of,
    shape_of_matrix,
    shape_of_topology,
)
from gpufabric.workload.impairment import IMPAIRMENTS

LINK = 'link_speed="16.0 GT/s PCIe" link_width="16"'


def pair(at: int, inside: str = "") -> str:
    """A switch with one GPU and one NIC of 200 Gb/s."""
    return f"""
    <pci busid="0000:{at}0:00.0" class="0x060400" {LINK}>
      <pci busid="0000:{at}1:00.0" class="0x030200" vendor="0x10de" {LINK}>
        <gpu dev="{at}" sm="80" rank="{at}" gdr="1">
          <nvlink target="0000:f0:00.0" count="12" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:{at}2:00.0" class="0x020700" vendor="0x15b3" {LINK}>
        <nic><net name="mlx5_{at}" dev="{at}" speed="200000" port="1" gdr="1"/></nic>
      </pci>{inside}
    </pci>"""


HOST = (
    f'<system version="1"><cpu numaid="0">{pair(1)}{pair(2)}</cpu>'
    f'<cpu numaid="1">{pair(3)}{pair(4)}</cpu></system>'
)


def shape(text: str) -> HostShape:
    return shape_of_topology(parse_nccl_topology(text, "host.xml"))


def rules(text: str) -> dict[str, str]:
    return {found.rule: str(found.fault) for found in host_findings(shape(text))}


def test_a_healthy_host_has_no_findings() -> None:
    assert rules(HOST) == {}
    found = shape(HOST)
    assert [found.nearest_nics(gpu) for gpu in range(4)] == [("PIX", (gpu,)) for gpu in range(4)]
    assert found.distance[0, 1] == "PHB"
    assert found.distance[0, 2] == "SYS"


def test_the_cluster_of_such_hosts() -> None:
    found = cluster_of(shape(HOST), 2)
    assert (found.gpu, found.gpus_per_domain, found.n_nics) == ("A100", 4, 4)
    assert found.wire_gbytes_per_s == 100


def test_a_matrix_states_no_rate() -> None:
    text = " GPU0 GPU1 NIC0 CPU Affinity\nGPU0 X NV18 PIX 0-1\nGPU1 NV18 X SYS 2-3\n"
    found = shape_of_matrix(parse_nvidia_smi_topo(text, "smi"))
    with pytest.raises(InputError) as caught:
        cluster_of(found, 2)
    assert len(caught.value.faults) == 2
    cluster = cluster_of(found, 2, "H100", 400)
    assert (cluster.wire_gbytes_per_s, cluster.n_nics) == (50, 1)
    assert {entry.rule for entry in host_findings(found)} == {"far_nic", "shared_nic"}


NIC_1 = f'<pci busid="0000:12:00.0" class="0x020700" vendor="0x15b3" {LINK}>'
SLOW = 'link_speed="8.0 GT/s PCIe" link_width="8"'


@pytest.mark.parametrize(
    ("old", "new", "rule", "says"),
    [
        (NIC_1, NIC_1.replace(LINK, SLOW), "slow_link", "runs at 8 GT/s x8"),
        (NIC_1, NIC_1.replace(LINK, SLOW), "slow_slot", "200 Gb/s of ports on 63 Gb/s"),
        ('name="mlx5_2" dev="2" speed="200000"', 'name="mlx5_2" dev="2" speed="180000"',
         "odd_rate", "180 Gb/s is no rate"),
        ('name="mlx5_2" dev="2" speed="200000"', 'name="mlx5_2" dev="2" speed="100000"',
         "unequal_rate", "100 Gb/s, where most have 200"),
        ('port="1" gdr="1"', 'port="1" gdr="0"', "no_gdr", "GPUDirect RDMA is off"),
        ('count="12" tclass="0x068000"/>\n        </gpu>', 'count="11" tclass="0x068000"/></gpu>',
         "lost_link", "has 11 NVLink"),
        ('<pci busid="0000:30:00.0" class="0x060400" link_speed="16.0',
         '<pci busid="0000:30:00.0" class="0x060400" link_speed="2.5', "slow_bridge",
         "bridge 0000:30:00.0: 32 Gb/s up"),
        ('speed="200000"', 'speed="10000"', "only_sockets", "TCP sockets"),
        ('class="0x020700" vendor="0x15b3" ' + LINK + '>\n        <nic><net name="mlx5_4" dev="4" '
         'speed="200000" port="1" gdr="1"/></nic>', 'class="0x010802">', "shared_nic",
         "4 GPUs share 3 NICs"),
        ('target="0000:f0:00.0"', 'target="0000:11:00.0"', "link_to_itself", "leads to itself"),
    ],
)  # fmt: skip
def test_each_fault_is_found(old: str, new: str, rule: str, says: str) -> None:
    assert old in HOST
    n_times = -1 if rule == "only_sockets" else 1
    found = rules(HOST.replace(old, new, n_times))
    assert says in found[rule]
    assert found[rule].startswith("host.xml")


def test_a_nic_of_the_other_socket() -> None:
    far = HOST.replace(pair(4), pair(4).replace("0x020700", "0x010802").replace("<nic>", "<!--")
                       .replace("</nic>", "-->"))  # fmt: skip
    found = [entry for entry in host_findings(shape(far)) if entry.rule == "far_nic"]
    assert "GPU4: its nearest NIC is PHB away: mlx5_3" in str(found[0].fault)


def test_findings_name_impairments_that_exist(shared: Path) -> None:
    seen = set()
    for path in sorted((shared / "measurements" / "topo").glob("*.*")):
        text = path.read_text()
        if path.suffix == ".xml":
            found = shape(text)
        elif path.suffix == ".txt":
            found = shape_of_matrix(parse_nvidia_smi_topo(text, path.name))
        else:
            continue
        for entry in host_findings(found):
            assert not entry.impairment or entry.impairment in IMPAIRMENTS
            seen.add(entry.rule)
    assert seen >= {"far_nic", "odd_rate", "slow_bridge", "slow_slot", "no_gdr", "no_class"}


def test_wrong_speeds_of_a_shared_file(shared: Path) -> None:
    """OCI's H100 hosts: switches that say 5 GT/s, and ports that say 180 Gb/s."""
    path = shared / "measurements" / "topo" / "oci_bm_gpu_h100_8.xml"
    found = [str(entry.fault) for entry in host_findings(shape(path.read_text()))]
    assert sum("64 Gb/s up, but 504 Gb/s below" in text for text in found) == 8
    assert sum("180 Gb/s is no rate of a port" in text for text in found) == 8
