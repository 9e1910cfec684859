"""Random numbers of the packet engine, written from their papers."""

from __future__ import annotations


def mix(seed: int) -> int:
    """First state of the generator (SplitMix64)."""
    mask = 2**64 - 1
    state = seed + 0x9E3779B97F4A7C15 & mask
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ state >> shift) * factor & mask
    return (state ^ state >> 31) or 1


def random_from(state: int) -> tuple[float, int]:
    """A number from 0 to below 1, and the generator's next state (xorshift64)."""
    mask = 2**64 - 1
    state ^= state << 13 & mask
    state ^= state >> 7
    state ^= state << 17 & mask
    return (state >> 11) / 2**53, state


def hash_of(number: int, seed: int) -> int:
    """The end of MurmurHash3, 32 bits."""
    low = 2**32 - 1
    mixed = (number ^ seed) & low
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        mixed = (mixed ^ mixed >> shift) * factor & low
    return mixed ^ mixed >> 16
