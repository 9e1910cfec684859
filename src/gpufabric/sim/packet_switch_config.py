"""What switches of the packet engine do: classes, buffers, ECN, and where one port differs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = [
    "ClassKind",
    "Ecn",
    "PauseTime",
    "PortOverride",
    "SwitchBuffer",
    "TrafficClass",
    "Watchdog",
]


class ClassKind(Enum):
    """What a switch does with a traffic class when its buffer fills."""

    UNCOUNTED = "uncounted"
    """Takes no buffer and is never dropped: how some simulators treat ACKs."""
    LOSSY = "lossy"
    """Is dropped where it does not fit."""
    LOSSLESS = "lossless"
    """Has headroom; PFC pauses the sender before it is dropped."""
    CREDITED = "credited"
    """An InfiniBand virtual lane: sent against credits alone, so that it always fits."""

    @property
    def is_counted(self) -> bool:
        """Whether its packets take of the shared buffer."""
        return self in (ClassKind.LOSSY, ClassKind.LOSSLESS)


@dataclass(frozen=True)
class Ecn:
    """When switches mark, for a port of 100 Gb/s; depths grow with speed.

    Parameters
    ----------
    kmin_bytes, kmax_bytes
        No mark at `kmin_bytes` or less, always above `kmax_bytes` [byte].
    pmax
        Probability at `kmax_bytes`; it grows linearly from 0 at `kmin_bytes`.

    Notes
    -----
    Source of the defaults: Y. Li et al., HPCC, SIGCOMM 2019, section 5.1 (100 and 400 KB at
    25 Gb/s, 0.2), scaled.
    """

    kmin_bytes: float = 400_000.0
    kmax_bytes: float = 1_600_000.0
    pmax: float = 0.2


@dataclass(frozen=True)
class TrafficClass:
    """One queue of every port.

    Parameters
    ----------
    kind
        What happens when buffers fill.
    is_strict
        Goes before classes that are not, and before strict ones with a lower number; the others
        take turns: a packet each, or by weight.
    is_marked
        Switches set ECN "congestion experienced" on its packets.
    ecn
        Its own thresholds, in place of ``PacketConfig.ecn``.
    weight
        Share of a port's bytes among the classes that are not strict: deficit weighted round
        robin. 0 in all of them: a packet each.
    alpha_log2
        Its own exponent of the dynamic threshold, in place of ``SwitchBuffer.alpha_log2``.
    """

    kind: ClassKind
    is_strict: bool = False
    is_marked: bool = False
    ecn: Ecn | None = None
    weight: int = 0
    alpha_log2: int | None = None


@dataclass(frozen=True)
class SwitchBuffer:
    """The buffer of every switch, shared by its ports.

    Parameters
    ----------
    total_bytes
        Of one switch [byte].
    reserve_bytes
        Of every input and class, outside the shared pool [byte].
    headroom_bytes
        Of every input and lossless class; where None, what can still come after XOFF was decided:
        see ``headroom_for`` [byte].
    alpha_log2
        An input's class may take 2**alpha_log2 times the free pool.
    alpha_gbps
        Speed for which `alpha_log2` holds; it rises by one for each doubling above. 0: for all.
    xoff_bytes
        Fixed threshold in place of the dynamic one [byte]; 0: dynamic.
    xon_offset_bytes
        XON when the input's share is so far below the threshold, or 0 [byte].
    tail_bytes
        Most bytes in a queue of a lossy class [byte]; 0: no limit but the pool.

    Notes
    -----
    Dynamic thresholds as by A. Choudhury, E. Hahne, IEEE/ACM ToN 6(2), 1998, alpha a power of two
    as in switch chips. The default size is that of a 32 MB chip; alpha, reserve and offset are
    assumed, in the range of SONiC's default buffer profiles.
    """

    total_bytes: int = 32_000_000
    reserve_bytes: int = 4096
    headroom_bytes: int | None = None
    alpha_log2: int = -3
    alpha_gbps: float = 0.0
    xoff_bytes: int = 0
    xon_offset_bytes: int = 18_432
    tail_bytes: int = 0


@dataclass(frozen=True)
class PauseTime:
    """How long a pause holds.

    Parameters
    ----------
    quanta
        In an XOFF frame, at most 65,535: of 512 bit times at the port's speed each; 0: until XON.
    refresh_part
        An input that still wants the pause sends XOFF again after this part of the time.

    Notes
    -----
    Source: IEEE 802.3, annex 31B (quanta, 512 bit times). Switches send the longest time and XON
    in time, so the default leaves out the frames that make a pause longer; 1/2 is assumed.
    """

    quanta: int = 0
    refresh_part: float = 0.5


@dataclass(frozen=True)
class Watchdog:
    """PFC watchdog of every port of a switch.

    Parameters
    ----------
    detect_us
        A class that is paused for this long without a break while packets wait is in a storm; one
        that has nothing to send is looked at again after this time [us].
    restore_us
        The storm is over when no pause holds and the last PFC frame came this long ago [us].
    action
        What becomes of the class in a storm: ``drop`` its packets, waiting and to come, or
        ``forward`` them in spite of the pause.

    Notes
    -----
    Source of the defaults: SONiC, ``pfcwd start_default`` (200 ms and 200 ms, drop). SONiC looks at
    its counters once in a polling time and also drops what comes in by the port; both are left out.
    """

    detect_us: float = 200_000.0
    restore_us: float = 200_000.0
    action: str = "drop"


@dataclass(frozen=True)
class PortOverride:
    """What some ports do differently; None leaves a thing as it is.

    Parameters
    ----------
    switches
        All ports of these switches: their names in the fabric, or numbers.
    ports
        These ports beside, DEVICE[PORT] in the fabric or the number of the channel that leaves
        it; a NIC's port too. Neither `switches` nor `ports`: every port of the fabric.
    classes
        Classes; all where empty.
    kind
        Kind of the classes where packets come in: lossy, for one that is lossless elsewhere.
    queue
        Class as which packets of `classes` are treated that come in: a wrong DSCP map.
    has_pfc
        Whether PFC frames are sent for the classes, and obeyed.
    has_watchdog
        Whether the watchdog, if there is one, guards the classes that go out.
    headroom_bytes
        Of each class and port where packets come in [byte].
    headroom_cable_m
        Headroom for a cable of this length in place of the real one [m], at 5 ns/m.
    alpha_log2, xoff_bytes
        As in ``SwitchBuffer``.
    is_marked
        Whether ECN marks packets of the classes that go out; False: ECN off.
    kmin_bytes, kmax_bytes, pmax
        As in ``Ecn``. With Kmin at or above Kmax all packets above Kmin are marked.
    """

    switches: tuple[int | str, ...] = ()
    ports: tuple[int | str, ...] = ()
    classes: tuple[int, ...] = ()
    kind: ClassKind | None = None
    queue: int | None = None
    has_pfc: bool | None = None
    has_watchdog: bool | None = None
    headroom_bytes: int | None = None
    headroom_cable_m: float | None = None
    alpha_log2: int | None = None
    xoff_bytes: int | None = None
    is_marked: bool | None = None
    kmin_bytes: float | None = None
    kmax_bytes: float | None = None
    pmax: float | None = None
