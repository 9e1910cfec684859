"""Messages that wait for others: when the last of those has arrived, or its ACK has, they start."""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_events import KIND_BITS, NOW, START, push_later
from gpufabric.kernels.packet_structs import PacketRun

__all__ = ["AFTER", "release"]

AFTER = np.dtype(
    [
        ("n_left", np.int64),  # messages that must still arrive first
        ("delay_ps", np.int64),  # from the last of them to the start [ps]
        ("start_ps", np.int64),  # never before [ps]
        ("started_ps", np.int64),  # started, -1: not yet [ps]
    ],
    align=True,
)


@kernel_part
def release(run: PacketRun, number: int) -> None:
    """Let what waits for a flow start if it waits for nothing else.

    Reference: tests/reference/packet_ends.py, Engine.release.
    """
    for at in range(run.released_first[number], run.released_first[number + 1]):
        child = np.int64(run.released[at])
        waiting = run.after[child]
        waiting.n_left -= 1
        if waiting.n_left == 0:
            time_ps = max(run.clock[NOW] + waiting.delay_ps, waiting.start_ps)
            push_later(run, time_ps, child << KIND_BITS | START)
