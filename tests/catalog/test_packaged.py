"""The packaged device files: each valid, named after its device, every group with its source."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest
from pydantic import BaseModel

from gpufabric.catalog import compiled
from gpufabric.catalog.compiled import compiled_text, device_files, packaged_devices
from gpufabric.catalog.groups import Sourced, kind_meanings
from gpufabric.catalog.identity import lookup_key
from gpufabric.catalog.load import load_catalog
from gpufabric.catalog.models import DEVICE_KINDS, AnyDevice, Host, Nic, Part, Switch
from gpufabric.model.yaml_source import read_yaml

FILES = device_files()
CATALOG = load_catalog()
FOLDER_OF = {
    "switch": "switches",
    "nic": "nics",
    "host": "hosts",
    "part": "parts",
    "equipment": "equipment",
    "media-rule": "rules",
    "failure-rates": "rules",
}
NUMBERS = (int, float)


def groups(model: BaseModel) -> Iterator[Sourced]:
    """Give every sourced group in a device, nested ones too."""
    for name in type(model).model_fields:
        value = getattr(model, name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Sourced):
                yield item
            if isinstance(item, BaseModel):
                yield from groups(item)


def bare_numbers(model: BaseModel, path: str = "") -> Iterator[str]:
    """Give the path of every number that is in no sourced group."""
    for name in type(model).model_fields:
        value = getattr(model, name)
        where = f"{path}.{name}"
        if isinstance(value, Sourced) or name == "format_version":
            continue
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, BaseModel) and not isinstance(item, Sourced):
                yield from bare_numbers(item, where)
            elif isinstance(item, NUMBERS) and not isinstance(item, bool):
                yield where


def ids(device: AnyDevice) -> str:
    return device.name


@pytest.fixture(scope="module")
def parsed() -> dict[str, dict[str, object]]:
    """Content of every file, read from its YAML."""
    found = {}
    for name, raw in FILES.items():
        document = read_yaml(raw, name)
        assert not document.faults
        content = document.content()
        assert isinstance(content, dict)
        found[name] = content
    return found


def test_each_file_is_valid_and_says_what_the_catalogue_holds(
    parsed: dict[str, dict[str, object]],
) -> None:
    for path, content in parsed.items():
        model = DEVICE_KINDS[str(content["device"])]
        device = model.model_validate_json(json.dumps(content))
        known = CATALOG.device(device.name)
        own = device.model_dump(exclude={"annual_failure_rate"})
        assert known.model_dump(exclude={"annual_failure_rate"}) == own, path


def test_each_file_is_named_after_its_device_and_in_its_folder(
    parsed: dict[str, dict[str, object]],
) -> None:
    for path, content in parsed.items():
        place = PurePosixPath(path)
        assert place.stem == content["name"]
        assert place.parent.name == FOLDER_OF[str(content["device"])]
    assert len(parsed) == len(CATALOG.devices)


def test_compiled_file_is_up_to_date() -> None:
    """If this fails, run scripts/compile_catalog.py."""
    stored = (compiled._root() / "compiled.json").read_text(encoding="utf-8")
    assert stored == compiled_text(FILES)


def test_changed_device_files_are_read_although_the_compiled_file_is_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "switches/qm9700.yaml"
    changed = {**FILES, name: FILES[name].replace(b"ru: 1", b"ru: 3")}
    monkeypatch.setattr(compiled, "device_files", lambda: changed)
    devices = json.loads(packaged_devices())["devices"]
    assert devices[name]["size"]["ru"] == 3
    assert len(devices) == len(FILES)


def test_missing_compiled_file_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_read", lambda: "")
    assert json.loads(packaged_devices())["devices"].keys() == FILES.keys()


@pytest.mark.parametrize("device", CATALOG.devices, ids=ids)
def test_every_group_has_source_date_and_kind(device: AnyDevice) -> None:
    found = list(groups(device))
    assert found
    for group in found:
        assert group.source.strip()
        assert re.fullmatch(r"\d{4}.*", group.date)
        assert group.kind in kind_meanings()
        if group.is_assumed:
            assert group.note, group


@pytest.mark.parametrize("device", CATALOG.devices, ids=ids)
def test_no_number_stands_outside_a_sourced_group(device: AnyDevice) -> None:
    assert list(bare_numbers(device)) == []


def test_names_and_aliases_mean_one_device_each() -> None:
    owner: dict[str, str] = {}
    for device in CATALOG.devices:
        for name in (device.name, *device.aliases):
            assert owner.setdefault(lookup_key(name), device.name) == device.name


def test_conflicting_sources_stay_a_range() -> None:
    qm9700 = CATALOG.switch("qm9700").hop_latency_ns
    assert qm9700 is not None
    assert (qm9700.low, qm9700.high, qm9700.kind) == (130, 330, "conflict")
    assert 130 <= qm9700.value <= 250
    sn5600 = CATALOG.switch("sn5600").buffer_mb
    assert sn5600 is not None
    assert (sn5600.low, sn5600.high, sn5600.kind) == (128, 160, "conflict")
    conflicts = [
        group
        for device in CATALOG.devices
        for group in groups(device)
        if group.kind == "conflict" and "low" in type(group).model_fields
    ]
    assert len(conflicts) >= 4
    assert all(group.low < group.high for group in conflicts)


def test_unknown_is_none_and_never_zero() -> None:
    assert CATALOG.switch("sn4700").power is None
    assert CATALOG.part("mms4x50-nm").power_w is None
    assert CATALOG.host("dgx-rubin-nvl8").size is None


def test_hosts_name_a_nic_that_runs_at_their_speed() -> None:
    for host in CATALOG.hosts.values():
        nic = CATALOG.nic(host.nics.model)
        assert host.nics.gbps in {mode.gbps for mode in nic.port_modes}
        assert host.nics.cage in nic.ports.cages
        assert len(host.nics.rails) == host.nics.count


def test_asics_oob_switches_and_cell_fabrics_cannot_be_deployed() -> None:
    assert {name for name, item in CATALOG.switches.items() if not item.deployable} == {
        "quantum-2-asic",
        "tomahawk-5-asic",
        "tomahawk-6-asic",
        "sn2201",
        "drivenets-5300r",
        "drivenets-9300f",
        "7700r4c-38pe",
        "7720r4-128pe",
    }


def test_every_family_of_the_issue_is_there() -> None:
    switches = CATALOG.switches.values()
    assert {switch.generation for switch in switches if switch.fabric == "infiniband"} == {
        "hdr",
        "ndr",
        "xdr",
    }
    asics = " ".join(str(switch.asic) for switch in switches)
    for family in ("Spectrum-3", "Spectrum-4", "Tomahawk 4", "Tomahawk 5", "Tomahawk 6"):
        assert family in asics
    assert "Silicon One" in asics
    for series in ("dgx", "hgx"):
        for gpu in ("a100", "h100", "h200", "b200", "b300"):
            assert CATALOG.host(f"{series}-{gpu}").gpus == 8
    for name in ("gb200-nvl72", "gb300-nvl72", "mi300x", "mi355x", "generic"):
        assert name in CATALOG.hosts


def test_failure_rates_come_from_the_class_where_a_device_has_none() -> None:
    deployable = [
        device
        for device in CATALOG.devices
        if isinstance(device, Part | Nic) or (isinstance(device, Switch) and device.deployable)
    ]
    assert all(device.annual_failure_rate is not None for device in deployable)
    rates = CATALOG.failure_rates
    assert CATALOG.part("mma4z00-ns").annual_failure_rate == rates.transceiver
    assert CATALOG.part("mcp4y10-n").annual_failure_rate == rates.copper
    assert CATALOG.part("osfp-800g-aec").annual_failure_rate == rates.active_copper
    assert CATALOG.part("osfp-800g-aoc").annual_failure_rate == rates.aoc
    assert CATALOG.part("mfp7e10-n").annual_failure_rate == rates.fibre
    assert CATALOG.host("dgx-h100").annual_failure_rate is None


def test_rack_hosts_number_their_nics_tray_by_tray() -> None:
    for name in ("gb200-nvl72", "gb300-nvl72"):
        host = CATALOG.host(name)
        assert host.mount == "rack"
        assert (host.gpus, host.nics.count, host.nics.n_rails) == (72, 72, 4)
        assert host.nics.rails == (0, 1, 2, 3) * 18
    assert CATALOG.host("vera-rubin-nvl72").nics.count == 144
    assert CATALOG.host("helios-mi455x").nics.count == 216


def test_twin_port_cages() -> None:
    for name in ("dgx-h100", "dgx-h200", "dgx-b200", "azure-nd-h100-v5"):
        assert CATALOG.host(name).nics.nics_per_cage == 2
    assert CATALOG.host("dgx-b300").nics.nics_per_cage == 1
    assert CATALOG.switch("qm9700").ports_per_cage == 2
    assert CATALOG.switch("sn5600").ports_per_cage == 1


def test_devices_are_in_the_order_of_their_names() -> None:
    for kind in (CATALOG.switches, CATALOG.nics, CATALOG.hosts, CATALOG.parts, CATALOG.equipment):
        assert list(kind) == sorted(kind)
    assert "sn2201" in CATALOG.equipment
    assert not any(isinstance(item, Host) for item in CATALOG.equipment.values())


def test_prices_rise_and_carry_a_date() -> None:
    priced = [device for device in CATALOG.devices if getattr(device, "price", None)]
    assert len(priced) > 100
    for device, length_m in itertools.product(priced, (0.0, 10.0)):
        low, mid, high = device.price.at(length_m)
        assert 0 < low <= mid <= high
