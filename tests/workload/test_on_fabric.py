from __future__ import annotations

import numpy as np
import pytest

from gpufabric.catalog.load import load_catalog
from gpufabric.core.errors import InputError
from gpufabric.sim.routing_choice import Routing
from gpufabric.sim.scenario import Scenario
from gpufabric.workload.closed_form import estimate
from gpufabric.workload.collectives import schedule_of
from gpufabric.workload.on_fabric import (
    cluster_of,
    contention,
    estimate_on_fabric,
    network_traffic,
)
from tests.sim.plants import HALF_SMALL_LEAFS, INFINIBAND, RAIL, SMALL_LEAFS, plant

IDEAL = Scenario("collective", routing=Routing("adaptive"))
SIZES = 2.0 ** np.arange(20, 34, 2)


def test_the_hosts_of_a_fabric_are_a_cluster() -> None:
    cluster = cluster_of(plant(INFINIBAND), load_catalog())
    assert (cluster.gpu, cluster.gpus_per_domain, cluster.n_domains) == ("H100", 8, 8)
    assert cluster.wire_gbytes_per_s == pytest.approx(400.0)  # 8 NICs of 400 Gb/s
    assert cluster.n_nics == 8
    assert cluster_of(plant(INFINIBAND), load_catalog(), 8).n_domains == 1
    with pytest.raises(InputError, match="12 GPUs"):
        cluster_of(plant(INFINIBAND), load_catalog(), 12)


@pytest.mark.parametrize("algorithm", ["Ring", "Tree", "NVLSTree"])
def test_a_full_fabric_gives_the_closed_form(algorithm: str) -> None:
    place = plant(RAIL)
    cluster = cluster_of(place, load_catalog())
    slowed, found = estimate_on_fabric(
        place, cluster, "all_reduce", SIZES, IDEAL, (algorithm, None)
    )
    assert found[algorithm].slowdown == pytest.approx(1.0, abs=2e-3)
    plain = estimate(cluster, "all_reduce", SIZES, algorithm)
    assert slowed.time_us == pytest.approx(plain.time_us, rel=2e-3)


def test_half_the_uplinks_halve_an_all_to_all_between_leafs() -> None:
    # Leafs of 8 GPUs, 4 of each of two hosts, 2:1: of 56 peers outside a host 52 are behind another
    # leaf; the uplinks carry 52/56 of what NICs send and have half of their rate.
    full, half = plant(SMALL_LEAFS), plant(HALF_SMALL_LEAFS)
    cluster = cluster_of(full, load_catalog())
    schedule = schedule_of(cluster, "alltoall", "Pairwise", 1e9)
    direct = Scenario("collective", routing=Routing("adaptive"), cross_rail="fabric")
    assert contention(full, schedule, direct).slowdown == pytest.approx(1.0, abs=0.01)
    assert contention(half, schedule, direct).slowdown == pytest.approx(2 * 52 / 56, rel=0.02)


def test_a_dead_nic_link_is_an_error_and_not_a_number() -> None:
    place = plant(RAIL)
    cluster = cluster_of(place, load_catalog())
    schedule = schedule_of(cluster, "all_reduce", "Ring", 1e9)
    name = str(place.fabric.hosts.name[0])
    broken = Scenario("collective", routing=Routing("adaptive"), fail=(f"link:{name}[1]",))
    with pytest.raises(InputError):
        contention(place, schedule, broken)


def test_a_lost_uplink_costs_its_share() -> None:
    # 7 of 8 uplinks are left for 52/56 of what the leaf's NICs send.
    place = plant(SMALL_LEAFS)
    cluster = cluster_of(place, load_catalog())
    schedule = schedule_of(cluster, "alltoall", "Pairwise", 1e9)
    hurt = Scenario(
        "collective",
        routing=Routing("adaptive"),
        cross_rail="fabric",
        fail=("link:spine-01[1]",),
    )
    assert contention(place, schedule, hurt).slowdown == pytest.approx(52 / 56 * 8 / 7, rel=0.01)


def test_only_what_crosses_the_network_is_run() -> None:
    place = plant(RAIL)
    cluster = cluster_of(place, load_catalog())
    block = place.endpoints.block
    ring = network_traffic(schedule_of(cluster, "all_reduce", "Ring", 1e9), block)
    assert [t.n_flows for t in ring] == [64]
    rails = schedule_of(cluster, "alltoall", "Pairwise", 1e9, by_rail=True)
    assert [t.n_flows for t in network_traffic(rails, block)] == [8 * 8 * 7]
    inside = schedule_of(cluster_of(place, load_catalog(), 8), "all_reduce", "NVLS", 1e9)
    assert network_traffic(inside, block[:8]) == []
    assert contention(place, inside, IDEAL).slowdown == 1.0


def test_packets_say_nearly_what_flows_say() -> None:
    place = plant(RAIL, 16)
    cluster = cluster_of(place, load_catalog())
    schedule = schedule_of(cluster, "all_reduce", "Ring", 4e6)
    by_flow = contention(place, schedule, Scenario("collective", routing=Routing("static")))
    scenario = Scenario("collective", routing=Routing("static"), engine="packet")
    by_packet = contention(place, schedule, scenario)
    assert by_flow.slowdown == pytest.approx(1.0, abs=0.05)
    # Headers take 1 to 3 % of the wire, and the first packet its way.
    assert 1.0 <= by_packet.slowdown < 1.15
