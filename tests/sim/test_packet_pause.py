from __future__ import annotations

from dataclasses import replace

import pytest

from gpufabric.core.errors import InputError
from gpufabric.sim.packet import PacketResult, simulate_packets
from gpufabric.sim.packet_config import (
    PacketConfig,
    PauseTime,
    PortOverride,
    SwitchBuffer,
    Transport,
    Watchdog,
)
from tests.reference.packet_ends import Engine
from tests.sim.packet_cases import US, Link, incast, problem_of
from tests.sim.test_packet_parity import assert_equal

BUFFER = SwitchBuffer(xoff_bytes=30_000, xon_offset_bytes=20_000)
BARE = PacketConfig(ecn=None, buffer=BUFFER)
PFC = 4

# Host 2, behind the second switch, takes 4 ms for 30 KB, which is as good as a storm for a while.
LINKS: list[Link] = [
    (0, 3, 100.0, US),
    (1, 4, 100.0, US),
    (2, 4, 0.1, US),
    (3, 4, 100.0, US),
]
SLOW = problem_of(LINKS, 3, [(0, 2, 60 * 4096)])
BETWEEN = 6  # port of the first switch towards the second
DETECT_US, RESTORE_US = 500.0, 1_000.0


def guarded(action: str, *overrides: PortOverride) -> PacketConfig:
    watchdog = Watchdog(detect_us=DETECT_US, restore_us=RESTORE_US, action=action)
    return replace(
        BARE, watchdog=watchdog, overrides=overrides, transport=Transport(timeout_us=0.0)
    )


def paused_since(config: PacketConfig, at_us: int) -> int:
    ports = simulate_packets(SLOW, config, until_ps=at_us * US).ports
    assert ports.pauses[BETWEEN, 0] == 1
    end_ps = simulate_packets(SLOW, config, until_ps=at_us * US).end_ps
    return int(end_ps - ports.paused_ps[BETWEEN, 0])


@pytest.mark.parametrize("quanta", [200, 65_535])
def test_a_pause_that_is_asked_for_again_in_time_is_as_one_without_end(quanta: int) -> None:
    problem = incast(4, 2_000_000)
    plain = simulate_packets(problem, BARE)
    result = simulate_packets(problem, replace(BARE, pause_time=PauseTime(quanta)))
    assert result.ports.expired.sum() == result.ledger.dropped.sum() == 0
    assert result.ports.pauses.tolist() == plain.ports.pauses.tolist()
    assert result.flows.fct_ps.max() == pytest.approx(plain.flows.fct_ps.max(), rel=1e-3)
    # 200 quanta are 1.024 us at 100 Gb/s; a pause here is longer, one of 65,535 quanta is not.
    assert (result.ledger.sent[PFC] > 1.2 * plain.ledger.sent[PFC]) == (quanta == 200)


def test_the_number_of_frames_is_the_time_of_the_pause_over_the_time_between() -> None:
    config = replace(guarded("drop"), watchdog=None)
    since = paused_since(config, 2_000)
    again_ps = int(65_535 * 512 * 10 * 0.5)
    config = replace(config, pause_time=PauseTime(65_535))
    plain = simulate_packets(SLOW, replace(config, pause_time=PauseTime()), until_ps=2_000 * US)
    result = simulate_packets(SLOW, config, until_ps=2_000 * US)
    # Two inputs pause: that of the second switch and, as a result, that of the first.
    more = int(result.ledger.sent[PFC] - plain.ledger.sent[PFC])
    assert more == pytest.approx(2 * (2_000 * US - since) / again_ps, abs=2)
    assert result.ports.expired.sum() == 0


def test_a_pause_that_is_not_asked_for_again_in_time_ends() -> None:
    # A data packet on its way back may delay the next XOFF; then the pause is over before it comes.
    problem = problem_of(LINKS, 3, [(0, 2, 60 * 4096), (1, 0, 4_000_000)])
    config = replace(guarded("drop"), watchdog=None, pause_time=PauseTime(100, refresh_part=1.0))
    result = simulate_packets(problem, config, until_ps=2_000 * US)
    assert result.ports.expired[BETWEEN, 0] > 0
    early = replace(config, pause_time=PauseTime(100, refresh_part=0.2))
    assert simulate_packets(problem, early, until_ps=2_000 * US).ports.expired.sum() == 0


@pytest.mark.parametrize("action", ["drop", "forward"])
def test_the_watchdog_acts_after_its_time_to_the_picosecond(action: str) -> None:
    config = guarded(action)
    since = paused_since(config, 100)
    due = since + int(DETECT_US) * US

    def storms(until_ps: int) -> int:
        return int(simulate_packets(SLOW, config, until_ps=until_ps).ports.storms[BETWEEN, 0])

    assert (storms(due - 1), storms(due)) == (0, 1)


