import json
import os
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from gpufabric.core.errors import Fault, InputError
from gpufabric.model.requirement import Requirement, load_requirement, parse_requirement
from gpufabric.model.spec_faults import MAX_FAULTS
from gpufabric.model.yaml_source import MAX_DEPTH, MAX_ITEMS
from gpufabric.model.yaml_text import MAX_BYTES, MAX_LINE
from tests.model.known import KNOWN

CASES: list[dict[str, Any]] = YAML(typ="safe", pure=True).load(
    (Path(__file__).parent / "bad_specs.yaml").read_text(encoding="utf-8")
)
GOOD = b"gpus: 1024\nhost: dgx-h100\ncandidates: [infiniband, roce]\n"
"""Far above what the slowest input takes (2 s), far below what unbounded work would."""


def faults(content: bytes) -> list[str]:
    with pytest.raises(InputError) as caught:
        parse_requirement(content, "spec.yaml", KNOWN)
    return [str(fault) for fault in caught.value.faults]


def file_faults(path: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_requirement(path, KNOWN)
    return [str(fault) for fault in caught.value.faults]


def test_there_are_many_bad_specs() -> None:
    names = [case["name"] for case in CASES]
    assert len(names) == len(set(names)) >= 100


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_bad_spec(case: dict[str, Any]) -> None:
    assert faults(case["spec"].encode()) == case["faults"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_faults_are_in_the_order_of_the_file_and_in_our_words(case: dict[str, Any]) -> None:
    places = []
    for text in faults(case["spec"].encode()):
        match = re.match(r"spec\.yaml:(\d+):(\d+): \S", text)
        assert match, text
        places.append((int(match[1]), int(match[2])))
        assert not re.search(r"Input should|pydantic|ruamel|<generic>|<name>|None\b", text), text
    assert places == sorted(places)


# ------------------------------------------------------------------------------------------ bytes
def test_byte_order_mark() -> None:
    assert faults(b"\xef\xbb\xbf" + GOOD) == [
        (
            "spec.yaml:1:1: the file starts with a byte order mark (bytes EF BB BF). "
            'Save it as "UTF-8", not as "UTF-8 with BOM".'
        )
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            GOOD + "name: Köln\n".encode("latin-1"),
            "spec.yaml:4:8: byte 0xF6 at offset 64 is not UTF-8. Save the file as UTF-8.",
        ),
        (
            "# 漢\r\nname: 训练\n".encode().replace("训练".encode(), "训练".encode("gb18030")),
            "spec.yaml:2:8: byte 0xC1 at offset 15 is not UTF-8. Save the file as UTF-8.",
        ),
        (
            GOOD.decode().encode("utf-16"),
            (
                "spec.yaml:1:1: byte 0xFF at offset 0 is not UTF-8. "
                "It looks like UTF-16. Save it as UTF-8."
            ),
        ),
        (b"gpus: \xed\xa0\x80", "spec.yaml:1:7: byte 0xED at offset 6 is not UTF-8. "),
    ],
    ids=["latin-1", "gb18030", "utf-16", "surrogate"],
)
def test_other_encodings(content: bytes, expected: str) -> None:
    (told,) = faults(content)
    assert told.startswith(expected)


@pytest.mark.parametrize(
    ("character", "code"),
    [(chr(code), f"{code:04X}") for code in (0, 7, 0x1B, 0x7F, 0x85, 0x2028, 0xFEFF, 0xFFFE)],
)
def test_control_characters(character: str, code: str) -> None:
    assert faults(GOOD + f"name: a{character}b\n".encode()) == [
        (
            f"spec.yaml:4:8: the control character U+{code} stands here. "
            "Delete it; an editor may not show it."
        )
    ]


def test_all_tabs_are_told_up_to_a_limit() -> None:
    content = GOOD + b"site:\n" + b"".join(b"\tk%d: 1\n" % number for number in range(50))
    told = faults(content)
    assert told[0] == "spec.yaml:5:1: a tab is used for indentation. Indent with spaces."
    assert len(told) == 20


def test_long_line() -> None:
    told = faults(b"name: " + b"x" * MAX_LINE)
    assert told == [
        "spec.yaml:1:1: the line has 4,102 characters. Expected: at most 4,096 characters a line."
    ]
    assert "the line has" not in faults(b"name: " + b"x" * (MAX_LINE - 6))[0]


