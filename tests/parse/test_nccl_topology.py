"""Topology files of NCCL and RCCL: all shared ones parse, damaged ones give line and reason."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.core.errors import InputError
from gpufabric.parse.nccl_topology import parse_nccl_topology
from gpufabric.parse.xml_elements import read_xml

HOST = """<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:11:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" rank="0" gdr="1">
          <nvlink target="0000:c0:00.0" count="18" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:12:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
        <nic>
          <net name="mlx5_0" dev="0" speed="400000" port="1" guid="0x1" gdr="1"/>
        </nic>
      </pci>
    </pci>
  </cpu>
</system>
"""


def faults(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        parse_nccl_topology(text, "host.xml")
    return [str(fault) for fault in caught.value.faults]


def fault_places(text: str) -> list[str]:
    """Where an InputError points; empty where the text is read."""
    try:
        parse_nccl_topology(text, "host.xml")
    except InputError as error:
        return [fault.where for fault in error.faults]
    return []


def test_every_shared_file_parses(shared: Path) -> None:
    folder = shared / "measurements" / "topo"
    with (folder / "index.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == "nccl_topo_xml"]
    assert len(rows) >= 19
    for row in rows:
        found = parse_nccl_topology((folder / row["file"]).read_text(), row["file"])
        assert len(found.cpus) == int(row["n_cpu"]), row["file"]
        assert len(found.devices) == int(row["n_pci"]), row["file"]
        assert len(found.links) >= int(row["n_nvlink"]), row["file"]
        speeds = {f"{net.speed_gbps:g}" for net in found.nets if net.speed_gbps}
        assert speeds == {f"{int(part) / 1000:g}" for part in row["speeds"].split()}, row["file"]


def test_a_whole_host() -> None:
    found = parse_nccl_topology(HOST)
    assert [device.kind for device in found.devices] == ["bridge", "gpu", "nic"]
    assert [device.parent for device in found.devices] == [None, 0, 0]
    assert found.gpus[0].has_gdr
    assert found.gpus[0].architecture == "sm90"
    assert (found.links[0].count, found.links[0].kind) == (18, "nvlink")
    assert (found.nets[0].speed_gbps, found.nets[0].pci) == (400.0, 2)
    assert not found.warnings


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("</system>", "", 15, "no element found. <system> of line 1 is open"),
        ("        </nic>\n", "", 12, "mismatched tag"),
        ('link_width="16">\n        <gpu', 'link_width="wide">\n        <gpu', 4, "link_width"),
        ('busid="0000:12:00.0"', 'busid="0000:11:00.0"', 9, "given twice, first in line 4"),
        ('busid="0000:12:00.0"', 'busid="12"', 9, 'busid is "12"'),
        ('speed="400000"', 'speed="400G"', 11, 'speed is "400G"'),
        ('numaid="0"', "", 2, "cpu has no numaid"),
        ('link_speed="32.0 GT/s PCIe" link_width="16">\n        <nic', 'link_speed="fast">\n<nic',
         9, 'link_speed is "fast"'),
        ("<nic>", '<nic><gpu dev="1"/>', 10, "<gpu> stands in <nic>"),
        ("system", "topology", 1, "the root element is <topology>"),
    ],
)  # fmt: skip
def test_damage_gives_line_and_reason(old: str, new: str, line: int, reason: str) -> None:
    (message,) = faults(HOST.replace(old, new))
    assert message.startswith(f"host.xml:{line}"), message
    assert reason in message


def test_all_damage_is_told_together() -> None:
    text = HOST.replace('speed="400000"', 'speed="x"').replace('dev="0" sm', 'dev="y" sm')
    assert len(faults(text)) == 2


def test_lines_count_from_the_file_even_after_empty_ones() -> None:
    assert faults("\n\n" + HOST.replace('numaid="0"', ""))[0].startswith("host.xml:4")


def test_a_newer_element_is_left_out_with_a_warning() -> None:
    found = parse_nccl_topology(HOST.replace("<nic>", "<nic><gin/>"), "host.xml")
    assert str(found.warnings[0]).startswith("host.xml:10: <gin> is unknown")


def test_entities_are_refused() -> None:
    text = '<!DOCTYPE system [<!ENTITY a "b">]>' + HOST
    assert "document type" in faults(text)[0]


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(InputError, match="nested"):
        read_xml("<a>" * 100 + "</a>" * 100, "deep.xml")


@given(st.integers(0, len(HOST)), st.text(max_size=6))
def test_any_damage_is_an_input_error_or_no_damage(at: int, text: str) -> None:
    places = fault_places(HOST[:at] + text + HOST[at + 3 :])
    assert all(place.startswith("host.xml") for place in places)
