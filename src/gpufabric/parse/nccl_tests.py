"""Measured collectives: what nccl-tests, rccl-tests and PyTorch benchmarks print, as rows.

Read are the text of nccl-tests and rccl-tests of every release (``error`` or ``#wrong``, with or
without ``redop`` and ``root``, behind an MPI launcher's or log collector's prefix, between lines
of ``NCCL_DEBUG``), the JSON file of nccl-tests, CSV with named columns, and the Markdown table of
PyTorch's ``all_reduce_bench.py``.

Source: nccl-tests 2.17, src/util.cu; older releases, src/common.cu; stas00/ml-engineering,
network/benchmarks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.parse.nccl_tests_forms import read_csv, read_json, read_markdown
from gpufabric.parse.nccl_tests_rows import Device, NcclTestsOutput, Row, Timing, amount, count

__all__ = ["Device", "NcclTestsOutput", "Row", "Timing", "parse_nccl_tests"]

_PREFIX = re.compile(
    r"^(?:\[[0-9]+(?:,[0-9]+)?\](?:<stdout>:?|<stderr>:?)?|[A-Za-z][\w.-]*[ \t]*[:|]|"
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.,]+(?:Z|[+-][0-9:]+)?|[0-9]+:)[ \t]*(?=#|[0-9\[])"
)
"""What a launcher or log collector writes before a line: ``[1,0]<stdout>:``, ``worker-0: ``, a
time, ``0: ``."""

MOST_DIGITS = 18
"""Of a message size: 2**59 bytes and more are none."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PROGRAM = re.compile(r"\b([a-z_]+?)_perf(?:_mpi)?\b")
_SETTING = re.compile(r"(nThread|nGpus|minBytes|maxBytes|step|warmup iters|iters|agg iters|"
                      r"validation|graph)(?:\(perProc\))?:? +([0-9]+(?:\([a-z]+\))?)")  # fmt: skip