@pytest.mark.parametrize("opening", ["[", "{a: "])
def test_deep_nesting(opening: str) -> None:
    (told,) = faults(b"name: " + opening.encode() * 1000)
    assert told == (
        f"spec.yaml:1:{7 + (MAX_DEPTH - 1) * len(opening)}: "
        "mappings and lists are nested more than 32 deep."
    )


def test_deep_nesting_by_indentation() -> None:
    content = "".join(" " * depth + "a:\n" for depth in range(1200))
    assert faults(content.encode()) == [
        "spec.yaml:33:33: mappings and lists are nested more than 32 deep."
    ]


def test_deepest_allowed_nesting_is_read() -> None:
    depth = MAX_DEPTH - 1
    (told,) = faults(GOOD + b"name: " + b"[" * depth + b"]" * depth)
    assert told == (
        "spec.yaml:4:7: name: found a list. Expected: text of 1 to 100 characters on one line."
    )


def test_many_items() -> None:
    content = b"".join(b"k%d: 1\n" % number for number in range(MAX_ITEMS))
    assert faults(content) == [
        "spec.yaml:5000:8: the file has more than 10,000 keys and values. Check the path."
    ]


def test_only_so_many_faults_are_listed() -> None:
    content = GOOD + b"".join(b"k%d: 1\n" % number for number in range(500))
    told = faults(content)
    assert len(told) == MAX_FAULTS + 1
    assert told[-1] == "spec.yaml: 400 more faults are not shown."


def test_alias_bomb_costs_nothing() -> None:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 40)]
    told = faults("\n".join(lines).encode())
    assert told[-1].endswith("more faults are not shown.")


HOSTILE = {
    "comment": ("", "#" + "x" * 4000 + "\n"),
    "empty lines": ("", "\n"),
    "plain text": ("", "a: " + "x y " * 100 + "\n  " + "z " * 100 + "\n"),
    "text over many lines": ("", "  x\n"),
    "block text": ("name: |\n", "  x\n"),
    "folded empty lines": ("name: >\n", "\n"),
    "quoted text": ('name: "', "x\n "),
    "quoted empty lines": ('name: "', "\n"),
    "quotes": ("", "'" * 4000 + "\n"),
    "double quotes": ("", '"x\n'),
    "escapes": ('name: "', "\\x41" * 900 + "\n "),
    "tags": ("", "!" * 4000 + "\n"),
    "tags in brackets": ("", "[" + "!," * 2000 + "\n"),
    "anchors": ("", "&a " * 1000 + "\n"),
    "aliases": ("[", "*a, " * 1000 + "\n"),
    "brackets": ("", "[" * 4000 + "\n"),
    "closing brackets": ("", "]" * 4000 + "\n"),
    "braces over lines": ("", "{\n"),
    "dashes": ("", "- " * 2000 + "\n"),
    "question marks": ("", "? " * 2000 + "\n"),
    "documents": ("", "---\n"),
    "directives": ("", "%TAG ! tag:\n"),
    "keys": ("", "a: 1\n"),
    "colons": ("", ":" * 4000 + "\n"),
}


