"""The columns of a Fabric: each one is defined here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "LINK_TIERS",
    "PORT_USES",
    "ROLES",
    "SCHEMAS",
    "SWITCH_TIERS",
    "Column",
    "Table",
    "TableSchema",
]

Array = npt.NDArray[Any]

SWITCH_TIERS: Mapping[int, str] = MappingProxyType({1: "leaf", 2: "spine", 3: "core"})
LINK_TIERS: Mapping[int, str] = MappingProxyType(
    {1: "host_leaf", 2: "leaf_spine", 3: "spine_core", 4: "leaf_leaf", 5: "global"}
)
PORT_USES: Mapping[int, str] = MappingProxyType({0: "free", 1: "link", 2: "reserved"})
ROLES: Mapping[int, str] = MappingProxyType({0: "compute", 1: "manager"})


@dataclass(frozen=True)
class Column:
    """One column: its name (with the unit as suffix), type, default, and meaning.

    Parameters
    ----------
    name
        Name; a dimension's unit is its suffix (``gbps``, ``length_m``).
    dtype
        numpy type, little endian; text columns are ``U<n>``.
    description
        One sentence for the docs and the JSON schema.
    default
        Value of a row that does not state one.
    unit
        Unit in words, empty for counts, indices and names.
    is_result
        True if the design fills it in after the topology is built (rack, length, part).
    """

    name: str
    dtype: str
    description: str
    default: Any = 0
    unit: str = ""
    is_result: bool = False


@dataclass(frozen=True)
class TableSchema:
    """The ordered columns of one table."""

    name: str
    description: str
    columns: tuple[Column, ...]

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns, in file order."""
        return tuple(column.name for column in self.columns)

    def table(self, n_rows: int, **columns: Any) -> Table:
        """Return a table of `n_rows`; columns not given take their default."""
        unknown = sorted(set(columns) - set(self.column_names))
        if unknown:
            raise KeyError(f"{self.name}: no column {unknown[0]!r}")
        arrays: dict[str, Array] = {}
        for column in self.columns:
            value = columns.get(column.name, column.default)
            array = np.empty(n_rows, dtype=column.dtype)
            array[...] = value
            arrays[column.name] = array
        return Table(self, arrays)


class Table:
    """Columns of equal length that cannot be changed; ``table.name`` is a column.

    Parameters
    ----------
    schema
        The table's definition.
    arrays
        One array per column, all of one length; they are made read-only.
    """

    __slots__ = ("_arrays", "schema")

    def __init__(self, schema: TableSchema, arrays: Mapping[str, Array]) -> None:
        self.schema = schema
        kept: dict[str, Array] = {}
        for column in schema.columns:
            array = np.ascontiguousarray(arrays[column.name], dtype=column.dtype)
            if array.flags.writeable:
                array = array.view()
                array.flags.writeable = False
            kept[column.name] = array
        if len({len(array) for array in kept.values()}) > 1:
            raise ValueError(f"{schema.name}: columns of unequal length")
        self._arrays = kept

    def __reduce__(self) -> tuple[type[Table], tuple[TableSchema, dict[str, Array]]]:
        return Table, (self.schema, self._arrays)  # so that workers of a sweep can get a fabric

    def __len__(self) -> int:
        return len(self._arrays[self.schema.columns[0].name])

    def __getattr__(self, name: str) -> Array:
        try:
            return self._arrays[name]
        except KeyError:
            raise AttributeError(f"{self.schema.name} has no column {name!r}") from None

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table) or self.schema != other.schema:
            return NotImplemented if not isinstance(other, Table) else False
        return all(
            np.array_equal(array, other[name], equal_nan=array.dtype.kind == "f")
            for name, array in self._arrays.items()
        )

    __hash__ = None  # type: ignore[assignment]

    def columns(self) -> Iterator[tuple[Column, Array]]:
        """Yield each column's definition with its values."""
        for column in self.schema.columns:
            yield column, self._arrays[column.name]

    def row(self, index: int) -> dict[str, Any]:
        """Return row `index` as plain Python values, by column name."""
        return {name: array[index].item() for name, array in self._arrays.items()}

    def replace(self, **columns: Any) -> Table:
        """Return a table with some columns changed; the others are shared, not copied."""
        arrays = dict(self._arrays)
        for name, value in columns.items():
            column = next(c for c in self.schema.columns if c.name == name)
            array = np.empty(len(self), dtype=column.dtype)
            array[...] = value
            arrays[name] = array
        return Table(self.schema, arrays)

    def take(self, rows: Array) -> Table:
        """Return the given rows (indices or mask), in that order."""
        return Table(self.schema, {name: array[rows] for name, array in self._arrays.items()})

    def __repr__(self) -> str:
        shown = [str(self.row(i)) for i in range(min(len(self), 3))]
        more = "" if len(self) <= len(shown) else f" … {len(self) - len(shown)} more"
        return f"<{self.schema.name}: {len(self)} rows {' '.join(shown)}{more}>"

    @property
    def n_bytes(self) -> int:
        """Memory of all columns [byte]."""
        return sum(array.nbytes for array in self._arrays.values())


