"""What the plain packet engine is made of: packets, ports, flows."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from gpufabric.sim.packet_config import Control
from gpufabric.sim.packet_messages import Operation
from tests.reference.packet_grant import Credit
from tests.reference.packet_hpcc import Hpcc, Stamp
from tests.reference.packet_selective import Selective
from tests.reference.packet_swift import SwiftSender


@dataclass(eq=False)
class Packet:
    """A frame; `wire` and `size` in bytes."""

    kind: int
    flow: int
    number: int
    size: int
    wire: int
    traffic: int
    route: list[int]
    hop: int = 0
    came_on: int = -1
    marked: bool = False
    stamps: list[Stamp] | None = None
    sacked: int = -1
    sent_ps: int = -1
    came_lane: int = -1
    credit: int = 0

    def __post_init__(self) -> None:
        self.lane = self.traffic


@dataclass(eq=False)
class Port:
    """The sending end of a channel: a queue for each class, PFC frames apart."""

    queues: list[deque[Packet]]
    flows: list[deque[int]]
    pfc: deque[Packet] = field(default_factory=deque)
    free: int = -1
    sending: Packet | None = None
    rank: tuple[int, int, int] = (0, 0, 0)
    asked: bool = True
    paused: set[int] = field(default_factory=set)
    last: int = 0
    credit: list[int] = field(default_factory=list)
    most: list[int] = field(default_factory=list)
    marked: int = 0
    n_pauses: int = 0
    sent_wire: int = 0


@dataclass(eq=False)
class Message:
    """A message: its packets are those from `first` on of its queue pair."""

    pair: int
    size: int
    n: int
    operation: Operation
    first: int = 0
    posted: bool = False
    started_ps: int = -1
    delivered_ps: int = -1
    acked_ps: int = -1

    @property
    def end(self) -> int:
        return self.first + self.n


@dataclass(eq=False)
class Flow:
    """The two ends of a queue pair; `messages` are numbers, `n` all their packets."""

    route: list[int]
    back: list[int]
    messages: list[int]
    n: int
    line: float
    rate: float
    target: float
    traffic: int
    of_class: int
    control: Control
    window: int = 0
    selective: Selective | None = None
    operation: Operation = Operation.WRITE
    posted: int = 0
    hpcc: Hpcc | None = None
    swift: SwiftSender | None = None
    credit: Credit | None = None
    last_wire: int = 0
    wake_ps: int = 0
    acked: int = 0
    next: int = 0
    top: int = 0
    expected: int = 0
    place: str = ""
    nak_sent: bool = False
    timer: bool = False
    retries: int = 0
    slowed: bool = False
    cct_index: int = 0
    alpha: float = 0.0
    alpha_cnp: bool = False
    rate_cnp: bool = False
    time_stage: int = 0
    byte_stage: int = 0
    sent_bytes: int = 0
    next_ps: int = 0
    progress_ps: int = 0
    increase_ps: int = -1
    last_cnp_ps: int = -(2**61)
    cnps: int = 0
    repeats: int = 0
    timeouts: int = 0
    out_of_order: int = 0
