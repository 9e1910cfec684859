"""What the hook of the documentation derives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import run
from scripts import docs_pages


def entry(name: str, ours_s: float) -> dict[str, Any]:
    return {**dict.fromkeys(run.KEYS), "name": name, "ours_s": ours_s}


def written(path: Path, *entries: dict[str, Any]) -> Path:
    path.write_text(json.dumps(entries), encoding="utf-8")
    return path


def test_time_per_link_is_sorted_by_size(tmp_path: Path) -> None:
    path = written(
        tmp_path / "results.json",
        entry("design infiniband, 131072 GPUs, 262404 links", 0.0831),
        entry("design infiniband, 4096 GPUs, 6404 links", 0.0073),
        entry("design roce, 4096 GPUs, 6144 links", 0.6144),
        entry("plan infiniband, 4096 GPUs", 9.0),
    )
    assert docs_pages.design_table(path).splitlines() == [
        "| fabric | GPUs | links | µs per link |",
        "|---|--:|--:|--:|",
        "| infiniband | 4,096 | 6,404 | 1.14 |",
        "| roce | 4,096 | 6,144 | 100 |",
        "| infiniband | 131,072 | 262,404 | 0.317 |",
    ]


def test_no_result_is_told(tmp_path: Path) -> None:
    told = docs_pages.benchmark_table(tmp_path / "absent.json")
    assert docs_pages.design_table(tmp_path / "absent.json") == told
    assert "make bench" in docs_pages.design_table(written(tmp_path / "results.json"))


def test_the_page_of_performance_gets_both_tables() -> None:
    page = (docs_pages.ROOT / "docs/performance.md").read_text(encoding="utf-8")
    text = docs_pages.on_page_markdown(page)
    assert "<!--" not in text
    assert "## Design" in text
    assert docs_pages.benchmark_table(docs_pages.RESULTS) in text
    rows = docs_pages.design_table(docs_pages.RESULTS).splitlines()[2:]
    assert all(row in text for row in rows)
    sizes = [int(row.split("|")[2].replace(",", "")) for row in rows]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (1024, 131_072)


@pytest.mark.parametrize("page", ["# Home\n", ""])
def test_other_pages_stay_as_they_are(page: str) -> None:
    assert docs_pages.on_page_markdown(page) == page


def test_the_page_of_commands_has_a_title_of_its_own() -> None:
    page = docs_pages.commands_page()
    assert page.splitlines()[0] == "# Commands"
    assert "gpufabric plan" in page
