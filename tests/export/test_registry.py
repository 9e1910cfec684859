from __future__ import annotations

import pytest

from gpufabric.core.errors import InputError, UnsupportedError
from gpufabric.export import EXPORTS, export_fabric, find_export
from gpufabric.model.check import check_fabric
from gpufabric.model.fabric import Fabric
from tests.export.designs import (
    NDR_1024,
    PLANES,
    RAIL_ONLY,
    SMALL,
    SMALL_ROCE,
    by_hand,
    designed,
    grown,
    options,
)

FABRICS = {
    "small": lambda: by_hand(SMALL),
    "small roce": lambda: by_hand(SMALL_ROCE),
    "planes": lambda: by_hand(PLANES),
    "rail only": lambda: by_hand(RAIL_ONLY),
    "grown": lambda: grown(by_hand(SMALL_ROCE)),
    "infiniband 1024": lambda: designed(NDR_1024, 0),
    "roce 1024": lambda: designed(NDR_1024, 1),
}

ONLY_ROCE = {"air", "containerlab", "ptm"}


@pytest.fixture(params=list(FABRICS))
def fabric(request: pytest.FixtureRequest) -> Fabric:
    return FABRICS[request.param]()


def test_names_are_unique_and_in_order() -> None:
    names = [export.name for export in EXPORTS]
    assert names == sorted(set(names))


def test_every_export_says_what_it_is_for() -> None:
    assert all(len(export.describe()) > 20 for export in EXPORTS)


def test_the_fabrics_of_these_tests_are_sound(fabric: Fabric) -> None:
    assert check_fabric(fabric) == []


@pytest.mark.parametrize("name", [export.name for export in EXPORTS])
def test_every_format_takes_every_fabric_of_its_protocol(fabric: Fabric, name: str) -> None:
    is_roce = fabric.protocol == "roce"
    if (name == "ibsim" and is_roce) or (name in ONLY_ROCE and not is_roce):
        with pytest.raises(UnsupportedError, match=fabric.protocol):
            export_fabric(fabric, name, options())
        return
    files = export_fabric(fabric, name, options(nos="cumulus" if is_roce else ""))
    again = export_fabric(fabric, name, options(nos="cumulus" if is_roce else ""))
    assert files == again
    assert any(file.endswith(find_export(name).suffix) for file in files)
    assert all(text.endswith("\n") for text in files.values())


def test_names_are_found_whatever_their_case() -> None:
    assert find_export("SimAI").name == "simai"


def test_an_unknown_name_gives_the_nearest() -> None:
    with pytest.raises(InputError, match=r'no export is called "netbocks".*Did you mean "netbox"'):
        find_export("netbocks")


def test_an_unknown_nos_gives_the_nearest() -> None:
    with pytest.raises(InputError, match=r'nos: "sonik".*Did you mean "sonic"'):
        export_fabric(by_hand(SMALL_ROCE), "ptm", options(nos="sonik"))
