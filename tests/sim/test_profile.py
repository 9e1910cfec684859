"""Profiles: written and read again, every fault with its place, every parameter with a meaning."""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from gpufabric.core.errors import InputError
from gpufabric.sim.packet_config import (
    ClassKind,
    Dcqcn,
    PacketConfig,
    PortOverride,
    TrafficClass,
)
from gpufabric.sim.packet_override import numbered
from gpufabric.sim.profile import PROFILES, Profile, default_profile
from gpufabric.sim.profile_fields import parameters, profile_schema, scalar_keys
from gpufabric.sim.profile_file import find_profile, profile_text, read_profile, with_value
from tests.sim.plants import RAIL, plant

ROCE = PROFILES["roce-default"]()


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def sections(section: type = PacketConfig) -> list[type]:
    found = [section]
    for one in parameters(section).values():
        kinds = one.kind if isinstance(one.kind, tuple) else (one.kind,)
        for kind in kinds:
            if is_dataclass(kind):
                assert isinstance(kind, type)
                found += sections(kind)
    return found


@pytest.mark.parametrize("name", PROFILES)
def test_a_named_profile_is_written_and_read_again(name: str, tmp_path: Path) -> None:
    profile = PROFILES[name]()
    text = profile_text(profile, ("A remark.",))
    assert text.startswith("# A remark.\n")
    assert max(len(line) for line in text.splitlines()) <= 100
    assert read_profile(written(tmp_path, text)) == profile


def test_everything_that_differs_survives(tmp_path: Path) -> None:
    config = replace(
        ROCE.config,
        classes=(TrafficClass(ClassKind.LOSSY, is_marked=True), ROCE.config.classes[1]),
        dcqcn=None,
        ecn=None,
        draws=(0.25, 0.5),
    )
    profile = Profile("odd one", config, ("forwarding_ns",))
    assert read_profile(written(tmp_path, profile_text(profile))) == profile


@pytest.mark.parametrize("section", sections(), ids=lambda one: one.__name__)
def test_every_parameter_has_a_meaning(section: type) -> None:
    assert [one.name for one in parameters(section).values() if not one.meaning] == []


def test_a_file_changes_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    text = "ecn: {kmin_bytes: 2e5}\ndcqcn: none\nforwarding_ns: 700\nbuffer: {alpha_log2: 0}\n"
    profile = read_profile(written(tmp_path, text))
    assert profile.name == "mine"
    assert ROCE.config.ecn is not None
    assert profile.config == replace(
        ROCE.config,
        ecn=replace(ROCE.config.ecn, kmin_bytes=2e5),
        dcqcn=None,
        forwarding_ns=700.0,
        buffer=replace(ROCE.config.buffer, alpha_log2=0),
    )
    assert profile.from_catalog == ("buffer.total_bytes",)


def test_a_section_that_the_base_lacks_begins_with_its_defaults(tmp_path: Path) -> None:
    path = written(tmp_path, "dcqcn: none\n")
    without = read_profile(path)
    again = with_value(without, "dcqcn.dce_tcp_g", "0.5", "here")
    assert again.config.dcqcn == Dcqcn(dce_tcp_g=0.5)


FAULTS: list[tuple[str, list[str]]] = [
    (
        "ecn: {kmin_byts: 3}\nfoo: 1\n",
        [
            '1:7: ecn.kmin_byts: there is no parameter "kmin_byts". Did you mean "kmin_bytes"?',
            '2:1: foo: there is no parameter "foo".',
        ],
    ),
    ("base: roce-defalt\n", ['1:7: base: there is no profile "roce-defalt".', '"roce-default"?']),
    ("buffer: {alpha_log2: 1.5}\n", ['"1.5" found. Expected: a whole number.']),
    ("forwarding_ns: fast\n", ['1:16: forwarding_ns: "fast" found. Expected: a number.']),
    ("dcqcn: {clamp_tgt_rate: 1}\n", ['"1" found. Expected: true or false.']),
    ("classes: [{kind: losless}]\n", ['classes[0].kind: "losless" found', '"lossless"?']),
    ("classes: [{is_strict: true}]\n", ["classes[0]: kind is missing."]),
    ("classes: 3\n", ["classes: this is no list."]),
    ("ecn: 3\n", ["ecn: this is no section."]),
    ("tick_ps: [1]\n", ["tick_ps: a section or list stands where one value is wanted."]),
    ("profile: [a]\n", ["profile: this is no name."]),
    (
        "ecn: {pmax: 2}\ntransport:\n  mtu_bytes: 0\n",
        [
            "1:13: ecn.pmax: the value is 2.0. Expected: 0 to 1.",
            "3:14: transport.mtu_bytes: the value is 0.",
        ],
    ),
    ("classes: [{kind: lossy, alpha_log2: x}]\n", ["classes[0].alpha_log2"]),
    ("ecn: {pmax: .nan}\n", ["ecn.pmax"]),
    ("ecn: {pmax: 0.1, pmax: 0.2}\n", ['the key "pmax" stands here again']),
    ("ecn: &a {pmax: 0.1}\n", ["an anchor (&) is not allowed"]),
    ("", ["the file has no content."]),
    ("- 1\n", ["the file is not a mapping."]),
    ("data_class: catalog\n", ['"catalog" found']),
]


