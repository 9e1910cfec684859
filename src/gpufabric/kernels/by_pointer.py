"""Hand a named tuple of many arrays to kernels as one pointer.

numba hands over a tuple by value: seven words for each array, taken apart and put together again
in every function. With the forty arrays of a packet run that is nearly all that there was to
compile. One pointer to the same words says as much; kernels read ``run.ports`` as before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

__all__ = ["by_pointer"]


class FixedRecord(types.Record):  # type: ignore[misc]
    """The type of a record that no kernel writes to."""

    def __init__(self, record: types.Record) -> None:
        fields = [(name, field._asdict()) for name, field in record.fields.items()]
        super().__init__(fields, record.size, record.aligned)
        self.name = f"Fixed{record.name}"


register_model(FixedRecord)(models.RecordModel)


def _read_fixed(context: Any, builder: Any, kind: FixedRecord, value: Any, name: str) -> Any:
    part = kind.typeof(name)
    known = context.get_data_type(part)
    word = builder.load(cgutils.get_record_member(builder, value, kind.offset(name), known))
    word.set_metadata("tbaa", _fixed(builder.module))
    return impl_ret_borrowed(context, builder, part, word)


lower_getattr_generic(FixedRecord)(_read_fixed)


class KnownRecord(FixedRecord):
    """The type of a record that no kernel writes to, some of whose numbers are known."""

    def __init__(self, record: types.Record, known: Mapping[str, int]) -> None:
        super().__init__(record)
        self.known = dict(known)
        self.name = f"Known{self.name}{sorted(known.items())}"


register_model(KnownRecord)(models.RecordModel)


def _read_known(context: Any, builder: Any, kind: KnownRecord, value: Any, name: str) -> Any:
    if name in kind.known:
        return context.get_constant(kind.typeof(name), kind.known[name])
    return _read_fixed(context, builder, kind, value, name)


lower_getattr_generic(KnownRecord)(_read_known)


class PointerToFields(types.Type):  # type: ignore[misc]
    """The type of a pointer to the fields of a named tuple."""

    def __init__(self, title: str, fields: tuple[tuple[str, types.Type], ...]) -> None:
        self.fields = fields
        digest = hashlib.sha256(repr(fields).encode()).hexdigest()[:12]
        super().__init__(f"{title}_{digest}")

    @property
    def key(self) -> Any:
        """What makes two of these types equal."""
        return self.name

    def place(self, name: str) -> int:
        """Place of a field."""
        return [field for field, _ in self.fields].index(name)


@register_model(PointerToFields)
class _PointerModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, known: Any, kind: PointerToFields) -> None:
        parts = [known.lookup(part).get_value_type() for _, part in kind.fields]
        super().__init__(known, kind, ir.LiteralStructType(parts).as_pointer())


@infer_getattr
class _FieldTypes(AttributeTemplate):  # type: ignore[misc]
    key = PointerToFields

    def generic_resolve(self, kind: PointerToFields, name: str) -> types.Type | None:
        return dict(kind.fields).get(name)


def _read_field(context: Any, builder: Any, kind: PointerToFields, value: Any, name: str) -> Any:
    place = kind.place(name)
    field = builder.load(cgutils.gep_inbounds(builder, value, 0, place))
    field.set_metadata("tbaa", _fixed(builder.module))
    return impl_ret_borrowed(context, builder, kind.fields[place][1], field)


def _fixed(module: Any) -> Any:
    """Tell LLVM that what is loaded never changes, so that it need not be loaded again.

    It is the tag of a type in constant memory; loads of parts of a whole keep it.
    """
    number = ir.IntType(64)
    root = module.add_metadata(["gpufabric"])
    kind = module.add_metadata(["fields", root, ir.Constant(number, 0)])
    return module.add_metadata([kind, kind, ir.Constant(number, 0), ir.Constant(number, 1)])


def _write_fields(kind: PointerToFields, thing: Any, c: Any) -> NativeValue:
    """Put the fields on the stack of whoever calls the kernel; the tuple keeps the arrays."""
    target = c.context.get_value_type(kind).pointee
    room = cgutils.alloca_once(c.builder, target)
    is_wrong = cgutils.false_bit
    for place, (name, part) in enumerate(kind.fields):
        field = c.pyapi.object_getattr_string(thing, name)
        native = c.unbox(part, field)
        c.builder.store(native.value, cgutils.gep_inbounds(c.builder, room, 0, place))
        c.pyapi.decref(field)
        is_wrong = c.builder.or_(is_wrong, native.is_error)
    return NativeValue(room, is_error=is_wrong)


lower_getattr_generic(PointerToFields)(_read_field)
unbox(PointerToFields)(_write_fields)


def by_pointer(
    *fixed: str, known: tuple[np.dtype[np.void], Mapping[str, int]] | None = None
) -> Callable[[type], type]:
    """Let kernels take a class of named tuples by pointer; for kernels without counted references.

    Parameters
    ----------
    fixed
        Fields that are records of numbers which no kernel writes to.

    Examples
    --------
    Put it before the class; without compilation nothing changes:

    >>> from typing import NamedTuple
    >>> @by_pointer()
    ... class Two(NamedTuple):
    ...     one: float
    ...     other: float
    >>> Two(1.0, 2.0).other
    2.0
    """

    def register(named_tuple: type) -> type:
        @typeof_impl.register(named_tuple)
        def _type_of(value: Any, context: Any) -> PointerToFields:
            parts = {name: typeof_impl(getattr(value, name), context) for name in value._fields}
            for name in fixed:
                parts[name] = parts[name].copy(dtype=FixedRecord(parts[name].dtype))
                if known is not None and getattr(value, name).dtype == known[0]:
                    parts[name] = parts[name].copy(dtype=KnownRecord(parts[name].dtype, known[1]))
            return PointerToFields(named_tuple.__name__, tuple(parts.items()))

        return named_tuple

    return register
