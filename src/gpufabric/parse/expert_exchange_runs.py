"""Measured exchanges with experts: what DeepEP's tests print, and tables of such runs in CSV.

Read are the lines of DeepEP's ``test_internode.py``, ``test_intranode.py`` and
``test_low_latency.py`` (``[tuning] Best dispatch …``, ``[rank 0] Dispatch bandwidth: …``), and CSV
with columns ``kernel``, ``op``, ``ep_ranks``, ``bandwidth_GBps``, ``latency_us`` and ``bw_kind``.

Source: deepseek-ai/DeepEP, tests/, releases 1.0 to 1.2; a rate over RDMA counts what stays on the
own host as well, that over NVLink what stays on the own GPU.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.parse.nccl_tests_rows import amount

__all__ = ["KERNELS", "ExchangeRow", "ExchangeRuns", "is_exchange", "parse_exchange"]

KERNELS = ("normal", "low_latency", "v2")
OPERATIONS = ("dispatch", "combine")
COLUMNS = ("kernel", "op", "ep_ranks", "bandwidth_GBps")
MOST_RANKS = 2**20

_BEST = re.compile(r"\[tuning\] Best (dispatch|combine)(?: \((?:FP8|BF16)\))?:(.*)")
_RATE = re.compile(r"([0-9.]+) GB/s \((RDMA|NVL)")
_RANK = re.compile(r"\[rank [0-9]+\] Dispatch bandwidth: ")
_EACH = re.compile(r"(Dispatch|Combine) bandwidth: (\S+) GB/s(?:, avg_t=(\S+) us)?")


@dataclass(frozen=True)
class ExchangeRow:
    """One measured exchange.

    Parameters
    ----------
    kernel
        One of ``KERNELS``: for large batches, for few tokens, or DeepEP's second version.
    operation
        ``dispatch`` or ``combine``.
    n_ranks
        GPUs that took part; None where the text does not tell.
    gbytes_per_s
        Rate, as DeepEP counts it [GB/s].
    latency_us
        Time [us]; None where it is not told.
    over_nvlink
        Whether the rate is that of NVLink; else of RDMA.
    line
        In the file.
    """

    kernel: str
    operation: str
    n_ranks: int | None
    gbytes_per_s: float
    latency_us: float | None
    over_nvlink: bool
    line: int


@dataclass(frozen=True)
class ExchangeRuns:
    """What a file has of exchanges with experts, by line."""

    name: str
    rows: tuple[ExchangeRow, ...]


def is_exchange(text: str) -> bool:
    """Whether a text has runs of exchanges with experts, and not of collectives.

    Examples
    --------
    >>> is_exchange("kernel,op,ep_ranks,bandwidth_GBps"), is_exchange("size,time,busbw")
    (True, False)
    """
    first = text.lstrip("\ufeff \t\r\n").partition("\n")[0]
    if "ep_ranks" in first and "," in first:
        return True
    return any(_BEST.search(line) or _RANK.search(line) for line in text.splitlines())


def parse_exchange(text: str, name: str = "measured.txt") -> ExchangeRuns:
    """Return the rows of measured exchanges with experts.

    Raises
    ------
    InputError
        With line and reason of every damaged row, or if there is none.

    Examples
    --------
    >>> parse_exchange(
    ...     "[tuning] Best combine: SMs 24, NVL chunk 4, RDMA chunk 16: 60.10 GB/s (RDMA), "
    ...     "190.00 GB/s (NVL)"
    ... ).rows[0].gbytes_per_s
    60.1
    """
    faults: list[Fault] = []
    first = text.lstrip("\ufeff \t\r\n").partition("\n")[0]
    is_table = "ep_ranks" in first and "," in first
    rows = list(_table(text, name, faults) if is_table else _printed(text, name, faults))
    if not rows and not faults:
        what = _("there is no row of a measured exchange.")
        faults.append(Fault(name, what, ", ".join(COLUMNS)))
    if faults:
        raise InputError(faults)
    return ExchangeRuns(name, tuple(rows))


def _table(text: str, name: str, faults: list[Fault]) -> Iterator[ExchangeRow]:
    reader = csv.DictReader(io.StringIO(text.lstrip("\ufeff \t\r\n").replace("\0", "")))
    missing = [column for column in COLUMNS if column not in (reader.fieldnames or [])]
    if missing:
        what = _("there is no column {names}.").format(names=", ".join(missing))
        faults.append(Fault(f"{name}:1", what, ", ".join(COLUMNS)))
        return
    for entry in reader:
        row = _table_row(entry, reader.line_num, f"{name}:{reader.line_num}", faults)
        if row is not None:
            yield row


def _table_row(
    entry: dict[str, str | None], line: int, where: str, faults: list[Fault]
) -> ExchangeRow | None:
    kernel, operation, ranks, rate = ((entry.get(name) or "").strip() for name in COLUMNS)
    before = len(faults)
    for text, known in ((kernel, KERNELS), (operation, OPERATIONS)):
        if text not in known:
            what = _('"{name}" is unknown.').format(name=text[:64])
            faults.append(Fault(where, what, ", ".join(known), nearest(text[:64], known)))
    n_ranks = int(ranks) if ranks.isdecimal() and len(ranks) < 8 else 0
    if not 2 <= n_ranks <= MOST_RANKS:
        what = _("ep_ranks is {text}.").format(text=ranks[:32] or "–")
        faults.append(Fault(where, what, f"2 … {MOST_RANKS:,}"))
    gbytes_per_s = amount(rate)
    if not gbytes_per_s:
        what = _("bandwidth_GBps is {text}.").format(text=rate[:32] or "–")
        faults.append(Fault(where, what, _("more than 0")))
    latency = (entry.get("latency_us") or "").strip()
    latency_us = amount(latency) if latency else None
    if latency and not latency_us:
        what = _("latency_us is {text}.").format(text=latency[:32])
        faults.append(Fault(where, what, _("more than 0")))
    if len(faults) > before or not gbytes_per_s:
        return None
    over_nvlink = "nvl" in (entry.get("bw_kind") or "").lower()
    return ExchangeRow(kernel, operation, n_ranks, gbytes_per_s, latency_us, over_nvlink, line)


def _printed(text: str, name: str, faults: list[Fault]) -> Iterator[ExchangeRow]:
    """Rows of what DeepEP's tests print: the best of a tuning, and the median of all ranks."""
    by_rank: dict[str, list[tuple[float, float, int]]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        best = _BEST.search(line)
        if best:
            yield from _tuned(best[1], best[2], number, name, faults)
        elif _RANK.search(line):
            for each in _EACH.finditer(line):
                rate, time_us = amount(each[2]), amount((each[3] or "0").rstrip(","))
                if not rate:
                    what = _('"{line}" has no number where a time or rate should be.')
                    faults.append(Fault(f"{name}:{number}", what.format(line=line.strip()[:80])))
                    continue
                by_rank.setdefault(each[1].lower(), []).append((rate, time_us or 0.0, number))
    for operation, found in by_rank.items():
        rate, time_us = (float(np.median([one[at] for one in found])) for at in (0, 1))
        yield ExchangeRow(
            "low_latency", operation, None, rate, time_us or None, over_nvlink=False,
            line=found[0][2],
        )  # fmt: skip


def _tuned(
    operation: str, rest: str, line: int, name: str, faults: list[Fault]
) -> Iterator[ExchangeRow]:
    """The rate of the narrowest part: RDMA where it is told, else NVLink."""
    rates = {kind: amount(rate) or 0.0 for rate, kind in _RATE.findall(rest)}
    over_nvlink = not rates.get("RDMA")
    rate = rates.get("NVL", 0.0) if over_nvlink else rates["RDMA"]
    if rate > 0:
        yield ExchangeRow("normal", operation, None, rate, None, over_nvlink, line)
        return
    what = _('"{line}" has no number where a time or rate should be.').format(line=rest[:80])
    faults.append(Fault(f"{name}:{line}", what, "43.24 GB/s (RDMA), 141.14 GB/s (NVL)"))
