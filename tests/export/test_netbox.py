from __future__ import annotations

import csv
from collections import Counter

import pytest
from ruamel.yaml import YAML

from gpufabric.export import export_fabric
from gpufabric.model.fabric import Fabric
from tests.export.designs import (
    NDR_1024,
    PLANES,
    SMALL,
    SMALL_ROCE,
    by_hand,
    designed,
    grown,
    links,
    options,
)

FABRICS = {
    "small": by_hand(SMALL),
    "small roce": by_hand(SMALL_ROCE),
    "planes": by_hand(PLANES),
    "infiniband 1024": designed(NDR_1024),
    "roce 1024": designed(NDR_1024, 1),
}

# Columns that NetBox requires for a new object, from netbox/dcim/forms/bulk_import.py.
REQUIRED = {
    "1-manufacturers.csv": {"name", "slug"},
    "2-device-roles.csv": {"name", "slug", "color"},
    "3-sites.csv": {"name", "slug", "status"},
    "5-racks.csv": {"site", "name", "status", "width", "u_height"},
    "6-devices.csv": {"role", "manufacturer", "device_type", "status", "site"},
    "7-interfaces.csv": {"device", "name", "type"},
    "8-cables.csv": {
        *("side_a_device", "side_a_type", "side_a_name"),
        *("side_b_device", "side_b_type", "side_b_name"),
    },
}
# Choices, from netbox/dcim/choices.py.
INTERFACE_TYPES = {
    *("infiniband-hdr", "infiniband-ndr", "infiniband-xdr", "other"),
    *("200gbase-x-qsfp56", "400gbase-x-qsfpdd", "400gbase-x-osfp", "800gbase-x-osfp"),
    *("800gbase-x-qsfpdd", "400gbase-x-qsfp112", "100gbase-x-qsfp28", "1.6tbase-x-osfp1600"),
}
CABLE_TYPES = {"", "dac-passive", "dac-active", "aoc", "mmf-om4", "smf-os2"}

Rows = list[dict[str, str]]


def tables(fabric: Fabric, stage: int = 0) -> dict[str, Rows]:
    files = export_fabric(fabric, "netbox", options(stage=stage))
    return {
        name: list(csv.DictReader(text.splitlines()))
        for name, text in files.items()
        if name.endswith(".csv")
    }


def device_types(fabric: Fabric) -> Rows:
    text = export_fabric(fabric, "netbox", options())["4-device-types.yaml"]
    return list(YAML(typ="safe").load_all(text))


@pytest.fixture(params=list(FABRICS))
def fabric(request: pytest.FixtureRequest) -> Fabric:
    return FABRICS[request.param]


def test_required_columns_are_there_and_filled(fabric: Fabric) -> None:
    files = tables(fabric)
    assert set(files) == set(REQUIRED)
    for name, required in REQUIRED.items():
        assert all(row[column] for row in files[name] for column in required)


def test_every_name_that_is_used_is_imported_before(fabric: Fabric) -> None:
    files = tables(fabric)
    makers = {row["name"] for row in files["1-manufacturers.csv"]}
    roles = {row["name"] for row in files["2-device-roles.csv"]}
    [site] = files["3-sites.csv"]
    types = {(row["manufacturer"], row["model"]) for row in device_types(fabric)}
    racks = {row["name"] for row in files["5-racks.csv"]}
    assert {maker for maker, _ in types} <= makers
    for row in files["6-devices.csv"]:
        assert (row["manufacturer"], row["device_type"]) in types
        assert row["role"] in roles
        assert row["site"] == site["name"]
        assert row["rack"] in racks | {""}
        assert bool(row["face"]) == bool(row["rack"])
    devices = {row["name"] for row in files["6-devices.csv"]}
    interfaces = {(row["device"], row["name"]) for row in files["7-interfaces.csv"]}
    assert {device for device, _ in interfaces} <= devices
    for row in files["8-cables.csv"]:
        for side in "ab":
            assert (row[f"side_{side}_device"], row[f"side_{side}_name"]) in interfaces
            assert row[f"side_{side}_type"] == "dcim.interface"


def test_names_that_must_be_unique_are(fabric: Fabric) -> None:
    files = tables(fabric)
    keys = [
        [row["slug"] for row in files["1-manufacturers.csv"]],
        [row["slug"] for row in device_types(fabric)],
        [row["name"] for row in files["6-devices.csv"]],
        [(row["device"], row["name"]) for row in files["7-interfaces.csv"]],
        [
            (row[f"side_{side}_device"], row[f"side_{side}_name"])
            for row in files["8-cables.csv"]
            for side in "ab"
        ],
    ]
    assert all(max(Counter(names).values()) == 1 for names in keys)


def test_choices_are_those_of_netbox(fabric: Fabric) -> None:
    files = tables(fabric)
    assert {row["type"] for row in files["7-interfaces.csv"]} <= INTERFACE_TYPES
    assert {row["type"] for row in files["8-cables.csv"]} <= CABLE_TYPES
    assert {row["status"] for row in files["8-cables.csv"]} == {"planned"}
    assert all(
        row["length_unit"] == ("m" if row["length"] else "") for row in files["8-cables.csv"]
    )


def test_devices_interfaces_and_cables_are_ours(fabric: Fabric) -> None:
    files = tables(fabric)
    devices = {row["name"]: row for row in files["6-devices.csv"]}
    assert set(devices) == {*fabric.hosts["name"].tolist(), *fabric.switches["name"].tolist()}
    assert len(files["7-interfaces.csv"]) == len(fabric.ports)
    speeds = Counter(int(row["speed"]) for row in files["7-interfaces.csv"])
    assert speeds == Counter(round(gbps * 1e6) for gbps in fabric.ports["gbps"].tolist())
    pairs = [(row["side_a_device"], row["side_b_device"]) for row in files["8-cables.csv"]]
    assert pairs == [(a.device, b.device) for a, b, _ in links(fabric)]


def test_types_are_those_of_the_cages() -> None:
    def kinds(name: str) -> Counter[str]:
        return Counter(row["type"] for row in tables(FABRICS[name])["7-interfaces.csv"])

    assert set(kinds("infiniband 1024")) == {"infiniband-ndr"}
    assert set(kinds("roce 1024")) <= {"400gbase-x-osfp", "800gbase-x-osfp"}
    assert "400gbase-x-osfp" in kinds("roce 1024")


def test_places_lengths_and_cables_are_written_where_they_are_known() -> None:
    files = tables(by_hand(SMALL))
    assert files["5-racks.csv"][0] == {
        "site": "by-hand",
        "name": "R01",
        "status": "planned",
        "width": "19",
        "u_height": "48",
    }
    host = next(row for row in files["6-devices.csv"] if row["name"] == "host00002")
    assert (host["rack"], host["position"], host["role"]) == ("R01", "2", "host")
    assert [row["length"] for row in files["8-cables.csv"][:3]] == ["", "2.30", "2.30"]
    assert files["8-cables.csv"][0]["label"] == "C000001"


def test_only_what_is_built_today() -> None:
    fabric = grown(by_hand(SMALL))
    today, target = tables(fabric), tables(fabric, stage=1)
    for name in ("6-devices.csv", "7-interfaces.csv", "8-cables.csv"):
        assert 0 < len(today[name]) < len(target[name])
