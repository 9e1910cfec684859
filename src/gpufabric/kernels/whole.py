"""Compile a kernel and all its parts as one whole, once.

numba makes machine code, two wrappers and a cache file of every function, each time with all that
it calls. Parts of a kernel need nothing of it: they are translated, handed to the one kernel that
Python calls, and go through the optimiser there. For the packet engine's two hundred parts that is
a fifth of the work.
"""

from __future__ import annotations

import functools
from typing import Any

from llvmlite.binding import Linkage
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

from gpufabric.kernels.unsigned import UnsignedIndices

__all__ = ["PartCompiler", "WholeCompiler"]

WRAPPER = "_ZN7cpython"  # names of what Python calls
FOR_THE_WHOLE = Linkage.weak_odr  # not dropped before its caller is there


class _PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that waits for the whole: neither linked nor optimised."""

    _linking_libraries: list[Any]
    _shared_module: Any

    def finalize(self) -> None:
        """Take the code as it is."""
        self._raise_if_finalized()
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            self._shared_module = self._final_module.clone()
            for function in self._shared_module.functions:
                if not function.is_declaration:
                    function.linkage = FOR_THE_WHOLE
        return self._shared_module


class _WholeLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code with that of all parts, and their parts."""

    _linking_libraries: list[Any]

    def finalize(self) -> None:
        """Take in the parts of parts, then go on as usual."""
        whole: dict[Any, None] = {}
        waiting = list(reversed(self._linking_libraries))
        while waiting:
            library = waiting.pop()
            if library not in whole:
                whole[library] = None
                if isinstance(library, _PartLibrary):
                    waiting += reversed(library._linking_libraries)  # noqa: SLF001
        self._linking_libraries = list(whole)
        super().finalize()

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if function.linkage == FOR_THE_WHOLE and not function.is_declaration:
                function.linkage = "internal"
            elif not function.is_declaration and not function.name.startswith(WRAPPER):
                function.add_function_attribute("noinline")  # its caller writes what is fixed in it
        super()._optimize_final_module()


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerPart(NativeLowering):  # type: ignore[misc]
    """Translate a part; no wrappers, no machine code."""

    _name = "lower_part"

    def run_pass(self, state: Any) -> bool:
        flags, target = state.flags, state.targetctx
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        state.library = _PartLibrary(target.codegen(), state.func_id.func_qualname)
        super().run_pass(state)
        entry = functools.partial(state.func_id.func)  # another object for each signature
        state["cr"] = state["cr"]._replace(cfunc=entry)
        target.insert_user_function(entry, state["cr"].fndesc, [state.library])
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerWhole(NativeLowering):  # type: ignore[misc]
    """Translate the kernel that Python calls."""

    _name = "lower_whole"

    def run_pass(self, state: Any) -> bool:
        state.flags.no_cfunc_wrapper = True
        name = state.func_id.func_qualname
        state.library = _WholeLibrary(state.targetctx.codegen(), name)
        state.library.enable_object_caching()
        super().run_pass(state)
        return True


class PartCompiler(UnsignedIndices):
    """The way of a part, to the point where the whole takes over."""

    lowering = _LowerPart

    def define_pipelines(self) -> list[Any]:
        """Return the usual passes with another lowering."""
        pipelines = super().define_pipelines()
        for passes in pipelines:
            passes._finalized = False  # noqa: SLF001
            passes.passes = [
                (self.lowering, "lower") if one is NativeLowering else (one, what)
                for one, what in passes.passes
            ]
            passes.finalize()
        return pipelines


class WholeCompiler(PartCompiler):
    """The way of a kernel that Python calls."""

    lowering = _LowerWhole
