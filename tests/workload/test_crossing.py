"""Which share of a group's traffic shares uplinks, and how much slower these make it."""

from __future__ import annotations

import numpy as np
import pytest

from gpufabric.workload.crossing import (
    CONNECTIONS,
    Block,
    Span,
    blocks_of,
    crossing_share,
    hashed_slowdowns,
    slowdown_of,
)
from tests.report.designs import plan

LEAF = Block("leaf", 32, 2.0, 4, 32, 16, 400.0, 400.0)


def spec(topology: str, gpus: int = 512) -> str:
    return f"{{gpus: {gpus}, host: dgx-h100, candidates: [{{fabric: roce, {topology}}}]}}"


def test_a_leaf_block_is_what_the_tables_hold() -> None:
    fabric = plan(spec("switch: sn5600, tiers: 2, oversubscription: 2")).candidates[0].fabric
    (block,) = blocks_of(fabric)
    links, leafs = fabric.links, fabric.switches.tier == 1
    down = (links.tier == 1) & (links.stage == 0)
    leaf = fabric.ports.device[links.port_b[down]]
    up = fabric.ports.device[links.port_a[links.tier == 2]]
    for row in np.flatnonzero(leafs):
        below = float(links.gbps[down][leaf == row].sum())
        above = float(links.gbps[links.tier == 2][up == row].sum())
        assert block.ratio >= below / above - 1e-9
    assert block.n_blocks == leafs.sum()
    assert block.n_hosts == len(np.unique(fabric.port_vertex[links.port_a[down]][leaf == leaf[0]]))


def test_one_switch_and_separate_rails_have_no_blocks() -> None:
    assert blocks_of(plan(spec("switch: sn5600", 64)).candidates[0].fabric) == ()
    assert blocks_of(plan(spec("topology: rail-only", 256)).candidates[0].fabric) == ()


def test_a_ring_leaves_a_block_once_and_an_exchange_nearly_always() -> None:
    assert crossing_share(Span(128), LEAF) == 1 / 32
    assert crossing_share(Span(128, is_exchange=True), LEAF) == 96 / 127
    assert crossing_share(Span(4, 32), LEAF) == 1.0, "one host of each block"
    assert crossing_share(Span(16, 2), LEAF) == 0.0, "all in one block"


@pytest.mark.parametrize(
    ("span", "slower"), [(Span(128), 1.0), (Span(4, 32), 2.0), (Span(128, 1, True), 2 * 96 / 127)]
)
def test_oversubscription_slows_by_what_crosses(span: Span, slower: float) -> None:
    assert slowdown_of(span, (LEAF,)) == pytest.approx(slower)


def test_the_fullest_uplink_agrees_with_throwing_every_connection() -> None:
    block = Block("leaf", 16, 1.0, 8, 16, 16, 400.0, 400.0)
    span = Span(8, 16)
    random = np.random.default_rng(1)
    drawn = hashed_slowdowns(span, (block,), random.random(2000))
    thrown = []
    for _job in range(2000):
        uplink = random.integers(16, size=(16, 16 * CONNECTIONS))  # 8 leafs, up and down
        load = max(np.bincount(row, minlength=16).max() for row in uplink)
        thrown.append(load / CONNECTIONS)
    assert drawn.mean() == pytest.approx(np.mean(thrown), rel=0.03)
    assert np.quantile(drawn, 0.9) == pytest.approx(np.quantile(thrown, 0.9), rel=0.1)
