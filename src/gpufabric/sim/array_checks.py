"""Arrays from outside, checked one by one, with all faults shown together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _

__all__ = ["ArrayChecks"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


class ArrayChecks:
    """Faults of the arrays looked at so far, gathered to be shown together."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def fault(self, where: str, what: str, expected: str = "", remedy: str = "") -> None:
        """Note one fault."""
        self.faults.append(Fault(where, what, expected, remedy))

    def floats(
        self,
        where: str,
        values: ArrayLike,
        size: int | None,
        fits: Callable[[Floats], NDArray[np.bool_]],
        expected: str,
    ) -> Floats:
        """Return `values` as float64; note a wrong size and the first value that does not fit."""
        array = np.ascontiguousarray(values, np.float64)
        if self._size(where, array, size) and not (right := fits(array)).all():
            at = int(np.argmin(right))
            what = _("the value is {value}.").format(value=array[at])
            self.fault(f"{where}[{at}]", what, expected)
        return array

    def ints(self, where: str, values: ArrayLike, size: int | None, least: int, below: int) -> Ints:
        """Return `values` as int32; note a wrong size and the first value out of range."""
        array = np.asarray(values)
        if array.size and array.dtype.kind not in "iu":
            what = _("the values are of type {dtype}.").format(dtype=array.dtype)
            self.fault(where, what, _("whole numbers"))
            return np.zeros(array.shape, np.int32)
        if (
            self._size(where, array, size)
            and array.size
            and (array.min() < least or array.max() >= below)
        ):
            at = int(np.argmax((array < least) | (array >= below)))
            what = _("the value is {value}.").format(value=array[at])
            expected = _("{least} to {most}").format(least=least, most=below - 1)
            self.fault(f"{where}[{at}]", what, expected)
            return np.zeros(array.shape, np.int32)
        return np.ascontiguousarray(array, np.int32)

    def csr(self, where: str, first: ArrayLike, n_values: int, n_rows: int | None) -> Longs:
        """Return `first` as int64; note it if it does not cut `n_values` values into rows."""
        array = np.ascontiguousarray(first, np.int64)
        if not self._size(where, array, None if n_rows is None else n_rows + 1):
            return array
        if array.size == 0 or array[0] != 0 or array[-1] != n_values or (np.diff(array) < 0).any():
            what = _("it does not cut {n} values into rows.").format(n=n_values)
            expected = _("0 first, {n} last, never falling").format(n=n_values)
            self.fault(where, what, expected)
        return array

    def within(self, where: str, value: float, least: float, most: float) -> None:
        """Note a single value out of range."""
        if not least <= value <= most:
            what = _("the value is {value}.").format(value=value)
            self.fault(where, what, _("{least} to {most}").format(least=least, most=most))

    def _size(self, where: str, array: NDArray[np.generic], size: int | None) -> bool:
        if array.ndim != 1:
            what = _("the array has {n} dimensions.").format(n=array.ndim)
            self.fault(where, what, _("one dimension"))
            return False
        if size is not None and array.size != size:
            what = _("it has {n} values.").format(n=array.size)
            self.fault(where, what, _("{n} values").format(n=size))
            return False
        return True

    def raise_all(self) -> None:
        """Raise the faults noted, if any.

        Raises
        ------
        InputError
            With all faults.
        """
        if self.faults:
            raise InputError(self.faults)
