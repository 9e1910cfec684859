"""SHARP on a fabric: trees of the rails, their times, and who cannot have it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufabric.catalog.load import load_catalog
from gpufabric.core.errors import InputError
from gpufabric.sim.profile import PROFILES
from gpufabric.sim.run import Plant
from gpufabric.sim.scenario import Scenario
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.on_fabric import cluster_of, estimate_on_fabric
from gpufabric.workload.sharp_on_fabric import cluster_with_sharp, run_sharp
from tests.sim.plants import INFINIBAND, plant

SMALL_LEAFS = "fabric: infiniband, topology: fat-tree, tiers: 2, su_hosts: 2"
FLOWS = Scenario("collective", n_bins=0)
PACKETS = replace(FLOWS, engine="packet")
MIB = 2**20
GBPS = 400.0


def system(candidate: str, n_ranks: int | None = None) -> tuple[Plant, Cluster]:
    place = plant(candidate)
    cluster = cluster_of(place, load_catalog(), n_ranks)
    return place, replace(cluster, has_sharp=True)


def test_one_tree_a_rail_takes_the_time_of_its_bytes_and_its_way() -> None:
    place, cluster = system(INFINIBAND)
    run = run_sharp(place, cluster, 8 * MIB, PACKETS)
    assert len(run.trees) == 8
    assert {(tree.n_members, tree.n_switches, tree.depth) for tree in run.trees} == {(8, 1, 1)}
    assert {tree.root for tree in run.trees} == {f"leaf-su01-r{rail}" for rail in range(8)}
    headers = PROFILES["infiniband-default"]().config.headers
    wire_bytes = MIB + MIB // 4096 * (headers.data_bytes + headers.gap_bytes)
    least_us = wire_bytes * 8 / GBPS / 1e3
    assert run.took_us is not None
    # ACKs of the way up share the links of the way down; a tree of one switch costs some 3 us.
    assert least_us < run.took_us < 1.03 * least_us + 4.0
    assert run.busbw_gbytes_per_s == pytest.approx(
        8 * MIB / run.took_us / 1e3 * 2 * 63 / 64, rel=1e-9
    )
    assert 1.0 < run.slowdown < 1.03


def test_trees_of_one_leaf_keep_off_each_others_links() -> None:
    place, cluster = system(SMALL_LEAFS)
    packets = run_sharp(place, cluster, 8 * MIB, PACKETS)
    flows = run_sharp(place, cluster, 8 * MIB, FLOWS)
    assert {tree.depth for tree in packets.trees} == {2}
    assert flows.slowdown == 1.0  # no channel has two trees
    assert packets.slowdown < 1.05
    assert flows.took_us is None
    assert run_sharp(place, cluster, 8 * MIB, PACKETS) == packets


def test_a_collective_takes_what_its_trees_say() -> None:
    place, cluster = system(SMALL_LEAFS)
    forced = ("CollNetDirect", None)
    slowed, found = estimate_on_fabric(place, cluster, "all_reduce", [2.0**28], PACKETS, forced)
    plain, flows = estimate_on_fabric(place, cluster, "all_reduce", [2.0**28], FLOWS, forced)
    assert found["CollNetDirect"].sharp is not None
    assert found["CollNetDirect"].slowdown == found["CollNetDirect"].sharp.slowdown
    assert flows["CollNetDirect"].sharp is not None
    assert found["CollNetDirect"].slowdown > 1.0
    assert plain.time_us[0] <= slowed.time_us[0] < 1.05 * plain.time_us[0]


def test_who_cannot_have_it_is_told() -> None:
    place, cluster = system(INFINIBAND)
    assert cluster_with_sharp(cluster, "infiniband", "Ring,CollNetDirect").has_sharp
    assert not cluster_with_sharp(cluster, "roce", "Ring").has_sharp
    with pytest.raises(InputError, match=r"collnetchain needs InfiniBand switches .* is RoCE"):
        cluster_with_sharp(cluster, "roce", "collnetchain")
    with pytest.raises(InputError, match="--env NCCL_COLLNET_ENABLE=1"):
        cluster_with_sharp(replace(cluster, has_sharp=False), "infiniband", "CollNetDirect")
    with pytest.raises(InputError, match="messages are too many"):
        run_sharp(place, cluster, 2.0**50, PACKETS)
    with pytest.raises(InputError, match="failures in the run are not modelled"):
        run_sharp(place, cluster, MIB, replace(PACKETS, fail=("switch:leaf-su01-r0@1",)))
    with pytest.raises(InputError, match="--fail: host-01 has no link that is up"):
        run_sharp(place, cluster, MIB, replace(PACKETS, fail=("link:host-01[nic0]",)))
