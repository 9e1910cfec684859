"""What a packet run notes when asked: time series in bins, pauses one by one, packet latencies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ASKED",
    "BUSY",
    "BYTES",
    "CAUSE",
    "CAUSE_HELD",
    "CHANNEL",
    "CLASS",
    "DEEPEST",
    "EXPIRED",
    "FILLED",
    "FREED",
    "HELD_BACK",
    "LAST",
    "LOGGED",
    "LOG_COLUMNS",
    "N_LATENCIES",
    "OVERRULED",
    "PAUSED",
    "QUANTITIES",
    "SUB_BITS",
    "TIME",
    "WHAT",
    "WIDTH",
    "Tape",
]

DEEPEST, FILLED, BUSY, PAUSED = range(4)  # last index of `bins`
QUANTITIES = 4
WIDTH, LAST, LOGGED = range(3)  # places in `marks`
TIME, WHAT, CHANNEL, CLASS, CAUSE, CAUSE_HELD, BYTES = range(7)  # columns of `log`
LOG_COLUMNS = 7
ASKED, HELD_BACK, FREED, EXPIRED, OVERRULED = range(5)  # what a row of `log` tells: a pause was
# asked for, began, and was ended by the far end, by its time, or by the watchdog
SUB_BITS = 5  # a latency is kept to 1 / 2**SUB_BITS of its value
N_LATENCIES = 64 - SUB_BITS << SUB_BITS


class Tape(NamedTuple):
    """What is noted; an empty array where a thing is not asked for.

    A *row* of the series is a queue: those of a port stand together, PFC frames have none.
    """

    row: NDArray[np.int32]  # int32[n_channels]: first row of a port's queues, -1: not watched
    bins: NDArray[np.float64]  # float64[n_rows, n_bins, 4]: deepest queue [byte], its depth summed
    # over time [byte ps], time that the port sent this class [ps], time paused [ps]
    depth: NDArray[np.int64]  # int64[n_rows]: depth since it last changed [byte]
    since_ps: NDArray[np.int64]  # int64[n_rows]: when it last changed [ps]
    log: NDArray[np.int64]  # int64[n, 7]: pauses, the columns above; cause -1: none is known
    marks: NDArray[np.int64]  # int64[3]: width of a bin [ps], last time that the series know [ps],
    # rows of the log so far, lost ones too
    first_output: NDArray[np.int32]  # int32[n_switches + 1]: into `outputs`
    outputs: NDArray[np.int32]  # int32[n]: channels that leave each switch
    sent_ps: NDArray[np.int64]  # int64[room of packets]: when a data packet was made [ps]
    latencies: NDArray[np.int64]  # int64[n_classes, N_LATENCIES]: packets by latency
