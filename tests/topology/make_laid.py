"""Designs whose devices stand in racks and whose links lie in cables, from the text of a spec."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from hypothesis import assume
from hypothesis import strategies as st

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.load import load_catalog
from gpufabric.core.errors import InputError
from gpufabric.model.fabric import Fabric
from gpufabric.model.requirement import Requirement, parse_requirement
from gpufabric.topology.cabling import Cabling, lay_cables
from gpufabric.topology.design import Design, design_candidate
from gpufabric.topology.racks import Placement, arrange

HOSTS = (
    "dgx-h100",
    "hgx-h100",
    "dgx-b300",
    "dgx-a100",
    "grand-teton-h100",
    "mi300x",
    "gb300-nvl72",
    "{gpus: 4, nics: 4, nic_gbps: 400}",
    "{gpus: 1, nics: 1, nic_gbps: 200, ru: 1, power_kw: 1}",
)
FAMILIES = (
    "fabric: infiniband",
    "fabric: infiniband, topology: fat-tree",
    "fabric: infiniband, topology: rail-only",
    "fabric: infiniband, topology: dragonfly+",
    "fabric: infiniband, topology: rail, tiers: 3, oversubscription: [1, 3]",
    "fabric: roce",
    "fabric: roce, switch: sn5600, topology: rail",
    "fabric: roce, switch: th4-64x400g, topology: fat-tree, hosts_per_rack: 2, su_hosts: 2",
    "fabric: roce, switch: th5-128x400g, topology: dual-tor",
    "fabric: roce, switch: sn5610, topology: multi-plane, planes: 2",
    "fabric: roce, topology: multi-plane, planes: 4",
    "fabric: roce, topology: dragonfly",
)
SITES = (
    "{}",
    "{rack_power_kw: 60, rack_units: 52, racks_per_row: 16}",
    "{rack_power_kw: 25, rack_units: 42, racks_per_row: 7, cable_slack_pct: 20, cable_slack_m: 3}",
    "{rack_power_kw: 132, racks_per_row: 1}",
    "{tray_height_m: 0, racks_per_row: 40, row_pitch_m: 3.6}",
)
MAX_GPUS = 20_000


@lru_cache
def catalog() -> Catalog:
    return load_catalog()


@dataclass(frozen=True)
class Laid:
    requirement: Requirement
    design: Design
    placement: Placement
    cabling: Cabling

    @property
    def fabric(self) -> Fabric:
        return self.cabling.fabric


@lru_cache(maxsize=16)
def designed(text: str) -> tuple[Requirement, Design]:
    """Return a spec and the design of its first candidate."""
    requirement = parse_requirement(text.encode(), "spec.yaml")
    return requirement, design_candidate(requirement, requirement.candidates[0], catalog())


@lru_cache(maxsize=16)
def placed(text: str) -> tuple[Requirement, Design, Placement]:
    """Return a spec, its design, and where its devices stand."""
    requirement, design = designed(text)
    placement = arrange(
        design.fabric,
        design.host,
        design.switches,
        requirement.site,
        design.candidate,
        catalog(),
    )
    return requirement, design, placement


@lru_cache(maxsize=16)
def laid(text: str) -> Laid:
    """Return a spec with everything that follows from it, down to the cables."""
    requirement, design, placement = placed(text)
    cabling = lay_cables(placement.fabric, design, requirement.site, catalog())
    return Laid(requirement, design, placement, cabling)


def spec(host: str, gpus: int, family: str, site: str = "{}", more: str = "") -> str:
    """Return the text of a spec with one candidate."""
    return f"gpus: {gpus}\nhost: {host}\ncandidates: [{{{family}}}]\nsite: {site}\n{more}"


@st.composite
def specs(draw: st.DrawFn, max_gpus: int = MAX_GPUS) -> str:
    """Return a spec that can be designed, of any family and up to `max_gpus` GPUs."""
    host = draw(st.sampled_from(HOSTS))
    family = draw(st.sampled_from(FAMILIES))
    each = {"gb300-nvl72": 72, HOSTS[-2]: 4, HOSTS[-1]: 1}.get(host, 8)
    most = max_gpus // each
    n_hosts = draw(st.one_of(st.integers(1, 40), st.integers(1, most)))
    later = draw(st.sampled_from((1, 1, 2)))
    growth = f"growth: {{hosts: {min(n_hosts * later, most)}}}\n" if later > 1 else ""
    text = spec(host, n_hosts * each, family, draw(st.sampled_from(SITES)), growth)
    try:
        designed(text)
    except InputError:
        assume(False)
    return text
