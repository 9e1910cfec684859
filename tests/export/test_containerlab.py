from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from gpufabric.core.errors import UnsupportedError
from gpufabric.export import export_fabric
from gpufabric.model.fabric import Fabric
from tests.export.designs import (
    NDR_1024,
    SMALL,
    SMALL_ROCE,
    by_hand,
    designed,
    grown,
    links,
    options,
)

# Facts of containerlab's schemas/clab.schema.json that concern what we write.
NODE = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["linux", "sonic-vs", "ceos", "nvidia_cumulusvx", "cisco_n9kv"]},
        "image": {"type": "string"},
        "group": {"type": "string"},
        "labels": {"type": "object", "additionalProperties": {"type": ["string", "number"]}},
    },
    "additionalProperties": False,
}
ENDPOINT = {"type": "string", "pattern": r"^\S+:\S+$"}
SCHEMA = {
    "type": "object",
    "required": ["name", "topology"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9-]+$"},
        "topology": {
            "type": "object",
            "required": ["nodes"],
            "additionalProperties": False,
            "properties": {
                "kinds": {"type": "object", "additionalProperties": NODE},
                "nodes": {"type": "object", "additionalProperties": NODE},
                "links": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["endpoints"],
                        "additionalProperties": False,
                        "properties": {
                            "endpoints": {
                                "type": "array",
                                "items": ENDPOINT,
                                "minItems": 2,
                                "maxItems": 2,
                                "uniqueItems": True,
                            }
                        },
                    },
                },
            },
        },
    },
}


def lab(fabric: Fabric, **changes: object) -> dict[str, Any]:
    [text] = export_fabric(fabric, "containerlab", options(**changes)).values()
    tree: dict[str, Any] = YAML(typ="safe", pure=False).load(text)
    return tree


def ends(tree: dict[str, Any]) -> list[list[str]]:
    return [link["endpoints"] for link in tree["topology"]["links"]]


@pytest.mark.parametrize("nos", ["cumulus", "sonic", "eos", "nxos"])
def test_the_file_has_the_form_of_the_schema(nos: str) -> None:
    errors = list(Draft202012Validator(SCHEMA).iter_errors(lab(by_hand(SMALL_ROCE), nos=nos)))
    assert errors == []


@pytest.mark.parametrize(
    "fabric", [by_hand(SMALL_ROCE), designed(NDR_1024, 1)], ids=["small", "1024 GPUs"]
)
def test_nodes_and_links_are_ours(fabric: Fabric) -> None:
    tree = lab(fabric, nos="sonic")
    nodes = tree["topology"]["nodes"]
    assert set(nodes) == {*fabric.hosts["name"].tolist(), *fabric.switches["name"].tolist()}
    expected = [
        [
            f"{end.device}:eth{end.port + 1}" if end.nic is None else f"{end.device}:nic{end.nic}"
            for end in (a, b)
        ]
        for a, b, _ in links(fabric)
    ]
    assert ends(tree) == expected
    assert set(Counter(end for pair in ends(tree) for end in pair).values()) == {1}
    assert {end.split(":")[0] for pair in ends(tree) for end in pair} <= set(nodes)


def test_linux_takes_every_interface_name() -> None:
    for nos in ("cumulus", "sonic"):
        names = {
            end.split(":")[1] for pair in ends(lab(by_hand(SMALL_ROCE), nos=nos)) for end in pair
        }
        assert all(re.fullmatch(r"[a-z0-9]{1,15}", name) for name in names)


def test_kinds_groups_and_images() -> None:
    tree = lab(by_hand(SMALL_ROCE))
    nodes = tree["topology"]["nodes"]
    kinds = {(node["group"], node["kind"]) for node in nodes.values()}
    assert kinds == {
        ("host", "linux"),
        ("manager", "linux"),
        ("leaf", "nvidia_cumulusvx"),
        ("spine", "nvidia_cumulusvx"),
    }
    assert set(tree["topology"]["kinds"]) == {"linux", "nvidia_cumulusvx"}
    assert all(kind["image"] for kind in tree["topology"]["kinds"].values())
    leaf = next(node for node in nodes.values() if node["group"] == "leaf")
    assert leaf["labels"] == {"model": "sn5600", "plane": "0", "rail": "0", "su": "0"}
    assert any(end.endswith(":swp1") for pair in ends(tree) for end in pair)


def test_only_what_is_built_today() -> None:
    fabric = grown(by_hand(SMALL_ROCE))
    assert len(ends(lab(fabric))) == len(links(fabric, 0)) < len(ends(lab(fabric, stage=1)))


def test_a_name_for_people_becomes_a_name_for_containers() -> None:
    fabric = by_hand(SMALL_ROCE).replace(name='RoCE "v2": 800G / Leaf')
    assert lab(fabric)["name"] == "roce-v2-800g-leaf"


def test_infiniband_and_a_nos_without_container_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"this fabric is infiniband\. Use ibsim"):
        lab(by_hand(SMALL))
    with pytest.raises(UnsupportedError, match="nvos has no containerlab kind"):
        lab(by_hand(SMALL_ROCE), nos="nvos")