@pytest.mark.parametrize(("start", "unit"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_full_megabyte_of_hostile_text_ends_soon(start: str, unit: str) -> None:
    content = (start + unit * (MAX_BYTES // len(unit.encode()))).encode()[:MAX_BYTES]
    assert faults(content)


# ------------------------------------------------------------------------------------------ files
def test_file_above_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    assert file_faults(path) == [
        (
            f"{path}: the file has 104,857,600 bytes. Expected: at most 1,048,576 bytes. "
            "Check the path."
        )
    ]


def test_text_above_the_limit() -> None:
    assert faults(GOOD + b"#" * MAX_BYTES) == [
        (
            "spec.yaml: the file has 1,048,633 bytes. Expected: at most 1,048,576 bytes. "
            "Check the path."
        )
    ]


def test_missing_file_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_bytes(GOOD)
    assert file_faults(tmp_path / "trian.yaml") == [
        f'{tmp_path}/trian.yaml: there is no such file. Did you mean "train.yaml"?'
    ]
    assert file_faults(tmp_path / "none" / "x") == [
        f"{tmp_path}/none/x: there is no such file. Check the path."
    ]


def test_folder(tmp_path: Path) -> None:
    assert file_faults(tmp_path) == [
        f"{tmp_path}: this is a folder, not a file. Name a file in it."
    ]


def test_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert file_faults(path) == [
        (
            f"{path}: this is a pipe, device or socket, not an ordinary file. "
            "Save its content in a file and name that."
        )
    ]


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null"])
def test_device(name: str) -> None:
    assert "this is a pipe, device or socket" in file_faults(Path(name))[0]


def test_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        (told,) = file_faults(Path("s"))
    assert told.startswith("s: the file cannot be read: ")


def test_loop_of_links(tmp_path: Path) -> None:
    path = tmp_path / "loop"
    path.symlink_to(path)
    assert file_faults(path)[0].startswith(f"{path}: the file cannot be read: ")


def test_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.yaml"
    path.write_bytes(GOOD)

    def refuse(*_arguments: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # root may read any file
    assert file_faults(path) == [
        f"{path}: the file cannot be read: Permission denied. Check the path and its permissions."
    ]


def test_names_that_no_file_can_have() -> None:
    assert "cannot be read" in file_faults(Path("a\0b"))[0]
    assert "cannot be read" in file_faults(Path("x" * 5000))[0]


def test_name_of_the_file_is_fit_to_print(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\x1b\xff.yaml"))
    path.write_bytes(b"")
    (told,) = file_faults(path)
    assert told.encode("utf-8").startswith(f"{tmp_path}/a\\x1b\N{REPLACEMENT CHARACTER}".encode())


# ----------------------------------------------------------------------------------------- random
WORDS = [
    *("gpus", "hosts", "host", "candidates", "workload", "growth", "site", "storage", "name"),
    *("fabric", "switch", "topology", "planes", "oversubscription", "tiers", "leaf", "spine"),
    *("infiniband", "roce", "dgx-h100", "best", "rail", "nics", "nic_gbps", "parallelism", "tp"),
    *("rack_power_kw", "catalog", "kind", "<<", "", "yes", "1k", "2:1", "\0", "\ud7ff", "漢"),
]
MARKS = [*":-?[]{},#&*!|>'\"%@`\\\n\t \r", ": ", "- ", "\n  ", "\n", "---\n", "...\n", "&a ", "*a "]
SCALARS = st.one_of(
    st.sampled_from([1, 2, 8, 1024, 0, -1, 0.5, 2.0, 1e400, float("nan"), 10**30, True, None]),
    st.sampled_from(WORDS),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    ),
    max_leaves=20,
)
SPECS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys([*WORDS[:9], "management", "catalog", "seed"], VALUES)
)


def read(content: bytes) -> Requirement | None:
    """Read a spec; fail on any other end than a spec or an input error, or a long time."""
    told: tuple[Fault, ...] = ()
    spec = None
    try:
        spec = parse_requirement(content, "spec.yaml", KNOWN)
    except InputError as error:
        told = error.faults
    assert (spec is None) == bool(told)
    for fault in told:
        assert fault.where.startswith("spec.yaml")
        assert "\n" not in str(fault)
        str(fault).encode("utf-8")
    return spec


@given(st.binary(max_size=400))
@example(b'"\\U7fffffff"')
@example(b"%YAML 1.1111111111111111111111111111\n---\na: b")
@example(b'name: "\\ud800"\n' + GOOD)
@example(b"? \n: \n? ")
def test_any_bytes_give_a_spec_or_faults(content: bytes) -> None:
    read(content)


@given(st.lists(st.sampled_from([*WORDS, *MARKS]), max_size=60).map("".join))
def test_any_text_like_yaml_gives_a_spec_or_faults(text: str) -> None:
    read(text.encode())


@given(SPECS)
@example({"gpus": 8, "host": "dgx-h100", "candidates": [{"fabric": "roce", "name": "\ud800"}]})
@example({"gpus": 8, "host": {"<name>": 1, "<generic>": 2}, "candidates": {"0": "roce"}})
@example({"gpus": 8, "host": "dgx-h100", "candidates": [["roce"], {"fabric": ["roce"]}]})
def test_any_structure_gives_a_spec_or_faults(content: dict[str, Any]) -> None:
    read(json.dumps(content).encode())


@given(st.integers(0, len(GOOD) - 1), st.binary(max_size=3))
def test_any_small_damage_gives_a_spec_or_faults(offset: int, patch: bytes) -> None:
    read(GOOD[:offset] + patch + GOOD[offset + 1 :])
