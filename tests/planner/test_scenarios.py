"""Four questions as people ask them, answered by the numbers alone; run with -s for the margins.

No preference stands in the code: each test says which case wins, by how much and how surely, and
which number, turned how far, makes another win.
"""

from __future__ import annotations

import sys

import pytest

from gpufabric.planner.advice import Advice
from gpufabric.planner.flips import Change, Flip
from gpufabric.planner.network_share import networks_share
from tests.planner.worked import advice, money

DRAWS = "draws: 2048"
LARGE = (
    "{gpus: 10000, host: dgx-h100, candidates: [infiniband, {name: roce, fabric: roce, "
    "topology: rail}], team: {infiniband: expert, ethernet: expert}, "
    f"cost: {{decide_by: p90, {DRAWS}}}}}"
)
SERVING = (
    "{gpus: 256, host: hgx-b200, candidates: [infiniband, roce], "
    "workload: {kind: inference, parallelism: {tp: 8, ep: 32}, precision: fp8}, "
    f"team: {{infiniband: none, ethernet: expert}}, cost: {{{DRAWS}}}}}"
)
STARTUP = (
    "{gpus: 64, host: hgx-h100, candidates: [infiniband, roce], "
    "team: {infiniband: none, ethernet: none}, site: {rack_power_kw: 21, racks_per_row: 8}, "
    f"cost: {{{DRAWS}}}}}"
)
HUNDRED = f"{{gpus: 128, host: dgx-h100, candidates: [infiniband, roce], cost: {{{DRAWS}}}}}"


def told(name: str, found: Advice) -> None:
    """Print the decision and all that changes it."""
    assert found.margin is not None
    assert found.confidence is not None
    share = found.margin.mean / found.ranked(found.winner).total.mean
    first = f"{name}: {found.winner} before {found.runner_up} by {share:.1%}"
    say(f"{first}, {found.confidence:.0%} sure")
    for case in found.ranking:
        say(f"  {case.name}: mean {case.total.mean:,.0f}, P90 {case.total.p90:,.0f} USD")
    for sentence in (*(reason.sentence for reason in found.reasons), *found.conditions):
        say(f"  {sentence}")


def say(line: str) -> None:
    """Print a line, for those who run the test with -s."""
    sys.stdout.write(f"{line}\n")


def turned(found: Advice, key: str) -> Flip:
    return next(one for one in found.flips if one.key == key)


def winner_of(change: Change | None) -> str:
    return "" if change is None else change.winner


def test_10_000_gpus_that_must_be_stable_take_rail_optimised_roce_by_a_little() -> None:
    found = advice(LARGE)
    told("10,000 GPUs, training, by P90", found)
    assert (found.winner, found.runner_up) == ("roce", "infiniband")
    best, next_best = found.ranking[:2]
    assert 1.0 < next_best.total.p90 / best.total.p90 < 1.10
    assert 0.55 < (found.confidence or 0) < 0.80, "a small lead: two in three draws"
    items = {reason.item for reason in found.reasons}
    assert "links" in items, "three tiers of 64 ports need more modules than two of 128"
    assert "switches" in {reason.item for reason in found.contrasts[0].objections}
    plans = {one.name: one for one in money(LARGE).plan.candidates}
    counts = {name: one.bill.count("compute", "switch") for name, one in plans.items()}
    assert counts["infiniband"] > 1.3 * counts["roce"]
    # What makes InfiniBand win: a team that has not run RoCE, dearer or later Ethernet switches
    assert winner_of(turned(found, "skill.roce").below) == "infiniband"
    dearer = turned(found, "switch_price.roce").above
    assert dearer is not None
    assert dearer.winner == "infiniband"
    assert 1.02 < dearer.value < 1.3
    assert winner_of(turned(found, "deployment.extra_weeks.roce").above) == "infiniband"


def test_256_gpus_that_serve_with_an_ethernet_team_take_roce() -> None:
    found = advice(SERVING)
    told("256 GPUs, inference, expert Ethernet team", found)
    assert found.winner == "roce"
    assert found.ranked("infiniband").total.mean > 1.15 * found.ranked("roce").total.mean
    against = next(
        one for one in found.contrasts if one.other == found.runner_up and one.role == "runner_up"
    )
    assert against.chance > 0.55
    # Bought InfiniBand wins only with a team that knows it; without Ethernet's, a provider does
    assert winner_of(turned(found, "skill.infiniband").above) == "infiniband"
    assert winner_of(turned(found, "skill.roce").below).endswith("+naas")
    dearer = turned(found, "switch_price.roce").above
    assert dearer is not None
    assert 1.02 < dearer.value < 1.5


def test_64_gpus_without_network_people_take_roce_by_subscription() -> None:
    found = advice(STARTUP)
    told("64 GPUs, start-up, no network people", found)
    assert found.winner == "roce+naas"
    other_way = found.contrast("other_way")
    assert other_way is not None
    assert other_way.chance > 0.95, "that it is a subscription is sure"
    assert other_way.reasons[0].item == "staff"
    other_fabric = found.contrast("other_fabric")
    assert other_fabric is not None
    assert 0.5 < other_fabric.chance < 0.75, "that it is RoCE hangs on the price of one switch"
    assert winner_of(turned(found, "switch_price.roce").above) == "infiniband+naas"
    assert winner_of(turned(found, "fee.naas").above) == "infiniband+naas"


def test_a_start_up_with_twin_port_hosts_subscribes_to_infiniband() -> None:
    """The ports of a DGX take a module at each end of an Ethernet link; HGX hosts take one AOC."""
    found = advice(STARTUP.replace("hgx-h100", "dgx-h100"))
    told("64 GPUs, start-up, DGX hosts", found)
    assert found.winner == "infiniband+naas"
    assert found.runner_up == "roce+naas"
    assert found.margin is not None
    assert 0.05 < found.margin.mean / found.ranked(found.winner).total.mean < 0.2


def test_a_start_up_that_pays_enough_buys_instead() -> None:
    dear = STARTUP[:-1] + ", offers: [{name: naas, usd_per_port_month: 900}]}"
    assert advice(dear).winner == "infiniband"


@pytest.mark.parametrize(
    ("fabric", "low", "high"), [("infiniband", 0.15, 0.20), ("roce", 0.10, 0.15)]
)
def test_networks_of_100_gpus_are_10_to_20_per_cent_of_the_hardware(
    fabric: str, low: float, high: float
) -> None:
    plan = money(HUNDRED).plan
    share = networks_share(plan.candidate(fabric), plan.catalog)
    assert share is not None
    say(f"128 GPUs, {fabric}: {share.low:.1%}, {share.mid:.1%}, {share.high:.1%}")
    assert low < share.mid < high
    compute_alone = plan.candidate(fabric).capital.share
    assert compute_alone is not None
    assert compute_alone.mid < share.mid
