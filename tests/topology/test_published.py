"""Every published fabric that gives counts comes out exactly, from the sizing rules alone."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from gpufabric.catalog.load import load_catalog
from gpufabric.core.errors import InputError
from gpufabric.model.requirement import parse_requirement
from gpufabric.topology.design import Design, design_candidate

B200 = "NVIDIA DGX SuperPOD RA-11334-001 V08 (2025-04-24), larger-SuperPOD component counts"
B200_BUILT = "NVIDIA RA-11334-001 V08 Table 4.1, as built (one node given up for UFM)"
H100 = "NVIDIA DGX SuperPOD RA-11333-001 V11 (2023-09-22), Table 4"
B300_ETH = "NVIDIA DGX SuperPOD RA-11337-001 V01 (2025-05-29), Table 3"
B300_XDR = "NVIDIA DGX SuperPOD RA-11339-001 V01 (2025-07-23), Table 3"
A100 = "NVIDIA DGX SuperPOD RA-09950 (2020-11), 7 SU; port arithmetic 1,120 / 40 = 28 agrees"
GB200 = "NVIDIA DGX SuperPOD GB200 RA-11338, by third-party notes"
BASEPOD = "NVIDIA BasePOD RA-11127-001 V5 (2025-08-06), Table 4.2"
APETOPS = "apetops-us.com, explanation of 512 H100 clustering solution"
FREAK = "H100 Freakonomics spreadsheet (2024-08)"
DEEPSEEK = "Insights into DeepSeek-V3, arXiv 2505.09343 (2025-05), network cost table"
FIREFLYER = "Fire-Flyer AI-HPC, arXiv 2408.14158 (2024-08)"
HPN = "Alibaba HPN, SIGCOMM 2024, doi:10.1145/3651890.3672265"
HPN10K = "Alibaba Cloud HPN 7.0 practice (2025-07-08)"
MEGASCALE = "MegaScale, NSDI 2024, arXiv 2402.15627"
META = "The Llama 3 Herd of Models, arXiv 2407.21783; RDMA over Ethernet, SIGCOMM 2024"
JLAB = "JLab GPU cluster page (36-port QDR design)"
BEOWULF = "beowulf mailing list, 2008"
JUNIPER = "Juniper JVD AI data centre (2025-2026)"
ORACLE = "Oracle, First Principles: Inside zettascale OCI Superclusters"
XAI = "NVIDIA/xAI press release, 2024-10-28"
ZCUBE = "ATOP, SIGCOMM 2025, 16,384 GPUs: rail-optimised fat tree of 640 switches, by notes"
SMOLA = "A. Smola, alex.smola.org/posts/37-infiniband-2n"
ASTERFUSION = "Asterfusion, cloudswit.ch/?p=23330"
ENTERPRISE = "NVIDIA enterprise-ras, net-configurator: HGX B300 2-8-9-800 (ERA-00011-001 v04)"
AZURE = "Azure NDv6 GB300 (2025-10): 64 racks, full fat tree"
CISCO = "Cisco N9000 Enterprise RA for NVIDIA HGX B300 (2026), design points"
KEDIOS = "Kedios B300 full network topology report (2026-03)"
TH5 = "{switch: tomahawk-5-128x400g, %s}"


@dataclass(frozen=True)
class Row:
    """One published row: how it is asked for, and what must come out."""

    source: str
    spec: str
    candidate: str
    expected: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.source[:28]}: {self.spec.splitlines()[0]}"


def counts(leaf: int, spine: int, core: int = 0, **links: int) -> dict[str, Any]:
    """Return the expected counts of one row."""
    return {"leaf": leaf, "spine": spine, "core": core, "links": links}


def ib(hosts: int, host: str, expected: dict[str, Any], source: str, more: str = "") -> Row:
    """Return a row of an InfiniBand rail-optimised fabric."""
    return Row(source, f"hosts: {hosts}\nhost: {host}", f"{{fabric: infiniband{more}}}", expected)


def nics1(hosts: int, more: str = "nic_gbps: 100") -> str:
    """Return a spec of hosts with one GPU and one NIC."""
    return f"hosts: {hosts}\nhost: {{gpus: 1, nics: 1, {more}}}"


B200_ROWS = [
    ib(64, "dgx-b200", counts(16, 8, 0, host_leaf=512, leaf_spine=512, spine_core=0), B200),
    ib(128, "dgx-b200", counts(32, 16, 0, host_leaf=1024, leaf_spine=1024, spine_core=0), B200),
    ib(256, "dgx-b200", counts(64, 32, 0, host_leaf=2048, leaf_spine=2048, spine_core=0), B200),
    ib(
        512,
        "dgx-b200",
        counts(128, 128, 64, host_leaf=4096, leaf_spine=4096, spine_core=4096),
        B200,
    ),
    ib(
        1024,
        "dgx-b200",
        counts(256, 256, 128, host_leaf=8192, leaf_spine=8192, spine_core=8192),
        B200,
    ),
    ib(
        2048,
        "dgx-b200",
        counts(512, 512, 256, host_leaf=16384, leaf_spine=16384, spine_core=16384),
        B200,
    ),
    ib(31, "dgx-b200", counts(8, 4, 0, host_leaf=248, manager_leaf=4, leaf_spine=256), B200_BUILT),
    ib(
        127,
        "dgx-b200",
        counts(32, 16, 0, host_leaf=1016, manager_leaf=4, leaf_spine=1024),
        B200_BUILT,
    ),
]
H100_ROWS = [
    ib(31, "dgx-h100", counts(8, 4, 0, host_leaf=248, manager_leaf=4, leaf_spine=256), H100),
    ib(63, "dgx-h100", counts(16, 8, 0, host_leaf=504, manager_leaf=4, leaf_spine=512), H100),
    ib(95, "dgx-h100", counts(24, 16, 0, host_leaf=760, manager_leaf=4, leaf_spine=768), H100),
    ib(127, "dgx-h100", counts(32, 16, 0, host_leaf=1016, manager_leaf=4, leaf_spine=1024), H100),
    ib(
        512,
        "dgx-h100",
        counts(128, 128, 64, host_leaf=4096, leaf_spine=4096, spine_core=4096),
        APETOPS,
    ),
    ib(64, "dgx-h100", counts(16, 8, 0, leaf_spine=512), SMOLA),
    ib(128, "dgx-h100", counts(32, 16), FREAK),
    ib(256, "dgx-h100", counts(64, 32), FREAK),
    # Rows of 512, 1,024 and 2,048 nodes keep a two-tier ratio that 64 ports do not allow; the RA
    # has 320, 640 and 1,280 switches. The 64-node row (8 switches) has no spine at all: its rails
    # are apart, and its full switches keep no port for a manager.
    ib(64, "dgx-h100", counts(8, 0), FREAK, ", topology: rail-only, manager_ports: 0"),
    ib(512, "dgx-h100", counts(128, 128, 64), FREAK),
    ib(1024, "dgx-h100", counts(256, 256, 128), FREAK),
    ib(2048, "dgx-h100", counts(512, 512, 256), FREAK),
    ib(4096, "dgx-h100", counts(1024, 1024, 512), FREAK),
    ib(8192, "dgx-h100", counts(2048, 2048, 1024), FREAK),
]
B300_ROWS = [
    Row(
        B300_ETH,
        f"hosts: {64 * su}\nhost: dgx-b300",
        "{fabric: roce, switch: sn5610, planes: 2}",
        counts(16 * su, 8 * su, 0, host_leaf=512 * su, leaf_spine=512 * su),
    )
    for su in (1, 2, 4, 8, 16)
] + [
    ib(
        nodes,
        "dgx-b300",
        counts(leaf, spine, 0, host_leaf=nodes * 8, leaf_spine=nodes * 8),
        B300_XDR,
    )
    for nodes, leaf, spine in (
        (72, 8, 4),
        (144, 16, 8),
        (288, 32, 18),
        (576, 64, 36),
        (1296, 144, 72),  # the table prints 9,216 GPUs; 1,296 x 8 = 10,368, as its cables say
    )
]
NVIDIA_MORE = [
    ib(140, "dgx-a100", counts(56, 80, 28, leaf_spine=1120, spine_core=1120), A100),
    *(
        Row(
            GB200,
            f"hosts: {8 * su}\nhost: gb200-nvl72",
            "{fabric: infiniband, switch: qm9700, tiers: 3, pod_hosts: 8}",
            counts(32 * su, 24 * su, core, host_leaf=576 * su),
        )
        for su, core in ((2, 18), (4, 36), (8, 72), (16, 144))
    ),
    *(
        Row(
            BASEPOD,
            f"hosts: {nodes}\nhost: dgx-h100",
            "{fabric: infiniband, switch: qm9700, topology: fat-tree, leafs_per_host: 2, tiers: 1}",
            counts(2, 0, 0, host_leaf=nodes * 8, leaf_leaf=cross),
        )
        # isl_twinport_dac 8 and 16: one twin-port DAC carries two links
        for nodes, cross in ((4, 16), (8, 32))
    ),
]
OTHERS = [
    Row(
        DEEPSEEK,
        nics1(2048, "nic_gbps: 400"),
        "{fabric: infiniband, switch: qm9700}",
        {**counts(64, 32, 0, leaf_spine=2048), "tiers": 2},
    ),
    Row(
        DEEPSEEK,
        "gpus: 16384\nhost: dgx-h100",
        "{fabric: infiniband, switch: qm9700, topology: multi-plane, planes: 8}",
        {**counts(512, 256, 0, leaf_spine=16384), "planes": 8},
    ),
    Row(
        DEEPSEEK,
        nics1(65536, "nic_gbps: 400"),
        "{fabric: infiniband, switch: qm9700}",
        {**counts(2048, 2048, 1024, leaf_spine=65536, spine_core=65536), "tiers": 3},
    ),
    Row(
        DEEPSEEK,
        nics1(261632, "nic_gbps: 400"),
        "{fabric: infiniband, switch: qm9700, topology: dragonfly}",
        counts(16352, 0, 0),
    ),
    Row(
        FIREFLYER,
        "gpus: 6400\nhost: {gpus: 8, nics: 1, nic_gbps: 200}",
        "{fabric: infiniband, switch: qm8700}",
        {**counts(40, 20), "tiers": 2},
    ),
    Row(
        FIREFLYER + ", 1,600 endpoints in three tiers",
        nics1(1600, "nic_gbps: 200"),
        "{fabric: infiniband, switch: qm8700}",
        {**counts(80, 80, 40), "tiers": 3},
    ),
    Row(
        HPN,
        "gpus: 15360\nhost: {gpus: 8, nics: 8, nic_gbps: 400, ports_per_nic: 2}",
        "{fabric: roce, switch: tomahawk-5-128x400g, topology: dual-tor, su_hosts: 128, "
        "oversubscription: 1.0667}",
        {**counts(240, 120, 0, host_leaf=30720, leaf_spine=14400), "planes": 2},
    ),
    Row(
        HPN10K,
        "gpus: 8192\nhost: {gpus: 8, nics: 8, nic_gbps: 400, ports_per_nic: 2}",
        "{fabric: roce, switch: tomahawk-5-128x400g, topology: dual-tor}",
        counts(128, 64, 0, host_leaf=16384),
    ),
    Row(
        MEGASCALE,
        "gpus: 12288\nhost: {gpus: 8, nics: 8, nic_gbps: 200}",
        "{fabric: roce, switch: tomahawk-4-64x400g}",
        {"leaf": 192, "tiers": 3, "su_hosts": 64},
    ),
    Row(
        META,
        "gpus: 24576\nhost: grand-teton-h100",
        "{fabric: roce, topology: fat-tree, leafs_per_host: 1, su_hosts: 2, pod_hosts: 384, "
        "spines: 16, tiers: 3, uplink_gbps: 400, oversubscription: [1, 7], switch: "
        "{leaf: tomahawk-4-64x400g, spine: 7800r-576, core: tomahawk-5-128x400g}}",
        {**counts(1536, 128, 28, host_leaf=24576, leaf_spine=24576), "pods": 8},
    ),
    Row(
        JLAB, nics1(276), "{fabric: infiniband, switch: edge-36, topology: fat-tree}", counts(16, 9)
    ),
    Row(
        JLAB,
        nics1(276),
        "{fabric: infiniband, switch: edge-36, topology: fat-tree, oversubscription: 2}",
        counts(12, 4),
    ),
    Row(
        BEOWULF,
        nics1(26),
        "{fabric: infiniband, switch: edge-24, topology: fat-tree, tiers: 1, "
        "oversubscription: 1.2, manager_ports: 0}",
        {**counts(2, 0, 0, host_leaf=26, leaf_leaf=11), "oversubscription": 1.1818},
    ),
    Row(
        JUNIPER,
        "hosts: 128\nhost: {gpus: 2, nics: 2, nic_gbps: 400}",
        "{fabric: roce, switch: qfx5240-64od, spines: 4}",
        counts(4, 4),
    ),
    Row(
        ORACLE,
        "gpus: 131072\nhost: {gpus: 8, nics: 8, nic_gbps: 400}",
        "{fabric: roce, switch: sn5600}",
        {"tiers": 3, "injection_gbps": 52_428_800.0},
    ),
    Row(
        XAI,
        "gpus: 100000\nhost: {gpus: 8, nics: 8, nic_gbps: 400}",
        "{fabric: roce, switch: sn5600}",
        {"tiers": 3, "gpus": 100_000},
    ),
    Row(
        ZCUBE,
        "gpus: 16384\nhost: {gpus: 8, nics: 8, nic_gbps: 400}",
        "{fabric: roce, switch: tomahawk-5-128x400g}",
        {**counts(256, 256, 128), "tiers": 3},
    ),
    Row(
        ASTERFUSION,
        "gpus: 256\nhost: {gpus: 4, nics: 4, nic_gbps: 400}",
        "{fabric: roce, switch: tomahawk-5-64x800g}",
        counts(4, 2),
    ),
    Row(
        ENTERPRISE,
        "gpus: 128\nhost: hgx-b300",
        "{fabric: roce, switch: sn5600, planes: 2}",
        {**counts(2, 0), "planes": 2, "tiers": 1},
    ),
    Row(
        ENTERPRISE + ", 24 switches a plane",
        "gpus: 1024\nhost: hgx-b300",
        "{fabric: roce, switch: sn5600, planes: 2}",
        {**counts(32, 16), "planes": 2},
    ),
    Row(
        AZURE,
        "gpus: 4608\nhost: gb300-nvl72",
        "{fabric: infiniband, switch: q3400-ra}",
        {"hosts": 64, "bisection_share": 1.0},
    ),
    *(
        Row(CISCO, f"gpus: {gpus}\nhost: hgx-b300", "{fabric: roce}", {"hosts": hosts})
        for hosts, gpus in ((16, 128), (32, 256), (64, 512), (128, 1024))
    ),
    Row(
        KEDIOS,
        "hosts: 32\nhost: dgx-b300",
        "{fabric: infiniband, switch: q3400-ra}",
        {**counts(8, 4), "injection_gbps": 204_800.0, "bisection_gbps": 102_400.0},
    ),
]

ROWS = [*B200_ROWS, *H100_ROWS, *B300_ROWS, *NVIDIA_MORE, *OTHERS]
RIGHT = re.compile(r"RA\S*: ([\d,]+) switches")

EDGE_SWITCH = """\
device: switch
name: edge-{ports}
title: {ports}-port switch of the published question
vendor: test
fabric: infiniband
generation: hdr
ports:
  {{count: {ports}, gbps: 100, cages: {ports}, cage: qsfp28, source: question, date: 2008,
   kind: assumed}}
