"""A user's own device files: added, replaced whole, and checked like ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpufabric.catalog.load import load_catalog
from gpufabric.core.errors import InputError

LEAF = """\
device: switch
name: {name}
title: My 36-port switch
vendor: generic
aliases: [{alias}]
fabric: infiniband
generation: ndr
ports:
  count: 36
  gbps: 400
  cages: 36
  cage: osfp
  source: our own quote
  date: 2026-11-01
  kind: vendor
"""
HOST = """\
device: host
name: my-host
title: My host
vendor: generic
accelerators: {{count: 4, model: X, source: us, date: 2026, kind: assumed}}
nics:
  model: {nic}
  count: 4
  gbps: 400
  rail_pattern: [0, 1, 2, 3]
  cage: osfp
  source: us
  date: 2026
  kind: assumed
management: {{ports: 1, source: us, date: 2026, kind: assumed}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "devices"


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


def test_a_device_is_added(folder: Path) -> None:
    write(folder, mine=LEAF.format(name="my-36", alias="thirty-six"))
    catalog = load_catalog(folder)
    assert catalog.switch("thirty-six").ports.count == 36
    assert catalog.switch("my-36").ports.date == "2026-11-01"
    assert catalog.origins == {"my-36": str(folder / "mine.yaml")}
    assert catalog.switch("my-36").annual_failure_rate == catalog.failure_rates.switch
    assert set(load_catalog().switches) == set(catalog.switches) - {"my-36"}


def test_a_device_is_replaced_whole(folder: Path) -> None:
    write(folder, mine=LEAF.format(name="qm9700", alias="mine"))
    catalog = load_catalog(folder)
    assert catalog.switch("QM9700").ports.count == 36
    assert catalog.switch("qm9700").power is None
    assert load_catalog().switch("qm9700").ports.count == 64


def test_files_may_lie_in_folders_of_the_folder(folder: Path) -> None:
    write(folder, unused=LEAF.format(name="my-1", alias="a1"))
    write(folder / "more", mine=LEAF.format(name="my-2", alias="a2"))
    (folder / "README.md").write_text("not a device", encoding="utf-8")
    assert {"my-1", "my-2"} <= set(load_catalog(folder).switches)


def test_a_host_may_use_a_nic_of_the_same_folder(folder: Path) -> None:
    nic = """\
device: nic
name: my-nic
title: My NIC
vendor: generic
protocols: [roce]
ports:
  gbps: 400
  modes: [{ports: 1, gbps: 400}]
  cages: [osfp]
  source: us
  date: 2026
  kind: assumed
"""
    write(folder, nic=nic, host=HOST.format(nic="my-nic"))
    assert load_catalog(folder).host("my-host").nics.model == "my-nic"


def test_loading_is_deterministic(folder: Path) -> None:
    write(folder, b=LEAF.format(name="my-b", alias="b1"), a=LEAF.format(name="my-a", alias="a1"))
    first, second = load_catalog(folder), load_catalog(folder)
    assert list(first.switches) == list(second.switches) == sorted(first.switches)
    assert list(first.origins) == ["my-a", "my-b"]


def faults(folder: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_catalog(folder)
    return [str(fault).replace(str(folder), "DIR") for fault in caught.value.faults]


def test_no_such_folder(folder: Path) -> None:
    assert faults(folder) == ["DIR: there is no such folder. Name a folder with device files."]


def test_folder_without_device_files(folder: Path) -> None:
    folder.mkdir()
    assert faults(folder) == [
        "DIR: 0 device files found. Expected: 1 to 1000 files that end in .yaml."
    ]


def test_name_that_is_taken_by_an_alias(folder: Path) -> None:
    write(folder, mine=LEAF.format(name="q3400", alias="mine"))
    assert faults(folder) == [
        'DIR/mine.yaml:2:7: name: "q3400" already names the device q3400-ra. Choose another name.'
    ]


def test_alias_that_is_taken(folder: Path) -> None:
    write(folder, mine=LEAF.format(name="mine", alias="QM9700"))
    assert faults(folder) == [
        (
            'DIR/mine.yaml:5:11: aliases[0]: "QM9700" already names the device qm9700. '
            "Choose another name."
        )
    ]


def test_two_files_of_one_name(folder: Path) -> None:
    write(folder, a=LEAF.format(name="mine", alias="a1"), b=LEAF.format(name="mine", alias="b1"))
    assert faults(folder) == [
        (
            'DIR/b.yaml:2:7: name: "mine" already names the device mine (DIR/a.yaml). '
            "Choose another name."
        )
    ]


def test_a_host_cannot_take_the_name_of_a_switch(folder: Path) -> None:
    text = HOST.format(nic="connectx-7").replace("name: my-host", "name: qm9700")
    write(folder, mine=text)
    assert faults(folder) == [
        'DIR/mine.yaml:1:9: device: "qm9700" is a switch in the catalogue. Choose another name.'
    ]


def test_host_with_an_unknown_nic(folder: Path) -> None:
    write(folder, mine=HOST.format(nic="conectx-7"))
    assert faults(folder) == [
        (
            'DIR/mine.yaml:7:10: nics.model: there is no NIC "conectx-7" in the catalogue. '
            'Did you mean "connectx-7"?'
        )
    ]


def test_faults_of_all_files_come_together(folder: Path) -> None:
    write(
        folder,
        a=LEAF.format(name="a", alias="x1").replace("count: 36", "count: -1"),
        b=LEAF.format(name="b", alias="x2").replace("vendor:", "vender:"),
        c="device: [",
    )
    found = faults(folder)
    assert [fault.split(":")[0] for fault in found] == [
        "DIR/c.yaml",
        "DIR/a.yaml",
        "DIR/b.yaml",
        "DIR/b.yaml",
    ]
