"""Rows of a measured collective, whatever form they were read from."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpufabric.core.errors import Fault

__all__ = ["Device", "NcclTestsOutput", "Row", "Timing", "amount", "count"]


def amount(value: object) -> float | None:
    """Return a finite number that is not negative; None where the value is none.

    Examples
    --------
    >>> amount("20.5"), amount("nan"), amount(None)
    (20.5, None, None)
    """
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def count(value: object) -> int | None:
    """Return a whole number that is not negative; None where the value is none.

    Examples
    --------
    >>> count("0"), count("1e3"), count("N/A")
    (0, 1000, None)
    """
    number = amount(value)
    return None if number is None else int(number)


@dataclass(frozen=True)
class Device:
    """A GPU that took part: its rank, host, number there, bus id and model."""

    rank: int
    host: str
    device: int
    bus_id: str
    model: str


@dataclass(frozen=True)
class Timing:
    """Time [us], algorithm and bus bandwidth [GB/s], and wrong values; None where not stated."""

    time_us: float | None
    algbw_gbytes_per_s: float | None
    busbw_gbytes_per_s: float
    n_wrong: int | None


@dataclass(frozen=True)
class Row:
    """One message size: out of place, and in place where it was measured."""

    size_bytes: int
    datatype: str
    out_of_place: Timing
    in_place: Timing | None
    line: int


@dataclass(frozen=True)
class NcclTestsOutput:
    """What one output says.

    Parameters
    ----------
    name, form
        How messages call it; ``nccl-tests``, ``nccl-tests JSON``, ``CSV`` or ``PyTorch``.
    operation
        As the program is called, without ``_perf``; None where the text does not say.
    n_ranks
        GPUs that took part; None where the text does not say.
    devices
        Of the header, by rank.
    settings
        Of the header, such as ``minBytes``.
    rows
        In the order of the text.
    average_busbw_gbytes_per_s, n_wrong
        Of the footer; None where missing.
    library
        Version of NCCL or RCCL; empty where the text does not say.
    warnings
        What was left out or contradicts itself.
    """

    name: str
    form: str
    operation: str | None
    n_ranks: int | None
    devices: tuple[Device, ...]
    settings: dict[str, str]
    rows: tuple[Row, ...]
    average_busbw_gbytes_per_s: float | None
    n_wrong: int | None
    library: str
    warnings: tuple[Fault, ...]

    @property
    def n_hosts(self) -> int | None:
        """Hosts that took part; None where the text does not say."""
        return len({device.host for device in self.devices}) or None