"""


@pytest.fixture(scope="session")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the catalogue with the small switches that two of the questions name."""
    folder = tmp_path_factory.mktemp("devices")
    for ports in (24, 36):
        (folder / f"edge-{ports}.yaml").write_text(EDGE_SWITCH.format(ports=ports))
    return load_catalog(folder)


def design(catalog: Any, spec: str, candidate: str) -> Design:
    """Return the design of a spec with one candidate."""
    text = f"{spec}\ncandidates: [{candidate}]\n"
    requirement = parse_requirement(text.encode(), "spec.yaml")
    return design_candidate(requirement, requirement.candidates[0], catalog)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_published_row(catalog: Any, row: Row) -> None:
    """The design has the published counts."""
    summary = design(catalog, row.spec, row.candidate).summary()
    expected = dict(row.expected)
    links = expected.pop("links", {})
    found = {key: summary[key] for key in expected}
    assert found == expected, row.source
    assert {key: summary["links"][key] for key in links} == links, row.source


def test_dragonfly_links(catalog: Any) -> None:
    """DeepSeek's dragonfly row: 384,272 links between switches."""
    row = OTHERS[3]
    links = design(catalog, row.spec, row.candidate).summary()["logical_links"]
    assert links["leaf_leaf"] + links["global"] == 384_272


