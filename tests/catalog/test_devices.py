"""What the models give beside what the files say."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from gpufabric.catalog.groups import Power, Price, Range
from gpufabric.catalog.load import load_catalog
from gpufabric.catalog.switch import Ports

CATALOG = load_catalog()
ORIGIN = {"source": "a test", "date": "2026", "kind": "assumed"}


def test_ports_at_native_and_broken_out_speed() -> None:
    sn5600 = CATALOG.switch("sn5600")
    assert [sn5600.port_count_at(gbps) for gbps in (800, 400, 200, 100)] == [64, 128, 256, None]
    qm9700 = CATALOG.switch("qm9700")
    assert [qm9700.port_count_at(gbps) for gbps in (400, 200, 100)] == [64, 128, None]
    assert CATALOG.switch("qm8700").port_count_at(100) == 80
    assert CATALOG.switch("q3400-ra").port_count_at(800) == 144


def test_capacity_is_of_one_direction() -> None:
    assert CATALOG.switch("qm9700").capacity_tbps == pytest.approx(25.6)
    assert CATALOG.switch("qm8700").capacity_tbps == pytest.approx(8.0)
    assert CATALOG.switch("sn5600").capacity_tbps == pytest.approx(51.2)
    assert CATALOG.switch("sn4700").capacity_tbps is None


def test_nic_modes_and_planes() -> None:
    modes = [(mode.ports, mode.gbps) for mode in CATALOG.nic("connectx-8").port_modes]
    assert modes == [(1, 800), (2, 400), (4, 200), (8, 100)]
    assert CATALOG.nic("connectx-8").ethernet_planes_default == 2
    assert CATALOG.nic("connectx-7").ethernet_planes_default is None
    modes = [(mode.ports, mode.gbps) for mode in CATALOG.nic("connectx-7").port_modes]
    assert modes == [(1, 400), (2, 200)]


def test_nvlink_is_none_where_gpus_talk_another_way() -> None:
    assert CATALOG.host("mi300x").nvlink is None
    assert CATALOG.host("mi300x").scale_up.gbytes_per_s_per_gpu == 896
    nvlink = CATALOG.host("dgx-h100").nvlink
    assert (nvlink.generation, nvlink.gbytes_per_s_per_gpu, nvlink.domain_gpus) == (4, 900, 8)
    assert CATALOG.host("gb300-nvl72").nvlink.domain_gpus == 72


def test_what_hosts_need_beside_the_compute_network() -> None:
    host = CATALOG.host("dgx-h100")
    assert (host.storage_nics.count, host.storage_nics.ports, host.storage_nics.gbps) == (2, 4, 400)
    assert host.management_ports == 1
    assert host.gpu == "H100"
    assert host.gpu_memory_gb == 80


def test_price_of_a_cable_grows_with_its_length() -> None:
    price = CATALOG.part("mcp4y10-n").price
    assert price.at(0)[1] == 260
    assert price.at(2)[1] == 440
    assert price.at(2)[0] / price.at(0)[0] == pytest.approx(440 / 260)


def test_price_that_is_all_per_metre() -> None:
    price = Price(low_usd=0, mid_usd=0, high_usd=0, usd_per_m=2, **ORIGIN)
    assert price.at(3) == (6, 6, 6)


def test_range_reckons_with_the_middle_unless_told() -> None:
    assert Range(low=1, high=3, **ORIGIN).value == 2
    assert Range(low=1, high=3, use=1.5, **ORIGIN).value == 1.5


@pytest.mark.parametrize(
    ("model", "numbers", "message"),
    [
        (Range, {"low": 2, "high": 1}, "low must not exceed high"),
        (Range, {"low": 1, "high": 2, "use": 3}, "use must lie between low and high"),
        (Power, {"typical_w": 5, "max_w": 4}, "typical_w must not exceed max_w"),
        (Power, {"max_w": 4, "max_low_w": 5}, "max_low_w must not exceed max_w"),
        (Price, {"low_usd": 2, "mid_usd": 1, "high_usd": 3}, "must rise"),
        (Ports, {"count": 5, "gbps": 1, "cages": 2, "cage": "osfp"}, "multiple of cages"),
        (
            Ports,
            {"count": 4, "gbps": 400, "cages": 4, "cage": "osfp", "breakouts": {200: 3}},
            "must not exceed the speed",
        ),
        (
            Ports,
            {"count": 4, "gbps": 400, "cages": 4, "cage": "osfp", "breakouts": {800: 1}},
            "slower than the port",
        ),
    ],
)
def test_numbers_that_contradict_each_other_are_refused(
    model: type[BaseModel], numbers: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        model(**numbers, **ORIGIN)


def test_devices_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        CATALOG.switch("qm9700").ports.count = 65
