from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.routing.modes import ROUTING_MODES
from gpufabric.sim import flow_routes
from gpufabric.sim.flow_problem import Predecessors
from gpufabric.sim.heat_map import MOST_COLUMNS, MOST_ROWS, heat_maps
from gpufabric.sim.routing_choice import Routing
from gpufabric.sim.run import Plant, run_scenario
from gpufabric.sim.scenario import Scenario
from gpufabric.sim.traffic import PATTERNS, PatternOptions, Rows, Traffic
from gpufabric.sim.traffic_result import UNREACHABLE, TrafficResult
from tests.sim.plants import (
    INFINIBAND,
    NICS_ON_PLANES,
    NON_BLOCKING,
    RAIL,
    RAIL_ONLY,
    TWO_PLANES,
    fabric,
    plant,
    traffic,
)

ALONE_S = 0.02  # 1 GB at 400 Gb/s
DELAY_S = 2.7e-6  # two ends of 0.6 us, three switches of 0.5 us
ECMP = Routing("ecmp")


def one_flow(system: Plant, *fail: str, **more: object) -> TrafficResult:
    scenario = replace(Scenario("test", routing=ECMP, fail=fail), **more)  # type: ignore[arg-type]
    return run_scenario(system, scenario, traffic([0], [9], 1e9))


def path_of(result: TrafficResult) -> list[str]:
    carried = np.flatnonzero(result.carried_bytes)
    return [result.channels.name(int(channel)) for channel in carried]


def uplink(system: Plant) -> str:
    """The leaf's port that the one flow leaves by."""
    (name,) = [name for name in path_of(one_flow(system)) if "> spine" in name]
    return name.split(" > ", maxsplit=1)[0]


# Failures ----------------------------------------------------------------------------------------


def test_a_flow_stands_still_while_its_nic_has_no_link() -> None:
    result = one_flow(plant(RAIL), "link:host-01[nic0]@0.005..0.015")
    assert result.fct_s[0] == pytest.approx(ALONE_S + 0.01 + DELAY_S, rel=1e-9)
    assert result.ideal_s[0] == pytest.approx(ALONE_S + DELAY_S, rel=1e-9)
    assert result.slowdown[0] == pytest.approx(1.5, rel=1e-3)


@pytest.mark.parametrize("wait_s", [0.0, 0.003])
def test_a_flow_is_rerouted_after_reconvergence(wait_s: float) -> None:
    system = plant(RAIL)
    result = one_flow(system, f"link:{uplink(system)}@0.005", reconverge_s=wait_s)
    assert result.fct_s[0] == pytest.approx(ALONE_S + wait_s + DELAY_S, rel=1e-9)
    topics = [decision.topic for decision in result.decisions]
    assert "reconvergence" in topics


def test_what_fails_before_the_run_is_routed_around() -> None:
    system = plant(RAIL)
    result = one_flow(system, f"link:{uplink(system)}")
    assert result.fct_s[0] == pytest.approx(ALONE_S + DELAY_S, rel=1e-9)
    assert not any(uplink(system) in name for name in path_of(result))


def test_a_flow_that_is_cut_off_is_unreachable_with_what_it_had_left() -> None:
    result = one_flow(plant(RAIL), "switch:leaf-su01-r1@0.005")
    assert result.status_counts == {"unreachable": 1}
    assert result.left_bytes[0] == pytest.approx(1e9 * 0.75, rel=1e-9)
    assert result.completion_s is None
    assert np.isnan(result.fct_s[0])
    summary = result.summary()
    assert summary["fct_us"] is summary["bandwidth"]["share"] is summary["jain_index"] is None
    assert summary["bytes"]["undelivered"] == pytest.approx(7.5e8)
    json.dumps(summary, allow_nan=False)


def test_a_flow_that_waits_for_an_unreachable_one_never_starts() -> None:
    flows = replace(
        traffic([0, 8], [9, 16], 1e6),
        predecessors=Predecessors(np.array([0, 0, 1]), np.array([0], np.int32)),
    )
    result = run_scenario(plant(RAIL), Scenario("test", fail=("switch:leaf-su01-r1",)), flows)
    assert result.status_counts == {"unreachable": 1, "waiting": 1}


