"""Ask the processor to fetch what an event will need before its turn has come."""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gpufabric.kernels.structs import Records

__all__ = ["prefetch", "prefetch_part"]

READ_SOON = (1, 3, 1)  # for writing, to stay in the nearest cache, data


def no_prefetch(things: Records, index: int, byte: int = 0) -> None:
    """Stand in for ``prefetch`` where kernels run as plain Python."""


def fetch(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the instruction for the first byte of ``things[index]``, or for a later one."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    n_bytes = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
    place = context.cast(builder, arguments[1], signature.args[1], types.intp)
    offset = builder.mul(place, place.type(n_bytes))
    for later, kind in zip(arguments[2:], signature.args[2:], strict=True):
        offset = builder.add(offset, context.cast(builder, later, kind, types.intp))
    byte = ir.IntType(8).as_pointer()
    address = builder.gep(builder.bitcast(array.data, byte), [offset])
    kind = ir.FunctionType(ir.VoidType(), [byte] + [ir.IntType(32)] * 3)
    function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
    builder.call(function, [address, *(ir.IntType(32)(one) for one in READ_SOON)])
    return context.get_dummy_value()


@intrinsic
def compiled_prefetch(typing_context: Any, things: Any, index: Any) -> Any:  # noqa: ARG001
    """Fetch the record ``things[index]`` into the nearest cache.

    Reference: none; it changes no value.
    """
    return types.none(things, index), fetch


@intrinsic
def compiled_prefetch_part(
    typing_context: Any,  # noqa: ARG001
    things: Any,
    index: Any,
    byte: Any,
) -> Any:
    """Fetch the cache line of one byte of the record ``things[index]`` into the nearest cache.

    Reference: none; it changes no value.
    """
    return types.none(things, index, byte), fetch


prefetch = no_prefetch if numba.config.DISABLE_JIT else compiled_prefetch
prefetch_part = no_prefetch if numba.config.DISABLE_JIT else compiled_prefetch_part
