"""What must come out, since it can be worked out by hand."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from gpufabric.sim.routing_choice import SEED_SCOPES, Routing
from gpufabric.sim.run import Plant, run_scenario
from gpufabric.sim.scenario import Scenario
from gpufabric.sim.traffic import PatternOptions
from gpufabric.sim.traffic_result import TrafficResult
from tests.sim.plants import (
    HALF_SMALL_LEAFS,
    NON_BLOCKING,
    RAIL,
    RAIL_ONLY,
    SMALL_LEAFS,
    THREE_TIERS,
    across_leafs,
    leaf_of,
    plant,
    traffic,
)

GB = PatternOptions(1e9)
SPRAY = Routing("spray")
LEAF_SPINE = ("leaf_spine up", "leaf_spine down")


def transfer_s(result: TrafficResult) -> float:
    """Time of the last byte without the delay of its path."""
    took_s = result.completion_s
    assert took_s is not None
    return took_s - 2e-6  # some 1.2 us at the ends of flows, 1.5 us in three switches


def channels_of_tier(result: TrafficResult, tier: str) -> np.ndarray:
    return np.flatnonzero(result.channels.tier == result.channels.tiers.index(tier))


@pytest.mark.parametrize("mode", ["spray", "adaptive"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_permutation_on_a_non_blocking_fat_tree_runs_at_line_rate(mode: str, seed: int) -> None:
    result = run_scenario(
        plant(NON_BLOCKING, 256), Scenario("permutation", GB, Routing(mode), seed=seed)
    )
    crossed = result.hops > 0
    assert crossed.sum() > 200
    assert result.mean_gbps[crossed] == pytest.approx(400.0, rel=2e-4)  # 3 us of 20 ms
    assert result.slowdown == pytest.approx(1.0, rel=1e-9)
    assert result.fairness == pytest.approx(1.0, rel=1e-6)


# ECMP: balls into bins ---------------------------------------------------------------------------


@functools.cache
def at_most(balls: int, bins: int, most: int) -> float:
    """Chance that no bin of `bins` holds more than `most` of `balls` thrown at random.

    balls! / bins^balls times the coefficient of x^balls in (sum of x^j / j! for j up to most)^bins;
    worked in exact arithmetic on whole numbers: ways to fill one bin after the other.
    """
    ways = [1] + [0] * balls  # ways[n]: orders in which n balls fill the bins so far
    for _bin in range(bins):
        ways = [
            sum(math.comb(total, here) * ways[total - here] for here in range(min(most, total) + 1))
            for total in range(balls + 1)
        ]
    return ways[balls] / bins**balls


def largest_load(balls_of_leaf: list[int], bins: int) -> tuple[float, float]:
    """Mean and variance of the largest load on any uplink of independent leafs."""
    mean = square = 0.0
    before = 0.0
    for most in range(max(balls_of_leaf) + 1):
        chance = math.prod(at_most(balls, bins, most) for balls in balls_of_leaf)
        mean += most * (chance - before)
        square += most**2 * (chance - before)
        before = chance
    return mean, square - mean**2


def test_the_balls_in_bins_value_is_right() -> None:
    # Three balls in three bins: 6 of 27 ways leave one in each, 3 put all in one.
    assert at_most(3, 3, 1) == pytest.approx(6 / 27)
    assert largest_load([3], 3) == (
        pytest.approx((1 * 6 + 2 * 18 + 3 * 3) / 27),
        pytest.approx((6 + 4 * 18 + 9 * 3) / 27 - (51 / 27) ** 2),
    )


def test_an_ecmp_permutation_loads_uplinks_as_balls_fill_bins() -> None:
    """Each seed's largest load on an uplink against its exact expectation, over 40 seeds.

    Tolerance: four standard deviations of the mean of 40 draws, from the exact variances.
    """
    system = plant(NON_BLOCKING, 256)
    leaf = leaf_of(system)
    difference, variance, n_seeds = 0.0, 0.0, 40
    for seed in range(n_seeds):
        result = run_scenario(
            system, Scenario("permutation", GB, Routing("ecmp"), seed=seed, n_bins=0)
        )
        src, dst = leaf[result.traffic.src], leaf[result.traffic.dst]
        balls = np.bincount(src[src != dst], minlength=8)[np.unique(leaf)].tolist()
        mean, spread = largest_load(balls, 32)
        uplinks = channels_of_tier(result, "leaf_spine up")
        assert len(uplinks) == 8 * 32
        difference += float(result.carried_bytes[uplinks].max() / 1e9) - mean
        variance += spread
        # A flow that shares its worst channel with k others gets 1 / (k + 1) of it at least.
        most = max(
            result.carried_bytes[channels_of_tier(result, tier)].max() for tier in LEAF_SPINE
        )
        assert transfer_s(result) <= most / 50e9 * (1 + 1e-4)
    assert abs(difference) / n_seeds <= 4 * math.sqrt(variance) / n_seeds


def test_one_seed_everywhere_polarises() -> None:
    """Where spines repeat the hash of the leafs, few links of the cores are used."""
    system = plant(THREE_TIERS, 256)
    used = {}
    for scope in SEED_SCOPES:
        routing = Routing("ecmp", hash_seeds=scope)
        result = run_scenario(system, Scenario("permutation", GB, routing, n_bins=0))
        down = channels_of_tier(result, "spine_core down")
        used[scope] = int(np.count_nonzero(result.carried_bytes[down]))
    assert used["fabric"] < 0.6 * used["switch"]
    assert used["fabric"] < 0.6 * used["tier"]


# Capacity ----------------------------------------------------------------------------------------


def test_two_to_one_oversubscription_halves_an_all_to_all_across_leafs() -> None:
    full, half = plant(SMALL_LEAFS, 128), plant(HALF_SMALL_LEAFS, 128)
    took_s = []
    for system in (full, half):
        up = system.channels.fabric.links.tier == 2
        room_gbps = float(system.fabric.links.gbps[up].sum())
        flows = across_leafs(system, 1e7)
        result = run_scenario(system, Scenario("test", routing=SPRAY, n_bins=0), flows)
        # 128 GPUs send to 120 on other leafs, four of them in their own host.
        sent_bytes = 128 * 116 * 1e7
        assert transfer_s(result) == pytest.approx(sent_bytes / (room_gbps * 1.25e8), rel=1e-4)
        took_s.append(transfer_s(result))
    assert took_s[1] / took_s[0] == pytest.approx(2.0, rel=1e-4)


def test_a_failed_spine_costs_its_share_when_flows_are_spread_anew() -> None:
    system = plant(NON_BLOCKING, 256)
    flows = across_leafs(system, 1e6)
    whole = run_scenario(system, Scenario("test", routing=SPRAY, n_bins=0), flows)
    broken = run_scenario(
        system, Scenario("test", routing=SPRAY, fail=("switch:spine-02",), n_bins=0), flows
    )
    assert transfer_s(broken) / transfer_s(whole) == pytest.approx(4 / 3, rel=1e-3)


def test_ecmp_puts_the_load_of_a_failed_spine_on_the_others() -> None:
    system = plant(NON_BLOCKING, 256)
    flows = across_leafs(system, 1e6)
    whole, broken = (
        run_scenario(system, Scenario("test", routing=Routing("ecmp"), fail=fail, n_bins=0), flows)
        for fail in ((), ("switch:spine-02",))
    )
    up = channels_of_tier(whole, "leaf_spine up")
    owner = system.channels.head[up]
    before, after = (
        np.bincount(owner, result.carried_bytes[up])[np.unique(owner)] for result in (whole, broken)
    )
    assert before.sum() == pytest.approx(after.sum())
    assert before == pytest.approx(before.sum() / 4, rel=0.02)  # 57,344 flows: 1 % is 2.6 sigma
    assert after[1] == 0
    assert after[[0, 2, 3]] == pytest.approx(after.sum() / 3, rel=0.02)


# Rail-only ---------------------------------------------------------------------------------------

HOST_GPUS = 8


def all_to_all(system: Plant, cross_rail: str, mode: str = "ecmp") -> TrafficResult:
    return run_scenario(
        system,
        Scenario("all-to-all", PatternOptions(1e8), Routing(mode), cross_rail=cross_rail, n_bins=0),
    )


def test_without_relays_rails_do_not_reach_each_other() -> None:
    result = all_to_all(plant(RAIL_ONLY), "fabric")
    # Of 63 others, 7 are in the host and 7 on the rail.
    assert result.status_counts == {"finished": 64 * 14, "unreachable": 64 * 49}
    assert result.left_bytes.sum() == pytest.approx(64 * 49 * 1e8)


def test_pxn_makes_rail_only_as_good_as_a_full_fabric() -> None:
    full = transfer_s(all_to_all(plant(RAIL), "fabric", "spray"))
    assert full == pytest.approx(56 * 1e8 / 50e9, rel=1e-3)  # 56 flows leave each NIC
    assert transfer_s(all_to_all(plant(RAIL_ONLY), "pxn")) == pytest.approx(full, rel=1e-3)


@pytest.mark.parametrize(
    ("host", "nic_gbps", "nvlink_gbps", "loss"),
    [("dgx-a100", 200.0, 2400.0, 1 / 12), ("dgx-h100", 400.0, 3600.0, 1 / 9)],
)
def test_relaying_step_by_step_loses_what_the_rail_only_paper_says(
    host: str, nic_gbps: float, nvlink_gbps: float, loss: float
) -> None:
    """Forwarding costs an all-to-all 8.2 to 11.2 % (arXiv 2307.12169v5).

    Our reading, since the abstract is all that we have: the data of other rails go over NVLink
    first, (K - 1) m flows a GPU for K GPUs in each of m hosts; then K (m - 1) flows leave its NIC.
    Nothing overlaps, so the loss is (K - 1) m / (K (m - 1)) of the NIC's rate over NVLink's:
    8.3 % for eight DGX A100, 11.1 % for eight DGX H100; 7.3 % and 9.7 % for very many hosts.
    """
    hosts = 8
    expected = (HOST_GPUS - 1) * hosts / (HOST_GPUS * (hosts - 1)) * nic_gbps / nvlink_gbps
    assert expected == pytest.approx(loss)
    stepwise = transfer_s(all_to_all(plant(RAIL_ONLY, 64, host), "two-step"))
    full = transfer_s(all_to_all(plant(RAIL, 64, host), "fabric", "spray"))
    assert stepwise / full - 1 == pytest.approx(expected, abs=1e-3)
    assert 0.082 <= stepwise / full - 1 <= 0.112


# Others ------------------------------------------------------------------------------------------


def test_incast_shares_one_port() -> None:
    result = run_scenario(plant(RAIL), Scenario("incast", PatternOptions(1e9, fan_in=10)))
    assert transfer_s(result) == pytest.approx(10 * 0.02, rel=1e-4)
    assert result.slowdown == pytest.approx(10.0, rel=1e-3)
    assert result.bandwidth_share == pytest.approx(1.0, rel=1e-3)


def test_staging_in_host_memory_is_slower_where_memory_is() -> None:
    """Without GPUDirect a host's 8 flows in and 8 out cross 4915.2 Gb/s of memory twice each."""
    direct, staged = (
        run_scenario(plant(RAIL), Scenario("ring", GB, has_gpudirect=wanted))
        for wanted in (True, False)
    )
    assert transfer_s(direct) == pytest.approx(0.02, rel=1e-3)
    assert transfer_s(staged) == pytest.approx(32 * 1e9 / (4915.2 * 1.25e8), rel=1e-3)


def test_an_unloaded_flow_takes_its_size_over_the_line_rate_and_its_delay() -> None:
    system = plant(RAIL)
    result = run_scenario(system, Scenario("test", routing=SPRAY), traffic([0], [9], 1e6))
    # 20 us at 50 GB/s; ends 2 x 0.6 us and three switches of 0.5 us (no cables in this design).
    assert result.fct_s[0] == pytest.approx(20e-6 + 1.2e-6 + 1.5e-6, rel=1e-9)
    assert result.hops[0] == 3
