"""SimAI and ASTRA-sim, read by a parser of this file, written from the formats' descriptions."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass

import networkx as nx
import numpy as np
import pytest
from ruamel.yaml import YAML

from gpufabric.core.errors import UnsupportedError
from gpufabric.export import export_fabric
from gpufabric.model.fabric import Fabric
from tests.export.designs import (
    NDR_1024,
    PLANES,
    RAIL_ONLY,
    SMALL,
    SMALL_ROCE,
    by_hand,
    catalog,
    designed,
    grown,
    links,
    options,
)
from tests.model.make_fabric import Shape

FABRICS = {
    "small": by_hand(SMALL),
    "small roce": by_hand(SMALL_ROCE),
    "planes": by_hand(PLANES),
    "rail only": by_hand(RAIL_ONLY),
    "infiniband 1024": designed(NDR_1024),
    "roce 1024": designed(NDR_1024, 1),
}
TIME_NS = {"ms": 1e6, "us": 1e3, "ns": 1.0}


@dataclass
class Topology:
    """What a simulator reads: vertices by kind, and links with rate and delay."""

    gpus: list[int]
    scale_up: list[int]
    switches: list[int]
    links: list[tuple[int, int, float, float]]

    @property
    def graph(self) -> nx.Graph[int]:
        return nx.Graph([(a, b) for a, b, _, _ in self.links])


def rate_gbps(word: str) -> float:
    """A data rate of ns-3; a number without unit, as in case 106 of the shared cases, is wrong."""
    match = re.fullmatch(r"([0-9.]+)Gbps", word)
    assert match, word
    return float(match[1])


def delay_ns(word: str) -> float:
    match = re.fullmatch(r"([0-9.]+)(ms|us|ns)", word)
    assert match, word
    return float(match[1]) * TIME_NS[match[2]]


def read(text: str, counts: int) -> tuple[list[int], str, list[int], Topology]:
    """Read tokens as the simulators do: header, switch numbers, links."""
    tokens = iter(text.split())
    header = [int(next(tokens)) for _ in range(counts)]
    gpu_type = next(tokens) if counts == 5 else ""
    n_scale_up = header[2] if counts == 5 else 0
    n_switches = header[3] if counts == 5 else header[1]
    numbers = [int(next(tokens)) for _ in range(n_scale_up + n_switches)]
    found = []
    for _ in range(header[-1]):
        a, b = int(next(tokens)), int(next(tokens))
        rate, delay, error = next(tokens), next(tokens), next(tokens)
        assert float(error) == 0
        found.append((a, b, rate_gbps(rate), delay_ns(delay)))
    assert list(tokens) == []
    gpus = sorted(set(range(header[0])) - set(numbers))
    parts = Topology(gpus, numbers[:n_scale_up], numbers[n_scale_up:], found)
    return header, gpu_type, numbers, parts


def simai(fabric: Fabric, stage: int = 0) -> tuple[list[int], str, Topology]:
    [text] = export_fabric(fabric, "simai", options(stage=stage)).values()
    header, gpu_type, _, topology = read(text, 5)
    return header, gpu_type, topology


@pytest.fixture(params=list(FABRICS))
def fabric(request: pytest.FixtureRequest) -> Fabric:
    return FABRICS[request.param]


def test_simai_vertices_are_gpus_then_nvswitches_then_switches(fabric: Fabric) -> None:
    header, gpu_type, topology = simai(fabric)
    n_gpus, per_host = fabric.n_gpus, int(fabric.hosts["n_gpus"].max())
    hosts, switches = fabric.n_hosts, len(fabric.switches)
    assert header[:4] == [n_gpus + hosts + switches, per_host, hosts, switches]
    assert topology.gpus == list(range(n_gpus))
    assert topology.scale_up == list(range(n_gpus, n_gpus + hosts))
    assert topology.switches == list(range(n_gpus + hosts, n_gpus + hosts + switches))
    assert gpu_type == "H100"


def test_simai_has_no_fault_of_the_known_kinds(fabric: Fabric) -> None:
    _, _, topology = simai(fabric)
    pairs = Counter(frozenset((a, b)) for a, b, _, _ in topology.links)
    assert set(pairs.values()) == {1}  # the simulator keeps one link of two vertices
    assert all(len(pair) == 2 for pair in pairs)
    assert topology.switches
    assert nx.is_connected(topology.graph)
    assert topology.links[0][:2] == (0, topology.scale_up[0])


def test_simai_keeps_every_link_and_its_rate(fabric: Fabric) -> None:
    header, _, topology = simai(fabric)
    number = {
        str(name): vertex
        for name, vertex in zip(fabric.switches["name"], topology.switches, strict=True)
    }
    row = {str(name): place for place, name in enumerate(fabric.hosts["name"])}
    expected: Counter[tuple[int, int]] = Counter()
    for a, b, gbps in links(fabric):
        if a.nic is None:
            low, high = sorted((number[a.device], number[b.device]))
        elif fabric.hosts["role"][row[a.device]] == 0:
            low = row[a.device] * int(fabric.hosts["n_gpus"][0]) + a.nic
            high = number[b.device]
        else:
            continue  # managers are no GPUs
        expected[low, high] += round(gbps)
    inside = {(gpu, topology.scale_up[gpu // header[1]]) for gpu in topology.gpus}
    found = {(a, b): gbps for a, b, gbps, _ in topology.links}
    assert {pair for pair in found if pair not in expected} == inside
    assert {pair: found[pair] for pair in expected} == expected


def test_nvlink_is_one_direction_of_what_is_printed() -> None:
    _, _, topology = simai(by_hand(SMALL))
    rates = {gbps for a, b, gbps, _ in topology.links if b in topology.scale_up}
    assert rates == {3600.0}  # H100: 900 GB/s both ways
    delays = {(b in topology.scale_up, ns) for a, b, _, ns in topology.links}
    assert delays == {(True, 25.0), (False, 500.0)}


def test_gpus_that_share_a_nic_share_its_rate() -> None:
    fabric = by_hand(SMALL)
    shared = fabric.replace(hosts=fabric.hosts.replace(n_gpus=fabric.hosts["n_gpus"] * 2))
    header, _, topology = simai(shared)
    assert header[1] == 4
    rates = {
        gbps for a, b, gbps, _ in topology.links if a in topology.gpus and b in topology.switches
    }
    assert rates == {200.0}
    assert len([1 for a, b, _, _ in topology.links if a < 4 and b in topology.switches]) == 4


def test_several_nics_of_a_gpu_are_links_of_it() -> None:
    fabric = by_hand(SMALL)
    one_gpu = fabric.replace(
        hosts=fabric.hosts.replace(n_gpus=np.minimum(fabric.hosts["n_gpus"], 1))
    )
    header, _, topology = simai(one_gpu)
    assert header[1:3] == [1, 0]  # a single GPU needs no NVSwitch
    assert len([1 for a, _, _, _ in topology.links if a == 0]) == 2


def test_hosts_that_the_simulators_cannot_have_are_refused() -> None:
    fabric = by_hand(Shape(rails=2))
    odd = fabric.hosts["n_gpus"].copy()
    odd[0] = 1
    with pytest.raises(UnsupportedError, match="all alike"):
        simai(fabric.replace(hosts=fabric.hosts.replace(n_gpus=odd)))
    three = np.where(fabric.hosts["n_gpus"] > 0, 3, 0)
    with pytest.raises(UnsupportedError, match="2 NICs cannot be shared evenly by 3 GPUs"):
        simai(fabric.replace(hosts=fabric.hosts.replace(n_gpus=three)))


def test_a_host_of_unknown_scale_up_has_no_nvswitch() -> None:
    fabric = by_hand(SMALL)
    unknown = fabric.replace(models=("mystery-host", *fabric.models[1:]))
    header, gpu_type, topology = simai(unknown)
    assert (header[2], gpu_type, topology.scale_up) == (0, "NONE", [])
    assert nx.is_connected(topology.graph)


def test_only_what_is_built_today() -> None:
    fabric = grown(by_hand(SMALL))
    today, target = simai(fabric)[0], simai(fabric, stage=1)[0]
    assert today[0] < target[0]
    assert len(simai(fabric)[2].gpus) * 2 == len(simai(fabric, stage=1)[2].gpus)


def test_astra_sim_reads_the_same_network(fabric: Fabric) -> None:
    text = export_fabric(fabric, "astra-sim", options())["astra-sim.txt"]
    header, _, numbers, topology = read(text, 3)
    of_simai = simai(fabric)[2]
    assert header[0] == len(of_simai.gpus) + len(numbers)
    assert numbers == of_simai.scale_up + of_simai.switches
    assert sorted(topology.links) == sorted(of_simai.links)


def test_astra_sim_dimensions_multiply_to_the_gpus(fabric: Fabric) -> None:
    files = export_fabric(fabric, "astra-sim", options())
    logical = json.loads(files["logical-topology.json"])["logical-dims"]
    network = YAML(typ="safe").load(files["network.yml"])
    assert all(isinstance(count, str) for count in logical)
    assert [int(count) for count in logical] == network["npus_count"]
    assert np.prod(network["npus_count"]) == fabric.n_gpus
    lengths = {len(network[key]) for key in ("topology", "npus_count", "bandwidth", "latency")}
    assert lengths == {len(logical)}
    assert set(network["topology"]) == {"Switch"}


def test_astra_sim_rates_are_gbytes_per_s_of_one_direction() -> None:
    files = export_fabric(designed(NDR_1024), "astra-sim", options())
    network = YAML(typ="safe").load(files["network.yml"])
    assert network["npus_count"] == [8, 128]
    assert network["bandwidth"] == [450, 50]
    assert network["latency"] == [50.0, 2000.0]
    assert catalog().host("dgx-h100").scale_up is not None


def test_astra_sim_divides_by_the_oversubscription() -> None:
    spec = (
        "gpus: 1024\nhost: dgx-h100\n"
        "candidates: [{fabric: roce, switch: sn5600, topology: rail, oversubscription: 2}]\n"
    )
    fabric = designed(spec)
    network = YAML(typ="safe").load(export_fabric(fabric, "astra-sim", options())["network.yml"])
    down: Counter[str] = Counter()
    up: Counter[str] = Counter()
    for a, b, gbps in links(fabric):
        down[b.device] += round(gbps)
        up[a.device] += round(gbps)
    worst = max(down[leaf] / up[leaf] for leaf in down.keys() & up.keys())
    assert worst == 2
    assert network["bandwidth"][1] == 50 / worst