def test_in_a_storm_waiting_packets_are_dropped_and_all_that_come() -> None:
    result = simulate_packets(SLOW, guarded("drop"), until_ps=900 * US)
    assert result.ports.storms.sum() == result.ports.storms[BETWEEN, 0] == 1
    assert result.drops["watchdog"] == result.ports.watchdog_dropped[BETWEEN, 0]
    assert result.drops["headroom"] == result.drops["buffer"] == 0
    # The NIC goes on as if all were well: what had not got through by then is lost.
    assert result.drops["watchdog"] == 60 - result.ports.packets[BETWEEN]
    assert result.ports.packets[0] == 60


def test_in_a_storm_packets_are_forwarded_in_spite_of_the_pause() -> None:
    result = simulate_packets(SLOW, guarded("forward"), until_ps=900 * US)
    assert result.drops["watchdog"] == 0
    assert result.ports.packets[BETWEEN] == 60
    assert result.drops["headroom"] > 0  # the far end has no room for them


def test_the_storm_is_over_when_the_pauses_have_stopped_for_the_time_given() -> None:
    result = simulate_packets(SLOW, guarded("drop"))
    storm_ps = result.ports.storm_ps[BETWEEN, 0]
    assert result.ports.storms[BETWEEN, 0] == 1
    # The far end needs the time of some of its packets to say XON; then no frame came for 1 ms.
    assert storm_ps > RESTORE_US * US
    assert result.end_ps >= storm_ps
    later = simulate_packets(SLOW, guarded("drop"), until_ps=100_000 * US)
    assert later.ports.storm_ps[BETWEEN, 0] == storm_ps
    assert later.ports.paused_ps[BETWEEN, 0] == pytest.approx(DETECT_US * US + storm_ps, rel=1e-9)


def test_a_switch_or_class_may_be_without_watchdog() -> None:
    for override in (
        PortOverride(switches=(0,), has_watchdog=False),
        PortOverride(ports=(BETWEEN,), has_watchdog=False),
        PortOverride(classes=(0,), has_watchdog=False),
    ):
        result = simulate_packets(SLOW, guarded("drop", override), until_ps=3_000 * US)
        assert result.ports.storms.sum() == 0
    other = PortOverride(classes=(1,), has_watchdog=False)
    assert simulate_packets(SLOW, guarded("drop", other), until_ps=900 * US).ports.storms.sum() == 1


def test_without_packets_waiting_there_is_no_storm() -> None:
    few = problem_of(LINKS, 3, [(0, 2, 12 * 4096)])
    config = guarded("drop")
    small = replace(config, buffer=replace(BUFFER, xoff_bytes=40_000))
    result: PacketResult = simulate_packets(few, small, until_ps=2_500 * US)
    assert result.ports.pauses[BETWEEN, 0] == 1
    assert result.ports.paused_ps[BETWEEN, 0] > DETECT_US * US
    assert result.ports.storms.sum() == 0


def test_faults_of_pauses_are_told_together() -> None:
    config = replace(
        BARE,
        pause_time=PauseTime(70_000, refresh_part=2.0),
        watchdog=Watchdog(detect_us=0.0, restore_us=-1.0, action="shout"),
    )
    with pytest.raises(InputError) as caught:
        simulate_packets(incast(2, 1000), config)
    for place in (
        "pause_time.quanta",
        "pause_time.refresh_part",
        "watchdog.detect_us",
        "watchdog.restore_us",
        "watchdog.action: the action is 'shout'",
    ):
        assert place in str(caught.value)


@pytest.mark.parametrize("action", ["drop", "forward"])
@pytest.mark.parametrize(("quanta", "part"), [(0, 0.5), (65_535, 0.5), (100, 1.0)])
def test_storms_and_pauses_with_an_end_are_as_in_the_reference(
    action: str, quanta: int, part: float
) -> None:
    problem = problem_of(LINKS, 3, [(0, 2, 40 * 4096), (1, 0, 30 * 4096), (0, 1, 20 * 4096)])
    watchdog = Watchdog(detect_us=90.0, restore_us=150.0, action=action)
    own = PortOverride(ports=(4,), has_watchdog=False)
    config = replace(guarded(action, own), pause_time=PauseTime(quanta, part), watchdog=watchdog)
    engine = Engine(problem, config)
    engine.run(1_500 * US)
    result = simulate_packets(problem, config, until_ps=1_500 * US, trace_rows=100_000)
    assert_equal(engine, result)
    assert result.ports.storms.sum() > 0
    assert (result.ports.expired.sum() > 0) == (quanta == 100)
    assert (result.drops["watchdog"] > 0) == (action == "drop")
