"""The page on spec files shows every key with what is allowed and its default."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpufabric.model.requirement import parse_requirement, requirement_schema

PAGE = Path(__file__).parent.parent.parent / "docs/reference/spec-file.md"
BEGIN = "<!-- keys: written by tests/model/test_spec_page.py --update -->\n"
END = "<!-- end of keys -->\n"
PLACES = {
    "Candidate": "Candidate: one entry of `candidates`",
    "SwitchChoice": "Switches: `candidates[…].switch` as a mapping",
    "Oversubscription": "Oversubscription: `candidates[…].oversubscription` as a mapping",
    "GenericHost": "Host: `host` as a mapping",
    "Workload": "Workload: `workload`",
    "Parallelism": "Parallelism: `workload.parallelism`",
    "Growth": "Growth: `growth`",
    "Site": "Site: `site`",
    "StorageNetwork": "Storage: `storage` as a mapping",
    "ManagementNetwork": "Management: `management` as a mapping",
    "Team": "Team: `team`",
    "SpecOffer": "Offer: one entry of `offers`",
    "CostQuestion": "Cost: `cost`",
    "Assumption": "Assumption: one entry of `cost.assumptions` as a mapping",
}


def allowed(field: dict[str, Any]) -> str:
    """Return in words what a field may hold; null is left to its default."""
    choices = [c for c in field.get("anyOf", field.get("oneOf", [field])) if c != {"type": "null"}]
    return ", or ".join(dict.fromkeys(_one(choice) for choice in choices))


def _one(choice: dict[str, Any]) -> str:
    if "$ref" in choice:
        return "a mapping"
    if "const" in choice:
        return f"`{choice['const']}`"
    if "enum" in choice:
        return ", ".join(f"`{value}`" for value in choice["enum"])
    kind = choice["type"]
    if kind in ("array", "object"):
        return {"array": "a list", "object": "a mapping"}[kind]
    if kind in ("string", "boolean"):
        ratio = str(choice.get("pattern", "")).startswith("^[0-9]")
        return (
            "a ratio such as `2:1`"
            if ratio
            else {"string": "text", "boolean": "`true` or `false`"}[kind]
        )
    word = "a whole number" if kind == "integer" else "a number"
    low, high = choice["minimum"], choice["maximum"]
    return f"{word} {low:,.10g} to {high:,.10g}"


def default(name: str, field: dict[str, Any], required: list[str]) -> str:
    """Return the default as YAML writes it; nothing where it depends on other things."""
    value = field.get("default")
    if name in required:
        return "required"
    if value is None or isinstance(value, dict | list):
        return ""
    return f"`{json.dumps(value)}`" if not isinstance(value, str) else f"`{value}`"


def tables() -> Iterator[str]:
    schema = requirement_schema()
    parts = [("The whole spec", schema)]
    parts += [(title, schema["$defs"][name]) for name, title in PLACES.items()]
    for title, part in parts:
        yield f"## {title}\n\n{part['description']}\n\n"
        yield "| key | allowed | default | meaning |\n|---|---|---|---|\n"
        required = part.get("required", [])
        for name, field in part["properties"].items():
            cells = (f"`{name}`", allowed(field), default(name, field, required))
            meaning = field["description"].replace("|", "\\|")
            yield f"| {' | '.join(cells)} | {meaning} |\n"
        yield "\n"


def test_the_page_has_every_key(request: pytest.FixtureRequest) -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    wanted = before + BEGIN + "\n" + "".join(tables()) + END + after
    if request.config.getoption("--update"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert wanted == PAGE.read_text(encoding="utf-8")


def test_every_part_of_the_schema_has_its_place() -> None:
    assert set(requirement_schema()["$defs"]) == set(PLACES)


def test_every_optional_key_says_what_holds_without_it() -> None:
    schema = requirement_schema()
    for part in (schema, *schema["$defs"].values()):
        for name, field in part["properties"].items():
            said = "Left out: " in field["description"]
            known = default(name, field, part.get("required", []))
            nested = isinstance(field.get("default"), dict)
            assert said or known or nested, name


def test_the_examples_are_specs() -> None:
    examples = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 2
    for text in examples:
        assert parse_requirement(text.encode(), "spec.yaml").candidates
