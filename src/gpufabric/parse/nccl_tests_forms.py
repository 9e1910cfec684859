"""Measured collectives in JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from typing import Any

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.parse.nccl_tests_rows import Device, NcclTestsOutput, Row, Timing, amount, count

__all__ = ["read_csv", "read_json", "read_markdown"]

_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_SIZE = re.compile(r"([0-9.]+)\s*([KMGT]?)(?:i?B)?")
_RATE = re.compile(r"([0-9.]+)\s*GBps")
_TABLE_ROW = re.compile(r"\s*\|(.+)\|\s*")
_TITLE = re.compile(r"of (\w+) over (\d+) ranks")

_COLUMNS = {
    "size": ("size_bytes", "size", "size(b)", "msg_size"),
    "time": ("time_us", "time", "time(us)", "oop_time", "out_of_place_time"),
    "algbw": ("algbw_gbps_bytes", "algbw", "algbw(gb/s)", "algbw_gbytes_per_s"),
    "busbw": ("busbw_gbps_bytes", "busbw", "busbw(gb/s)", "busbw_gbytes_per_s"),
}


def _output(
    name: str,
    form: str,
    rows: list[Row],
    operation: str | None = None,
    n_ranks: int | None = None,
    **more: Any,
) -> NcclTestsOutput:
    if not rows:
        raise InputError(Fault(name, _("there is no row of a measured collective.")))
    return NcclTestsOutput(
        name,
        form,
        operation,
        n_ranks,
        more.get("devices", ()),
        more.get("settings", {}),
        tuple(rows),
        more.get("average"),
        more.get("n_wrong"),
        more.get("library", ""),
        (),
    )


def read_json(text: str, name: str) -> NcclTestsOutput:
    """Return the rows of the JSON file of nccl-tests (``-J``).

    Raises
    ------
    InputError
        With line and reason.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also a number too long
        line = getattr(error, "lineno", 1)
        what = _("not well-formed JSON: {reason}.").format(reason=getattr(error, "msg", error))
        raise InputError(Fault(f"{name}:{line}", what)) from error
    results = found.get("results")
    if not isinstance(results, list):
        raise InputError(Fault(name, _("there is no list of results."), '"results": […]'))
    rows, faults = [], []
    for at, entry in enumerate(results):
        row = _json_row(entry) if isinstance(entry, dict) else None
        if row is None:
            what = _("a size, time, alg_bw or bus_bw is missing or no number.")
            faults.append(Fault(f"{name}: results[{at}]", what))
        else:
            rows.append(row)
    if faults:
        raise InputError(faults)
    config = _mapping(found.get("config"))
    devices = _list(config.get("devices") or found.get("devices"))
    known = tuple(_json_device(entry) for entry in devices if isinstance(entry, dict))
    programs = [str(part) for part in _list(found.get("args")) if "_perf" in str(part)]
    operation = re.search(r"([a-z_]+?)_perf", programs[0]) if programs else None
    average = _mapping(found.get("average_bus_bandwidth")).get("bandwidth")
    wrong = _mapping(found.get("out_of_bounds")).get("count")
    return _output(
        name,
        "nccl-tests JSON",
        rows,
        operation[1] if operation else None,
        len(known) or None,
        devices=known,
        settings={key: str(value) for key, value in config.items() if key != "devices"},
        average=amount(average),
        n_wrong=count(wrong),
        library=str(found.get("nccl_version", "")),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _json_device(entry: dict[str, Any]) -> Device:
    return Device(
        count(entry.get("rank")) or 0,
        str(entry.get("hostname", "")),
        count(entry.get("device")) or 0,
        str(entry.get("device_hex", "")),
        str(entry.get("device_info", "")),
    )


def _json_row(entry: dict[str, Any]) -> Row | None:
    timings = [_json_timing(entry.get(key)) for key in ("out_of_place", "in_place")]
    first = timings[0] or timings[1]
    size = _positive(entry.get("size"))
    if first is None or size is None:
        return None
    return Row(int(size), str(entry.get("type", "")), first, timings[1], 0)


def _json_timing(value: object) -> Timing | None:
    entry = _mapping(value)
    time_us = _positive(entry.get("time", entry.get("cpu_time")))
    algbw, busbw = amount(entry.get("alg_bw")), amount(entry.get("bus_bw"))
    if time_us is None or algbw is None or busbw is None:
        return None
    return Timing(time_us, algbw, busbw, count(entry.get("nwrong")))


def _positive(value: object) -> float | None:
    return amount(value) or None


def read_csv(text: str, name: str, run: str | None = None) -> NcclTestsOutput:
    """Return the rows of a CSV file with columns for size, and time or bus bandwidth.

    Raises
    ------
    InputError
        If a column is missing, a number is none, or the file has several runs and none is named.
    """
    reader = _entries(text)
    fields = {(field or "").strip().lower(): field for field in reader.fieldnames or []}
    columns = {
        key: next((fields[known] for known in names if known in fields), None)
        for key, names in _COLUMNS.items()
    }
    if columns["size"] is None or (columns["time"] is None and columns["busbw"] is None):
        what = _("the columns are {names}.").format(names=", ".join(fields)[:200])
        raise InputError(Fault(f"{name}:1", what, "size, time, algbw, busbw"))
    run_column = fields.get("run_id") or fields.get("run")
    rows: list[Row] = []
    faults: list[Fault] = []
    seen: dict[str, dict[str, str]] = {}
    for entry in reader:
        own = (entry.get(run_column) or "") if run_column else ""
        if run is not None and own != run:
            continue
        seen.setdefault(own, entry)
        row = _csv_row(entry, columns, reader.line_num)
        if row is not None:
            rows.append(row)
        elif (entry.get(columns["size"]) or "").strip():
            what = _("a size, time or bus bandwidth is no number above 0.")
            faults.append(Fault(f"{name}:{reader.line_num}", what))
    if run is not None and not seen:
        runs = [entry.get(run_column) or "" for entry in _entries(text)] if run_column else []
        what = _('there is no run "{name}".').format(name=run[:64])
        known = list(dict.fromkeys(runs))
        raise InputError(Fault(name, what, ", ".join(known)[:400], nearest(run[:64], known)))
    if len(seen) > 1:
        what = _("the file has {n} runs.").format(n=len(seen))
        raise InputError(
            Fault(name, what, ", ".join(seen)[:400], _("Name one of them with --run."))
        )
    if faults:
        raise InputError(faults)
    about = next(iter(seen.values()), {})
    ranks = (about.get("n_ranks") or "").strip()
    operation = about.get("collective") or about.get("operation")
    return _output(name, "CSV", rows, operation or None, int(ranks) if ranks.isdecimal() else None)


def _entries(text: str) -> csv.DictReader[str]:
    return csv.DictReader(io.StringIO(text.replace("\0", "")))


def _csv_row(entry: dict[str, str], columns: dict[str, str | None], line: int) -> Row | None:
    def number(key: str) -> float:
        column = columns[key]
        return _positive(entry.get(column) if column else None) or 0.0

    size, time_us, algbw, busbw = (number(key) for key in ("size", "time", "algbw", "busbw"))
    if size == 0 or (time_us == 0 and busbw == 0):
        return None
    if time_us == 0 and algbw > 0:
        time_us = size / algbw / 1e3
    return Row(
        int(size),
        entry.get("type") or "",
        Timing(time_us or None, algbw or (size / time_us / 1e3 if time_us else None), busbw, None),
        None,
        line,
    )


def read_markdown(text: str, name: str) -> NcclTestsOutput:
    """Return the rows of PyTorch's ``all_reduce_bench.py``: payload, busbw, algbw.

    Raises
    ------
    InputError
        With line and reason.
    """
    rows: list[Row] = []
    faults: list[Fault] = []
    names: list[str] = []
    title = _TITLE.search(text)
    for number, line in enumerate(text.splitlines(), start=1):
        match = _TABLE_ROW.fullmatch(line)
        cells = [cell.strip() for cell in match[1].split("|")] if match else []
        if "busbw" in cells:
            names = cells
        elif cells and names and not set("".join(cells)) <= set("-: "):
            row = _markdown_row(dict(zip(names[1:], cells[1:], strict=False)), cells[0], number)
            if row is None:
                what = _('"{line}" is no payload with its rates.').format(line=line.strip()[:80])
                faults.append(Fault(f"{name}:{number}", what, "| 32KiB | 1.18GBps | 0.79GBps |"))
            else:
                rows.append(row)
    if faults:
        raise InputError(faults)
    return _output(
        name,
        "PyTorch",
        rows,
        title[1] if title else "all_reduce",
        int(title[2]) if title else None,
    )


def _markdown_row(cells: dict[str, str], payload: str, line: int) -> Row | None:
    size = _SIZE.fullmatch(payload)
    rates = {key: _RATE.fullmatch(cells.get(key, "")) for key in ("busbw", "algbw")}
    if size is None or rates["busbw"] is None or rates["algbw"] is None:
        return None
    try:
        size_bytes = float(size[1]) * 1024 ** _UNITS[size[2]]
        busbw, algbw = float(rates["busbw"][1]), float(rates["algbw"][1])
    except ValueError:
        return None
    if algbw <= 0:
        return None
    return Row(
        int(size_bytes), "", Timing(size_bytes / algbw / 1e3, algbw, busbw, None), None, line
    )
