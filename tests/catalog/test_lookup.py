"""Names, aliases, typos, and hosts made to measure."""

from __future__ import annotations

from typing import Any

import pytest

from gpufabric.catalog.load import load_catalog
from gpufabric.core.errors import InputError

CATALOG = load_catalog()


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("QM9700", "qm9700"),
        ("MQM9700-NS2F", "qm9700"),
        ("SN5610", "sn5610"),
        ("Q3400", "q3400-ra"),
        ("q3400_ra", "q3400-ra"),
        ("NVIDIA Quantum-2 QM9790", "qm9790"),
        ("tomahawk-4-64x400g", "th4-64x400g"),
        ("7800R (CTSW)", "7800r-576"),
    ],
)
def test_switch_by_any_of_its_names(written: str, name: str) -> None:
    assert CATALOG.switch(written).name == name
    assert CATALOG.device(written) is CATALOG.switches[name]


@pytest.mark.parametrize("written", ["dgx-h100", "DGX H100", "Dgx_H100", "dgxh100"])
def test_host_by_any_spelling(written: str) -> None:
    assert CATALOG.host(written).name == "dgx-h100"


def test_other_kinds_by_name() -> None:
    assert CATALOG.nic("CX-7").name == "connectx-7"
    assert CATALOG.part("MCP4Y10-Nxxx").name == "mcp4y10-n"
    assert CATALOG.equipment_item("ufm").name == "ufm-enterprise-appliance"
    assert CATALOG.equipment_item("SN2201") is CATALOG.switch("sn2201")


@pytest.mark.parametrize(
    ("look_up", "written", "remedy"),
    [
        ("switch", "QM9800", 'Did you mean "qm9700"?'),
        ("switch", "sn56100", 'Did you mean "sn5610"?'),
        ("nic", "conectx-7", 'Did you mean "connectx-7"?'),
        ("host", "dgx-h10", 'Did you mean "dgx-h100"?'),
        ("part", "mma4z00-ms", 'Did you mean "mma4z00-ns"?'),
        ("equipment_item", "ufm-enterprize-appliance", '"ufm-enterprise-appliance"'),
        ("device", "dgx-b30", 'Did you mean "dgx-b300"?'),
        ("switch", "xyzzy", "gpufabric catalog list"),
        ("host", "qm9700", "gpufabric catalog list"),
    ],
)
def test_unknown_name_gives_the_nearest(look_up: str, written: str, remedy: str) -> None:
    with pytest.raises(InputError) as caught:
        getattr(CATALOG, look_up)(written)
    (fault,) = caught.value.faults
    assert f'"{written}"' in fault.what
    assert remedy in fault.remedy


def test_generic_host_takes_the_numbers_of_the_spec() -> None:
    host = CATALOG.generic_host(gpus=16, nics=8, nic_gbps=800, rails=4)
    assert (host.gpus, host.nics.count, host.nics.gbps) == (16, 8, 800)
    assert host.nics.rails == (0, 1, 2, 3, 0, 1, 2, 3)
    assert host.nics.model == "connectx-8"
    assert host.nvlink.domain_gpus == 16
    assert host.size == CATALOG.host("generic").size


@pytest.mark.parametrize(
    ("gbps", "nic"),
    [
        (100, "connectx-6"),
        (200, "connectx-6"),
        (400, "connectx-7"),
        (800, "connectx-8"),
        (1600, "connectx-9"),
    ],
)
def test_generic_host_takes_the_nic_of_the_speed(gbps: float, nic: str) -> None:
    assert CATALOG.generic_host(8, 8, gbps).nics.model == nic


def test_names_that_a_spec_is_held_against() -> None:
    known = CATALOG.known_names()
    assert known.switch("QM9700") == ("infiniband", "ndr")
    assert known.switch("tomahawk-4-64x400g") == ("roce", "ethernet")
    assert known.switch("qm97000") is None
    assert known.host_gpus("DGX H100") == 8
    assert known.host_gpus("gb300-nvl72") == 72


def test_generic_host_has_a_rail_for_each_nic_by_default() -> None:
    assert CATALOG.generic_host(4, 4, 400).nics.rails == (0, 1, 2, 3)
    assert CATALOG.generic_host(8, 8, 400).nics.rails == CATALOG.host("generic").nics.rails


def test_generic_host_takes_the_rail_of_each_nic() -> None:
    host = CATALOG.generic_host(8, 4, 200, rails=[0, 0, 1, 1])
    assert host.nics.rails == (0, 0, 1, 1)
    assert host.nics.model == "connectx-6"


@pytest.mark.parametrize(
    ("arguments", "where", "expected"),
    [
        ({"gpus": 0, "nics": 8, "nic_gbps": 400}, "gpus", "above 0"),
        ({"gpus": 8, "nics": -1, "nic_gbps": 400}, "nics", "above 0"),
        ({"gpus": 8, "nics": 8, "nic_gbps": 300}, "nic_gbps", "400"),
        ({"gpus": 8, "nics": 8, "nic_gbps": 400, "rails": 3}, "rails", "divides the NICs"),
        ({"gpus": 8, "nics": 4, "nic_gbps": 400, "rails": [0, 2]}, "rails", "divides the NICs"),
        ({"gpus": 8, "nics": 4, "nic_gbps": 400, "rails": []}, "rails", "divides the NICs"),
    ],
)
def test_generic_host_that_cannot_be(arguments: dict[str, Any], where: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        CATALOG.generic_host(**arguments)
    (fault,) = caught.value.faults
    assert fault.where == where
    assert expected in fault.expected
