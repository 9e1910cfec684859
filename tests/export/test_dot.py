from __future__ import annotations

import re
import subprocess
from collections import Counter
from xml.etree import ElementTree as ET

import pytest

from gpufabric.export import export_fabric
from gpufabric.model.fabric import Fabric
from tests.export.designs import (
    NDR_1024,
    PLANES,
    SMALL,
    SMALL_ROCE,
    by_hand,
    designed,
    links,
    options,
)


def text_of(fabric: Fabric, name: str, **changes: object) -> str:
    [text] = export_fabric(fabric, name, options(**changes)).values()
    return text


def dot(text: str, form: str) -> str:
    done = subprocess.run(
        ["dot", f"-T{form}"], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def svg_titles(svg: str, kind: str) -> list[str]:
    """Titles of the drawn nodes or edges."""
    space = "{http://www.w3.org/2000/svg}"
    return [
        str(group.findtext(f"{space}title"))
        for group in ET.fromstring(svg).iter(f"{space}g")
        if group.get("class") == kind
    ]


@pytest.mark.needs("dot")
@pytest.mark.parametrize("fabric", [by_hand(SMALL), by_hand(PLANES)], ids=["small", "planes"])
def test_graphviz_draws_every_device_and_pair(fabric: Fabric) -> None:
    svg = dot(text_of(fabric, "graphviz"), "svg")
    devices = {*fabric.hosts["name"].tolist(), *fabric.switches["name"].tolist()}
    assert sorted(svg_titles(svg, "node")) == sorted(devices)
    pairs = {(a.device, b.device) for a, b, _ in links(fabric)}
    drawn = [tuple(title.split("--")) for title in svg_titles(svg, "edge")]
    assert sorted(drawn) == sorted(pairs)


def test_parallel_links_are_one_edge_with_their_number() -> None:
    fabric = by_hand(SMALL)
    counted = Counter((a.device, b.device, gbps) for a, b, gbps in links(fabric))
    edges = re.findall(
        r'"(\S+)" -- "(\S+)" \[label="(?:(\d+) x )?([\d.]+)G"', text_of(fabric, "graphviz")
    )
    assert {(a, b, float(rate)): int(times or 1) for a, b, times, rate in edges} == counted


@pytest.mark.needs("dot")
def test_graphviz_reads_1024_gpus() -> None:
    fabric = designed(NDR_1024)
    canonical = dot(text_of(fabric, "graphviz"), "canon")
    assert canonical.count(" -- ") == len({(a.device, b.device) for a, b, _ in links(fabric)})


@pytest.mark.parametrize(
    "fabric", [by_hand(SMALL_ROCE), designed(NDR_1024, 1)], ids=["small", "1024 GPUs"]
)
def test_ptm_has_our_links(fabric: Fabric) -> None:
    text = text_of(fabric, "ptm", nos="sonic")
    plan = re.findall(r'^  "(\S+)":"(\S+)" -- "(\S+)":"(\S+)"$', text, re.MULTILINE)
    assert len(plan) == len(fabric.links)
    assert [(a, b) for a, _, b, _ in plan] == [(a.device, b.device) for a, b, _ in links(fabric)]
    ends = Counter(end for a, x, b, y in plan for end in ((a, x), (b, y)))
    assert set(ends.values()) == {1}


@pytest.mark.needs("dot")
def test_graphviz_reads_the_plan_of_ptm() -> None:
    fabric = by_hand(SMALL_ROCE)
    text = text_of(fabric, "ptm")
    assert '"leaf-p1-su1-r1":"swp1s0"' in text
    done = subprocess.run(
        ["dot", "-Tcanon"], input=text, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.count(" -- ") == len(fabric.links)
    # dot reads the port as a part of a record, which PTM's plain nodes are not.
    assert all(line.endswith("unrecognized") for line in done.stderr.splitlines())
