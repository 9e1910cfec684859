"""Trace files of a job, told apart by what they hold, and put together rank by rank."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.parse.chakra import parse_chakra
from gpufabric.parse.flight_recorder import parse_flight_recorder, restricted
from gpufabric.parse.kineto import parse_kineto
from gpufabric.parse.torch_collectives import ranks_in
from gpufabric.parse.trace import RankTrace

__all__ = ["MOST_UNPACKED", "parse_traces", "rank_in_name"]

MOST_UNPACKED = 2**31
"""Largest size that a packed file may grow to [byte]."""

_KINDS = "Chakra (.et), PyTorch profile (.json, .json.gz), flight recorder (.json, pickle)"


def rank_in_name(name: str) -> int | None:
    """Return the rank that a file's name ends with; None if it has none.

    Examples
    --------
    >>> rank_in_name("step.12.et"), rank_in_name("nccl_trace_rank_3"), rank_in_name("trace.json")
    (12, 3, None)
    """
    match = re.search(r"rank[_-]?([0-9]{1,7})(?![0-9])", name, re.IGNORECASE) or re.search(
        r"[._-]([0-9]{1,7})(?:\.(?:et|json|gz|pkl|pickle|pt|trace))*$", name
    )
    return int(match[1]) if match else None


def parse_traces(files: Mapping[str, bytes]) -> tuple[RankTrace, ...]:
    """Return what the ranks of a job did, in order of rank.

    Parameters
    ----------
    files
        Contents by name. One file stands for all ranks; several are all ranks, one each. JSON
        of groups (``{"1": [0, 1]}``, as ASTRA-sim reads) tells the groups of Chakra traces.

    Raises
    ------
    InputError
        If a file is damaged or of another kind, or ranks are missing or there twice.
    """
    contents = {name: _loaded(_unpacked(body, name), name) for name, body in files.items()}
    groups: dict[str, tuple[int, ...]] = {}
    traces: list[RankTrace] = []
    faults: list[Fault] = []
    for name in sorted(contents):
        groups |= _group_table(contents[name]) or {}
    for name in sorted(contents):
        if _group_table(contents[name]) is not None:
            continue
        try:
            traces.append(_parsed(contents[name], name, groups))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(faults[:20])
    if not traces:
        raise InputError(Fault(", ".join(files)[:200], _("there is no trace."), _KINDS))
    traces.sort(key=lambda trace: trace.rank)
    _check_ranks(traces)
    return tuple(traces)


def _unpacked(body: bytes, name: str) -> bytes:
    """Contents of a file that may be packed with gzip."""
    if body[:2] != b"\x1f\x8b":
        return body
    try:
        with gzip.open(io.BytesIO(body)) as file:
            found = file.read(MOST_UNPACKED + 1)
    except (OSError, EOFError, zlib.error) as error:
        what = _("cannot be unpacked: {reason}.").format(reason=error)
        raise InputError(Fault(name, what, remedy=_("Copy the file again."))) from error
    if len(found) > MOST_UNPACKED:
        what = _("is larger than {most} bytes when unpacked.").format(most=MOST_UNPACKED)
        raise InputError(Fault(name, what))
    return found


def _loaded(body: bytes, name: str) -> Any:
    """JSON or pickle as what it holds; the bytes of any other file."""
    if body[:1] == b"\x80":
        return restricted(body, name)
    if body.lstrip()[:1] not in {b"{", b"["} or name.endswith(".et"):
        return body
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        place = getattr(error, "lineno", 0)
        where = f"{name}:{place}" if place else name
        raise InputError(Fault(where, _("is no JSON: {reason}.").format(reason=error))) from error


def _group_table(content: Any) -> dict[str, tuple[int, ...]] | None:
    """Ranks by group of a file of groups; None of any other file."""
    if not isinstance(content, dict):
        return None
    found = {str(key): ranks_in(ranks) for key, ranks in content.items()}
    return found if all(found.values()) else None


def _parsed(content: Any, name: str, groups: Mapping[str, tuple[int, ...]]) -> RankTrace:
    rank = rank_in_name(PurePath(name).name)
    if isinstance(content, bytes):
        return parse_chakra(content, name, rank or 0, groups)
    if isinstance(content, dict) and "traceEvents" in content:
        return parse_kineto(content, name, rank)
    if isinstance(content, dict) and ("entries" in content or "pg_config" in content):
        return parse_flight_recorder(content, name, rank or 0)
    remedy = ""
    if isinstance(content, dict) and "nodes" in content:
        remedy = _(
            "Turn a trace of PyTorch's ExecutionTraceObserver into .et with chakra_converter."
        )
    raise InputError(Fault(name, _("is no trace that is known."), _KINDS, remedy))


def _check_ranks(traces: list[RankTrace]) -> None:
    """Refuse ranks that are there twice, or of several files those that are missing."""
    count = Counter(trace.rank for trace in traces)
    faults = [
        Fault(
            ", ".join(trace.file for trace in traces if trace.rank == rank)[:200],
            _("rank {rank} is there {n} times.").format(rank=rank, n=n),
            _("one file a rank, such as step.0.et and step.1.et"),
        )
        for rank, n in count.items()
        if n > 1
    ]
    n = max(max(count) + 1, *(trace.world for trace in traces))
    missing = sorted(set(range(n)) - set(count)) if len(traces) > 1 else []
    if missing and not faults:
        what = _("{k} of {n} ranks are missing: {ranks}.").format(
            k=len(missing), n=n, ranks=", ".join(map(str, missing[:8]))
        )
        faults.append(
            Fault(
                traces[0].file,
                what,
                _("all ranks, or one that stands for all"),
                _("Give the folder with all files."),
            )
        )
    if len({trace.form for trace in traces}) > 1:
        what = _("the files are of several formats.")
        faults.append(Fault(traces[0].file, what, _("one format")))
    if faults:
        raise InputError(faults)