def test_one_plane_less_is_half_the_rate() -> None:
    system = plant(TWO_PLANES)
    whole = one_flow(system)
    leaf = next(name for name in path_of(whole) if name.startswith("host-01[nic0p0]"))
    half = one_flow(system, f"switch:{leaf.split(' > ')[1].split('[')[0]}")
    assert whole.mean_gbps[0] == pytest.approx(400, rel=1e-3)
    assert half.mean_gbps[0] == pytest.approx(200, rel=1e-3)
    assert half.slowdown[0] == pytest.approx(2, rel=1e-3)


def test_ftree_says_when_it_falls_back() -> None:
    system = plant(INFINIBAND)
    scenario = Scenario("permutation", routing=Routing("ftree"))
    whole = run_scenario(system, scenario)
    assert not [one for one in whole.decisions if "ftree" in one.topic + one.why and one.is_warning]
    broken = run_scenario(system, replace(scenario, fail=("random:0.1",)))
    warned = [one for one in broken.decisions if one.is_warning and "ftree" in str(one)]
    assert warned
    assert broken.status_counts == {"finished": 64}


# Time --------------------------------------------------------------------------------------------


def test_a_run_can_end_early() -> None:
    flows = replace(traffic([0, 8], [9, 17], 1e9), start_s=np.array([0.0, 0.5]))
    result = run_scenario(plant(RAIL), Scenario("test", until_s=0.01), flows)
    assert result.status_counts == {"pending": 1, "running": 1}
    assert result.left_bytes == pytest.approx([5e8, 1e9])
    assert result.end_s == 0.01


def test_a_flow_that_waits_counts_its_time_from_the_end_of_the_other() -> None:
    flows = replace(
        traffic([0, 8], [9, 17], 1e9),
        predecessors=Predecessors(np.array([0, 0, 1]), np.array([0], np.int32)),
    )
    result = run_scenario(plant(RAIL), Scenario("test"), flows)
    assert result.fct_s == pytest.approx([ALONE_S + DELAY_S, ALONE_S + DELAY_S], rel=1e-3)
    assert result.completion_s == pytest.approx(2 * (ALONE_S + DELAY_S), rel=1e-3)


def test_utilisation_over_time() -> None:
    result = one_flow(plant(RAIL), n_bins=20)
    series = result.series
    assert series is not None
    up = result.channels.tiers.index("host_leaf up")
    assert series.most[:, up].max() == pytest.approx(1.0)
    assert series.mean[:, up] == pytest.approx(series.most[:, up] / 64)
    assert series.most[:, up].sum() * series.bin_s == pytest.approx(ALONE_S)
    assert one_flow(plant(RAIL), n_bins=0).series is None


# Flows of a file ---------------------------------------------------------------------------------


def with_route(system: Plant, channels: list[int]) -> Traffic:
    rows = Rows(np.array([0, len(channels), len(channels)]), np.array(channels, np.int32))
    return replace(traffic([0, 8], [9, 17], 1e9), routes=rows)


def route_to(system: Plant, spine: str) -> list[int]:
    """A path of the flow from GPU 0 to GPU 9 through a spine of choice."""
    channels = system.channels
    switches = channels.fabric.switches.name
    ports = system.endpoints.ports[:, 0]
    middle = int(np.flatnonzero(switches == spine)[0])
    leaf_in, leaf_out = channels.leaf_of[ports[[0, 9]]]
    up = np.flatnonzero((channels.tail == leaf_in) & (channels.head == middle))[0]
    down = np.flatnonzero((channels.tail == middle) & (channels.head == leaf_out))[0]
    return [
        int(channels.leaving[ports[0]]),
        int(up),
        int(down),
        int(channels.leaving[ports[9]] ^ 1),
    ]


def test_a_given_path_is_taken_and_the_others_are_routed() -> None:
    system = plant(RAIL)
    channels = route_to(system, "spine-03")
    result = run_scenario(system, Scenario("test"), with_route(system, channels))
    assert result.status_counts == {"finished": 2}
    assert result.hops.tolist() == [3, 3]
    assert result.carried_bytes[channels] == pytest.approx([1e9] * 4)


def test_a_given_path_must_hang_together() -> None:
    system = plant(RAIL)
    channels = route_to(system, "spine-03")
    channels[2] = route_to(system, "spine-02")[2]
    with pytest.raises(InputError, match=r"row 1, path: spine-02.* does not begin where .* ends"):
        run_scenario(system, Scenario("test"), with_route(system, channels))


