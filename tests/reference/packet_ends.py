"""The sending ends of queue pairs, from the rules of docs/models/packet.md: go-back-N and DCQCN."""

from __future__ import annotations

from gpufabric.sim.packet_config import ControlKind
from gpufabric.sim.packet_messages import Operation
from tests.reference import packet as one
from tests.reference.packet import US
from tests.reference.packet_cct import run_down, take_becn
from tests.reference.packet_hpcc import extra, take
from tests.reference.packet_records import Flow, Packet


class Engine(one.Engine):
    """A whole run."""

    # Senders ---------------------------------------------------------------------------------

    def has_work(self, flow: Flow) -> bool:
        transport = self.config.transport
        if flow.selective is not None:
            if flow.selective.lost() is not None:
                return True
            if flow.next - flow.acked >= transport.most_apart_packets:
                return False
        if flow.next >= (flow.posted if flow.credit is None else flow.credit.limit):
            return False
        limit = flow.window
        if limit == 0:
            return True
        if flow.control.window_follows_rate or flow.hpcc is not None:
            limit = max(1, int(limit * flow.rate / flow.line))
        return (flow.next - flow.acked) * transport.mtu_bytes < limit

    def list_flow(self, number: int) -> None:
        flow = self.flows[number]
        if flow.place == "" and self.has_work(flow):
            port = self.ports[flow.route[0]]
            flow.place = "row"
            port.flows[flow.traffic].append(number)
            self.look(flow.route[0])

    def next_of_flows(self, number: int) -> Packet | None:
        flow = self.flows[number]
        if flow.place == "failed":
            return None
        flow.place = ""
        if not self.has_work(flow):
            return None
        if flow.next_ps > self.now:
            self.sleep(number)
            return None
        packet = self.make_packet(number)
        if self.has_work(flow):
            flow.place = "row"
            self.ports[flow.route[0]].flows[flow.traffic].append(number)
        return packet

    def sleep(self, number: int) -> None:
        flow = self.flows[number]
        flow.place, flow.wake_ps = "paced", flow.next_ps
        self.at(flow.next_ps, one.WAKE, number, rare=True)

    def make_packet(self, number: int) -> Packet:
        flow, config = self.flows[number], self.config
        at = None if flow.selective is None else flow.selective.lost()
        if at is None:
            at = flow.next
            flow.next += 1
        else:
            assert flow.selective is not None
            flow.selective.repeat = at + 1
        size = self.size_of(flow, at)
        wire = size + config.headers.gap_bytes
        packet = Packet(one.DATA, number, at, size, wire, flow.traffic, flow.route)
        self.sent[one.DATA] += 1
        flow.repeats += at < flow.top
        flow.top = max(flow.top, flow.next)
        flow.last_wire = wire
        packet.sent_ps = self.now
        packet.credit = flow.posted
        if flow.swift is not None:
            flow.next_ps = self.now + flow.swift.wait_ps
        elif flow.hpcc is not None:
            packet.stamps = []
            flow.next_ps = self.now + self.serial(wire, flow.rate)
        elif flow.control.kind is ControlKind.CCT:
            flow.next_ps = self.now + self.serial(wire, flow.rate)
        elif flow.control.kind is ControlKind.DCQCN:
            flow.next_ps = self.now + self.serial(wire, flow.rate)
            self.count_bytes(flow, size)
        is_read = flow.operation is Operation.READ
        if config.transport.timeout_us > 0 and not flow.timer and not is_read:
            flow.timer = True
            flow.progress_ps = self.now
            self.at(self.now + round(config.transport.timeout_us * US), one.TIMEOUT, number)
        return packet

    def acknowledge(self, number: int, expected: int) -> None:
        flow = self.flows[number]
        if expected > flow.acked:
            if flow.selective is not None:
                flow.selective.sacked -= set(range(expected))
                flow.selective.repeat = max(flow.selective.repeat, expected)
            flow.acked = expected
            flow.next = max(flow.next, expected)
            flow.progress_ps = self.now
            flow.retries = 0
            for at in flow.messages:
                message = self.messages[at]
                if message.end <= expected and message.acked_ps < 0 and flow.place != "failed":
                    message.acked_ps = self.now
                    if self.after is not None and self.after.until_acked:
                        self.release(at)
        self.list_flow(number)

    def reject(self, number: int, expected: int) -> None:
        flow = self.flows[number]
        if expected >= flow.acked:
            flow.next = min(flow.next, expected)
        self.acknowledge(number, expected)

    def time_out(self, number: int) -> None:
        flow, transport = self.flows[number], self.config.transport
        period = round(transport.timeout_us * US)
        if flow.operation is Operation.READ:
            self.time_out_read(number, period)
            return
        flow.timer = False
        starves = flow.credit is not None and flow.credit.limit < flow.posted
        begs = flow.acked == flow.top and starves
        if flow.place == "failed" or (flow.acked == flow.top and not begs):
            return
        if flow.progress_ps + period <= self.now:
            flow.timeouts += 1
            flow.retries += 1
            if flow.retries > transport.retry_count:
                flow.place = "failed"
                return
            if flow.selective is None:
                flow.next = flow.acked
            else:
                flow.selective.repeat = flow.acked
                flow.selective.highest = flow.top + transport.reorder_packets
            if begs and flow.credit is not None:
                flow.credit.limit += 1
            flow.progress_ps = self.now
        flow.timer = True
        self.at(self.now + period, one.TIMEOUT, number)
        self.list_flow(number)

    def time_out_read(self, number: int, period: int) -> None:
        flow = self.flows[number]
        if flow.expected == flow.n:
            return
        if flow.progress_ps + period > self.now:
            self.at(self.now + period, one.TIMEOUT, number)
            return
        flow.timeouts += 1
        flow.retries += 1
        if flow.retries > self.config.transport.retry_count:
            flow.place = "failed"
        else:
            flow.progress_ps, flow.nak_sent = self.now, False
            self.ask(number)

    def begin(self, number: int) -> None:
        message = self.messages[number]
        message.started_ps = self.now
        flow = self.flows[message.pair]
        message.posted = True
        self.post(flow)
        if flow.operation is Operation.READ:
            flow.progress_ps = self.now
            self.ask(message.pair)
        else:
            self.list_flow(message.pair)

    def post(self, flow: Flow) -> None:
        """Let all messages of a queue pair be sent whose time, and that of all before, has come."""
        before = flow.posted
        for at in flow.messages:
            if not self.messages[at].posted:
                break
            flow.posted = self.messages[at].end
        if flow.credit is not None:
            flow.credit.post(before, flow.posted, is_idle=flow.next >= before)

    def ask(self, number: int) -> None:
        """Ask for the data of a READ from the first packet that is missing."""
        nothing = Packet(one.DATA, number, 0, 0, 0, 0, [])
        self.answer(nothing, one.NAK, marked=False)
        period = round(self.config.transport.timeout_us * US)
        if period:
            self.at(self.now + period, one.TIMEOUT, number)

    def release(self, number: int) -> None:
        """Start the flows that wait for this one and for no other."""
        after = self.after
        assert after is not None
        for child, left in self.left.items():
            if number in left:
                left.remove(number)
                if not left:
                    delay = 0 if after.delay_ps is None else int(after.delay_ps[child])
                    time = max(self.now + delay, self.starts[child])
                    self.at(time, one.START, child, rare=True)

    def wake(self, number: int) -> None:
        flow = self.flows[number]
        if flow.place != "paced" or flow.wake_ps != self.now:
            return
        if flow.next_ps > self.now:
            self.sleep(number)
        else:
            flow.place = ""
            self.list_flow(number)

    # Receivers -------------------------------------------------------------------------------

    def receive(self, packet: Packet) -> None:
        self.received[packet.kind] += 1
        if packet.kind == one.DATA:
            self.receive_data(packet)
            return
        if packet.kind == one.CNP or packet.marked:
            self.take_cnp(packet.flow)
        take(self, packet)
        self.take_delay(packet)
        if packet.kind != one.CNP:
            self.granters.take(packet)
        selective = self.flows[packet.flow].selective
        if packet.kind == one.NAK and selective is not None:
            if packet.sacked >= self.flows[packet.flow].acked:
                selective.sacked.add(packet.sacked)
                selective.highest = max(selective.highest, packet.sacked)
            self.acknowledge(packet.flow, packet.number)
        elif packet.kind == one.NAK:
            self.reject(packet.flow, packet.number)
        elif packet.kind == one.ACK:
            self.acknowledge(packet.flow, packet.number)

    def take_delay(self, packet: Packet) -> None:
        flow = self.flows[packet.flow]
        if flow.swift is not None and packet.kind != one.CNP:
            n_acked = max(0, packet.number - flow.acked)
            trip = self.now - packet.sent_ps
            flow.swift.take(self.now, trip, n_acked, missing=packet.kind == one.NAK)
            flow.window = max(1, int(flow.swift.window)) * self.config.transport.mtu_bytes

    def receive_data(self, packet: Packet) -> None:
        flow, transport = self.flows[packet.flow], self.config.transport
        is_read = flow.operation is Operation.READ
        echo = packet.marked and transport.cnp_in_ack and not is_read
        if packet.marked and not echo:
            gap = 0
            if flow.control.kind is ControlKind.DCQCN:
                gap = round(flow.control.dcqcn.min_time_between_cnps_us * US)
            kinds = {ControlKind.NONE, ControlKind.DCQCN, ControlKind.CCT}
            answers = flow.control.kind in kinds
            if answers and self.now - flow.last_cnp_ps >= gap:
                flow.last_cnp_ps = self.now
                self.answer(packet, one.CNP, marked=False)
        self.granters.learn(packet)
        if packet.number == flow.expected:
            flow.expected += 1
            flow.nak_sent = False
            is_last = self.take_in_order(packet.flow)
            if is_read:
                return
            if is_last or echo or flow.expected % transport.ack_every == 0:
                self.answer(packet, one.ACK, marked=echo)
        elif packet.number > flow.expected:
            self.take_early(packet, echo=echo)
        elif transport.acks_duplicates and not is_read:
            self.answer(packet, one.ACK, marked=echo)

    def take_early(self, packet: Packet, *, echo: bool) -> None:
        flow = self.flows[packet.flow]
        flow.out_of_order += 1
        if flow.selective is None:
            if not flow.nak_sent:
                flow.nak_sent = True
                self.answer(packet, one.NAK, marked=echo)
        elif packet.number not in flow.selective.kept:
            flow.selective.kept.add(packet.number)
            packet.sacked = packet.number
            self.answer(packet, one.NAK, marked=echo)

    def take_in_order(self, number: int) -> bool:
        """Tell whether a message is whole now."""
        flow = self.flows[number]
        while flow.selective is not None and flow.expected in flow.selective.kept:
            flow.expected += 1
        is_read = flow.operation is Operation.READ
        messages = [self.messages[at] for at in flow.messages]
        whole = [one for one in messages if one.delivered_ps < 0 and one.end <= flow.expected]
        if is_read:
            flow.progress_ps, flow.retries = self.now, 0
        for message in whole:
            message.delivered_ps = self.now
            if is_read:
                flow.acked, message.acked_ps = flow.n, self.now
            if self.after is not None and (is_read or not self.after.until_acked):
                self.release(self.messages.index(message))
        return bool(whole)

    def send_credit(self, number: int) -> None:
        """Tell a sender, in an ACK that acknowledges nothing new, what is granted."""
        self.answer(Packet(one.DATA, number, 0, 0, 0, 0, []), one.ACK, marked=False)

    def answer(self, data: Packet, kind: int, *, marked: bool) -> None:
        flow, headers, number = self.flows[data.flow], self.config.headers, data.flow
        size = headers.cnp_bytes
        if kind != one.CNP:
            size = headers.ack_bytes + extra(flow.control)[1]
            if flow.operation is Operation.READ:
                size = headers.request_bytes
        traffic = self.config.cnp_class if kind == one.CNP else self.config.ack_class
        traffic = flow.traffic if traffic < 0 else traffic
        wire = size + headers.gap_bytes
        packet = Packet(kind, number, flow.expected, size, wire, traffic, flow.back)
        packet.marked = marked
        packet.sacked, packet.sent_ps = data.sacked, data.sent_ps
        packet.credit = 0 if flow.credit is None else flow.credit.granted
        packet.stamps = None if kind == one.CNP else data.stamps
        self.sent[kind] += 1
        self.enqueue(flow.back[0], traffic, packet)

    # DCQCN -----------------------------------------------------------------------------------

    def is_rare(self, flow: Flow) -> bool:
        """Timers of the first DCQCN have lanes, those of others have not."""
        kinds = [one.kind for one in self.config.flow_controls]
        return flow.of_class != kinds.index(ControlKind.DCQCN)

    def take_cnp(self, number: int) -> None:
        flow = self.flows[number]
        flow.cnps += 1
        if flow.control.kind is ControlKind.CCT:
            take_becn(self, number)
        if flow.control.kind is not ControlKind.DCQCN or flow.acked == flow.n:
            return
        flow.rate_cnp = True
        if flow.slowed:
            flow.alpha_cnp = True
            return
        flow.slowed = True
        dcqcn, rare = flow.control.dcqcn, self.is_rare(flow)
        flow.alpha = dcqcn.initial_alpha_value
        if dcqcn.rate_to_set_on_first_cnp_gbps > 0:
            flow.rate = min(flow.rate, dcqcn.rate_to_set_on_first_cnp_gbps)
        flow.target = flow.rate
        self.at(self.now + round(dcqcn.dce_tcp_rtt_us * US), one.ALPHA, number, rare=rare)
        wait = round(dcqcn.rate_reduce_monitor_period_us * US)
        later = round(dcqcn.first_check_later_ns * 1000)
        self.at(self.now + wait + later, one.DECREASE, number, rare=rare or later > 0)

    def renew_alpha(self, number: int) -> None:
        flow = self.flows[number]
        if flow.control.kind is ControlKind.CCT:
            run_down(self, number)
            return
        dcqcn, rare = flow.control.dcqcn, self.is_rare(flow)
        g = dcqcn.dce_tcp_g
        if flow.acked < flow.n:
            flow.alpha = (1 - g) * flow.alpha + (g if flow.alpha_cnp else 0.0)
            flow.alpha_cnp = False
            self.at(self.now + round(dcqcn.dce_tcp_rtt_us * US), one.ALPHA, number, rare=rare)

    def check_rate(self, number: int) -> None:
        flow = self.flows[number]
        dcqcn, rare = flow.control.dcqcn, self.is_rare(flow)
        if flow.acked == flow.n:
            return
        wait = round(dcqcn.rate_reduce_monitor_period_us * US)
        self.at(self.now + wait, one.DECREASE, number, rare=rare)
        if flow.rate_cnp:
            if dcqcn.clamp_tgt_rate or flow.time_stage or flow.byte_stage:
                flow.target = flow.rate
            kept = max(1 - 0.5 * flow.alpha, dcqcn.rpg_min_dec_fac)
            flow.rate = max(dcqcn.rpg_min_rate_gbps, flow.rate * kept)
            flow.rate_cnp = False
            flow.time_stage = flow.byte_stage = flow.sent_bytes = 0
            flow.increase_ps = self.now + round(dcqcn.rpg_time_reset_us * US)
            self.at(flow.increase_ps, one.INCREASE, number, rare=rare)

    def raise_by_timer(self, number: int) -> None:
        flow = self.flows[number]
        dcqcn, rare = flow.control.dcqcn, self.is_rare(flow)
        if flow.acked < flow.n and flow.increase_ps == self.now:
            flow.increase_ps = self.now + round(dcqcn.rpg_time_reset_us * US)
            self.at(flow.increase_ps, one.INCREASE, number, rare=rare)
            before = flow.rate
            self.raise_rate(flow)
            flow.time_stage += 1
            if dcqcn.shortens_waits and flow.place == "paced" and flow.next_ps > self.now:
                wait = int((flow.next_ps - self.now) * (before / flow.rate))
                flow.next_ps = self.now + wait // self.config.tick_ps * self.config.tick_ps
                flow.wake_ps = flow.next_ps
                self.at(flow.next_ps, one.WAKE, number, rare=True)

    def count_bytes(self, flow: Flow, size: int) -> None:
        dcqcn = flow.control.dcqcn
        if dcqcn.rpg_byte_reset and flow.slowed:
            flow.sent_bytes += size
            if flow.sent_bytes >= dcqcn.rpg_byte_reset:
                flow.sent_bytes = 0
                self.raise_rate(flow)
                flow.byte_stage += 1

    def raise_rate(self, flow: Flow) -> None:
        dcqcn = flow.control.dcqcn
        stages = [flow.time_stage]
        if dcqcn.rpg_byte_reset:
            stages.append(flow.byte_stage)
        if min(stages) > dcqcn.rpg_threshold:
            flow.target = min(flow.line, flow.target + dcqcn.rpg_hai_rate_gbps)
        elif max(stages) >= dcqcn.rpg_threshold:
            flow.target = min(flow.line, flow.target + dcqcn.rpg_ai_rate_gbps)
        flow.rate = 0.5 * (flow.rate + flow.target)