_STAGE = Column("stage", "i1", "0 = bought and built today, 1 = bought when the cluster grows.")
_RACK = Column("rack", "<i4", "Row in `racks`; -1 = not placed.", -1, is_result=True)
_UNIT = Column(
    "rack_unit", "<i2", "Lowest unit taken, from 1; 0 = not placed.", 0, "rack unit", is_result=True
)

SCHEMAS: Mapping[str, TableSchema] = MappingProxyType(
    {
        "racks": TableSchema(
            "racks",
            "Racks on the floor.",
            (
                Column("name", "<U16", "Name painted on the rack.", ""),
                Column("kind", "i1", "0 = compute, 1 = network."),
                Column("row", "<i2", "Row on the floor, from 0."),
                Column("position", "<i2", "Place in the row, from 0."),
                Column("units", "<i2", "Height.", 0, "rack unit"),
                Column("power_w", "<f4", "Power of what stands in it, at maximum.", 0.0, "W"),
            ),
        ),
        "hosts": TableSchema(
            "hosts",
            "Servers: compute hosts with GPUs, and fabric managers.",
            (
                Column("name", "<U24", "Host name.", ""),
                Column("role", "i1", "0 = compute, 1 = manager (subnet manager, controller)."),
                Column("model", "<i2", "Index into `models`."),
                Column("n_gpus", "<i2", "GPUs in the host."),
                Column("su", "<i4", "Scalable unit, from 0; -1 = none.", -1),
                Column("pod", "<i4", "Pod, from 0.", 0),
                _STAGE,
                _RACK,
                _UNIT,
            ),
        ),
        "nics": TableSchema(
            "nics",
            "RDMA adapters of the hosts.",
            (
                Column("host", "<i4", "Row in `hosts`."),
                Column("index", "<i2", "NIC's number in its host, from 0."),
                Column("rail", "<i2", "Rail, from 0; -1 = none (managers).", -1),
                Column("model", "<i2", "Index into `models`."),
                Column("gbps", "<f4", "Rate of all its ports together.", 0.0, "Gb/s"),
                Column("port_first", "<i4", "First of its rows in `ports`."),
                Column("n_ports", "<i2", "Number of its ports.", 1),
            ),
        ),
        "switches": TableSchema(
            "switches",
            "Switches of the compute fabric.",
            (
                Column("name", "<U24", "Switch name.", ""),
                Column("model", "<i2", "Index into `models`."),
                Column("tier", "i1", "1 = leaf, 2 = spine, 3 = core.", 1),
                Column("plane", "<i2", "Plane, from 0."),
                Column("rail", "<i2", "Rail whose NICs it serves; -1 = several.", -1),
                Column("su", "<i4", "Scalable unit of a leaf; -1 = none.", -1),
                Column("pod", "<i4", "Pod or dragonfly group; -1 = above pods.", -1),
                Column("group", "<i4", "Striping group of a spine or core; -1 = none.", -1),
                Column("port_first", "<i4", "First of its rows in `ports`."),
                Column("n_ports", "<i4", "Number of its (logical) ports."),
                _STAGE,
                _RACK,
                _UNIT,
            ),
        ),
        "ports": TableSchema(
            "ports",
            "Every logical port: those of NICs first, then those of switches.",
            (
                Column("is_switch", "i1", "1 = port of a switch, 0 = of a NIC."),
                Column("device", "<i4", "Row in `switches` or `nics`."),
                Column("port", "<i2", "Port's number on its device, from 0."),
                Column("cage", "<i2", "Cage on its switch, or on its host, from 0."),
                Column("lane", "i1", "Breakout or twin-port lane within the cage, from 0."),
                Column("gbps", "<f4", "Rate it runs at.", 0.0, "Gb/s"),
                Column("use", "i1", "0 = free, 1 = link, 2 = reserved."),
            ),
        ),
        "links": TableSchema(
            "links",
            "Links between two ports; `port_a` is the lower end (nearer to the host).",
            (
                Column("port_a", "<i4", "Lower end, row in `ports`."),
                Column("port_b", "<i4", "Upper end, row in `ports`."),
                Column("gbps", "<f4", "Rate in each direction.", 0.0, "Gb/s"),
                Column(
                    "tier",
                    "i1",
                    "1 = host-leaf, 2 = leaf-spine, 3 = spine-core, 4 = leaf-leaf, 5 = global.",
                ),
                Column("plane", "<i2", "Plane, from 0."),
                Column("rail", "<i2", "Rail; -1 = none.", -1),
                _STAGE,
                Column("cable", "<i4", "Physical cable; links of one breakout cable share it."),
                Column("length_m", "<f4", "Ordered length.", np.nan, "m", is_result=True),
                Column(
                    "part",
                    "<i2",
                    "Cable part, index into `parts`; -1 = open.",
                    -1,
                    "",
                    is_result=True,
                ),
            ),
        ),
    }
)
