"""Flow files and link files: CSV or Parquet in, arrays out; all faults of a file told together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.sim.endpoints import Endpoints
from gpufabric.sim.flow_columns import (
    ALIASES,
    FLOW_COLUMNS,
    FLOW_RESULTS,
    LINK_COLUMNS,
    FileColumn,
)
from gpufabric.sim.flow_problem import Predecessors
from gpufabric.sim.traffic import Rows, Traffic

__all__ = ["Links", "read_flows", "read_links"]

MOST_FAULTS = 20
"""Faults of one column that are told; the others are counted."""

LARGEST = 1e18
"""Largest number in a file, and 1 by the smallest above 0: times, sums and rates stay finite."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Links:
    """Directed channels from a file, in its order.

    Parameters
    ----------
    link_id
        str[n]: how flows name them.
    name
        str[n]: how reports name them.
    gbps
        float64[n] [Gb/s].
    latency_s
        float64[n] [s].
    """

    link_id: NDArray[np.str_]
    name: NDArray[np.str_]
    gbps: Floats
    latency_s: Floats

    def __len__(self) -> int:
        return len(self.link_id)


def read_links(path: Path) -> Links:
    """Return the channels in a file of links.

    Raises
    ------
    InputError
        If the file cannot be read, or columns or values are wrong; all faults are told.
    """
    sheet = _Sheet(path, LINK_COLUMNS)
    link_id = sheet.texts("link_id")
    sheet.unique("link_id", link_id)
    name = sheet.texts("name") if sheet.has("name") else link_id
    name = np.where(name == "", link_id, name)
    if sheet.has("gbps") == sheet.has("bandwidth_Bps"):
        sheet.fault(
            "", _("it needs a column of capacities."), _("gbps or bandwidth_Bps, one of the two")
        )
    if sheet.has("bandwidth_Bps"):
        gbps = sheet.numbers("bandwidth_Bps", None) / 1.25e8
    else:
        gbps = sheet.numbers("gbps", None)
    latency_s = sheet.numbers("latency_s", 0.0)
    sheet.raise_all()
    return Links(link_id, name, gbps, latency_s)


def read_flows(
    path: Path, endpoints: Endpoints | None, links: Links | None, n_channels: int = 0
) -> Traffic:
    """Return the flows in a file.

    Parameters
    ----------
    path
        CSV (``.csv``) or Parquet (``.parquet``) with the columns of ``FLOW_COLUMNS``.
    endpoints
        GPUs that ``src`` and ``dst`` name; None: they are names alone.
    links
        Channels that ``path`` names; None: it holds numbers of the fabric's channels.
    n_channels
        Channels of the fabric.

    Raises
    ------
    InputError
        If the file cannot be read, or columns or values are wrong; all faults are told.
    """
    sheet = _Sheet(path, FLOW_COLUMNS, {column.name for column in FLOW_RESULTS})
    if len(sheet) == 0:
        sheet.fault("", _("it holds no flow."))
    flow_id = sheet.texts("flow_id")
    sheet.unique("flow_id", flow_id)
    src, dst, labels = _ends(sheet, endpoints)
    traffic = Traffic(
        name=path.name,
        src=src,
        dst=dst,
        size_bytes=sheet.numbers("size_bytes", None),
        start_s=sheet.numbers("start_s", 0.0),
        weight=sheet.numbers("weight", 1.0, above=True) if sheet.has("weight") else None,
        cap_gbps=sheet.numbers("cap_gbps", np.inf) if sheet.has("cap_gbps") else None,
        predecessors=_predecessors(sheet, flow_id),
        routes=_routes(sheet, links, n_channels),
        flow_id=flow_id,
        labels=labels,
    )
    if endpoints is None and not sheet.faults:
        _check_all_have_paths(sheet, traffic)
    sheet.raise_all()
    return traffic


def _check_all_have_paths(sheet: _Sheet, traffic: Traffic) -> None:
    if traffic.routes is None:
        sheet.fault("", _("it has no column path."), "", _("Give a fabric, or add the column."))
        return
    bare = np.flatnonzero((np.diff(traffic.routes.first) == 0) & (traffic.src != traffic.dst))
    for row in sheet.told(bare, "path"):
        sheet.fault(
            sheet.place(row, "path"), _("it is empty."), "", _("Give a fabric that routes it.")
        )


def _ends(sheet: _Sheet, endpoints: Endpoints | None) -> tuple[Ints, Ints, NDArray[np.str_] | None]:
    src, dst = sheet.texts("src"), sheet.texts("dst")
    if endpoints is None:
        labels, found = np.unique(np.concatenate([src, dst]), return_inverse=True)
        number: Ints = found.astype(np.int32)
        return number[: len(src)], number[len(src) :], labels
    known = pa.array(np.concatenate([np.arange(len(endpoints)).astype(np.str_), endpoints.names]))
    return (
        _gpus(sheet, "src", src, known, endpoints),
        _gpus(sheet, "dst", dst, known, endpoints),
        None,
    )


