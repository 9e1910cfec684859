from __future__ import annotations

import json
from typing import Any

import pytest

from gpufabric.core.errors import UnsupportedError
from gpufabric.export import export_fabric
from gpufabric.model.fabric import Fabric
from tests.export.designs import NDR_1024, SMALL, SMALL_ROCE, by_hand, designed, links, options


def simulation(fabric: Fabric, **changes: object) -> dict[str, Any]:
    [text] = export_fabric(fabric, "air", options(**changes)).values()
    tree: dict[str, Any] = json.loads(text)
    return tree


@pytest.mark.parametrize(
    "fabric", [by_hand(SMALL_ROCE), designed(NDR_1024, 1)], ids=["small", "1024 GPUs"]
)
def test_nodes_and_links_are_ours(fabric: Fabric) -> None:
    tree = simulation(fabric, nos="sonic")
    assert (tree["format"], tree["name"]) == ("JSON", fabric.name)
    content = tree["content"]
    assert set(content) == {"nodes", "links", "oob"}
    assert set(content["nodes"]) == {
        *fabric.hosts["name"].tolist(),
        *fabric.switches["name"].tolist(),
    }
    expected = [
        [
            {
                "node": end.device,
                "interface": f"eth{end.port + 1}" if end.nic is None else f"nic{end.nic}",
            }
            for end in (a, b)
        ]
        for a, b, _ in links(fabric)
    ]
    assert content["links"] == expected


def test_machines_have_what_the_import_asks_for() -> None:
    content = simulation(by_hand(SMALL_ROCE))["content"]
    for machine in content["nodes"].values():
        assert set(machine) == {"os", "cpu", "memory", "storage"}
        assert all(isinstance(machine[key], int) for key in ("cpu", "memory", "storage"))
    names = {name: machine["os"] for name, machine in content["nodes"].items()}
    assert names["leaf-p1-su1-r1"].startswith("cumulus-vx")
    assert names["host00001"].startswith("generic/")
    assert content["links"][0][1] == {"node": "leaf-p1-su1-r1", "interface": "swp1s0"}


def test_infiniband_and_a_nos_that_air_has_not_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="this fabric is infiniband"):
        simulation(by_hand(SMALL))
    with pytest.raises(UnsupportedError, match="NVIDIA Air has no eos"):
        simulation(by_hand(SMALL_ROCE), nos="eos")
