from __future__ import annotations

import csv
import io
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from gpufabric.core.errors import InputError
from gpufabric.topology.cable_table import (
    CABLE_COLUMNS,
    LABEL_WIDTH,
    cable_rows,
    cables_csv,
)
from tests.topology.make_laid import Laid, laid, spec, specs

NDR = "fabric: infiniband"
Row = dict[str, str]


def table(whole: Laid) -> list[Row]:
    """Return the CSV as a reader of it sees it."""
    return list(csv.DictReader(io.StringIO(cables_csv(whole.cabling).decode("utf-8"))))


def legs(row: Row, column: str) -> list[str]:
    return row[column].split(" | ")


def ends(row: Row) -> set[tuple[str, str]]:
    """Return device and port at every link of a cable."""
    found = {(row["from_device"], port) for port in row["from_port"].split("+")}
    for device, ports in zip(legs(row, "to_device"), legs(row, "to_port"), strict=True):
        found |= {(device, port) for port in ports.split("+")}
    return found


def test_the_columns_are_documented_and_those_of_the_file() -> None:
    rows = table(laid(spec("dgx-h100", 64, NDR)))
    assert list(rows[0]) == [name for name, _meaning in CABLE_COLUMNS]
    assert all(meaning for _name, meaning in CABLE_COLUMNS)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(specs(max_gpus=3000))