def _gpus(
    sheet: _Sheet, column: str, texts: NDArray[np.str_], known: pa.Array, endpoints: Endpoints
) -> Ints:
    found = _index_in(pa.array(texts), known)
    for row in sheet.told(np.flatnonzero(found < 0), column):
        try:
            endpoints.index(str(texts[row]), sheet.place(row, column))
        except InputError as error:
            sheet.faults.extend(error.faults)
    return (found % len(endpoints)).astype(np.int32)


def _predecessors(sheet: _Sheet, flow_id: NDArray[np.str_]) -> Predecessors | None:
    if not sheet.has("after"):
        return None
    first, words = sheet.words("after")
    found = _index_in(words, pa.array(flow_id))
    sheet.unknown_words("after", first, words, found, _("a flow_id of this file"))
    if not sheet.faults:
        _note_circles(sheet, first, found)
    return Predecessors(first, found.astype(np.int32))


def _note_circles(sheet: _Sheet, first: Longs, waits_for: Longs) -> None:
    """Note the flows that wait, directly or not, for themselves."""
    n_flows = len(first) - 1
    owner = np.repeat(np.arange(n_flows), np.diff(first))
    arcs = coo_array((np.ones(len(owner), np.int8), (owner, waits_for)), shape=(n_flows, n_flows))
    circle = connected_components(arcs, connection="strong")[1]
    is_in_one = np.bincount(circle)[circle] > 1
    is_in_one[owner[owner == waits_for]] = True
    for row in sheet.told(np.flatnonzero(is_in_one), "after"):
        what = _("the flow waits, directly or not, for its own end.")
        sheet.fault(sheet.place(row, "after"), what, _("flows that can begin one after the other"))


def _routes(sheet: _Sheet, links: Links | None, n_channels: int) -> Rows | None:
    if not sheet.has("path"):
        return None
    first, words = sheet.words("path")
    if links is not None:
        found = _index_in(words, pa.array(links.link_id))
        expected = _("a link_id of the file of links")
    else:
        found = _numbers_below(words, n_channels)
        expected = _("the number of a channel, 0 to {last}").format(last=n_channels - 1)
    sheet.unknown_words("path", first, words, found, expected)
    return Rows(first, found.astype(np.int32))


def _index_in(words: pa.Array, known: pa.Array) -> Longs:
    """Place of each word among the known ones; -1 where it is none of them."""
    found = pc.fill_null(pc.index_in(words, value_set=known), -1)
    return np.asarray(found, np.int64)


def _numbers_below(words: pa.Array, most: int) -> Longs:
    """Each word as a number from 0 to `most` - 1; -1 where it is none."""
    is_number = pc.match_substring_regex(words, r"^[0-9]{1,9}$")
    number = pc.cast(pc.if_else(is_number, words, "-1"), pa.int64())
    found = np.asarray(number, np.int64)
    return np.where(found < most, found, -1)