def test_weights_and_caps_hold() -> None:
    flows = replace(
        traffic([0, 0, 8], [9, 17, 16], 1e9),
        weight=np.array([3.0, 1.0, 1.0]),
        cap_gbps=np.array([np.inf, np.inf, 100.0]),
    )
    result = run_scenario(plant(RAIL), Scenario("test", routing=Routing("spray")), flows)
    assert result.fct_s[0] == pytest.approx(1e9 / 37.5e9, rel=1e-3)  # three quarters of 50 GB/s
    assert result.fct_s[1] == pytest.approx(2 * ALONE_S, rel=1e-3)
    assert result.fct_s[2] == pytest.approx(1e9 / 12.5e9, rel=1e-3)
    assert result.slowdown[2] == pytest.approx(1.0)


# Choices -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ROUTING_MODES)
def test_every_mode_carries_every_pattern(mode: str) -> None:
    for candidate in (INFINIBAND, TWO_PLANES):
        for pattern in PATTERNS:
            options = PatternOptions(1e6, n_flows=50)
            scenario = Scenario(pattern, options, Routing(mode), n_bins=0)
            result = run_scenario(plant(candidate), scenario)
            assert set(result.status_counts) == {"finished"}
            assert result.slowdown.min() >= 1 - 1e-9
            assert 0 < (result.bandwidth_share or 0) <= 1


def test_more_queue_pairs_even_out_the_hash() -> None:
    system = plant(NON_BLOCKING, 256)
    mean = []
    for queue_pairs in (1, 4, 16):
        runs = [
            run_scenario(
                system,
                Scenario("permutation", routing=Routing("ecmp", queue_pairs), seed=seed, n_bins=0),
            )
            for seed in range(3)
        ]
        mean.append(np.mean([run.completion_s for run in runs]))
    assert mean[0] > 1.2 * mean[1] > 1.2 * mean[2]


def test_without_a_mode_the_protocol_decides_and_it_is_said() -> None:
    for candidate, mode, cross_rail in (
        (RAIL, "ecmp", "fabric"),
        (INFINIBAND, "adaptive", "fabric"),
        (RAIL_ONLY, "ecmp", "pxn"),
        (NICS_ON_PLANES, "ecmp", "pxn"),
        (TWO_PLANES, "ecmp", "fabric"),
    ):
        result = run_scenario(plant(candidate), Scenario("ring"))
        assert result.head["routing"]["mode"] == mode
        assert result.head["routing"]["cross_rail"] == cross_rail
        said = {decision.topic: decision.choice for decision in result.decisions}
        assert said["routing"] == mode
        assert said.get("cross-rail") == ("pxn" if cross_rail == "pxn" else None)


@pytest.mark.parametrize("candidate", [RAIL_ONLY, NICS_ON_PLANES])
def test_flows_without_a_path_are_explained_where_no_network_joins_the_rails(
    candidate: str,
) -> None:
    scenario = Scenario("permutation", n_bins=0)
    assert run_scenario(plant(candidate), scenario).is_finished.all()
    alone = run_scenario(plant(candidate), replace(scenario, cross_rail="fabric"))
    assert (alone.status == UNREACHABLE).any()
    (why,) = [one.why for one in alone.decisions if one.topic == "cross-rail"]
    assert "pxn" in why


def test_only_the_first_gpus_take_part() -> None:
    result = run_scenario(plant(RAIL), Scenario("all-to-all", n_gpus=16))
    assert result.traffic.n_flows == 16 * 15


