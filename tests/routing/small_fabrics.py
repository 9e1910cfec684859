"""Small fabrics put together by hand, regular or not, for tests of routing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from gpufabric.catalog.load import load_catalog
from gpufabric.model.fabric import Fabric
from gpufabric.model.requirement import parse_requirement
from gpufabric.model.tables import SCHEMAS
from gpufabric.topology.design import Design, design_candidate

HDR_GBPS = 200.0


def build(
    hosts: Sequence[int],
    links: Sequence[tuple[int, int]],
    tiers: Sequence[int] | None = None,
    *,
    names: Sequence[str] | None = None,
    protocol: str = "infiniband",
    gbps: Sequence[float] | None = None,
) -> Fabric:
    """Return a fabric with ``hosts[s]`` one-port hosts on switch s, and links between switches.

    Ports are taken in order: hosts first, then links in the order given; a pair that appears twice
    is two links. Hosts are named ``h0``, ``h1`` … in order of switches.
    """
    n_switches, n_hosts = len(hosts), sum(hosts)
    tiers = tiers or [1] * n_switches
    ends = [(s, None) for s, count in enumerate(hosts) for _ in range(count)]
    used = [0] * n_switches
    slots: list[tuple[int, int]] = []
    for s, _ in ends:
        slots.append((s, used[s]))
        used[s] += 1
    pairs = []
    for a, b in links:
        low, high = (a, b) if tiers[a] <= tiers[b] else (b, a)
        pairs.append(((low, used[low]), (high, used[high])))
        used[low] += 1
        used[high] += 1
    n_ports = max(*used, 2)
    first = n_hosts + n_ports * np.arange(n_switches)
    port = lambda end: int(first[end[0]] + end[1])  # noqa: E731
    port_a = [*range(n_hosts), *(port(low) for low, _ in pairs)]
    port_b = [*(port(slot) for slot in slots), *(port(high) for _, high in pairs)]
    tier = [1] * n_hosts + [
        4 if tiers[a] == tiers[b] else min(tiers[a], tiers[b]) + 1 for a, b in links
    ]
    rates = [HDR_GBPS] * n_hosts + list(gbps or [HDR_GBPS] * len(links))
    row = np.arange(n_hosts + n_ports * n_switches)
    on_switch = row >= n_hosts
    return Fabric(
        name="by hand",
        protocol=protocol,
        generation="hdr" if protocol == "infiniband" else "ethernet",
        family="by hand",
        models=("generic", "connectx-6", "qm8700"),
        racks=SCHEMAS["racks"].table(0),
        hosts=SCHEMAS["hosts"].table(n_hosts, name=[f"h{i}" for i in range(n_hosts)], n_gpus=1),
        nics=SCHEMAS["nics"].table(
            n_hosts,
            host=np.arange(n_hosts),
            rail=0,
            model=1,
            gbps=HDR_GBPS,
            port_first=np.arange(n_hosts),
        ),
        switches=SCHEMAS["switches"].table(
            n_switches,
            name=names or [f"sw{i}" for i in range(n_switches)],
            model=2,
            tier=tiers,
            port_first=first,
            n_ports=n_ports,
        ),
        ports=SCHEMAS["ports"].table(
            len(row),
            is_switch=on_switch,
            device=np.where(on_switch, (row - n_hosts) // n_ports, row),
            port=np.where(on_switch, (row - n_hosts) % n_ports, 0),
            cage=np.where(on_switch, (row - n_hosts) % n_ports, 0),
            gbps=HDR_GBPS,
        ),
        links=SCHEMAS["links"].table(
            len(port_a),
            port_a=port_a,
            port_b=port_b,
            gbps=rates,
            tier=tier,
            cable=np.arange(len(port_a)),
            length_m=2.0,
        ),
    )


def ring(n_switches: int, hosts: int = 1, *, names: Sequence[str] | None = None) -> Fabric:
    """Return switches in a ring, each with so many hosts."""
    links = [(s, (s + 1) % n_switches) for s in range(n_switches)]
    return build([hosts] * n_switches, links, names=names)


def two_tiers(
    leafs: int, spines: int, hosts: int, lanes: int = 1, protocol: str = "infiniband"
) -> Fabric:
    """Return leafs joined to all spines by `lanes` links each."""
    links = [(a, leafs + b) for a in range(leafs) for b in range(spines) for _ in range(lanes)]
    tiers = [1] * leafs + [2] * spines
    return build([hosts] * leafs + [0] * spines, links, tiers, protocol=protocol)


def three_tiers(
    pods: int, leafs: int, spines: int, cores: int, hosts: int, protocol: str = "infiniband"
) -> Fabric:
    """Return pods of leafs and spines; spine k of every pod joins its own `cores` cores."""
    n_leafs, n_spines = pods * leafs, pods * spines
    links = []
    for pod in range(pods):
        for leaf in range(leafs):
            links += [(pod * leafs + leaf, n_leafs + pod * spines + k) for k in range(spines)]
    for pod in range(pods):
        for k in range(spines):
            spine = n_leafs + pod * spines + k
            links += [(spine, n_leafs + n_spines + k * cores + c) for c in range(cores)]
    tiers = [1] * n_leafs + [2] * n_spines + [3] * (spines * cores)
    return build(
        [hosts] * n_leafs + [0] * (n_spines + spines * cores), links, tiers, protocol=protocol
    )


@cache
def _catalog() -> Any:
    return load_catalog()


@cache
def designed(gpus: int, candidate: str, host: str = "dgx-h100") -> Design:
    """Return the design of a candidate, such as ``{fabric: roce}``."""
    text = f"gpus: {gpus}\nhost: {host}\ncandidates: [{candidate}]\n"
    requirement = parse_requirement(text.encode(), "spec.yaml")
    return design_candidate(requirement, requirement.candidates[0], _catalog())