def test_each_cable_is_one_row_with_all_its_ends(text: str) -> None:
    try:
        whole = laid(text)
    except InputError:
        assume(False)
    fabric, rows = whole.fabric, table(whole)
    media = {entry.name: entry for entry in whole.cabling.media}
    pieces = np.array([media[name].cables_per_link for name in fabric.parts])
    first = whole.cabling.first_links
    assert len(rows) == int(pieces[fabric.links.part[first]].sum())
    assert len({row["cable"] for row in rows}) == len(rows)

    assert sum(int(row["links"]) for row in rows) == len(fabric.links)
    check_labels(rows)
    for row in rows[:: 1 + len(rows) // 100]:
        number = int(row["cable"].strip("CAB")) - 1
        views = [fabric.link_view(i) for i in np.flatnonzero(fabric.links.cable == number)]
        expected = {(view.a, view.a_port) for view in views} | {(v.b, v.b_port) for v in views}
        assert ends(row) == expected
        counted = 0 if row["cable"][-1] == "B" else len(views)
        assert int(row["links"]) == counted
        assert len(views) == len(expected) / 2


def check_labels(rows: list[Row]) -> None:
    """Check that labels fit a flag and that no two are alike."""
    seen: Counter[tuple[str, str]] = Counter()
    for row in rows:
        seen[row["from_label_1"], row["from_label_2"]] += 1
        for pair in zip(legs(row, "to_label_1"), legs(row, "to_label_2"), strict=True):
            seen[pair] += 1
    assert max(seen.values()) == 1
    assert max(len(line) for pair in seen for line in pair) <= LABEL_WIDTH
    assert all(line.isascii() and line.isprintable() for pair in seen for line in pair)


def test_a_crew_can_work_rack_by_rack() -> None:
    whole = laid(spec("dgx-h100", 1016, NDR))
    rows = table(whole)
    names = whole.fabric.racks.name.tolist()
    work = [(names.index(row["from_rack"]), -int(row["from_unit"])) for row in rows]
    assert work == sorted(work)
    numbers = [row["cable"] for row in rows]
    assert numbers == sorted(numbers)
    assert (numbers[0], numbers[-1]) == ("C0001", "C2042")


def test_a_row_of_the_h100_superpod() -> None:
    row = table(laid(spec("dgx-h100", 1016, NDR)))[0]
    assert row == {
        "cable": "C0001",
        "from_rack": "A01",
        "from_unit": "25",
        "from_device": "host-004",
        "from_cage": "1",
        "from_lane": "1",
        "from_port": "nic0",
        "from_module": "mma4z00-ns-flt",
        "to_rack": "A05",
        "to_unit": "48",
        "to_device": "leaf-su01-r0",
        "to_cage": "2",
        "to_lane": "2",
        "to_port": "2/2",
        "to_module": "mma4z00-ns",
        "part": "mfp7e10-n",
        "medium": "optics",
        "length_m": "7",
        "links": "1",
        "gbps": "400",
        "rail": "0",
        "plane": "0",
        "tier": "host_leaf",
        "stage": "0",
        "from_label_1": "C0001 A01-25:1/1",
        "from_label_2": "> A05-48:2/2",
        "to_label_1": "C0001 A05-48:2/2",
        "to_label_2": "> A01-25:1/1",
    }


def test_a_splitting_cable_is_one_row_that_lists_its_far_ends() -> None:
    whole = laid(spec("hgx-h100", 1024, "fabric: roce, switch: sn5600"))
    row = next(row for row in table(whole) if row["tier"] == "host_leaf")
    assert row["from_device"].startswith("leaf-")
    assert (row["from_lane"], row["links"], row["medium"]) == ("1+2", "2", "aoc")
    assert legs(row, "to_device") == ["host-001", "host-002"]
    assert legs(row, "to_unit") == ["1", "9"]
    assert row["to_lane"] == ""
    assert row["from_label_2"].endswith(" +1")
    assert len(legs(row, "to_label_1")) == 2


def test_a_twin_port_cable_is_one_row_with_one_far_end() -> None:
    whole = laid(spec("dgx-h100", 64, "fabric: infiniband, switch: qm9700, topology: fat-tree"))
    row = next(row for row in table(whole) if row["tier"] == "leaf_leaf")
    assert (row["part"], row["links"], row["from_module"]) == ("mcp4y10-n", "2", "")
    assert (row["from_lane"], row["to_lane"]) == ("1+2", "1+2")
    assert "/" not in row["from_label_1"]  # the plug fills the cage


def test_the_cable_of_a_manager_lists_both_leafs() -> None:
    whole = laid(spec("dgx-h100", 1016, NDR))
    rows = [row for row in table(whole) if row["tier"] == "manager_leaf"]
    assert [row["from_device"] for row in rows] == ["manager-01", "manager-02"]
    assert all(len(legs(row, "to_device")) == 2 for row in rows)
    assert {row["part"] for row in rows} == {"mfp7e20-n"}
    assert {row["rail"] for row in rows} == {""}


def test_two_fibres_of_one_link_are_two_rows() -> None:
    site = "{cable_slack_m: 40}"  # beyond the 30 m of AOC
    whole = laid(spec("hgx-h100", 1024, "fabric: roce, switch: sn5600", site))
    rows = [row for row in table(whole) if row["tier"] == "leaf_spine"]
    assert {row["medium"] for row in rows} == {"optics"}
    assert len(rows) == 2 * 512
    assert [row["cable"][-1] for row in rows[:4]] == ["A", "B", "A", "B"]
    assert rows[0]["to_device"] == rows[1]["to_device"]
    assert [row["links"] for row in rows[:4]] == ["1", "0", "1", "0"]


def test_what_is_laid_later_is_marked() -> None:
    whole = laid(spec("dgx-h100", 512, NDR, more="growth: {gpus: 1024}\n"))
    stages = Counter(row["stage"] for row in table(whole) if row["tier"] == "host_leaf")
    assert stages == {"0": 512, "1": 512}


def test_the_table_is_the_same_bytes_each_time() -> None:
    cabling = laid(spec("dgx-h100", 1016, NDR)).cabling
    assert cables_csv(cabling) == cables_csv(cabling)


def test_a_hundred_thousand_rows_take_less_than_two_seconds() -> None:
    cabling = laid(spec("dgx-h100", 8192, NDR)).cabling
    times = []
    for _attempt in range(2):
        start = time.process_time()
        n_rows = cables_csv(cabling).count(b"\n") - 1
        times.append(time.process_time() - start)
    assert n_rows == 24_576 == sum(1 for _row in cable_rows(cabling))
    assert min(times) * 100_000 / n_rows < 2.0


@pytest.mark.parametrize("name", ["A01", "rack in the cellar"])
def test_labels_stay_within_their_width_whatever_the_racks_are_called(name: str) -> None:
    whole = laid(spec("dgx-h100", 64, NDR))
    fabric = whole.fabric
    names = np.array([f"{name[:13]} {i:02d}" for i in range(len(fabric.racks))])
    renamed = fabric.replace(racks=fabric.racks.replace(name=names))
    cabling = type(whole.cabling)(
        renamed,
        whole.cabling.media,
        whole.cabling.cages,
        whole.cabling.is_manager,
        whole.cabling.decisions,
    )
    rows = list(csv.DictReader(io.StringIO(cables_csv(cabling).decode())))
    check_labels(rows)
