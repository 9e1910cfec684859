"""How PyTorch names collectives and types, and how large their messages are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.parse.trace import MOST_BYTES, checked_amount

__all__ = ["collective_named", "input_bytes", "ranks_in", "type_bytes"]

_ENDINGS = ("_coalesced", "_into_tensor", "_tensor", "_base", "_sparse", "_out")
_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "allreduce": "all_reduce",
        "allgather": "all_gather",
        "reducescatter": "reduce_scatter",
        "alltoall": "alltoall",
        "alltoallv": "alltoall",
        "broadcast": "broadcast",
        "reduce": "reduce",
        "gather": "gather",
        "scatter": "scatter",
        "send": "send",
        "recv": "receive",
        "barrier": "barrier",
        "allreducebarrier": "barrier",
    }
)
_TYPE_BYTES: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("byte", "char", "bool", "int8", "uint8", "float8", "quint8", "qint8"), 1),
        **dict.fromkeys(("half", "bfloat16", "short", "float16", "int16", "uint16"), 2),
        **dict.fromkeys(("float", "int", "float32", "int32", "uint32", "complexhalf"), 4),
        **dict.fromkeys(("double", "long", "float64", "int64", "uint64", "complexfloat"), 8),
        "complexdouble": 16,
    }
)
"""Source: PyTorch, c10/core/ScalarType.h."""


def collective_named(name: str) -> str | None:
    """Return the operation, as nccl-tests names it, that PyTorch calls `name`; None if unknown.

    Examples
    --------
    >>> collective_named("nccl:_all_gather_base"), collective_named("_reduce_scatter_base")
    ('all_gather', 'reduce_scatter')
    >>> collective_named("nccl:send 0->1"), collective_named("all_to_allv")
    ('send', 'alltoall')
    """
    bare = name.strip().lower().split(":")[-1].split(" ")[0].strip("_")
    for ending in _ENDINGS * 2:
        bare = bare.removesuffix(ending)
    return _NAMES.get(bare.replace("_", ""))


def type_bytes(name: str, where: str) -> int:
    """Return the bytes of one number of a type such as ``BFloat16``.

    Raises
    ------
    InputError
        If the type is unknown.
    """
    bare = name.strip().lower().removeprefix("torch.")
    if bare.startswith("float8"):
        bare = "float8"
    if bare not in _TYPE_BYTES:
        what = _('the type "{name}" is unknown.').format(name=name[:64])
        raise InputError(Fault(where, what, ", ".join(sorted(_TYPE_BYTES))))
    return _TYPE_BYTES[bare]


def input_bytes(operation: str, given: float, taken: float, n_ranks: int, where: str) -> float:
    """Return what one rank puts into a collective, from sizes of its input and output [byte].

    Ranks other than the root give or take nothing in some operations; the share of one rank is
    then known from the other side.
    """
    if operation in {"reduce_scatter", "alltoall", "all_gather", "gather"}:
        found = given
    elif operation == "scatter":
        found = taken * n_ranks
    else:
        found = max(given, taken)
    if found == 0 and operation == "all_gather":
        found = taken / max(n_ranks, 1)
    return checked_amount(found, MOST_BYTES, where, _("the message"))


def ranks_in(text: object) -> tuple[int, ...]:
    """Return the ranks of a group, written as a list or as the text of one.

    PyTorch shortens long lists to ``[0, 1, …, 1023]`` with three dots: such a one gives none.
    """
    if isinstance(text, str):
        if not re.fullmatch(r"\s*\[[0-9,\s]*\]\s*", text):
            return ()
        try:
            text = json.loads(text)
        except ValueError:
            return ()
    if not isinstance(text, list) or not all(isinstance(rank, int) for rank in text):
        return ()
    return tuple(rank for rank in text if 0 <= rank < 2**31)
