from __future__ import annotations

import csv
import re

import numpy as np
import pytest

from gpufabric.export import export_fabric
from gpufabric.model.fabric import Fabric
from gpufabric.model.tables import LINK_TIERS
from tests.export.designs import (
    NDR_1024,
    PLANES,
    SMALL_ROCE,
    by_hand,
    designed,
    grown,
    links,
    options,
)

FABRICS = {
    "small roce": by_hand(SMALL_ROCE),
    "planes": by_hand(PLANES),
    "1024 GPUs": designed(NDR_1024),
}


def rows(fabric: Fabric, stage: int = 0) -> list[dict[str, str]]:
    text = export_fabric(fabric, "edges", options(stage=stage))["edges.csv"]
    return list(csv.DictReader(text.splitlines()))


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS)
def test_both_ends_of_every_link_are_there(fabric: Fabric) -> None:
    for row, (a, b, gbps) in zip(rows(fabric), links(fabric), strict=True):
        assert (row["a_device"], int(row["a_port"]) - 1) == (a.device, a.port)
        assert (row["b_device"], int(row["b_port"]) - 1) == (b.device, b.port)
        assert (row["a_kind"], row["b_kind"]) == (
            "host" if a.nic is not None else "switch",
            "switch",
        )
        assert float(row["gbps"]) == gbps


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS)
def test_facts_of_the_links_are_there(fabric: Fabric) -> None:
    table = fabric.links
    for row in rows(fabric):
        link = int(row["link"])
        assert row["tier"] == LINK_TIERS[int(table["tier"][link])]
        assert int(row["plane"]) == table["plane"][link]
        assert int(row["rail"] or -1) == table["rail"][link]
        assert int(row["cable"]) == table["cable"][link]
        length_m = table["length_m"][link]
        if np.isnan(length_m):
            assert row["length_m"] == ""
        else:
            assert float(row["length_m"]) == pytest.approx(length_m, rel=1e-3)
        part = table["part"][link]
        assert row["part"] == ("" if part < 0 else fabric.parts[part])


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS)
def test_the_text_says_the_same(fabric: Fabric) -> None:
    text = export_fabric(fabric, "edges", options())["edges.txt"]
    plain = re.findall(r"^(\S+) (\S+) +-- (\S+) (\S+) +([\d.]+) (\w+)$", text, re.MULTILINE)
    keys = ("a_device", "a_interface", "b_device", "b_interface", "gbps", "tier")
    assert plain == [tuple(row[key] for key in keys) for row in rows(fabric)]
    assert text.isascii()


def test_growth_adds_links_and_changes_none() -> None:
    fabric = grown(by_hand(SMALL_ROCE))
    today, target = rows(fabric), rows(fabric, stage=1)
    assert 0 < len(today) < len(target) == len(fabric.links)
    assert [row for row in target if row in today] == today
