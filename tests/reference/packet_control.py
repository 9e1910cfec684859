"""What a flow has from its control before it starts, and what it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufabric.sim.packet_control import ControlKind
from gpufabric.sim.packet_messages import Operation
from tests.reference.packet_cct import first_index
from tests.reference.packet_grant import first_credit
from tests.reference.packet_hpcc import Hpcc, trip_ps
from tests.reference.packet_selective import Selective
from tests.reference.packet_swift import SwiftSender

if TYPE_CHECKING:
    from gpufabric.sim.packet_problem import PacketProblem
    from tests.reference.packet import Engine
    from tests.reference.packet_records import Flow

US = 1_000_000


def set_control(engine: Engine, flow: Flow) -> None:
    """Set the window, and the state of the control and of selective repeat."""
    control, transport = flow.control, engine.config.transport
    flow.window = control.window_bytes
    if transport.most_apart_packets and flow.operation is not Operation.READ:
        flow.selective = Selective(transport.reorder_packets)
    if control.kind is ControlKind.CCT:
        first_index(flow)
    elif control.kind is ControlKind.RCCC:
        flow.credit = first_credit(engine, flow)
    elif control.kind is ControlKind.SWIFT:
        base, mtu = trip_ps(engine, control, flow.route, flow.back), transport.mtu_bytes
        packets = base * flow.line / 8000 / mtu
        most = max(1.0, control.window_bytes / mtu or 2 * packets)
        window = min(max(1.0, packets), most)
        flow.swift = SwiftSender(control.swift, base, len(flow.route) - 1, most, window)
        flow.window = int(window) * mtu
    elif control.kind is ControlKind.HPCC:
        given = round(control.hpcc.base_rtt_us * US)
        trip = given or trip_ps(engine, control, flow.route, flow.back)
        flow.hpcc = Hpcc(trip, flow.line)
        flow.window = control.window_bytes or max(1, int(trip * flow.line / 8000))


def waiting(problem: PacketProblem) -> list[list[int]]:
    """Flows that each flow waits for."""
    after = problem.after
    if after is None:
        return [[] for _ in range(problem.n_flows)]
    return [
        after.flow[after.first[at] : after.first[at + 1]].tolist() for at in range(problem.n_flows)
    ]
