from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpufabric.core.errors import InputError
from gpufabric.sim.packet import PacketProblem, PacketResult, Recording, simulate_packets
from gpufabric.sim.packet_config import PacketConfig, SwitchBuffer
from tests.reference.packet_tape import TapedEngine, bin_width_ps, cells
from tests.sim.packet_cases import US, incast
from tests.sim.test_packet_credit_parity import subnets
from tests.sim.test_packet_parity import UNTIL_PS, configs, problems, with_pool

PAUSING = PacketConfig(ecn=None, buffer=SwitchBuffer(xoff_bytes=20_000, xon_offset_bytes=5_000))


def assert_series_equal(engine: TapedEngine, result: PacketResult, recording: Recording) -> None:
    series = result.series
    assert series is not None
    first_ps = round(recording.first_bin_ns * 1000)
    width, last = bin_width_ps(engine.notes, first_ps, recording.bins)
    assert (series.bin_ps, series.end_ps) == (width, last)
    for row, channel in enumerate(series.channels.tolist()):
        for traffic in range(len(engine.config.classes)):
            theirs = np.array(cells(engine, (channel, traffic), width, series.n_bins), float).T
            span = np.minimum(width, last - np.arange(series.n_bins) * float(width))
            theirs[1:] /= np.maximum(span, 1)
            ours = (series.deepest_bytes, series.mean_bytes, series.busy, series.paused)
            assert np.array_equal([one[row, traffic] for one in ours], theirs)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    problems(),
    st.one_of(configs(), subnets()),
    st.sampled_from([5_000, 20_000, 100_000]),
    st.sampled_from([(8, 100.0), (64, 0.5), (30, 1000.0)]),
    st.sampled_from([None, (1, 0, 3)]),
)
def test_series_pauses_and_latencies_equal_the_reference(
    problem: PacketProblem,
    config: PacketConfig,
    pool_bytes: int,
    bins: tuple[int, float],
    channels: tuple[int, ...] | None,
) -> None:
    if config.credits is None:
        config = with_pool(problem, config, pool_bytes)
    engine = TapedEngine(problem, config)
    engine.run(UNTIL_PS)
    engine.close()
    recording = Recording(bins=bins[0], first_bin_ns=bins[1], channels=channels)
    result = simulate_packets(problem, config, until_ps=UNTIL_PS, recording=recording)
    if channels is not None:
        assert result.series is not None
        assert result.series.channels.tolist() == sorted(channels)
    else:
        assert_series_equal(engine, result, recording)
    assert result.pause_log is not None
    assert result.pause_log.rows.tolist() == engine.notes.log
    assert result.latencies is not None
    places = zip(*np.nonzero(result.latencies.packets), strict=True)
    ours = {(int(a), int(b)): int(result.latencies.packets[a, b]) for a, b in places}
    assert ours == dict(engine.notes.latencies)


def test_a_run_that_notes_is_the_run_that_does_not() -> None:
    problem = incast(4, 300_000)
    noted = simulate_packets(problem, PAUSING, recording=Recording(bins=8))
    plain = simulate_packets(problem, PAUSING)
    assert plain.series is None
    assert plain.latencies is None
    assert noted.n_events == plain.n_events
    assert np.array_equal(noted.flows.fct_ps, plain.flows.fct_ps)
    assert np.array_equal(noted.ports.paused_ps, plain.ports.paused_ps)


def test_series_add_up_to_the_totals_of_the_run() -> None:
    result = simulate_packets(
        incast(4, 300_000), PAUSING, until_ps=60 * US, recording=Recording(bins=16)
    )
    series, ports = result.series, result.ports
    assert series is not None
    assert series.n_bins <= 16
    length = np.full(series.n_bins, series.bin_ps)
    length[-1] = series.end_ps - (series.n_bins - 1) * series.bin_ps
    assert np.array_equal((series.paused * length).sum(axis=2).round(), ports.paused_ps)
    assert np.array_equal(series.deepest_bytes.max(axis=2), ports.most_queued_bytes)
    assert series.busy.max() <= 1.0
    assert series.busy[1, 0, 2] == 1.0  # the link that all share


def test_latencies_know_their_quantiles_to_three_percent() -> None:
    result = simulate_packets(incast(1, 4096 * 100), PAUSING, recording=Recording(bins=0))
    assert result.series is None
    assert result.latencies is not None
    # Nothing waits: each packet takes what a single one takes, the first 16 bytes longer.
    alone_ps = 2 * 80 * (4096 + 62 + 20) + 2 * US + 500_000
    for share in (0.0, 0.5, 1.0):
        assert alone_ps * 31 / 32 < result.latencies.quantile_ps(share) <= alone_ps + 2 * 80 * 16


def test_the_log_of_pauses_keeps_the_first_ones() -> None:
    full = simulate_packets(incast(4, 300_000), PAUSING, recording=Recording(bins=0))
    cut = simulate_packets(incast(4, 300_000), PAUSING, recording=Recording(bins=0, pause_rows=5))
    assert full.pause_log is not None
    assert cut.pause_log is not None
    assert len(full.pause_log.rows) > 5
    assert cut.pause_log.rows.tolist() == full.pause_log.rows[:5].tolist()
    assert cut.pause_log.n_lost == len(full.pause_log.rows) - 5


def test_what_is_asked_wrongly_is_told_together() -> None:
    wrong = Recording(bins=-1, first_bin_ns=0.0, channels=(0, 99))
    with pytest.raises(InputError) as caught:
        simulate_packets(incast(2, 1000), PAUSING, recording=wrong)
    for place in ("recording.bins", "recording.first_bin_ns", "recording.channels[1]"):
        assert place in str(caught.value)
    with pytest.raises(InputError, match="6 channels need 3072 bytes"):
        simulate_packets(incast(2, 1000), PAUSING, recording=Recording(series_bytes=1000))
    few = replace(Recording(), series_bytes=4000)
    result = simulate_packets(incast(2, 100_000), PAUSING, recording=few)
    assert result.series is not None
    assert result.series.n_bins <= 10
