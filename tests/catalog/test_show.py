"""Listing and showing devices, as rows, as JSON and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from gpufabric.catalog.compiled import packaged_devices
from gpufabric.catalog.load import device_schema, load_catalog
from gpufabric.catalog.models import DEVICE_KINDS, AnyDevice
from gpufabric.catalog.show import LIST_KINDS, device_groups, device_json, device_rows
from gpufabric.cli.catalog import app
from gpufabric.core.errors import InputError

CATALOG = load_catalog()


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_rows_of_everything_and_of_one_kind() -> None:
    rows = device_rows(CATALOG)
    assert [row.name for row in rows] == [device.name for device in CATALOG.devices]
    assert {row.kind for row in rows} == set(LIST_KINDS)
    assert [row.name for row in device_rows(CATALOG, "host")] == list(CATALOG.hosts)


@pytest.mark.parametrize(
    ("name", "summary"),
    [
        ("qm9700", "64 x 400G osfp, ndr"),
        ("sn2201", "48 x 1G rj45 + 4 x 100G qsfp28, ethernet"),
        ("connectx-8", "1x800G / 2x400G / 4x200G / 8x100G, osfp, qsfp112"),
        ("dgx-h100", "8 x H100, 8 x 400G connectx-7"),
        ("mma4z00-ns", "transceiver, 2x400G, osfp, om4-mpo12, up to 50 m"),
        ("mcp7y10-n", "dac, 2x400G, osfp, qsfp112, up to 3 m"),
        ("os2-lc-duplex", "fibre, os2-lc"),
        ("ufm-enterprise-appliance", "subnet-manager"),
    ],
)
def test_summary(name: str, summary: str) -> None:
    assert {row.name: row.summary for row in device_rows(CATALOG)}[name] == summary


def test_unknown_kind() -> None:
    with pytest.raises(InputError, match=r'--kind: "swich" found.*Did you mean "switch"\?'):
        device_rows(CATALOG, "swich")


def test_each_group_is_shown_with_its_source() -> None:
    found = {group.title: group for group in device_groups(CATALOG.switch("sn5610"))}
    power = found["power"]
    assert ("with_optics_w", "2,080") in power.rows
    assert ("max_w", "unknown") in power.rows
    assert power.date == "2026-09"
    assert power.kind == "datasheet-via-secondary"
    assert "networking-docs.nvidia.com/sn5000hw" in power.source
    assert power.meaning == "a secondary source that quotes the vendor's datasheet"
    assert found["ports.breakouts_from"].kind == "derived"
    assert ("breakouts", "400: 2, 200: 4") in found["ports"].rows


def test_what_is_unknown_is_said() -> None:
    found = {group.title: group for group in device_groups(CATALOG.switch("sn4700"))}
    assert ("power", "unknown") in found["unknown"].rows
    assert not any(value == "0" for group in found.values() for _label, value in group.rows)


def test_lists_of_groups_are_shown_one_by_one() -> None:
    titles = [group.title for group in device_groups(CATALOG.host("dgx-b200"))]
    assert titles.count("rack_power[0]") == 1
    assert titles.count("rack_power[1]") == 1


@pytest.mark.parametrize("device", CATALOG.devices, ids=lambda device: device.name)
def test_every_number_of_a_device_is_shown(device: AnyDevice) -> None:
    shown = " ".join(value for group in device_groups(device) for _label, value in group.rows)
    for group in device_groups(device):
        assert bool(group.source) == (group.title not in {"", "unknown"})
    assert device.title in shown


def test_json_is_the_file_and_its_origin() -> None:
    content = device_json(CATALOG, CATALOG.switch("qm9700"))
    assert content["origin"] is None
    assert content["buffer_mb"] is None
    assert content["power"]["max_w"] == 1720
    assert content["ports"]["breakouts"] == {"200": 2}
    packaged = json.loads(packaged_devices())["devices"]["switches/qm9700.yaml"]
    assert content["ports"] | packaged["ports"] == content["ports"]
    assert json.loads(json.dumps(content)) == content


def test_command_list() -> None:
    output = run("list", "--kind", "nic")
    assert "connectx-7" in output
    assert "qm9700" not in output
    rows = json.loads(run("list", "--json"))
    assert rows[0].keys() == {"name", "kind", "vendor", "title", "summary", "origin"}
    assert len(rows) == len(CATALOG.devices)


def test_command_show() -> None:
    output = run("show", "QM9700")
    for text in ("1,720", "datasheet-via-secondary", "2026-09", "conflict", "unknown"):
        assert text in output
    assert json.loads(run("show", "dgx h100", "--json"))["name"] == "dgx-h100"


def test_command_show_names_the_nearest() -> None:
    with pytest.raises(InputError, match="dgx-h100"):
        run("show", "dgx-h1000")


def test_commands_take_a_folder(tmp_path: Path) -> None:
    source = device_json(CATALOG, CATALOG.switch("sn4700"))
    (tmp_path / "mine.yaml").write_text(
        "device: switch\nname: mine\ntitle: Mine [b]\nvendor: me\nfabric: roce\n"
        "generation: ethernet\nports: {count: 4, gbps: 400, cages: 4, cage: osfp, "
        f"source: {source['vendor']}, date: 2026, kind: vendor}}\n",
        encoding="utf-8",
    )
    rows = json.loads(run("list", "--kind", "switch", "--catalog", str(tmp_path), "--json"))
    origins = {row["name"]: row["origin"] for row in rows}
    assert origins["mine"] == str(tmp_path / "mine.yaml")
    assert origins["qm9700"] == ""
    assert "Mine [b]" in run("show", "mine", "--catalog", str(tmp_path))


@pytest.mark.parametrize("kind", DEVICE_KINDS)
def test_schema_accepts_the_packaged_files_and_nothing_unknown(kind: str) -> None:
    schema = device_schema(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    devices = json.loads(packaged_devices())["devices"].values()
    mine = [content for content in devices if content["device"] == kind]
    assert mine
    for content in mine:
        validator.validate(content)
    assert list(validator.iter_errors({**mine[0], "colour": "red"}))
    assert list(validator.iter_errors({**mine[0], "device": "toaster"}))


def test_schema_of_an_unknown_kind() -> None:
    with pytest.raises(InputError, match="switch, nic, host"):
        device_schema("toaster")
