"""Ask the processor to fetch what an event will need before its turn has come."""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gpufabric.kernels.structs import Records

__all__ = ["prefetch"]

READ_SOON = (1, 3, 1)  # for writing, to stay in the nearest cache, data


def no_prefetch(things: Records, index: int) -> None:
    """Stand in for ``prefetch`` where kernels run as plain Python."""


@intrinsic
def compiled_prefetch(typing_context: Any, things: Any, index: Any) -> Any:  # noqa: ARG001
    """Fetch the record ``things[index]`` into the nearest cache.

    Reference: none; it changes no value.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = context.cast(builder, arguments[1], signature.args[1], types.intp)
        n_bytes = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
        offset = builder.mul(place, place.type(n_bytes))
        byte = ir.IntType(8).as_pointer()
        address = builder.gep(builder.bitcast(array.data, byte), [offset])
        kind = ir.FunctionType(ir.VoidType(), [byte] + [ir.IntType(32)] * 3)
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(function, [address, *(ir.IntType(32)(one) for one in READ_SOON)])
        return context.get_dummy_value()

    return types.none(things, index), generate


prefetch = no_prefetch if numba.config.DISABLE_JIT else compiled_prefetch