def test_slim_fly_row_is_not_built() -> None:
    """The Slim Fly row needs an MMS graph of q = 28, which is not a prime power.

    2 q**2 = 1,568 switches and 32,928 endpoints are the formula's values; a McKay-Miller-Siran
    graph exists for prime powers only (Besta and Hoefler, SC14, section II-B), so there is no
    fabric of that size to build, and the family is refused by name.
    """
    text = f"{nics1(32_928, 'nic_gbps: 400')}\ncandidates: [{{fabric: infiniband, topology: {{}}}}]"
    with pytest.raises(InputError, match="dragonfly"):
        parse_requirement(text.replace("{}", "slim-fly").encode(), "spec.yaml")


def test_two_tiers_of_64_ports_end_at_256_hosts(catalog: Any) -> None:
    """256 servers of 8 GPUs fill two tiers completely; 257 do not fit (apetops; RA-11334)."""
    full = design(catalog, "hosts: 256\nhost: dgx-h100", "{fabric: infiniband, tiers: 2}").summary()
    assert (full["leaf"], full["spine"], full["tiers"]) == (64, 32, 2)
    with pytest.raises(InputError, match="at most 256 hosts"):
        design(catalog, "hosts: 257\nhost: dgx-h100", "{fabric: infiniband, tiers: 2}")


