import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gpufabric.core.errors import InputError
from gpufabric.model.requirement import (
    Candidate,
    KnownNames,
    Requirement,
    load_requirement,
    parse_requirement,
    requirement_schema,
)
from tests.model.known import KNOWN

EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.yaml"))
SHORTEST = b"gpus: 1024\nhost: dgx-h100\ncandidates: [infiniband, roce]\n"
GENERIC = "gpus: 64\nhost: {gpus: 8, nics: 8, nic_gbps: 400}\n"


def parse(text: str | bytes, known: KnownNames | None = KNOWN) -> Requirement:
    return parse_requirement(text.encode() if isinstance(text, str) else text, "spec.yaml", known)


def candidates(*lines: str) -> tuple[Candidate, ...]:
    entries = "".join(f"- {line}\n" for line in lines)
    return parse(f"gpus: 1024\nhost: dgx-h100\ncandidates:\n{entries}").candidates


def faults(text: str | bytes, known: KnownNames | None = KNOWN) -> list[str]:
    with pytest.raises(InputError) as caught:
        parse(text, known)
    return [str(fault) for fault in caught.value.faults]


# ----------------------------------------------------------------------------------------- schema
@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return requirement_schema()


def test_schema_is_a_json_schema(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema == json.loads(json.dumps(schema))
    assert schema == requirement_schema()


def test_every_field_is_described_and_has_a_default_unless_required(
    schema: dict[str, Any],
) -> None:
    parts = {"spec": schema, **schema["$defs"]}
    assert len(parts) == 15
    for part, content in parts.items():
        assert content["additionalProperties"] is False, part
        assert content["description"], part
        for name, field in content["properties"].items():
            assert field.get("description", "").endswith((".", "…")), f"{part}.{name}"
            is_named = (part, name) == ("Candidate", "name")
            is_required = name in content.get("required", [])
            assert ("default" in field) != (is_required or is_named), f"{part}.{name}"
            if field.get("default", ...) is None:
                assert "Left out: " in field["description"], f"{part}.{name}"


def test_only_these_fields_are_required(schema: dict[str, Any]) -> None:
    assert schema["required"] == ["host", "candidates"]
    assert schema["anyOf"] == [{"required": ["gpus"]}, {"required": ["hosts"]}]
    required = {name: part.get("required") for name, part in schema["$defs"].items()}
    assert {name: keys for name, keys in required.items() if keys} == {
        "Assumption": ["low", "mid", "high"],
        "Candidate": ["fabric"],
        "GenericHost": ["gpus", "nics", "nic_gbps"],
        "SpecOffer": ["name"],
    }


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_valid_by_model_and_schema(path: Path, schema: dict[str, Any]) -> None:
    spec = load_requirement(path)
    written = spec.model_dump(mode="json", exclude_unset=True)
    Draft202012Validator(schema).validate(written)
    assert parse(json.dumps(written), None) == spec


def test_there_is_an_example_of_each_kind() -> None:
    assert {path.stem for path in EXAMPLES} >= {
        "b300-8192-dual-plane",
        "gb300-nvl72",
        "huge-131072",
        "inference-256",
        "roce-24576-tor",
        "startup-64",
        "superpod-su-31",
        "train-1024",
        "train-16384",
        "train-4096",
        "xdr-10368",
    }


def test_first_example_is_the_shortest_spec() -> None:
    (path,) = (path for path in EXAMPLES if path.stem == "train-1024")
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert "\n".join(line for line in lines if line) + "\n" == SHORTEST.decode()


# ----------------------------------------------------------------------------------------- random
_ratio = st.one_of(
    st.sampled_from([1, 2, 1.5, 0.25, 0.5, 7]), st.sampled_from(["2:1", "1:2", "3:1", "7:1"])
)
_generic = st.fixed_dictionaries(
    {
        "gpus": st.just(8),
        "nics": st.sampled_from([1, 4, 8]),
        "nic_gbps": st.sampled_from([100, 200, 400, 800, 1600]),
    },
    optional={"ports_per_nic": st.sampled_from([1, 2]), "power_kw": st.floats(1, 15)},
)


def _has_what_it_asks(candidate: dict[str, Any]) -> bool:
    """Whether the topology can have the planes and tiers drawn with it; the spec refuses others."""
    topology, tiers = candidate.get("topology"), candidate.get("tiers")
    if topology == "rail-only":
        return candidate.get("planes") in (1, None)
    return topology != "dragonfly+" or tiers is None


_candidate = st.one_of(
    st.sampled_from(["infiniband", "roce", "infiniband-ndr", "roce:sn5600", "infiniband:q3400"]),
    st.fixed_dictionaries(
        {"fabric": st.sampled_from(["infiniband", "roce"])},
        optional={
            "switch": st.one_of(
                st.sampled_from(["best", "x1"]),
                st.dictionaries(st.sampled_from(["leaf", "spine", "core"]), st.just("x2")),
            ),
            "topology": st.sampled_from(["auto", "fat-tree", "rail", "rail-only", "dragonfly+"]),
            "planes": st.sampled_from([1, 2, 4, 8, None]),
            "oversubscription": st.one_of(
                _ratio,
                st.lists(_ratio, min_size=1, max_size=2),
                st.dictionaries(st.sampled_from(["leaf", "spine"]), _ratio),
            ),
            "tiers": st.sampled_from([3, None]),
            "rails": st.sampled_from([1, None]),
            "manager_ports": st.integers(0, 8),
            "uplink_gbps": st.sampled_from([200, 400.0, None]),
            "fill_cages": st.booleans(),
            "optional": st.booleans(),
        },
    ).filter(_has_what_it_asks),
)
_spec = st.fixed_dictionaries(
    {
        "gpus": st.integers(1, 131_072).map(lambda hosts: 8 * hosts),
        "host": st.one_of(st.just("dgx-h100"), _generic),
        "candidates": st.lists(_candidate, min_size=1, max_size=5),
    },
    optional={
        "name": st.one_of(st.none(), st.text("abc é漢#:-{}'\"", min_size=1)),
        "workload": st.fixed_dictionaries(
            {}, optional={"kind": st.sampled_from(["training", "inference"]), "model": st.none()}
        ),
        "growth": st.just({"gpus": 1_048_576}),
        "site": st.fixed_dictionaries({}, optional={"pue": st.floats(1, 5), "region": st.none()}),
        "storage": st.one_of(st.booleans(), st.just({"wanted": False, "gbps_per_host": 200})),
        "management": st.booleans(),
        "spares_pct": st.one_of(st.none(), st.floats(0, 50)),
        "seed": st.integers(0, 2**32 - 1),
    },
)


@given(_spec)
def test_valid_specs_fit_the_schema_and_survive_being_written(content: dict[str, Any]) -> None:
    Draft202012Validator(requirement_schema()).validate(content)
    spec = parse(json.dumps(content), None)
    written = spec.model_dump(mode="json")
    Draft202012Validator(requirement_schema()).validate(written)
    assert parse(json.dumps(written), None) == spec
