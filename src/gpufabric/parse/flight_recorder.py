"""Dumps of PyTorch's NCCL flight recorder: the last collectives of one rank, JSON or pickle.

A pickle can run any program while it is read. Only those that hold nothing but containers,
numbers and texts are read, as PyTorch writes them: each instruction of the file is looked at
first.

Source: https://github.com/pytorch/pytorch, torch/csrc/distributed/c10d/FlightRecorderDetail.hpp.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.parse.torch_collectives import collective_named, input_bytes, ranks_in, type_bytes
from gpufabric.parse.trace import (
    COLLECTIVE,
    MOST_BYTES,
    MOST_US,
    RECEIVE,
    SEND,
    Message,
    RankTrace,
    TraceOperation,
    checked_amount,
)

__all__ = ["FORM", "parse_flight_recorder", "restricted"]

FORM = "flight-recorder"

_CONTAINERS = frozenset({
    "PROTO", "STOP", "FRAME", "MARK", "POP", "POP_MARK", "DUP", "NONE", "NEWTRUE", "NEWFALSE",
    "INT", "LONG", "LONG1", "LONG4", "BININT", "BININT1", "BININT2", "FLOAT", "BINFLOAT",
    "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "STRING", "BINSTRING",
    "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "EMPTY_LIST", "LIST", "APPEND",
    "APPENDS", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_DICT", "DICT",
    "SETITEM", "SETITEMS", "PUT", "BINPUT", "LONG_BINPUT", "GET", "BINGET", "LONG_BINGET",
    "MEMOIZE",
})  # fmt: skip
_PUTS = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})


def restricted(body: bytes, name: str) -> Any:
    """Return the contents of a pickle that holds only containers, numbers and texts.

    Raises
    ------
    InputError
        If it is damaged, or holds anything else.
    """
    try:
        for code, argument, at in pickletools.genops(body):
            is_far = code.name in _PUTS and int(argument or 0) > len(body)
            if code.name not in _CONTAINERS or is_far:
                return _refuse(code.name, _("{file}, byte {at}").format(file=name, at=at))
        return pickle.load(io.BytesIO(body))  # noqa: S301 - no instruction that runs anything
    except InputError:
        raise
    except Exception as error:  # a damaged pickle raises nearly anything
        what = _("the pickle is damaged: {reason}.").format(reason=str(error)[:80] or "?")
        raise InputError(Fault(name, what, remedy=_("Copy the file again."))) from error


def _refuse(code: str, where: str) -> NoReturn:
    raise InputError(
        Fault(
            where,
            _("the pickle is not only containers: {code}.").format(code=code),
            _("a dump of PyTorch's flight recorder"),
            _("Where you trust it, load it in Python and write it as JSON with json.dump."),
        )
    )


def parse_flight_recorder(content: Any, name: str, rank: int = 0) -> RankTrace:
    """Return the collectives of one rank, one after another in the order that they were asked for.

    Parameters
    ----------
    content, name
        What the dump holds, and the file's name.
    rank
        Number of the rank.

    Raises
    ------
    InputError
        If entries are missing or damaged.
    """
    entries = content.get("entries") if isinstance(content, Mapping) else None
    if not isinstance(entries, list) or not entries:
        what = _("no collective is in the dump.")
        raise InputError(Fault(f"{name}: entries", what, _("a dump of PyTorch's flight recorder")))
    groups = _groups(content.get("pg_config"))
    notes: Counter[str] = Counter()
    notes[_("a flight recorder knows no computing: communication alone, one after another")] += 1
    found: list[TraceOperation] = []
    for at, entry in enumerate(entries):
        where = f"{name}: entries[{at}]"
        if not isinstance(entry, Mapping):
            raise InputError(Fault(where, _("is no mapping."), _("an entry")))
        operation = _operation(entry, where, groups, notes)
        if operation is not None:
            after = (len(found) - 1,) if found else ()
            found.append(replace(operation, after=after))
    world = 1 + max((max(ranks) for ranks in groups.values()), default=-1)
    return RankTrace(name, FORM, rank, tuple(found), groups, world, "", notes)


def _groups(rows: object) -> dict[str, tuple[int, ...]]:
    found = {}
    for key, row in rows.items() if isinstance(rows, Mapping) else ():
        ranks = ranks_in(row.get("ranks")) if isinstance(row, Mapping) else ()
        if ranks:
            found[str(key)] = ranks
    return found


def _operation(
    entry: Mapping[str, Any],
    where: str,
    groups: Mapping[str, tuple[int, ...]],
    notes: Counter[str],
) -> TraceOperation | None:
    called = str(entry.get("profiling_name", ""))
    operation = collective_named(called)
    if operation is None:
        notes[_('"{name}" left out').format(name=called[:64])] += 1
        return None
    if entry.get("state") != "completed":
        notes[_("collectives that had not ended when the dump was written")] += 1
    group = entry.get("process_group")
    name = str(group[0]) if isinstance(group, list | tuple) and group else ""
    ranks = groups.get(name, ())
    given = _bytes(entry, "input", where)
    size = input_bytes(operation, given, _bytes(entry, "output", where), len(ranks), where)
    duration_us = 0.0
    if entry.get("duration_ms") is not None:
        duration_us = checked_amount(
            1e3 * _number(entry["duration_ms"], where), MOST_US, where, "duration_ms"
        )
    if operation not in {"send", "receive"}:
        return TraceOperation(
            where, called, COLLECTIVE, duration_us, (), Message(operation, size, name)
        )
    peer = _peer(called, where)
    peer = ranks[peer] if peer < len(ranks) else peer
    kind = SEND if operation == "send" else RECEIVE
    return TraceOperation(where, called, kind, duration_us, (), Message("sendrecv", size, "", peer))


def _number(value: object, where: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not -MOST_BYTES <= value <= MOST_BYTES:  # type: ignore[operator]
        told = value if isinstance(value, str) else type(value).__name__
        what = _('"{text}" is no number.').format(text=told[:64])
        raise InputError(Fault(where, what, _("0 to {most:.4g}").format(most=MOST_BYTES)))
    return float(value)  # type: ignore[arg-type]


def _bytes(entry: Mapping[str, Any], side: str, where: str) -> float:
    """Bytes of all tensors of one side."""
    sizes, types = entry.get(f"{side}_sizes"), entry.get(f"{side}_dtypes")
    if not isinstance(sizes, list) or not isinstance(types, list) or len(sizes) != len(types):
        what = _("{side}_sizes and {side}_dtypes do not tell the tensors.").format(side=side)
        raise InputError(Fault(where, what, _("a list of each, equally long")))
    total = 0.0
    for dims, kind in zip(sizes, types, strict=True):
        if not isinstance(dims, list):
            raise InputError(Fault(where, _("{side}_sizes holds no sizes.").format(side=side)))
        count = math.prod(_number(size, where) for size in dims)
        total += checked_amount(count, MOST_BYTES, where, f"{side}_sizes") * type_bytes(
            str(kind), where
        )
    return total


def _peer(name: str, where: str) -> int:
    """The other rank, inside the group, of ``nccl:send 0->1`` or ``nccl:recv 1<-0``."""
    for arrow in ("->", "<-"):
        __, found, peer = name.partition(arrow)
        if found and peer.strip().isdecimal() and len(peer) < 12:
            return int(peer)
    what = _('"{name}" does not tell the other rank.').format(name=name[:64])
    raise InputError(Fault(where, what, "nccl:send 0->1"))
