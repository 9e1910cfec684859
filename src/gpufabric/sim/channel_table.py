"""Channels as results speak of them: capacity, tier and direction, name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.model.tables import LINK_TIERS
from gpufabric.routing.channels import Channels
from gpufabric.sim.flow_files import Links

__all__ = ["ChannelTable", "table_of_fabric", "table_of_links"]

Floats = NDArray[np.float64]
Bytes = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class ChannelTable:
    """The directed channels of a run.

    Parameters
    ----------
    capacity_gbps
        float64[n_channels]: when the run begins [Gb/s]; 0: failed.
    healthy_gbps
        float64[n_channels]: the same without any failure [Gb/s].
    tier
        int8[n_channels]: number in `tiers`.
    tiers
        Tier and direction in stable English words, such as ``leaf_spine up``.
    is_edge
        bool[n_channels]: begins or ends at a GPU or NIC, so that no routing can avoid it.
    name
        Gives the name of a channel.
    """

    capacity_gbps: Floats
    healthy_gbps: Floats
    tier: Bytes
    tiers: tuple[str, ...]
    is_edge: NDArray[np.bool_]
    name: Callable[[int], str]

    def __len__(self) -> int:
        return len(self.capacity_gbps)


def table_of_links(links: Links) -> ChannelTable:
    """Return the channels of a file of links: one tier; paths are given, so all are edges."""
    return ChannelTable(
        links.gbps,
        links.gbps,
        np.zeros(len(links), np.int8),
        ("link",),
        np.ones(len(links), np.bool_),
        lambda channel: str(links.name[channel]),
    )


def table_of_fabric(now: Channels, healthy: Channels) -> ChannelTable:
    """Return the channels of a fabric.

    Parameters
    ----------
    now
        As the run begins.
    healthy
        Without failures.
    """
    tiers = [f"{words} {way}" for words in LINK_TIERS.values() for way in ("up", "down")]
    tier = np.empty(len(now.capacity_gbps), np.int8)
    of_link = 2 * (now.fabric.links.tier.astype(np.int8) - 1)
    tier[: now.n_link_channels] = np.column_stack([of_link, of_link + 1]).ravel()
    for block in now.blocks:
        tier[block.first : block.end] = len(tiers)
        tiers.append(block.what)
    return ChannelTable(
        now.capacity_gbps,
        healthy.capacity_gbps,
        tier,
        tuple(tiers),
        (tier < 2) | (tier >= 2 * len(LINK_TIERS)),
        now.name,
    )