def test_spine_decision_names_the_unbalanced_count(catalog: Any) -> None:
    """95 nodes: 12 spines have the ports, 16 divide the uplinks; the design says so."""
    decisions = design(catalog, "hosts: 95\nhost: dgx-h100", "{fabric: infiniband}").decisions
    spines = next(d for d in decisions if d.topic == "spines")
    assert spines.choice == "16"
    assert "12 spines would have enough ports" in spines.why


def test_kedios_two_spines_would_do(catalog: Any) -> None:
    """32 B300 hosts: two spines suffice by ports, four are full SUs; the design says so."""
    decisions = design(catalog, "hosts: 32\nhost: dgx-b300", "{fabric: infiniband}").decisions
    assert next(d for d in decisions if d.topic == "spines (population)").choice == "2"


def test_every_row_of_the_reference_with_counts_is_tried(shared: Path) -> None:
    """No row of the reference file that gives switches is left out above."""
    read = YAML(typ="safe", pure=True).load(shared / "reference/reference_architectures.yaml")
    tried = [row.expected for row in ROWS if "leaf" in row.expected]
    exact = {(row["leaf"], row.get("spine"), row.get("core")) for row in tried}
    sums = {sum(row.get(tier, 0) for tier in ("leaf", "spine", "core")) for row in tried}
    missing = []
    for architecture in read["architectures"]:
        for row in (*architecture.get("rows", ()), *architecture.get("as_built_rows", ())):
            total = row.get("total_switches", row.get("switches"))
            if "flag" in row:  # the flag says what the reference architecture has, if it says it
                total = (
                    int(match[1].replace(",", ""))
                    if (match := RIGHT.search(row["flag"]))
                    else total
                )
            found = (
                any(shape == named(row, shape) for shape in exact)
                if "leaf" in row
                else total is None or total in sums
            )
            if not found and row.get("name") != "Slim Fly":
                missing.append((architecture["id"], row))
    assert not missing


def named(row: dict[str, Any], shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the counts that a row names, and those of the shape for what it does not name."""
    tiers = ("leaf", "spine", "core")
    return tuple(row.get(tier, value) for tier, value in zip(tiers, shape, strict=True))
