"""Random numbers and hashes of the packet engine."""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_structs import PacketRun

__all__ = ["FAULT_RANDOM", "MARK_RANDOM", "SPRAY_RANDOM", "hash_of", "random_of"]

MARK_RANDOM, FAULT_RANDOM, SPRAY_RANDOM = range(3)  # places in `random`
LOW = np.uint64(2**32 - 1)
FIRST_FACTOR, SECOND_FACTOR = np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)


@kernel_part
def random_of(run: PacketRun, which: int) -> float:
    """Next random number of one of the generators: xorshift64 (G. Marsaglia 2003).

    Reference: tests/reference/packet_random.py, random_from.
    """
    state = run.random[which]
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    run.random[which] = state
    return np.float64(state >> np.uint64(11)) * 2.0**-53


@kernel_part
def hash_of(number: int, seed: int) -> int:
    """Hash of 32 bits: the last steps of MurmurHash3 (A. Appleby 2011), which are not linear.

    Reference: tests/reference/packet_random.py, hash_of.
    """
    mixed = (np.uint64(number) ^ np.uint64(seed)) & LOW
    mixed = (mixed ^ mixed >> np.uint64(16)) * FIRST_FACTOR & LOW
    mixed = (mixed ^ mixed >> np.uint64(13)) * SECOND_FACTOR & LOW
    return int(mixed ^ mixed >> np.uint64(16))
