from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

from gpufabric.core.text import use_language
from gpufabric.report.svg import text_width
from gpufabric.report.topology_svg import topology_svg
from tests.report.designs import FAMILIES, design
from tests.report.svg_texts import SVG, sheet, texts

MAX_BYTES = 500_000
DETAILED = ["pair", "single", "managers", "dual-tor", "rail-only-128", "nvl72-2", "one-gpu-hosts"]


@pytest.fixture(params=["en", "zh_CN"])
def language(request: pytest.FixtureRequest) -> Iterator[str]:
    use_language(request.param)
    yield request.param
    use_language("en")


@pytest.mark.parametrize("name", FAMILIES)
def test_the_figure_is_well_formed_small_and_the_same_each_time(name: str) -> None:
    fabric = design(name).fabric
    svg = topology_svg(fabric)
    root = ET.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert len(svg.encode()) < MAX_BYTES
    assert svg == topology_svg(fabric.replace())
    assert "http" not in svg.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "nan" not in svg


@pytest.mark.parametrize("name", FAMILIES)
def test_it_can_be_read_aloud(name: str) -> None:
    fabric = design(name).fabric
    root = ET.fromstring(topology_svg(fabric))
    named = root.attrib["aria-labelledby"].split()
    title, description = (root.find(f".//*[@id='{key}']") for key in named)
    assert title is not None
    assert f"{fabric.n_gpus:,}" in (title.text or "")
    assert description is not None
    assert fabric.name in (description.text or "")


@pytest.mark.parametrize("name", FAMILIES)
def test_no_text_leaves_the_sheet_and_none_lies_on_another(name: str, language: str) -> None:
    svg = topology_svg(design(name).fabric)
    width, height = sheet(svg)
    found = texts(svg)
    outside = [
        box
        for box in found
        if box.left < 0 or box.top < 0 or box.right > width or box.bottom > height
    ]
    assert outside == []
    clashes = [(a.text, b.text) for a, b in combinations(found, 2) if a.overlaps(b)]
    assert clashes == []


@pytest.mark.parametrize("name", FAMILIES)
def test_no_text_is_too_small_to_read(name: str) -> None:
    sizes = {
        float(size)
        for size in re.findall(r'font-size="([\d.]+)"', topology_svg(design(name).fabric))
    }
    assert min(sizes) >= 9


@pytest.mark.parametrize("name", DETAILED)
def test_a_small_fabric_shows_every_host_switch_and_link(name: str) -> None:
    fabric = design(name).fabric
    svg = topology_svg(fabric)
    notes = set(re.findall(r"<title>(\S+) [^<]*</title>", svg))
    assert set(fabric.hosts.name.tolist()) <= notes
    assert set(fabric.switches.name.tolist()) <= notes
    drawn = sum(steps.count("M") for steps in _link_paths(svg))
    assert drawn == len(fabric.links)


def _link_paths(svg: str) -> Iterator[str]:
    """Paths that are links: drawn with an opacity, as nothing else is."""
    for path in ET.fromstring(svg).iter(f"{SVG}path"):
        if path.get("opacity") and path.get("fill") == "none":
            yield path.attrib["d"]


@pytest.mark.parametrize("name", ["rail-1024", "tor-1024", "su-31", "grows"])
def test_by_su_every_su_is_drawn_with_its_links_counted(name: str) -> None:
    fabric = design(name).fabric
    words = [box.text for box in texts(topology_svg(fabric))]
    n_sus = len(np.unique(fabric.hosts.su[fabric.hosts.role == 0]))
    assert [f"SU {number}" for number in range(1, n_sus + 1)] == [
        word for word in words if re.fullmatch(r"SU \d+", word)
    ]
    counted = [
        int(match[1].replace(",", ""))
        for word in words
        if (match := re.fullmatch(r"([\d,]+) × [\d.]+[GT]", word))
    ]
    compute = fabric.hosts.role[fabric.port_vertex[fabric.links.port_a[fabric.links.tier == 1]]]
    assert sum(counted) == int((compute == 0).sum()) + int((fabric.links.tier == 2).sum())


def test_by_pod_every_pod_says_what_it_holds() -> None:
    fabric = design("three-tiers-16384").fabric
    words = [box.text for box in texts(topology_svg(fabric))]
    pods = [word for word in words if re.fullmatch(r"Pod \d+: \d+ SUs", word)]
    assert pods == ["Pod 1: 32 SUs", "Pod 2: 32 SUs"]
    assert words.count("1,024 hosts · 8,192 GPUs") == 2
    assert words.count("8,192 × 400G") == 6


def test_what_is_left_out_is_told() -> None:
    words = [box.text for box in texts(topology_svg(design("two-planes-8192").fabric))]
    told = [word for word in words if "not drawn" in word]
    assert len(told) == 1
    assert re.fullmatch(r"SU \d+ to SU 15 are not drawn: they are like SU 1\.", told[0])


def test_planes_that_are_not_drawn_are_told() -> None:
    words = [box.text for box in texts(topology_svg(design("four-planes-8192").fabric))]
    assert "Plane 0 is drawn; the other 3 are like it." in words


def test_what_comes_later_is_dashed() -> None:
    svg = topology_svg(design("grows").fabric)
    assert "768 GPUs growing to 2,048" in svg
    assert svg.count("stroke-dasharray") > 40


def test_every_pair_of_dragonfly_groups_has_its_chord() -> None:
    fabric = design("dragonfly").fabric
    svg = topology_svg(fabric)
    groups = len(np.unique(fabric.switches.pod))
    chords = sum(path.attrib["d"].count("Q") for path in ET.fromstring(svg).iter(f"{SVG}path"))
    assert chords == groups * (groups - 1) // 2


def test_widths_of_text_are_those_of_the_widest_font() -> None:
    # DejaVu Sans 2.37, table hmtx: H 752, o 612, s 521, t 392 of 1,000.
    assert text_width("Host", 10) == pytest.approx(7.52 + 6.12 + 5.21 + 3.92)
    assert text_width("主机", 10) == pytest.approx(20)


def test_hosts_that_come_later_are_told_and_their_links_dashed() -> None:
    svg = topology_svg(design("grows").fabric)
    words = [box.text for box in texts(svg)]
    assert "160 of them later" in words
    thick = [
        element
        for element in ET.fromstring(svg).iter(f"{SVG}path")
        if element.get("stroke-width") == "2"
    ]
    assert {element.get("stroke-dasharray") for element in thick} == {None, "4 3"}


def test_the_name_of_the_host_is_not_cut() -> None:
    assert "GRAND-TETON-H100" in topology_svg(design("tor-24576").fabric).split("</desc>")[1]
    assert not [box for box in texts(topology_svg(design("tor-24576").fabric)) if "…" in box.text]