@pytest.mark.parametrize(("text", "expected"), FAULTS)
def test_every_fault_is_told_with_its_place(tmp_path: Path, text: str, expected: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        read_profile(written(tmp_path, text))
    for words in expected:
        assert words in str(caught.value)
    assert str(tmp_path / "mine.yaml") in str(caught.value)


def test_a_name_that_is_none_is_told_with_the_nearest() -> None:
    with pytest.raises(InputError, match='Did you mean "roce-default"'):
        find_profile("roce-defaults")
    with pytest.raises(InputError, match="no-such"):
        find_profile("no-such.yaml")


def test_a_fabric_has_the_profile_of_its_protocol() -> None:
    assert default_profile("roce") == ROCE


@pytest.mark.parametrize("text", ["x", "1}", "", "[1]", "2"])
def test_a_value_that_does_not_fit_is_told(text: str) -> None:
    with pytest.raises(InputError) as caught:
        with_value(ROCE, "ecn.pmax", text, "--sweep ecn.pmax")
    assert str(caught.value).startswith("--sweep ecn.pmax: ")


def test_the_schema_takes_what_is_written_and_refuses_a_misspelling() -> None:
    schema = profile_schema()
    Draft202012Validator.check_schema(schema)
    content: Any = YAML(typ="safe", pure=True).load(profile_text(ROCE))
    content["forwarding_ns"], content["buffer"]["total_bytes"] = 1.0, 1
    Draft202012Validator(schema).validate(content)
    content["ecn"]["kmim_bytes"] = 1
    assert list(Draft202012Validator(schema).iter_errors(content))


def test_every_single_parameter_has_a_key() -> None:
    keys = set(scalar_keys())
    assert {"ecn.kmin_bytes", "ecn.pmax", "buffer.alpha_log2", "transport.mtu_bytes"} <= keys
    assert "classes" not in keys


def test_switches_and_ports_have_names(tmp_path: Path) -> None:
    """A name is the fabric's; it is written and read again, and means the same as its number."""
    channels = plant(RAIL).channels
    switch = str(channels.fabric.switches.name[3])
    port = channels.name(5).split(" > ")[0]
    text = f'overrides: [{{switches: [{switch}, 1], ports: ["{port}"], has_pfc: false}}]\n'
    profile = read_profile(written(tmp_path, text))
    (named,) = profile.config.overrides
    assert (named.switches, named.ports) == ((switch, 1), (port,))
    assert read_profile(written(tmp_path, profile_text(profile))).config == profile.config
    Draft202012Validator(profile_schema()).validate(YAML(typ="safe", pure=True).load(text))
    (plain,) = numbered(profile.config, channels).overrides
    assert (plain.switches, plain.ports, plain.has_pfc) == ((3, 1), (5,), False)


def test_names_that_are_none_are_told_all_together_with_the_nearest() -> None:
    channels = plant(RAIL).channels
    switch, port = str(channels.fabric.switches.name[0]), channels.name(0).split(" > ")[0]
    overrides = (
        PortOverride(switches=(switch + "x",)),
        PortOverride(ports=(port.replace("[", "[x"), "nowhere[1]")),
    )
    with pytest.raises(InputError) as caught:
        numbered(replace(ROCE.config, overrides=overrides), channels)
    told = [str(fault) for fault in caught.value.faults]
    assert f'overrides[0].switches[0]: there is no switch "{switch}x". Did you mean' in told[0]
    assert f'Did you mean "{port}"?' in told[1]
    assert told[2].startswith('overrides[1].ports[1]: there is no port "nowhere[1]".')
