"""kernels/distance.py against tests/reference/distance.py."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.kernels.graph import MAX_HOPS
from gpufabric.routing.channels import Channels, channels_of
from gpufabric.routing.shortest import measure_distances
from tests.reference.distance import hops_to
from tests.routing.random_fabrics import Plain, broken, graphs, trees
from tests.routing.small_fabrics import build, ring


def steps_to(channels: Channels, target: int, up_down: bool) -> dict[int, int]:
    _networks, way = measure_distances(channels, np.array([target], np.int32), up_down=up_down)
    inside = np.flatnonzero(channels.network_of == channels.network_of[target])
    row = way.distances.row[target]
    hops = way.distances.hops[row + way.distances.place[inside]]
    return {int(s): int(n) for s, n in zip(inside, hops, strict=True) if n >= 0}


@given(broken(graphs()), st.data())
def test_steps_without_tiers(channels: Channels, data: st.DataObject) -> None:
    plain = Plain.of(channels)
    target = data.draw(st.integers(0, len(plain.out) - 1))
    assert steps_to(channels, target, False) == hops_to(plain.out, plain.tier, target, False)


@given(broken(trees()), st.data())
def test_steps_up_and_down_a_tree(channels: Channels, data: st.DataObject) -> None:
    plain = Plain.of(channels)
    leafs = [s for s, tier in enumerate(plain.tier) if tier == 1]
    target = data.draw(st.sampled_from(leafs))
    assert steps_to(channels, target, True) == hops_to(plain.out, plain.tier, target, True)


def test_more_targets_than_one_sweep_holds() -> None:
    """65 leafs on one spine: 62 in the first sweep, 3 in the second."""
    channels = channels_of(build([1] * 65 + [0], [(s, 65) for s in range(65)], [1] * 65 + [2]))
    _networks, way = measure_distances(channels, np.arange(65, dtype=np.int32), up_down=True)
    steps = way.distances.hops.reshape(65, 66)
    assert (steps[:, 65] == 1).all()
    assert (steps[:, :65] == 2 - 2 * np.eye(65)).all()


def test_nothing_is_farther_than_a_packet_lives() -> None:
    channels = channels_of(ring(2 * MAX_HOPS + 8))
    reached = steps_to(channels, 0, False)
    assert max(reached.values()) == MAX_HOPS
    assert len(reached) == 2 * MAX_HOPS + 1
