"""Records of what switches can do beyond the plain case; each field with type, shape and unit."""

from __future__ import annotations

import numpy as np

__all__ = ["PAUSE", "SETTING"]

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

# One class of one channel: the port that may be paused, and the input that pauses it.
PAUSE = np.dtype(
    [
        ("pause_ps", np.int64),  # for this long XOFF holds, 0: until XON [ps]
        ("refresh_ps", np.int64),  # XOFF is sent again after this time [ps]
        ("until_ps", np.int64),  # port: the pause ends by itself [ps]
        ("again_ps", np.int64),  # input: next XOFF [ps]
        ("frame_ps", np.int64),  # port: last XOFF or XON [ps]
        ("storm_since_ps", np.int64),  # [ps]
        ("storm_ps", np.int64),  # time in storms that are over [ps]
        ("is_asked", np.int8),  # port: 1: the last frame was XOFF, and it still holds
        ("is_guarded", np.int8),  # port: 1: has a watchdog
        ("is_watched", np.int8),  # port: 1: the watchdog's next look is due
        ("storm", np.int8),  # port: NO_STORM, or what the watchdog does: FORWARDS, DROPS
        ("n_storms", np.int32),
        ("n_dropped", np.int32),
        ("n_expired", np.int32),  # pauses that ended without XON
    ],
    align=True,
)
