"""What became of every packet that was sent, and the check that none is missing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.kernels.packet_structs import PacketRun

__all__ = ["KINDS", "Ledger", "LedgerError", "ledger_of"]

Longs = NDArray[np.int64]

KINDS = ("data", "ack", "nak", "cnp", "pfc")


class LedgerError(Exception):
    """Packets came from nowhere or are lost without a drop: a fault of the engine itself."""


@dataclass(frozen=True)
class Ledger:
    """Packets by kind (``KINDS``): what was sent is received, dropped or in flight.

    `in_flight` is counted from the packets that exist, not from the other three.
    """

    sent: Longs
    received: Longs
    dropped: Longs
    sent_bytes: Longs
    received_bytes: Longs
    dropped_bytes: Longs
    in_flight: Longs
    in_flight_bytes: Longs

    @property
    def is_balanced(self) -> bool:
        """Whether sent = received + dropped + in flight, in packets and in bytes."""
        return not self.faults()

    def faults(self) -> list[str]:
        """Return a line for each kind of packet that does not balance."""
        found = []
        for number, kind in enumerate(KINDS):
            for unit, end in (("packets", ""), ("bytes", "_bytes")):
                sent, received, dropped, in_flight = (
                    int(getattr(self, name + end)[number])
                    for name in ("sent", "received", "dropped", "in_flight")
                )
                if sent != received + dropped + in_flight:
                    found.append(
                        f"{kind}: {sent} {unit} sent are not {received} received"
                        f" + {dropped} dropped + {in_flight} in flight"
                    )
        return found


def ledger_of(run: PacketRun) -> Ledger:
    """Return the ledger of a run that stands still.

    Raises
    ------
    LedgerError
        If it does not balance.
    """
    counts, packets = run.counts, run.packets
    live = packets[(packets["kind"] >= 0) & (packets["n_bytes"] > 0)]
    n_bytes = np.bincount(live["kind"], live["n_bytes"], minlength=len(KINDS))
    ledger = Ledger(
        sent=counts["sent"].copy(),
        received=counts["received"].copy(),
        dropped=counts["dropped"].copy(),
        sent_bytes=counts["sent_bytes"].copy(),
        received_bytes=counts["received_bytes"].copy(),
        dropped_bytes=counts["dropped_bytes"].copy(),
        in_flight=np.bincount(live["kind"], minlength=len(KINDS)),
        in_flight_bytes=n_bytes.astype(np.int64),
    )
    faults = ledger.faults()
    if faults:
        raise LedgerError("\n".join(faults))
    return ledger