class _Sheet:
    """A table of texts and numbers, and the faults found in it."""

    def __init__(
        self, path: Path, columns: Sequence[FileColumn], others: set[str] | None = None
    ) -> None:
        self.where = str(path)
        self.faults: list[Fault] = []
        table = _load(path)
        self.table = table.rename_columns(
            [ALIASES.get(name.strip(), name.strip()) for name in table.column_names]
        )
        self._check_headings(columns, others or set())
        self.raise_all()

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def has(self, column: str) -> bool:
        """Tell whether the file has that column."""
        return column in self.table.column_names

    def fault(self, where: str, what: str, expected: str = "", remedy: str = "") -> None:
        """Note one fault."""
        self.faults.append(Fault(where or self.where, what, expected, remedy))

    def place(self, row: int, column: str) -> str:
        """Return where a value stands; rows count from 1, the heading left out."""
        return _("{file}: row {row}, {column}").format(file=self.where, row=row + 1, column=column)

    def raise_all(self) -> None:
        """Raise the faults noted, if any."""
        if self.faults:
            raise InputError(self.faults)

    def told(self, rows: Longs, column: str) -> Iterator[int]:
        """Yield the first of the faulty rows; note how many more there are."""
        yield from rows[:MOST_FAULTS].tolist()
        if len(rows) > MOST_FAULTS:
            what = _("{n} more faults in column {column}.").format(
                n=len(rows) - MOST_FAULTS, column=column
            )
            self.fault("", what)

    def texts(self, column: str) -> NDArray[np.str_]:
        """Return a column as texts without blanks around; empty where it is null."""
        values = pc.cast(self.table[column].combine_chunks(), pa.string())
        values = pc.utf8_trim_whitespace(pc.fill_null(values, ""))
        return np.asarray(values.to_numpy(zero_copy_only=False), np.str_)

    def unique(self, column: str, texts: NDArray[np.str_]) -> None:
        """Note values that are empty or stand twice."""
        for row in self.told(np.flatnonzero(texts == ""), column):
            self.fault(self.place(row, column), _("it is empty."))
        order = np.argsort(texts, kind="stable")
        again = order[1:][texts[order][1:] == texts[order][:-1]]
        for row in self.told(np.sort(again[texts[again] != ""]), column):
            what = _('"{text}" stands in an earlier row too.').format(text=texts[row][:64])
            self.fault(self.place(row, column), what, _("every value once"))

    def numbers(self, column: str, default: float | None, *, above: bool = False) -> Floats:
        """Return a column of numbers of 0 or more; `default` where empty, a fault where None."""
        if not self.has(column):
            return np.full(len(self), np.nan if default is None else default)
        values = self.table[column].combine_chunks()
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            values = _parsed(pc.utf8_trim_whitespace(values))
        numbers = np.array(pc.cast(values, pa.float64()), np.float64)
        empty = np.asarray(pc.is_null(values))
        if default is not None:
            numbers[empty] = default
        fits = (numbers >= 1 / LARGEST) & (numbers <= LARGEST)
        fits |= empty & (default is not None)
        if not above:
            fits |= numbers == 0
        expected = _("1e-18 to 1e18") if above else _("0, or 1e-18 to 1e18")
        for row in self.told(np.flatnonzero(~fits), column):
            self._note_number(row, column, expected)
        return numbers

    def _note_number(self, row: int, column: str, expected: str) -> None:
        value = self.table[column][row].as_py()
        text = "" if value is None else str(value).strip()
        what = _('"{text}" does not fit.').format(text=text[:64]) if text else _("it is empty.")
        self.fault(self.place(row, column), what, expected)

    def words(self, column: str) -> tuple[Longs, pa.Array]:
        """Return a column of several values a row as offsets and words."""
        values = self.table[column].combine_chunks()
        if not pa.types.is_list(values.type) and not pa.types.is_large_list(values.type):
            texts = pc.utf8_trim_whitespace(pc.fill_null(pc.cast(values, pa.string()), ""))
            values = pc.utf8_split_whitespace(texts)
            values = pc.if_else(pc.equal(texts, ""), pa.scalar([], values.type), values)
        sizes = np.asarray(pc.fill_null(pc.list_value_length(values), 0), np.int64)
        first = np.concatenate([[0], np.cumsum(sizes)])
        words = pc.fill_null(pc.cast(pc.list_flatten(values), pa.string()), "")
        return first, words

    def unknown_words(
        self, column: str, first: Longs, words: pa.Array, found: Longs, expected: str
    ) -> None:
        """Note the words that were not found; `found` is made harmless for what follows."""
        for at in self.told(np.flatnonzero(found < 0), column):
            row = int(np.searchsorted(first, at, side="right")) - 1
            what = _('"{text}" is unknown.').format(text=str(words[at].as_py())[:64])
            self.fault(self.place(row, column), what, expected)
        found[found < 0] = 0

    def _check_headings(self, columns: Sequence[FileColumn], others: set[str]) -> None:
        names = [column.name for column in columns]
        given = self.table.column_names
        for name in sorted({name for name in given if given.count(name) > 1}):
            self.fault("", _('column "{name}" stands twice.').format(name=name[:64]))
        for name in given:
            if name not in names and name not in others:
                what = _('column "{name}" is unknown.').format(name=name[:64])
                remedy = nearest(name, names) or _("Remove it.")
                self.fault("", what, ", ".join(names), remedy)
        for column in columns:
            if column.is_required and column.name not in given:
                self.fault("", _('column "{name}" is missing.').format(name=column.name))


def _parsed(values: pa.Array) -> pa.Array:
    """Return texts as numbers; null where they are empty, nan where they are no number."""
    values = pc.if_else(pc.equal(values, ""), None, values)
    try:
        return pc.cast(values, pa.float64())
    except pa.ArrowInvalid:
        return pa.array([_number(text) for text in values.to_pylist()], pa.float64())


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _load(path: Path) -> pa.Table:
    """Return the file's table; all columns of a CSV as texts."""
    where = str(path)
    if not path.is_file():
        what = _("there is no such file.") if not path.exists() else _("it is not a regular file.")
        raise InputError(Fault(where, what))
    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            return pyarrow.parquet.read_table(path, partitioning=None)
        if suffix == ".csv":
            return _load_csv(path)
    except (OSError, pa.ArrowException) as error:
        what = _("cannot be read: {reason}.").format(reason=str(error).splitlines()[0][:300])
        raise InputError(Fault(where, what)) from error
    what = _('the file name ends in "{suffix}".').format(suffix=path.suffix)
    raise InputError(Fault(where, what, _(".csv or .parquet")))


def _load_csv(path: Path) -> pa.Table:
    with path.open("rb") as file:
        head = file.readline(1_000_000)
    names = [name.strip() for name in head.decode("utf-8-sig", "replace").strip().split(",")]
    names = [name.strip('"') for name in names]
    options = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
    )
    return pyarrow.csv.read_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(use_threads=False),
        convert_options=options,
    )
