"""Classes of a port take turns by weight: deficit weighted round robin with overdraft.

A class at its turn gets ``weight * quantum`` bytes and sends while it has any left; what its last
packet takes beyond that is missing at its next turn. So a port need not know the length of a
packet that a NIC has not made yet, and shares are as the weights in the long run. A class that
has nothing to send loses what it has left, but not what it owes.

Source: M. Shreedhar, G. Varghese, SIGCOMM 1995; with overdraft: H. Adiseshu et al., SIGCOMM 1996
(surplus round robin).
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_structs import PacketRun

__all__ = ["charge", "next_by_weight"]

NO_CLASS = -1


@kernel_part
def next_by_weight(run: PacketRun, number: int, able: int) -> int:
    """Class that a port serves next, of those that are able to send.

    Reference: tests/reference/packet_turns.py, next_by_weight.
    """
    n_classes = run.rules[0].n_classes
    first = number * (n_classes + 1)
    queue = int(np.int64(run.ports[number].last))
    while True:
        if able >> queue & 1 and run.shares[first + queue] > 0:
            return queue
        if not able >> queue & 1:
            run.shares[first + queue] = min(0, run.shares[first + queue])
        queue += 1
        if queue >= n_classes:
            queue = 0
        if able >> queue & 1:
            run.shares[first + queue] += run.quanta[queue]


@kernel_part
def charge(run: PacketRun, number: int, traffic: int, index: int) -> None:
    """Take the bytes of a packet that begins to leave from its class, preamble and gap too.

    Reference: tests/reference/packet_turns.py, charge.
    """
    rules = run.rules[0]
    if not rules.strict >> traffic & 1:
        serial = run.serial[run.packets[index].length]
        run.shares[number * (rules.n_classes + 1) + traffic] -= serial.wire_bytes