_DEVICE = re.compile(
    r"#\s+Rank\s+([0-9]{1,7})\s+(?:Group\s+[0-9]+\s+)?Pid\s+([0-9]+)\s+on\s+(\S+)\s+device\s+([0-9]{1,5})"
    r"\s+\[([^\]]*)\]\s*(.*)"
)
_AVERAGE = re.compile(r"#\s*Avg bus bandwidth\s*:\s*([0-9.eE+-]+)")
_BOUNDS = re.compile(r"#\s*Out of bounds values\s*:\s*([0-9]+)")
_LIBRARY = re.compile(r"(?:NCCL|RCCL) version\s*:?\s*([0-9][\w.+-]*)|nccl-library=([0-9]+)")
_KNOWN = ("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "error")
_TYPES = re.compile(r"[a-z]\w*")


@dataclass
class _Reading:
    """What has been read so far."""

    name: str
    operation: str | None = None
    columns: tuple[str, ...] = ()
    n_ranks: int | None = None
    average: float | None = None
    n_wrong: int | None = None
    library: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    devices: dict[int, Device] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


def parse_nccl_tests(
    text: str, name: str = "measured.txt", run: str | None = None
) -> NcclTestsOutput:
    r"""Return the rows of one measured collective.

    Parameters
    ----------
    text
        The whole output or file.
    name
        How messages call it.
    run
        Of a CSV file with several runs (column ``run_id`` or ``run``), the one to read.

    Raises
    ------
    InputError
        With line and reason of every damaged row, or if there is no row at all.

    Examples
    --------
    >>> found = parse_nccl_tests(
    ...     "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    ...     "1048576 262144 float sum -1 50.0 20.97 36.70 0 49.0 21.40 37.45 0\n"
    ... )
    >>> found.rows[0].size_bytes, found.rows[0].out_of_place.busbw_gbytes_per_s
    (1048576, 36.7)
    """
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped.startswith("{"):
        return read_json(stripped, name)
    first = stripped.partition("\n")[0].lower()
    if "," in first and "size" in first and not first.startswith("#"):
        return read_csv(stripped, name, run)
    if re.search(r"^\s*\|.*busbw.*\|", text, re.MULTILINE):
        return read_markdown(text, name)
    return _read_text(text, name)


def _read_text(text: str, name: str) -> NcclTestsOutput:
    reading = _Reading(name)
    for number, raw in enumerate(text.splitlines(), start=1):
        line = _without_prefix(_COLOUR.sub("", raw))
        if line.startswith("#"):
            _read_comment(reading, line, number)
        elif re.match(r"[0-9]+\s", line):
            _read_row(reading, line, number)
        else:
            _note(reading, line)
    if not reading.rows and not reading.faults:
        what = _("there is no row of a measured collective.")
        expected = _("the output of nccl-tests: a header with size, time and busbw, and rows")
        reading.faults.append(Fault(name, what, expected))
    if reading.faults:
        raise InputError(reading.faults)
    return NcclTestsOutput(
        name,
        "nccl-tests",
        reading.operation,
        len(reading.devices) or None,
        tuple(reading.devices[rank] for rank in sorted(reading.devices)),
        reading.settings,
        tuple(reading.rows),
        reading.average,
        reading.n_wrong,
        reading.library,
        (*reading.warnings, *_doubts(reading)),
    )


def _without_prefix(line: str) -> str:
    line = line.strip()
    for _attempt in range(3):  # a log collector's, a launcher's, and a time
        match = _PREFIX.match(line)
        if match is None or match.end() == 0:
            break
        line = line[match.end() :].lstrip()
    return re.sub(r"\[[0-9]+\](?=\s|#|$)", " ", line).strip()


def _note(reading: _Reading, line: str) -> None:
    """Lines around the table may name the program and the library."""
    program = _PROGRAM.search(line)
    if program and reading.operation is None and not reading.rows:
        reading.operation = program[1]
    library = _LIBRARY.search(line)
    if library and not reading.library:
        reading.library = library[1] or library[2]


def _read_comment(reading: _Reading, line: str, number: int) -> None:
    words = line.lstrip("# ").split()
    if "busbw" in words and "time" in [word.replace("cputime", "time") for word in words]:
        columns = tuple(word.replace("cputime", "time") for word in words)
        if reading.rows:
            what = _("a second table begins and was left out.")
            reading.warnings.append(Fault(f"{reading.name}:{number}", what))
            reading.columns = ("second",)
            return
        reading.columns = columns
        return
    device = _DEVICE.match(line)
    if device:
        rank = int(device[1])
        reading.devices.setdefault(
            rank, Device(rank, device[3], int(device[4]), device[5], device[6].strip())
        )
        return
    average, bounds = _AVERAGE.match(line), _BOUNDS.match(line)
    if average and reading.columns != ("second",):
        reading.average = amount(average[1])
    elif bounds and reading.columns != ("second",):
        reading.n_wrong = count(bounds[1])
    elif "minBytes" in line:
        reading.settings.update(_SETTING.findall(line))
    else:
        _note(reading, line)


def _read_row(reading: _Reading, line: str, number: int) -> None:
    words = line.split()
    where = f"{reading.name}:{number}"
    if reading.columns == ("second",):
        return
    if len(words) < 4 or not words[1].isdecimal():
        return  # a number at the start of a log line, not a row
    if len(words[0]) > MOST_DIGITS:
        what = _('"{text}" is no number of bytes.').format(text=words[0][:64])
        reading.faults.append(Fault(where, what, _("at most {n} digits").format(n=MOST_DIGITS)))
        return
    if not _TYPES.fullmatch(words[2]):
        if reading.columns:
            what = _('"{word}" is no data type.').format(word=words[2][:16])
            reading.faults.append(Fault(where, what, "float, half, bfloat16, int8 …"))
        return
    names = list(_row_columns(reading.columns, words))
    if len(words) < len(names):
        what = _("the row has {n} cells.").format(n=len(words))
        expected = _("{n}: {names}").format(n=len(names), names=" ".join(names))
        reading.faults.append(Fault(where, what, expected, _("Take the output again, whole.")))
        return
    cells: dict[str, list[str]] = {}
    for column, word in zip(names, words, strict=False):
        cells.setdefault(column, []).append(word)
    timings = [_timing(cells, at) for at in range(len(cells["time"]))]
    if any(timing is None for timing in timings):
        what = _('"{line}" has no number where a time or rate should be.').format(line=line[:80])
        reading.faults.append(Fault(where, what, " ".join(names)))
        return
    whole = [timing for timing in timings if timing is not None]
    reading.rows.append(
        Row(int(words[0]), words[2], whole[0], whole[1] if len(whole) > 1 else None, number)
    )


def _row_columns(columns: tuple[str, ...], words: list[str]) -> Iterator[str]:
    """The names of a row's cells: those of the header, or of a full row where it is missing."""
    if columns:
        yield from (name for name in columns if name in _KNOWN)
        return
    yield from ("size", "count", "type")
    n_timings = 2 if len(words) >= 3 + 8 else 1
    n_before = len(words) - 3 - 4 * n_timings
    yield from ("redop", "root")[: max(0, min(n_before, 2))]
    yield from ("time", "algbw", "busbw", "#wrong") * n_timings


def _timing(cells: dict[str, list[str]], at: int) -> Timing | None:
    values = [
        amount(cells[name][at])
        for name in ("time", "algbw", "busbw")
        if at < len(cells.get(name, []))
    ]
    wrong = cells.get("#wrong", [])
    if len(values) < 3 or not values[0] or values[1] is None or values[2] is None:
        return None
    return Timing(values[0], values[1], values[2], count(wrong[at]) if at < len(wrong) else None)


def _doubts(reading: _Reading) -> Iterator[Fault]:
    if not reading.columns:
        yield Fault(reading.name, _("there is no header; columns were counted."))
    if reading.n_wrong:
        what = _("{n} values were wrong: the run is not valid.").format(n=reading.n_wrong)
        yield Fault(reading.name, what)
    for row in reading.rows:
        timing = row.out_of_place
        if not timing.time_us or not timing.algbw_gbytes_per_s:
            continue
        rate = row.size_bytes / timing.time_us / 1e3
        if timing.algbw_gbytes_per_s >= 1 and not 0.9 < rate / timing.algbw_gbytes_per_s < 1.1:
            what = _("size over time is {rate:.2f} GB/s, but algbw says {algbw:.2f}.").format(
                rate=rate, algbw=timing.algbw_gbytes_per_s
            )
            yield Fault(f"{reading.name}:{row.line}", what)
