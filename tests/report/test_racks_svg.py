from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import combinations

import pytest

from gpufabric.core.text import use_language
from gpufabric.planner.compare import CandidatePlan
from gpufabric.report.rack_kinds import rack_kinds
from gpufabric.report.racks_svg import racks_svg
from gpufabric.topology.rack_power import RackPower, rack_power
from tests.report.designs import plan
from tests.report.svg_texts import SVG, sheet, texts

SPECS = {
    "64": "{gpus: 64, host: dgx-h100, candidates: [{fabric: infiniband, topology: fat-tree}]}",
    "1024": "{gpus: 1024, host: dgx-h100, candidates: [infiniband]}",
    "grows": "{gpus: 768, host: dgx-h100, growth: {gpus: 2048}, candidates: [infiniband]}",
    "nvl72": "{hosts: 16, host: gb300-nvl72, candidates: [infiniband]}",
    "16384": "{gpus: 16384, host: dgx-h100, candidates: [{fabric: roce}]}",
    "tor": (
        "{gpus: 512, host: dgx-h100, candidates: [{fabric: roce, topology: fat-tree, "
        "hosts_per_rack: 2, su_hosts: 2, leafs_per_host: 1}]}"
    ),
}


def planned(name: str) -> CandidatePlan:
    return plan(SPECS[name]).candidates[0]


def power_of(one: CandidatePlan) -> RackPower:
    return rack_power(one.fabric, one.placement.footprints, one.cabling)


def drawn(name: str) -> str:
    one = planned(name)
    site = plan(SPECS[name]).requirement.site
    return racks_svg(one.fabric, one.placement.footprints, power_of(one), site)


@pytest.mark.parametrize("name", SPECS)
def test_the_drawing_is_well_formed_small_and_the_same_each_time(name: str) -> None:
    svg = drawn(name)
    ET.fromstring(svg)
    assert len(svg.encode()) < 500_000
    assert svg == drawn(name)


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("name", SPECS)
def test_no_text_leaves_the_sheet_and_none_lies_on_another(name: str, language: str) -> None:
    one = planned(name)  # planned in English: only the drawing is translated
    assert one.fabric.n_gpus
    use_language(language)
    try:
        svg = drawn(name)
    finally:
        use_language("en")
    width, height = sheet(svg)
    found = texts(svg)
    assert [b for b in found if b.left < 0 or b.right > width or b.bottom > height] == []
    assert [(a.text, b.text) for a, b in combinations(found, 2) if a.overlaps(b)] == []


@pytest.mark.parametrize("name", SPECS)
def test_every_rack_is_of_one_kind_and_every_device_in_one_rack(name: str) -> None:
    one = planned(name)
    kinds = rack_kinds(one.fabric, one.placement.footprints, power_of(one))
    racks = [rack for kind in kinds for rack in kind.racks]
    assert sorted(racks) == list(range(len(one.fabric.racks)))
    devices = sum(len(kind.racks) * len(kind.devices) for kind in kinds)
    assert devices == len(one.fabric.hosts) + len(one.fabric.switches)
    for kind in kinds:
        assert kind.used_units <= kind.units
        assert len(kind.devices) == len({device.unit for device in kind.devices})


@pytest.mark.parametrize("name", SPECS)
def test_racks_of_one_kind_draw_the_same_power(name: str) -> None:
    one = planned(name)
    power = power_of(one)
    for kind in rack_kinds(one.fabric, one.placement.footprints, power):
        for rack in kind.racks:
            assert power.max_w[rack] == pytest.approx(kind.max_w)


def test_each_kind_is_drawn_once_with_the_number_of_its_racks() -> None:
    words = [box.text for box in texts(drawn("1024"))]
    one = planned("1024")
    kinds = rack_kinds(one.fabric, one.placement.footprints, power_of(one))
    heads = [word for word in words if re.fullmatch(r"[A-Z]+: [\d,]+ racks?", word)]
    assert len(heads) == len(kinds)
    assert heads[0] == "A: 32 racks"
    letters = Counter(word for word in words if re.fullmatch("[A-C]", word))
    assert letters["A"] >= 32


def test_a_rack_that_draws_more_than_it_may_is_marked() -> None:
    svg = drawn("nvl72")
    assert re.search(r'fill="#b3261e">At most 142.0 kW of 40.8 kW<', svg)
    assert "#b3261e" not in drawn("1024")


def test_the_names_of_devices_stand_in_the_elevation() -> None:
    words = {box.text for box in texts(drawn("64"))}
    assert {"host-01", "host-04", "leaf-a", "leaf-b"} <= words


def test_500_racks_take_few_elevations() -> None:
    one = planned("16384")
    assert len(one.fabric.racks) > 500
    heads = re.findall(r">[A-Z]+: [\d,]+ racks?<", drawn("16384"))
    assert len(heads) < 10


def test_one_rack_is_one() -> None:
    words = " ".join(box.text for box in texts(drawn("64")))
    assert "1 network rack " in words
    assert "2 compute racks " in words


def test_racks_that_come_later_are_dashed_on_the_floor() -> None:
    one = planned("grows")
    kinds = rack_kinds(one.fabric, one.placement.footprints, power_of(one))
    later = sum(len(kind.racks) for kind in kinds if kind.is_later)
    built = set(one.fabric.hosts.rack[one.fabric.hosts.stage == 0].tolist())
    built |= set(one.fabric.switches.rack[one.fabric.switches.stage == 0].tolist())
    assert later == len(one.fabric.racks) - len(built) > 0
    dashed = [
        element.get("d", "").count("z")
        for element in ET.fromstring(drawn("grows")).iter(f"{SVG}path")
        if element.get("stroke-dasharray")
    ]
    assert sum(dashed) == later
