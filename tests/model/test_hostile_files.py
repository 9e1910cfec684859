"""Files that are damaged on purpose: one clear InputError each, in bounded memory."""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import threading
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.model import files
from gpufabric.model.fabric import FORMAT_VERSION, Fabric
from gpufabric.model.files import load_fabric, save_fabric
from tests.model.make_fabric import make_fabric

Tree = dict[str, Any]


def fails(path: Path, says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)) as caught:
        load_fabric(path)
    assert all(fault.where.startswith(str(path)) for fault in caught.value.faults)


@pytest.fixture
def saved(tmp_path: Path) -> str:
    """Text of a sound JSON file."""
    return save_fabric(make_fabric(), tmp_path / "sound.json").read_text(encoding="utf-8")


# Bytes and JSON text ------------------------------------------------------------------------

BYTES = [
    (b"", "the file is empty"),
    (b"\xff\xfe{", "byte 0 is not UTF-8"),
    (b'{"format":"\x80"}', "byte 11 is not UTF-8"),
    ("\ufeff{}".encode(), ':1:1: expected "{"'),
    (b"PK\x03\x04", ':1:1: expected "{"'),
    (b"[]", ':1:1: expected "{", found "["'),
    (b"{", "not JSON"),
    (b"{}", '"format" is not "gpufabric-fabric"'),
    (b'{"format":"gpufabric-plan"}', '"format" is not "gpufabric-fabric"'),
    (b'{"format":"gpufabric-fabric"}', "content_hash: is missing"),
    (b'{"format":"gpufabric-fabric",}', "not JSON"),
    (b'{"a":1,"a":2}', '"a" is there twice'),
    (b'{"a":{"b":1,"b":2}}', "a key is there twice"),
    (b"{1:2}", "a key must be text"),
    (b'{"a":NaN}', "NaN is not JSON"),
    (b'{"a":-Infinity}', "-Infinity is not JSON"),
    (b'{"a":' + b"9" * 5000 + b"}", "not JSON"),
    (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    (b'{"a":' + b'{"b":' * 100_000 + b"1" + b"}" * 100_000 + b"}", "nested too deeply"),
    (b'{"tables":' + b'{"a":' * 50_000, "not known here"),
    (b'{"a":"' + b"x" * 5_000_000 + b'"}', "not JSON"),
]


@pytest.mark.parametrize(("raw", "says"), BYTES, ids=range(len(BYTES)))
def test_other_bytes(tmp_path: Path, raw: bytes, says: str) -> None:
    path = tmp_path / "f.json"
    path.write_bytes(raw)
    fails(path, says)


def test_text_after_the_end(tmp_path: Path, saved: str) -> None:
    path = tmp_path / "f.json"
    path.write_text(saved + "{}", encoding="utf-8")
    fails(path, "more text after the end")


TEXTS = [
    ('"rows":2', '"rows":3', 'whose length is not its "rows"'),
    ('"rows":2', '"rows":"2"', 'whose length is not its "rows"'),
    ('"rows":2', '"rows":1e999', 'whose length is not its "rows"'),
    ('"rows":2,', "", 'whose length is not its "rows"'),
    ('"units":[48,48]', '"units":[48,48.5]', "racks.units: holds values of another type"),
    ('"units":[48,48]', '"units":[48,null]', "racks.units: holds values of another type"),
    ('"units":[48,48]', '"units":[48,70000]', "racks.units: holds values of another type"),
    ('"units":[48,48]', '"units":[48,1e999]', "racks.units: holds values of another type"),
    ('"units":[48,48]', '"units":[48,99999999999999999999]', "a number is too large"),
    ('"units":[48,48]', '"units":[48,048]', "not JSON"),
    ('"units":[48,48]', '"units":[48,,48]', "not JSON"),
    ('"units":[48,48]', '"units":[48,true]', "expected an array"),
    ('"units":[48,48]', '"units":[48,[48]]', "expected an array"),
    ('"units":[48,48]', '"units":48', 'expected "["'),
    ('"units":[48,48]', '"units":["48","48"]', "racks.units: holds values of another type"),
    ('"units":[48,48]', '"unit":[48,48]', 'racks.unit: is not known. Did you mean "units"?'),
    ('"units":[48,48]', '"units":[48,48],"units":[48,48]', '"units" is there twice'),
    ("[1234.5,1234.5]", "[1234.5,1e39]", "racks.power_w[1]: inf is wrong"),
    ("[1234.5,1234.5]", "[1234.5,null]", "racks.power_w[1]: nan is wrong"),
    ("[1234.5,1234.5]", "[1234.5,nul]", "not JSON"),
    ('"R01"', '"' + "R" * 17 + '"', "racks.name: holds values of another type"),
    ('"R01"', '"' + "R" * 300 + '"', "a name is too long"),
    ('"R01"', '"' + "R" * 3000 + '"', "a name is too long"),
    ('"R01"', '"R\\ud800"', "racks.name[0]"),
    ('"R01"', '"R\\u0000"', "do not have the hash"),
    ('"R01"', '"R\n"', "expected an array"),
    ('"R01"', '"R\\q"', "not JSON"),
    ('"R01"', "1", "expected an array"),
    ('"racks":', '"rack":', "tables.racks: is missing"),
    ('"models":[', '"models":[1,', "models: has the wrong type"),
    ('"attributes":{', '"attributes":{"a":1e999,', "attributes: holds a number"),
    ('"attributes":{', '"attributes":{"\\udfff":1,', "attributes: holds a number"),
    ('"attributes":{', '"attributes":{"a":1,', "do not have the hash"),
    ('"attributes":', '"attribute":', 'Did you mean "attributes"?'),
    ('"name":"by hand"', '"name":"other"', "do not have the hash"),
    ('"name":"by hand"', '"name":7', "name: has the wrong type"),
    ('"name":"by hand"', '"name":"\\ud800"', "do not print"),
    ('"format_version":1', '"format_version":true', "format_version: has the wrong type"),
    ('"format_version":1', '"format_version":0', "format_version: is out of range"),
    ('"format_version":1', '"format_version":-1', "format_version: is out of range"),
    ('"format_version":1', '"format_version":2', "Use the gpufabric release that wrote it"),
    ('"content_hash":"', '"content_hash":"0', "do not have the hash"),
]


@pytest.mark.parametrize(("old", "new", "says"), TEXTS)
def test_changed_text(tmp_path: Path, saved: str, old: str, new: str, says: str) -> None:
    assert FORMAT_VERSION == 1
    assert old in saved
    path = tmp_path / "f.json"
    path.write_text(saved.replace(old, new, 1), encoding="utf-8")
    fails(path, says)


def test_places_are_lines_and_columns(tmp_path: Path, saved: str) -> None:
    path = tmp_path / "f.json"
    path.write_text(saved.replace("[48,48]", "[48,x]", 1), encoding="utf-8")
    lines = saved.splitlines()
    number = next(n for n, line in enumerate(lines, 1) if line.startswith('"units"'))
    fails(path, f"f.json:{number}:10: expected an array of numbers")


def test_all_faults_are_shown_together(tmp_path: Path, saved: str) -> None:
    path = tmp_path / "f.json"
    text = saved.replace('"units":[48,48]', '"unit":[48,48]').replace('"su":', '"sus":')
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_fabric(path)
    assert [fault.where.removeprefix(f"{path}: ") for fault in caught.value.faults] == [
        "racks.units",
        "racks.unit",
        "hosts.su",
        "hosts.sus",
        "switches.su",
        "switches.sus",
    ]


# Content that does not fit together ---------------------------------------------------------


def with_value(table: str, column: str, value: Any) -> Callable[[Fabric], Fabric]:
    def change(fabric: Fabric) -> Fabric:
        old = getattr(fabric, table)
        array = old[column].copy()
        array[1] = value
        return fabric.replace(**{table: old.replace(**{column: array})})

    return change


CONTENTS = [
    (with_value("links", "port_a", -1), "links.port_a[1]"),
    (with_value("links", "port_b", 10**6), "links.port_b[1]"),
    (with_value("links", "port_a", 0), "is used by 2 links"),
    (with_value("links", "gbps", np.nan), "links.gbps[1]: nan"),
    (with_value("ports", "use", 0), "ports.use[1]: 0"),
    (with_value("ports", "gbps", 100), "the rate of both ports"),
    (with_value("hosts", "name", "host00001"), '"host00001" is there twice'),
    (with_value("hosts", "model", -7), "hosts.model[1]: -7"),
]


def test_infinity_is_found_in_the_binary_form_and_never_written_as_json(tmp_path: Path) -> None:
    bad = with_value("links", "gbps", np.inf)(make_fabric())
    fails(save_fabric(bad, tmp_path / "f.fab"), "links.gbps[1]: inf")
    with pytest.raises(ValueError, match="inf is not a JSON number"):
        save_fabric(bad, tmp_path / "f.json")
    assert not (tmp_path / "f.json").exists()


@pytest.mark.parametrize("suffix", [".json", ".fab"])
@pytest.mark.parametrize(("change", "says"), CONTENTS)
def test_content_is_checked(
    tmp_path: Path, suffix: str, change: Callable[[Fabric], Fabric], says: str
) -> None:
    path = save_fabric(change(make_fabric()), tmp_path / f"f{suffix}")
    fails(path, says)


# The binary container -----------------------------------------------------------------------


def packed(head: object, blobs: bytes = b"", *, version: int = 1, length: int = -1) -> bytes:
    """Return a container with a right checksum, whatever it holds."""
    raw = head if isinstance(head, bytes) else json.dumps(head).encode()
    digest = hashlib.sha256(raw + blobs).digest()
    size = len(raw) if length < 0 else length
    return struct.pack("<8sII32s", b"GPUFAB\x1a\n", version, size, digest) + raw + blobs


def parts(raw: bytes) -> tuple[Tree, bytes]:
    (length,) = struct.unpack_from("<I", raw, 12)
    return json.loads(raw[48 : 48 + length]), raw[48 + length :]


@pytest.fixture
def head(tmp_path: Path) -> tuple[Tree, bytes]:
    """Head and columns of a sound binary file."""
    return parts(save_fabric(make_fabric(), tmp_path / "sound.fab").read_bytes())


def test_the_container_builder_of_these_tests_is_right(
    tmp_path: Path, head: tuple[Tree, bytes]
) -> None:
    path = tmp_path / "f.fab"
    path.write_bytes(packed(*head))
    assert load_fabric(path) == make_fabric()


CONTAINERS = [
    (b"GPUFAB\x1a\n", "cut off"),
    (packed({}, version=2), "container version 2 is not known"),
    (packed({}, length=2**32 - 1), "cut off"),
    (packed({}, length=3), "cut off"),
    (packed({})[:-1] + b"!", "checksum is wrong"),
    (packed(b"\xff"), "the head is not JSON"),
    (packed(b"[" * 200_000), "nested too deeply"),
    (packed([]), "the head is not JSON"),
    (packed({"format": "zip"}), "this is not a fabric file"),
]


@pytest.mark.parametrize(("raw", "says"), CONTAINERS, ids=range(len(CONTAINERS)))
def test_other_containers(tmp_path: Path, raw: bytes, says: str) -> None:
    path = tmp_path / "f.fab"
    path.write_bytes(raw)
    fails(path, says)


HEADS: list[tuple[list[str], Any, str]] = [
    (["tables"], None, "does not describe the tables"),
    (["tables", "racks"], [], "does not describe the tables"),
    (["tables", "racks", "rows"], -1, "a table has more than"),
    (["tables", "racks", "rows"], 2**24 + 1, "a table has more than"),
    (["tables", "racks", "rows"], True, "a table has more than"),
    (["tables", "racks", "rows"], 2**24, "the tables are larger than"),
    (["tables", "racks", "rows"], 3, "does not have the size"),
    (["tables", "racks", "rows"], 1, "does not have the size"),
    (["tables", "racks", "columns", "name"], 1, "does not describe a column"),
    (["tables", "racks", "columns", "name", "dtype"], "O", "a type that is not known"),
    (["tables", "racks", "columns", "name", "dtype"], "<U100000", "a type that is not known"),
    (["tables", "racks", "columns", "name", "dtype"], "<f4,<f4", "a type that is not known"),
    (["tables", "racks", "columns", "name", "dtype"], "<U8", "does not have the size"),
    (["tables", "racks", "columns", "units", "dtype"], "<f2", "an encoding that is not known"),
    (["tables", "racks", "columns", "units", "dtype"], "<u2", "do not have the hash"),
    (["tables", "racks", "columns", "units", "encoding"], "pickle", "an encoding"),
    (["tables", "racks", "columns", "units", "offset"], -1, "lies outside the file"),
    (["tables", "racks", "columns", "units", "offset"], 0, "lies outside the file"),
    (["tables", "racks", "columns", "units", "offset"], 2**40, "lies outside the file"),
    (["tables", "racks", "columns", "units", "length"], 2**20, "lies outside the file"),
    (["tables", "racks", "columns", "units", "length"], "9", "lies outside the file"),
    (["tables", "racks", "columns", "unit"], None, "does not describe a column"),
    (["tables", "shelves"], {"rows": 0, "columns": {}}, "tables.shelves: is not known"),
    (["name"], "other", "do not have the hash"),
    (["content_hash"], 3, "content_hash: has the wrong type"),
    (["format_version"], 99, "format version 99"),
]


@pytest.mark.parametrize(("keys", "value", "says"), HEADS)
def test_heads_that_lie(
    tmp_path: Path, head: tuple[Tree, bytes], keys: list[str], value: object, says: str
) -> None:
    tree, blobs = head
    place = tree
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    path = tmp_path / "f.fab"
    path.write_bytes(packed(tree, blobs))
    if says == "do not have the hash" and keys[-1] == "dtype":
        assert load_fabric(path) == make_fabric()  # the same numbers under another name
    else:
        fails(path, says)


def replaced(head: tuple[Tree, bytes], blob: bytes) -> bytes:
    """Return the file with another packed column in the place of the last one."""
    tree, blobs = head
    columns = [column for table in tree["tables"].values() for column in table["columns"].values()]
    last = max(columns, key=lambda column: column["offset"])
    last["length"] = len(blob)
    return packed(tree, blobs[: last["offset"]] + blob)


@pytest.mark.parametrize(
    ("blob", "says"),
    [
        (zlib.compress(bytes(2**28), 9), "does not have the size"),
        (zlib.compress(bytes(50))[:-2], "does not have the size"),
        (zlib.compress(bytes(50)) + b"more", "does not have the size"),
        (zlib.compress(bytes(49)), "does not have the size"),
        (b"", "does not have the size"),
        (b"no zlib at all", "cannot be unpacked"),
    ],
    ids=["bomb", "cut", "more", "short", "empty", "other"],
)
def test_columns_that_do_not_unpack(
    tmp_path: Path, head: tuple[Tree, bytes], blob: bytes, says: str
) -> None:
    path = tmp_path / "f.fab"
    path.write_bytes(replaced(head, blob))
    tracemalloc.start()
    fails(path, says)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20


def test_a_huge_array_in_json_is_refused_before_it_is_built(tmp_path: Path, saved: str) -> None:
    path = tmp_path / "f.json"
    huge = "0," * (2**24 + 1) + "0"
    path.write_text(saved.replace('"units":[48,48]', f'"units":[{huge}]'), encoding="utf-8")
    tracemalloc.start()
    fails(path, "a table has more than")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * len(huge)


# What is no file ----------------------------------------------------------------------------


def test_a_directory(tmp_path: Path) -> None:
    fails(tmp_path, "it is not a regular file")


def test_a_missing_file(tmp_path: Path) -> None:
    fails(tmp_path / "absent.json", "No such file")


def test_a_name_with_a_nul(tmp_path: Path) -> None:
    fails(tmp_path / "a\0b", "cannot be read")


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    watch = threading.Thread(target=fails, args=(path, "it is not a regular file"), daemon=True)
    watch.start()
    watch.join(5)
    assert not watch.is_alive()


def test_a_device(tmp_path: Path) -> None:
    fails(Path("/dev/zero"), "it is not a regular file")


def test_a_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_fabric(make_fabric(), tmp_path / "f.json")
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 1000)
    fails(path, "larger than 1000 bytes")
