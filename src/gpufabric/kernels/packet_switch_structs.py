"""Records of what switches can do beyond the plain case; each field with type, shape and unit."""

from __future__ import annotations

import numpy as np

__all__ = ["SETTING"]

# One class of one channel: at the input where it ends, and at the port where it begins.
SETTING = np.dtype(
    [
        ("headroom", np.int32),  # input: of the class [byte]
        ("xoff", np.int32),  # input: fixed threshold, 0: dynamic [byte]
        ("kmin", np.int32),  # port: no mark at this depth or less [byte]
        ("kmax", np.int32),  # port: always a mark above this depth [byte]
        ("pmax", np.float64),  # port: probability of a mark at kmax
        ("alpha_log2", np.int16),  # input: dynamic threshold: free pool * 2**this
        ("queue", np.int8),  # input: class as which packets of this class are treated
        ("kind", np.int8),  # input: UNCOUNTED, LOSSY, LOSSLESS
        ("sends", np.int8),  # input: 1: sends PFC frames
        ("obeys", np.int8),  # port: 1: stops when PFC says so
    ],
    align=True,
)
