"""How switches choose among equal paths, packet by packet."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MODES", "PacketRouting"]

MODES = ("ecmp", "turn", "random", "adaptive", "flowlet", "adaptive_flowlet")


@dataclass(frozen=True)
class PacketRouting:
    """Used where the problem has tables of next hops (``PacketProblem.hops``).

    Parameters
    ----------
    mode
        How data are sent on: ``ecmp`` (by a hash of the flow), ``turn`` and ``random`` (spraying,
        each packet for itself), ``adaptive`` (each packet where least waits), ``flowlet`` (at
        random, kept until the flow pauses), ``adaptive_flowlet`` (where least waits, kept so too).
        ACKs and CNPs always go by the hash.
    classes
        Traffic classes of which that holds, all where empty; data of others go by the hash. On
        InfiniBand: the service levels for which adaptive routing is enabled.
    flowlet_gap_us
        A longer gap between packets of a flow ends its flowlet [us].
    flowlet_slots
        Flows that a switch remembers; where two fall into one slot, each ends the other's flowlet.

    Notes
    -----
    Flowlets: M. Alizadeh et al., CONGA, SIGCOMM 2014, section 3.4 (500 us for TCP at 10 Gb/s). The
    defaults are assumed, for speeds of hundreds of Gb/s.
    """

    mode: str = "ecmp"
    classes: tuple[int, ...] = ()
    flowlet_gap_us: float = 20.0
    flowlet_slots: int = 4096
