"""Profiles of PyTorch (Kineto, Chrome trace JSON): kernels of one rank, and its NCCL messages.

A profile does not tell which kernel waits for which on another stream. It is read from the times:
the first kernel of a stream that begins after a kernel of another stream has ended waits for it,
where one of them is communication. What was idle before a kernel stays idle before it.

Source: https://github.com/pytorch/kineto, libkineto/src/output_json.cpp;
https://github.com/pytorch/pytorch, torch/csrc/distributed/c10d/ParamCommsUtils.hpp.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.parse.torch_collectives import collective_named, input_bytes, ranks_in, type_bytes
from gpufabric.parse.trace import (
    COLLECTIVE,
    COMMUNICATION,
    COMPUTE,
    HOST,
    MEMORY,
    MOST_US,
    RECEIVE,
    SEND,
    Message,
    RankTrace,
    TraceOperation,
    checked_amount,
)

__all__ = ["FORM", "parse_kineto"]

FORM = "kineto"

_ON_GPU = {"kernel": COMPUTE, "gpu_memcpy": MEMORY, "gpu_memset": MEMORY}
_SAID_APART = frozenset({"cuda_sync", "mtia_ccp_events", "xpu_runtime", "privateuse1_runtime"})
_NOTHING = frozenset({"init", "wait", "broadcastUniqueNCCLID", "endCoalesced", "startCoalesced"})


@dataclass(frozen=True)
class _Kernel:
    """One event on a GPU stream."""

    start_us: float
    end_us: float
    stream: str
    operation: TraceOperation


def parse_kineto(content: Mapping[str, Any], name: str, rank: int | None = None) -> RankTrace:
    """Return what the GPU of one rank did.

    Parameters
    ----------
    content, name
        The JSON document and the file's name.
    rank
        Number of the rank; as the profile tells where None, else 0.

    Raises
    ------
    InputError
        If events are missing or damaged, or none is on a GPU.
    """
    events = content.get("traceEvents")
    if not isinstance(events, list):
        raise InputError(Fault(f"{name}: traceEvents", _("is no list."), _("a PyTorch profile")))
    notes: Counter[str] = Counter()
    groups: dict[str, tuple[int, ...]] = {}
    sizes: set[int] = set()
    kernels = []
    for at, event in enumerate(events):
        if isinstance(event, dict) and event.get("ph") == "X":
            kernel = _kernel(event, f"{name}: traceEvents[{at}]", notes, groups, sizes)
            if kernel is not None:
                kernels.append(kernel)
        elif isinstance(event, dict) and event.get("cat") in _SAID_APART:
            notes[_("{kind} events not used").format(kind=event["cat"])] += 1
    if not kernels:
        what = _("no event is on a GPU.")
        raise InputError(Fault(name, what, remedy=_("Profile with ProfilerActivity.CUDA.")))
    job = content.get("distributedInfo")
    job = job if isinstance(job, dict) else {}
    world = _whole(job.get("world_size"))
    groups |= _configured(job)
    if rank is None:
        rank = _whole(job.get("rank"))
    world = max(world, 1 + max((max(ranks) for ranks in groups.values()), default=-1), *sizes, 0, 0)
    notes[_("order between streams read from the times")] += 1
    return RankTrace(
        name, FORM, rank, _ordered(kernels), groups, world, _gpu_of(content, kernels), notes
    )


def _whole(value: object) -> int:
    """A number that may be written as a text; 0 where it is none."""
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < 8 else 0


def _configured(job: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    found = {}
    rows = job.get("pg_config")
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict):
            ranks = ranks_in(row.get("ranks"))
            if ranks:
                found[str(row.get("pg_name"))] = ranks
    return found


def _gpu_of(content: Mapping[str, Any], kernels: list[_Kernel]) -> str:
    """Model of the GPU that the kernels ran on."""
    properties = content.get("deviceProperties")
    if not isinstance(properties, list) or not kernels:
        return ""
    names = [str(row.get("name", "")) for row in properties if isinstance(row, dict)]
    return names[0] if names else ""


def _time(event: Mapping[str, Any], key: str, where: str) -> float:
    value = event.get(key)
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(Fault(f"{where}.{key}", _("is no time."), _("microseconds")))
    return number


def _kernel(
    event: Mapping[str, Any],
    where: str,
    notes: Counter[str],
    groups: dict[str, tuple[int, ...]],
    sizes: set[int],
) -> _Kernel | None:
    """An event on the GPU; None of those elsewhere."""
    category = str(event.get("cat", "")).lower()
    name = str(event.get("name", ""))
    if category not in _ON_GPU:
        if category in _SAID_APART:
            notes[_("{kind} events not used").format(kind=category)] += 1
        return None
    start_us = _time(event, "ts", where)
    duration_us = checked_amount(_time(event, "dur", where), MOST_US, f"{where}.dur", "dur")
    arguments = event.get("args")
    arguments = arguments if isinstance(arguments, dict) else {}
    kind: str = _ON_GPU[category]
    message = None
    if "Collective name" in arguments:
        kind, message = _message(arguments, where, groups, sizes, notes)
    elif name.lower().startswith(("nccldevkernel", "ncclkernel")):
        kind = COLLECTIVE
        notes[_("NCCL kernels without their message: the measured time is kept")] += 1
    elif kind == MEMORY:
        kind = HOST  # over PCIe or inside the GPU: its measured time is kept
        notes[_("copies: the measured time is kept")] += 1
    stream = f"{event.get('pid')}/{event.get('tid')}"
    operation = TraceOperation(where, name, kind, duration_us, (), message)
    return _Kernel(start_us, start_us + duration_us, stream, operation)


def _message(
    arguments: Mapping[str, Any],
    where: str,
    groups: dict[str, tuple[int, ...]],
    sizes: set[int],
    notes: Counter[str],
) -> tuple[str, Message | None]:
    called = str(arguments["Collective name"])
    operation = collective_named(called)
    if operation is None:
        if called not in _NOTHING:
            text = _('collective "{name}" unknown: the measured time is kept')
            notes[text.format(name=called[:64])] += 1
        return COLLECTIVE, None
    each = type_bytes(str(arguments.get("dtype", "")), where)
    n_ranks = _whole(arguments.get("Group size"))
    given, taken = (
        _time(arguments, key, where) * each for key in ("In msg nelems", "Out msg nelems")
    )
    group = str(arguments.get("Process Group Name", ""))
    ranks = ranks_in(arguments.get("Process Group Ranks"))
    if ranks:
        groups[group] = ranks
    elif n_ranks:
        sizes.add(n_ranks)
    size = input_bytes(operation, given, taken, n_ranks, where)
    if operation in {"send", "receive"}:
        key = "Dst Rank" if operation == "send" else "Src Rank"
        inside = _whole(arguments.get(key))
        peer = ranks[inside] if inside < len(ranks) else inside
        return (SEND if operation == "send" else RECEIVE), Message("sendrecv", size, group, peer)
    return COLLECTIVE, Message(operation, size, group)


def _ordered(kernels: list[_Kernel]) -> tuple[TraceOperation, ...]:
    """Operations in order of time, each after what the times say that it waited for."""
    kernels = sorted(kernels, key=lambda kernel: (kernel.start_us, kernel.end_us))
    by_end = sorted(range(len(kernels)), key=lambda at: kernels[at].end_us)
    ended = 0
    last_ended: dict[str, int] = {}  # by stream: the operation that ended last
    last_of: dict[str, int] = {}  # by stream: the operation before
    known: dict[tuple[str, str], int] = {}  # by pair of streams: what was waited for already
    found = []
    for at, kernel in enumerate(kernels):
        while ended < at and kernels[by_end[ended]].end_us <= kernel.start_us:
            last_ended[kernels[by_end[ended]].stream] = by_end[ended]
            ended += 1
        after = [last_of[kernel.stream]] if kernel.stream in last_of else []
        for stream, other in last_ended.items():
            kinds = {kernel.operation.kind, kernels[other].operation.kind}
            is_new = known.get((kernel.stream, stream)) != other
            if stream != kernel.stream and kinds & COMMUNICATION and is_new and other < at:
                known[kernel.stream, stream] = other
                after.append(other)
        begun_us = max((kernels[other].end_us for other in after), default=kernels[0].start_us)
        lead_us = max(0.0, kernel.start_us - begun_us)
        found.append(replace(kernel.operation, after=tuple(after), lead_us=lead_us))
        last_of[kernel.stream] = at
    return tuple(found)
