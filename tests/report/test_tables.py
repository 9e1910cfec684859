from __future__ import annotations

import csv
import io
import re
from collections import Counter
from ipaddress import ip_interface

import pytest
from rich.console import Console

from gpufabric.report.address_csv import ADDRESS_COLUMNS, addresses_csv
from gpufabric.report.amounts import Currency
from gpufabric.report.bom_csv import BOM_COLUMNS, bom_csv
from gpufabric.report.design_table import design_facts
from gpufabric.report.fabric_table import fabric_counts, print_fabric
from gpufabric.report.side_by_side import Fact, side_by_side
from gpufabric.report.terminal import plan_facts, print_plan
from tests.report.designs import design, plan

SPEC = (
    "{name: A name, gpus: 256, host: dgx-h100, growth: {gpus: 512}, candidates: [infiniband, roce]}"
)
MANY = (
    "{gpus: 64, host: dgx-h100, candidates: "
    "[roce, infiniband, roce:sn4700, roce:sn5600, roce:sn5610]}"
)


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def printed(spec: str, width: int) -> str:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    print_plan(plan(spec), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_bom_csv_holds_every_line_with_its_totals() -> None:
    bill = plan(SPEC).candidates[0].bill
    rows = rows_of(bom_csv(bill))
    assert list(rows[0]) == [name for name, _meaning in BOM_COLUMNS]
    assert len(rows) == len(bill.lines)
    for row, line in zip(rows, bill.lines, strict=True):
        assert int(row["quantity"]) == line.quantity
        if line.price is None:
            assert row["mid_usd"] == row["total_mid_usd"] == ""
        else:
            assert float(row["total_mid_usd"]) == pytest.approx(
                line.quantity * line.price.mid_usd, abs=0.01
            )
            assert row["price_source"]


def test_unknown_is_never_shown_as_zero() -> None:
    bill = plan(SPEC).candidates[0].bill
    unpriced = [row for row in rows_of(bom_csv(bill)) if row["mid_usd"] == ""]
    assert unpriced
    assert {row["total_low_usd"] for row in unpriced} == {""}


def test_addresses_of_roce_are_addresses_and_used_once() -> None:
    made = plan(SPEC).candidates[1]
    rows = rows_of(addresses_csv(made.addressing, made.fabric))
    assert list(rows[0]) == [name for name, _meaning in ADDRESS_COLUMNS]
    kinds = [row["kind"] for row in rows]
    assert kinds.count("switch") == len(made.fabric.switches)
    assert kinds.count("link") == int((made.fabric.links.tier > 1).sum())
    assert kinds.count("host") == int((made.fabric.links.tier == 1).sum())
    single = [ip_interface(row["ipv4"]).ip for row in rows if row["kind"] != "subnet"]
    single += [ip_interface(row["peer_ipv4"]).ip for row in rows if row["peer_ipv4"]]
    assert len(single) == len(set(single))


def test_addresses_of_infiniband_are_lids_and_descriptions() -> None:
    made = plan(SPEC).candidates[0]
    rows = rows_of(addresses_csv(made.addressing, made.fabric))
    assert {row["kind"] for row in rows} == {"switch", "host"}
    lids = [row["lid"] for row in rows]
    assert all(lids)
    assert len(lids) == len(set(lids))
    assert all(row["description"] for row in rows)


def test_the_comparison_names_all_that_a_reader_asks_for() -> None:
    labels = {fact.label for fact in plan_facts(plan(SPEC)) if fact.is_told}
    assert {
        "Leafs",
        "Spines",
        "Cables",
        "Transceivers",
        "Network power, typical",
        "List price",
        "List price per GPU",
        "Share of hardware cost",
        "Bisection, one way",
        "Switches on a path",
        "Fits at most",
        "Bought when it grows",
        "Warnings",
    } <= labels


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("spec", [SPEC, MANY])
def test_no_line_is_wider_than_the_terminal(spec: str, width: int) -> None:
    text = printed(spec, width)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    for candidate in plan(spec).candidates:
        assert candidate.name in text


def test_growth_is_told_beside_today() -> None:
    text = printed(SPEC, 100)
    assert "A name: 256 GPUs on 32 × dgx-h100, growing to 512 GPUs" in text
    assert "32 hosts" in text


def test_warnings_are_written_out() -> None:
    made = plan(SPEC)
    text = " ".join(printed(SPEC, 100).split())
    warnings = [decision for one in made.candidates for decision in one.warnings]
    assert warnings
    for warning in warnings:
        assert " ".join(warning.why.split())[:60] in text


def test_an_amount_in_dollars_stays_so_where_no_rate_is_known() -> None:
    spec = "{gpus: 64, host: dgx-h100, candidates: [roce], site: {currency: CNY}}"
    text = " ".join(printed(spec, 100).split())
    assert "No rate of CNY is given (site.currency_rate): in USD." in text
    assert " USD (" in text


def test_an_amount_is_shown_in_the_currency_of_the_site() -> None:
    spec = (
        "{gpus: 64, host: dgx-h100, candidates: [roce], site: {currency: CNY, currency_rate: 7.2}}"
    )
    made = plan(spec).candidates[0]
    text = printed(spec, 100)
    assert f"{made.capital.network_per_gpu.mid_usd * 7.2:,.0f} CNY" in text


def test_many_candidates_take_several_tables() -> None:
    names = [f"candidate-{index}" for index in range(9)]
    facts = [Fact("Leafs", tuple(str(index) for index in range(9)))]
    tables = list(side_by_side(names, facts, 100))
    assert [len(table.columns) for table in tables] == [6, 5]
    narrow = list(side_by_side(names, facts, 60))
    assert [len(table.columns) for table in narrow] == [3, 3, 3, 3, 2]


def test_a_design_shows_no_tier_that_it_has_not() -> None:
    facts = {fact.label: fact for fact in design_facts([design("single")])}
    assert facts["Leafs"].values == ("1 × qfx5230-64cd",)
    assert not facts["Spines"].is_told


def test_the_counts_of_a_fabric_are_those_of_its_tables() -> None:
    fabric = design("grows").fabric
    counts = fabric_counts(fabric)
    assert counts["gpus"] == 2048
    assert counts["switches"] == {"leaf": 64, "spine": 32, "core": 0}
    assert counts["links"]["leaf_spine"] == 2048
    assert counts["later"]["hosts"] == 160


@pytest.mark.parametrize("width", range(60, 131))
def test_no_sign_of_a_value_is_lost(width: int) -> None:
    values = ("51.2 Tb/s (100 % of non-blocking)", "4,096 (later 8,192) × 400G", "网络功耗最大值")
    facts = [Fact("Network power, typical", (value,) * 3) for value in values]
    console = Console(width=width, file=io.StringIO(), highlight=False)
    for table in side_by_side(["a-candidate", "roce", "roce-2-to-1"], facts, width):
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    signs = Counter("".join(console.file.getvalue().split()))
    for sign in "%GbT×最":
        assert signs[sign] == 3 * sum(value.count(sign) for value in values), sign


def test_one_tier_is_one() -> None:
    facts = {fact.label: fact.values for fact in plan_facts(plan(MANY))}
    assert facts["Fits at most"][0] == "64 GPUs in 1 tier"
    facts = {fact.label: fact.values for fact in plan_facts(plan(SPEC))}
    assert facts["Fits at most"][0] == "2,048 GPUs in 2 tiers"


def test_links_of_managers_are_told_apart() -> None:
    facts = {fact.label: fact for fact in design_facts([design("su-31")])}
    assert facts["Links host–leaf"].values == ("248 × 400G",)
    assert facts["Links manager–leaf"].values == ("4 × 400G",)
    facts = {fact.label: fact for fact in design_facts([design("rail-1024")])}
    assert not facts["Links manager–leaf"].is_told


@pytest.mark.parametrize("width", [61, 76, 80])
def test_a_fabric_is_told_in_words_today_beside_later(width: int) -> None:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    print_fabric(design("grows").fabric, console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    told = [line.rstrip() for line in text.splitlines() if not line.startswith(" ")]
    rows = dict(re.split(r"  +", line, maxsplit=1) for line in told)
    assert rows["Hosts"] == "96 (later 256)"
    assert rows["Leafs"] == "24 (later 64)"
    assert rows["Spines"] == "32"
    assert rows["Links host–leaf"] == "768 (later 2,048) × 400G"
    assert rows["Hash"] == design("grows").fabric.content_hash


def test_racks_of_a_fabric_are_those_of_the_plan() -> None:
    made = plan(SPEC)
    facts = {fact.label: fact.values for fact in plan_facts(made)}
    console = Console(width=80, file=io.StringIO(), highlight=False)
    print_fabric(made.candidates[0].fabric, console)
    assert isinstance(console.file, io.StringIO)
    told = re.search(r"^Racks +(.+?) *$", console.file.getvalue(), re.MULTILINE)
    assert told is not None
    assert told[1] == facts["Racks"][0]
    assert "later" in told[1]


@pytest.mark.parametrize(
    ("low", "mid", "high", "words"),
    [
        (540_123, 741_000, 1_170_000, "0.74 M USD (0.54–1.17)"),
        (570_440_000, 876_620_000, 1_360_000_000, "876.62 M USD (570.44–1,360.00)"),
        (540_123, 741_000, 999_999, "741,000 USD (540,123–999,999)"),
    ],
)
def test_a_range_has_one_scale_and_no_billions(low: int, mid: int, high: int, words: str) -> None:
    assert Currency("USD", 1.0).range_words((low, mid, high)) == words


def test_billions_are_millions() -> None:
    assert Currency("USD", 1.0).words(1_004_000_000) == "1,004.00 M USD"
