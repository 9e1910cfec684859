from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gpufabric.core.errors import Fault, InputError
from gpufabric.model.check import SLUG_PATTERN
from gpufabric.model.fabric import FORMAT_VERSION, Fabric
from gpufabric.model.fabric_content import Content, content_of, upgrade
from gpufabric.model.files import fabric_schema, load_fabric, save_fabric
from tests.model.make_fabric import Shape, make_fabric

SUFFIXES = [".json", ".fab"]


def same(a: Fabric, b: Fabric) -> bool:
    """Whether two fabrics agree in every field, type and bit (any NaN equals any other)."""
    heads = [replace(fabric, **dict.fromkeys(fabric.tables())) for fabric in (a, b)]
    if any(getattr(heads[0], name) != getattr(heads[1], name) for name in vars(heads[0])):
        return False
    return all(
        x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
        for name, table in a.tables().items()
        for (_, x), (_, y) in zip(table.columns(), b.tables()[name].columns(), strict=True)
    )


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Sound fabrics of many shapes, with any text, attributes and lengths that a file may hold."""
    shape = draw(
        st.builds(
            Shape,
            hosts=st.integers(1, 8),
            rails=st.integers(1, 3),
            su_hosts=st.integers(4, 5),
            planes=st.integers(1, 3),
            spines=st.sampled_from([0, 4, 8]),
            radix=st.just(16),
            managers=st.integers(0, 2),
            generation=st.sampled_from(["hdr", "ndr", "xdr", "ethernet"]),
        )
    )
    fabric = make_fabric(shape)
    lengths = st.floats(0, width=32, allow_nan=False, allow_infinity=False) | st.just(np.nan)
    n_links = len(fabric.links)
    text = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20)
    slugs = st.from_regex(SLUG_PATTERN, fullmatch=True)
    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    values = st.recursive(
        st.none() | st.booleans() | numbers | st.text(st.characters(codec="utf-8")),
        lambda part: st.lists(part, max_size=3) | st.dictionaries(text, part, max_size=3),
        max_leaves=6,
    )
    return fabric.replace(
        name=draw(text),
        parts=tuple(draw(st.lists(slugs, unique=True, min_size=1, max_size=3))),
        attributes=draw(st.dictionaries(text, values, max_size=3)),
        links=fabric.links.replace(
            length_m=np.resize(draw(st.lists(lengths, min_size=1, max_size=5)), n_links)
        ),
    )


def loaded_or_faults(path: Path) -> tuple[Fabric | None, tuple[Fault, ...]]:
    try:
        return load_fabric(path), ()
    except InputError as error:
        return None, error.faults


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(fabric=fabrics())
def test_save_then_load_is_the_identity(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, fabric: Fabric
) -> None:
    path = tmp_path_factory.mktemp("fabric") / f"f{suffix}"
    loaded = load_fabric(save_fabric(fabric, path))
    assert loaded == fabric
    assert same(loaded, fabric)
    written = path.read_bytes()
    assert save_fabric(loaded, path).read_bytes() == written


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(position=st.integers(0, 10**6), value=st.integers(1, 255))
def test_one_changed_byte_is_an_input_error_or_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, position: int, value: int
) -> None:
    fabric = make_fabric()
    path = save_fabric(fabric, tmp_path_factory.mktemp("fabric") / f"f{suffix}")
    raw = bytearray(path.read_bytes())
    raw[position % len(raw)] ^= value
    path.write_bytes(raw)
    loaded, faults = loaded_or_faults(path)
    if loaded:
        assert same(loaded, fabric)
    assert all(fault.where.startswith(str(path)) for fault in faults)


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(cut=st.integers(0, 10**6))
def test_a_file_that_is_cut_off_is_an_input_error_or_lacks_nothing(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, cut: int
) -> None:
    fabric = make_fabric()
    path = save_fabric(fabric, tmp_path_factory.mktemp("fabric") / f"f{suffix}")
    raw = path.read_bytes()
    path.write_bytes(raw[: cut % len(raw)])
    loaded, _ = loaded_or_faults(path)
    if loaded:  # then only the last line end is missing
        assert same(loaded, fabric)
        assert (suffix, cut % len(raw)) == (".json", len(raw) - 1)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_order_of_attributes_does_not_change_the_bytes(tmp_path: Path, suffix: str) -> None:
    fabric = make_fabric()
    one = fabric.replace(attributes={"a": 1, "b": {"c": 2, "d": 3}})
    two = fabric.replace(attributes={"b": {"d": 3, "c": 2}, "a": 1})
    paths = [save_fabric(f, tmp_path / f"{n}{suffix}") for n, f in enumerate((one, two))]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_zero_and_nan_have_one_hash_whatever_their_bits() -> None:
    fabric = make_fabric()
    plain = fabric.replace(links=fabric.links.replace(length_m=[0.0, np.nan] + [1.0] * 23))
    odd = np.array([0x80000000, 0xFFC00001], "<u4").view("<f4").tolist() + [1.0] * 23
    lengths = np.array(odd, "<f4")
    lengths.view("<u4")[1] = 0xFFC00001
    assert (
        plain.content_hash
        == fabric.replace(links=fabric.links.replace(length_m=lengths)).content_hash
    )


def test_json_that_another_program_wrote_anew_is_read(tmp_path: Path) -> None:
    fabric = make_fabric(Shape(planes=2))
    path = save_fabric(fabric, tmp_path / "f.json")
    tree = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(tree, indent=3, sort_keys=True), encoding="utf-8")
    assert same(load_fabric(path), fabric)


def test_the_form_is_told_by_content_and_not_by_suffix(tmp_path: Path) -> None:
    fabric = make_fabric()
    binary = save_fabric(fabric, tmp_path / "f.fab").rename(tmp_path / "f.json")
    assert load_fabric(binary) == fabric


def test_an_unknown_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.json for JSON, \.fab"):
        save_fabric(make_fabric(), tmp_path / "f.xml")
    assert list(tmp_path.iterdir()) == []


def test_the_schema_is_sound_and_accepts_what_is_saved(tmp_path: Path) -> None:
    schema = fabric_schema()
    Draft202012Validator.check_schema(schema)
    tree = json.loads(save_fabric(make_fabric(), tmp_path / "f.json").read_text(encoding="utf-8"))
    validator = Draft202012Validator(schema)
    assert list(validator.iter_errors(tree)) == []
    del tree["tables"]["hosts"]["columns"]["su"]
    tree["tables"]["ports"]["columns"]["gbps"][0] = 0
    tree["tables"]["nics"]["columns"]["host"][0] = None
    assert len(list(validator.iter_errors(tree))) == 3


def test_every_column_is_described_in_the_schema() -> None:
    tables: dict[str, Any] = fabric_schema()["properties"]["tables"]["properties"]
    described = tables["links"]["properties"]["columns"]["properties"]
    assert described["length_m"] == {
        "type": "array",
        "description": "Ordered length. Unit: m.",
        "items": {"type": ["number", "null"], "minimum": 0},
    }
    assert described["port_a"]["items"] == {
        "type": "integer",
        "minimum": 0,
        "maximum": 2**31 - 1,
    }


def test_old_content_passes_one_function_for_each_version() -> None:
    content = content_of(make_fabric())
    old = Content({**content.head, "format_version": FORMAT_VERSION - 2}, content.tables)
    seen = []

    def step(given: Content) -> Content:
        seen.append(given.version)
        return given

    steps = {FORMAT_VERSION - 2: step, FORMAT_VERSION - 1: step}
    assert upgrade(old, "f.json", steps).version == FORMAT_VERSION
    assert seen == [FORMAT_VERSION - 2, FORMAT_VERSION - 1]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_131072_gpus_take_little_memory(tmp_path: Path, suffix: str) -> None:
    fabric = make_fabric(
        Shape(hosts=8192, rails=16, su_hosts=512, spines=128, radix=1024, managers=0)
    )
    path = save_fabric(fabric, tmp_path / f"f{suffix}")
    assert load_fabric(path) == fabric
    script = (
        "import pathlib, sys\n"
        "from gpufabric.model.files import load_fabric, save_fabric\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "save_fabric(load_fabric(path), path)\n"
        "status = pathlib.Path('/proc/self/status').read_text()\n"
        "print(status.split('VmHWM:')[1].split()[0])\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", script, path], capture_output=True, text=True, check=True
    )
    assert int(child.stdout) < 400 * 1024  # KiB, the interpreter and numpy included
