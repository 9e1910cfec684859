"""Compile indices of arrays as what they are in our kernels: never negative.

numba lets ``things[-1]`` mean the last thing, and therefore looks at the sign of every index and
at the size of every array. No kernel of ours counts from the end by a variable; without that look
the packet engine is a quarter shorter. With ``NUMBA_BOUNDSCHECK`` a negative index is an error.
"""

from __future__ import annotations

from typing import Any

from numba.core import ir, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NoPythonSupportedFeatureValidation

__all__ = ["UnsignedIndices"]


@register_pass(mutates_CFG=False, analysis_only=False)
class _TakeAsUnsigned(FunctionPass):  # type: ignore[misc]
    """Turn the signed index of every access to an array into an unsigned one."""

    _name = "take_indices_as_unsigned"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        calls = state.calltypes
        for access, signature in list(calls.items()):
            is_read = isinstance(access, ir.Expr) and access.op == "getitem"
            if is_read or isinstance(access, ir.SetItem):
                thing, index, *rest = signature.args
                if isinstance(thing, types.Array) and _is_signed(index):
                    arguments = (thing, types.uintp, *rest)
                    del calls[access]  # numba's table takes no second value for a key
                    calls[access] = signature.replace(args=arguments)
        return False  # numba's code as such is as it was


def _is_signed(index: types.Type) -> bool:
    return isinstance(index, types.Integer) and bool(index.signed)  # type: ignore[attr-defined]


class UnsignedIndices(CompilerBase):  # type: ignore[misc]
    """numba's usual way to machine code, with unsigned indices."""

    def define_pipelines(self) -> list[Any]:
        """Return the passes of the one pipeline."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_TakeAsUnsigned, NoPythonSupportedFeatureValidation)
        passes.finalize()
        return [passes]