def test_more_paths_than_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_routes, "MOST_ENTRIES", 100_000)
    scenario = Scenario("all-to-all", routing=Routing("spray"), n_bins=0)
    with pytest.raises(InputError, match="--routing: 4,032 flows over all shortest paths cross"):
        run_scenario(plant(RAIL), scenario)
    run_scenario(plant(RAIL), replace(scenario, routing=ECMP))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"routing": Routing("ecpm")}, 'Did you mean "ecmp"?'),
        ({"routing": Routing("ecmp", 0)}, "--qps: 0 queue pairs a flow."),
        ({"routing": Routing("ecmp", 1, "tiers")}, 'Did you mean "tier"?'),
        ({"routing": Routing("updn", 1, "tier", 4)}, "--lmc: the value is 4. Expected: 0 to 3."),
        ({"cross_rail": "pnx"}, 'Did you mean "pxn"?'),
        ({"until_s": -1.0}, "--until: the value is -1.0."),
        ({"reconverge_s": float("nan")}, "--reconverge: the value is nan."),
        ({"seed": -1}, "--seed: the value is -1."),
        ({"n_gpus": 65}, "--gpus: 65 GPUs. Expected: 2 to 64"),
        ({"fail": ("switch:spine",)}, "--fail switch:spine"),
        ({"pattern": "rings"}, 'Did you mean "ring"?'),
    ],
)
def test_what_does_not_fit_is_told(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        run_scenario(plant(RAIL), replace(Scenario("ring"), **change))  # type: ignore[arg-type]
    assert message in str(caught.value)


# Results -----------------------------------------------------------------------------------------


def test_a_result_says_what_it_was_made_with() -> None:
    system = plant(RAIL)
    scenario = Scenario("permutation", PatternOptions(1e8), Routing("ecmp", 2), seed=7)
    summary = run_scenario(system, scenario).summary()
    assert summary["fabric"] == {"name": "roce", "hash": fabric(RAIL).content_hash}
    assert summary["model"] == {"name": "flow", "version": 1}
    assert (summary["seed"], summary["routing"]["queue_pairs"]) == (7, 2)
    assert summary["traffic"]["pattern"] == "permutation"
    assert {"hop latency", "PCIe", "NVLink"} <= {one["topic"] for one in summary["decisions"]}
    assert summary == run_scenario(system, scenario).summary()
    assert list(summary["fct_us"]) == ["mean", "p50", "p90", "p99", "p99.9", "max"]
    busiest = [row["utilisation"] for row in summary["busiest"]]
    assert busiest == sorted(busiest, reverse=True)
    assert len(busiest) == 10


def test_percentiles_are_values_of_flows() -> None:
    result = run_scenario(plant(RAIL), Scenario("uniform", PatternOptions(1e6, n_flows=500)))
    fct_us = set((result.fct_s * 1e6).tolist())
    spread = result.summary()["fct_us"]
    assert {spread[name] for name in ("p50", "p90", "p99", "p99.9", "max")} <= fct_us


def test_heat_maps_have_a_cell_for_every_link() -> None:
    system = plant(RAIL)
    result = run_scenario(system, Scenario("permutation"))
    maps = {(one.tier, one.way): one for one in heat_maps(system.fabric, result.utilisation())}
    assert list(maps) == [
        (tier, way) for tier in ("host_leaf", "leaf_spine") for way in ("up", "down")
    ]
    up = maps["leaf_spine", "up"]
    assert up.values.shape == (8, 16)
    assert up.rows[0] == "leaf-su01-r0"
    assert up.block == (1, 1)
    channels = result.channels
    mine = channels.tier == channels.tiers.index("leaf_spine up")
    assert sorted(up.values.ravel()) == sorted(result.utilisation()[mine])


def test_what_is_not_built_yet_is_not_shown() -> None:
    system = plant(INFINIBAND, 256, grown=512)
    switches, hosts = system.fabric.switches, system.fabric.hosts
    assert switches.stage.max() == hosts.stage.max() == 1
    result = run_scenario(system, Scenario("ring", routing=Routing("ftree")))
    assert result.traffic.n_flows == 256
    # Leafs of the second SU are no subnets of their own, for which ftree would fall back.
    assert "ftree" not in " ".join(one.choice for one in result.decisions if one.is_warning)
    shown = heat_maps(system.fabric, result.utilisation())
    assert set(shown[0].rows) == set(hosts.name[hosts.stage == 0])
    assert set(shown[2].rows) == set(switches.name[(switches.stage == 0) & (switches.tier == 1)])


def test_a_large_tier_is_shown_in_blocks_with_their_busiest_link() -> None:
    system = plant(RAIL, 2048)
    utilisation = np.zeros(len(system.channels.capacity_gbps))
    at = int(np.flatnonzero(system.fabric.links.tier == 1)[-1])
    utilisation[2 * at] = 0.5
    chart = heat_maps(system.fabric, utilisation)[0]
    assert chart.values.shape[0] <= MOST_ROWS
    assert chart.values.shape[1] <= MOST_COLUMNS
    assert chart.block == (3, 1)
    assert chart.values[-1, -1] == np.nanmax(chart.values) == 0.5
    assert "…" in chart.rows[0]


def test_an_engine_of_opensm_on_ethernet_is_warned_about() -> None:
    assert [d.choice for d in Routing("ftree").strange("roce") if d.is_warning] == ["ftree"]
    assert Routing("ftree").strange("infiniband") == []
    assert Routing("ecmp").strange("roce") == []
