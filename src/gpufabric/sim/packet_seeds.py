"""First states of the packet engine's generators of random numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpufabric.sim.packet_config import PacketConfig

__all__ = ["generators", "mixed"]

MOST_BITS = 2**64 - 1


def mixed(seed: int) -> int:
    """Return a first state of the generator, not 0 and with about as many bits set as not.

    Source: G. Steele et al., OOPSLA 2014 (SplitMix64).
    """
    state = (seed + 0x9E3779B97F4A7C15) & MOST_BITS
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & MOST_BITS
    state = (state ^ state >> 27) * 0x94D049BB133111EB & MOST_BITS
    return (state ^ state >> 31) or 1


def generators(config: PacketConfig) -> NDArray[np.uint64]:
    """Return the states for marks (0, the first place, where draws are given), faults, spraying."""
    marks = 0 if config.draws else mixed(config.seed)
    return np.array([marks, mixed(config.seed + 1), mixed(config.seed + 2)], np.uint64)
