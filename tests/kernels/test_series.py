"""kernels/series.py against tests/reference/series.py."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.kernels.series import spread
from gpufabric.kernels.structs import ENTRY, Series, records
from tests.reference import series as reference

N_CHANNELS = 3
TIME = st.floats(0, 50, allow_nan=False)
ROUTE = st.lists(st.tuples(st.integers(0, N_CHANNELS - 1), st.sampled_from([0.5, 1.0])), max_size=3)


@st.composite
def pieces(draw: st.DrawFn) -> reference.Piece:
    since, until = sorted([draw(TIME), draw(TIME)])
    return reference.Piece(draw(ROUTE), draw(st.floats(0, 9)), since, until)


@given(st.lists(pieces(), min_size=1, max_size=5), st.sampled_from([2, 4, 8]))
def test_bins_hold_what_was_carried(found: list[reference.Piece], n_bins: int) -> None:
    series = Series(np.array([0.75]), np.zeros((n_bins, N_CHANNELS)))
    for piece in found:
        entries = records(ENTRY, len(piece.route))
        entries["channel"] = [channel for channel, _ in piece.route]
        entries["fraction"] = [fraction for _, fraction in piece.route]
        spread(entries, series, piece.rate, piece.since, piece.until)
    width = reference.width(found, 0.75, n_bins)
    assert series.width_s[0] == width
    expected = reference.spread(found, width, n_bins, N_CHANNELS)
    assert series.carried == pytest.approx(np.array(expected), rel=1e-9, abs=1e-9)
