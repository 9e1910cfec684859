from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gpufabric.core.errors import InputError
from gpufabric.model.check import check_fabric
from gpufabric.model.spec_parts import Site
from gpufabric.topology.cable_routes import (
    RACK_BASE_M,
    RACK_UNIT_M,
    SIDE_RUN_M,
    device_heights,
    needed_lengths,
    route_lengths,
)
from gpufabric.topology.cabling import lay_cables
from gpufabric.topology.cages import find_stars, link_cages
from gpufabric.topology.floor import floor_of
from gpufabric.topology.racks import Placement
from tests.topology.make_laid import Laid, catalog, designed, laid, placed, spec, specs

NDR = "fabric: infiniband"
ROCE = "fabric: roce, switch: sn5600"


def parts_by_tier(whole: Laid) -> dict[str, set[str]]:
    """Return the names of the media by kind of link."""
    links, manager = whole.fabric.links, whole.cabling.is_manager
    kinds = {
        "host": (links.tier == 1) & ~manager,
        "manager": manager,
        **{str(tier): links.tier == tier for tier in (2, 3, 4, 5)},
    }
    return {
        kind: {whole.fabric.parts[i] for i in np.unique(links.part[mask])}
        for kind, mask in kinds.items()
        if mask.any()
    }


def modules(whole: Laid) -> Counter[tuple[str, str]]:
    """Count modules cage by cage, link by link: the slow and obvious way."""
    fabric = whole.fabric
    cages: dict[tuple[str, int], set[str]] = {}
    for link in range(len(fabric.links)):
        media = whole.cabling.media[int(fabric.links.part[link])]
        for port, module in (
            (int(fabric.links.port_a[link]), media.module_a),
            (int(fabric.links.port_b[link]), media.module_b),
        ):
            owner = fabric.vertex_name(int(fabric.port_vertex[port]))
            cage = cages.setdefault((owner, int(fabric.ports.cage[port])), set())
            cage.update({module.name} if module is not None else ())
    assert all(len(names) <= 1 for names in cages.values())
    kinds = {0: "host", 1: "manager"}
    role = dict(zip(fabric.hosts.name.tolist(), fabric.hosts.role.tolist(), strict=True))
    return Counter(
        (kinds[role[owner]] if owner in role else "switch", next(iter(names)))
        for (owner, _cage), names in cages.items()
        if names
    )


# Lengths ------------------------------------------------------------------------------------


def test_the_length_of_one_cable_by_hand() -> None:
    """The worked number of docs/models/cabling.md."""
    requirement, _design, placement = placed(spec("dgx-h100", 1016, NDR))
    fabric = placement.fabric
    link = int(np.flatnonzero(fabric.links.tier == 1)[0])  # host-001, unit 1, to leaf-su01-r0
    assert fabric.link_view(link)[2:6] == ("host-001", "nic0", "leaf-su01-r0", "1/1")
    assert fabric.racks.name[fabric.hosts.rack[0]] == "A01"
    assert fabric.racks.name[fabric.switches.rack[0]] == "A05"
    host_m = 0.1 + 4 * 0.04445  # the middle of eight units
    leaf_m = 0.1 + 47.5 * 0.04445
    way_m = (2.7 - host_m) + (2.7 - leaf_m) + 4 * 0.6
    site = requirement.site
    assert (site.cable_slack_pct, site.cable_slack_m) == (5.0, 1.0)
    need_m = needed_lengths(fabric, placement.footprints, site)[link]
    assert need_m == pytest.approx(way_m * 1.05 + 1.0)
    assert need_m == pytest.approx(6.577, abs=0.001)
    assert laid(spec("dgx-h100", 1016, NDR)).fabric.links.length_m[0] == 7.0


def test_a_cable_within_a_rack_runs_along_its_side() -> None:
    whole = laid(spec("dgx-h100", 248, NDR))
    fabric, prints = whole.fabric, whole.placement.footprints
    way_m, inside = route_lengths(fabric, prints, whole.requirement.site)
    between = fabric.links.tier == 2
    assert inside[between].all()  # one rack holds all switches
    link = int(np.flatnonzero(between)[0])
    heights = device_heights(fabric, prints)
    a, b = (fabric.port_vertex[fabric.links[end][link]] for end in ("port_a", "port_b"))
    assert way_m[link] == pytest.approx(2 * SIDE_RUN_M + abs(heights[a] - heights[b]))
    need_m = needed_lengths(fabric, prints, whole.requirement.site)[link]
    assert need_m == pytest.approx(way_m[link] * 1.05)  # no loops to a tray


@given(st.floats(0, 20), st.floats(0.5, 50), st.floats(0.3, 5), st.floats(0, 100), st.floats(0, 50))
@settings(max_examples=25)
def test_lengths_grow_with_the_site(
    tray_m: float, row_m: float, rack_m: float, pct: float, extra_m: float
) -> None:
    requirement, _design, placement = placed(spec("dgx-h100", 1016, NDR))
    site = Site(
        tray_height_m=tray_m,
        row_pitch_m=row_m,
        rack_pitch_m=rack_m,
        cable_slack_pct=pct,
        cable_slack_m=extra_m,
    )
    way_m, inside = route_lengths(placement.fabric, placement.footprints, site)
    assert (way_m > 0).all()
    need_m = needed_lengths(placement.fabric, placement.footprints, site)
    np.testing.assert_allclose(need_m, way_m * (1 + pct / 100) + np.where(inside, 0, extra_m))
    wider = site.model_copy(update={"row_pitch_m": row_m + 1, "rack_pitch_m": rack_m + 1})
    # the same racks in the same columns, farther apart
    if lay_columns(placement, site) == lay_columns(placement, wider):
        longer_m, _inside = route_lengths(placement.fabric, placement.footprints, wider)
        assert (longer_m >= way_m - 1e-9).all()
    assert requirement.site.rack_units == 48


def lay_columns(placement: Placement, site: Site) -> int:
    return floor_of(placement.fabric.racks, site).columns


def test_heights_are_the_middles_of_the_devices() -> None:
    _requirement, _design, placement = placed(spec("dgx-h100", 64, NDR))
    heights = device_heights(placement.fabric, placement.footprints)
    assert heights[0] == pytest.approx(RACK_BASE_M + 4 * RACK_UNIT_M)


# What always holds --------------------------------------------------------------------------


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(specs())
def test_every_link_lies_in_a_cable_that_fits(text: str) -> None:
    try:
        whole = laid(text)
    except InputError:
        assume(False)  # no rack holds a host, or the switch named does not fit the hosts
    fabric, cabling = whole.fabric, whole.cabling
    links = fabric.links
    assert check_fabric(fabric) == check_fabric(whole.design.fabric)
    assert tuple(media.name for media in cabling.media) == fabric.parts
    assert (links.part >= 0).all()

    need_m = needed_lengths(fabric, whole.placement.footprints, whole.requirement.site)
    assert (links.length_m >= need_m - 1e-4).all()
    for index, media in enumerate(cabling.media):
        mine = links.part == index
        assert links.length_m[mine].max(initial=0) <= media.reach_m
        sold = np.array(media.cable.lengths_m or ())
        whole_m = links.length_m[mine] == np.round(links.length_m[mine])
        assert (np.isin(links.length_m[mine].round(3), sold.round(3)) | whole_m).all()

    cables = np.unique(links.cable)
    assert cables.tolist() == list(range(len(cables)))  # numbered without a gap
    for column in (links.part, links.length_m, links.gbps):
        same = np.full(len(cables), np.nan)
        same[links.cable] = column
        assert (same[links.cable] == column).all()  # a cable is one part, length and speed
    check_plugs(whole)


def check_plugs(whole: Laid) -> None:
    """Check that no cage holds two plugs, and no cable more links than it carries."""
    links, cages = whole.fabric.links, whole.cabling.cages
    media = whole.cabling.media
    per_cable = np.bincount(links.cable)[links.cable]
    most = np.array([entry.links_per_cable for entry in media])[links.part]
    assert (per_cable <= most).all()
    fixed = np.array([entry.kind != "optics" for entry in media])[links.part]
    cage = np.concatenate([cages.a, cages.b])
    cable, is_fixed = np.tile(links.cable, 2), np.tile(fixed, 2)
    module = np.concatenate(
        [
            np.array([part_name(entry.module_a) for entry in media])[links.part],
            np.array([part_name(entry.module_b) for entry in media])[links.part],
        ]
    )
    plug = np.where(is_fixed, np.char.add("cable ", cable.astype(str)), module)
    order = np.argsort(cage, kind="stable")
    same_cage = cage[order][1:] == cage[order][:-1]
    assert (plug[order][1:][same_cage] == plug[order][:-1][same_cage]).all()


def part_name(part: Any) -> str:
    return "" if part is None else part.name


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(specs())
def test_a_class_of_links_has_one_medium(text: str) -> None:
    try:
        whole = laid(text)
    except InputError:
        assume(False)
    links = whole.fabric.links
    kind = links.tier.astype(int) * 2 + whole.cabling.is_manager
    for value in np.unique(kind):
        assert len(np.unique(links.part[kind == value])) == 1


def test_the_same_design_is_cabled_alike() -> None:
    text = spec("dgx-h100", 1016, NDR)
    requirement, design, placement = placed(text)
    again = lay_cables(placement.fabric, design, requirement.site, catalog())
    assert again.fabric.content_hash == laid(text).fabric.content_hash


def test_cables_are_numbered_rack_by_rack_from_the_top_down() -> None:
    whole = laid(spec("dgx-h100", 1016, NDR))
    fabric = whole.fabric
    order = np.argsort(fabric.links.cable, kind="stable")
    port = fabric.links.port_a[order]
    vertex = fabric.port_vertex[port]
    rack = np.concatenate([fabric.hosts.rack, fabric.switches.rack])[vertex].astype(int)
    unit = np.concatenate([fabric.hosts.rack_unit, fabric.switches.rack_unit])[vertex].astype(int)
    assert (np.diff(rack) >= 0).all()
    assert (np.diff(unit)[np.diff(rack) == 0] <= 0).all()


# Published bills ----------------------------------------------------------------------------


def test_the_bill_of_the_h100_superpod() -> None:
    """Source: NVIDIA RA-11333-001 V11, Tables 7-8 (4 SUs, 127 nodes).

    2,042 compute cables, 508 modules at nodes, 1,536 at switches. Links alone need
    (1,016 + 4 + 2 x 1,024) / 2 = 1,534; as four leafs' cages hold one link only, counting cage
    by cage gives 1,536 at once.
    """
    whole = laid(spec("dgx-h100", 1016, NDR))
    count = modules(whole)
    assert count["host", "mma4z00-ns-flt"] == 127 * 4 == 508
    assert count["switch", "mma4z00-ns"] == 48 * 32 == 1536
    assert len(whole.fabric.links) == 1016 + 4 + 1024
    assert len(whole.cabling.first_links) == 2042
    assert parts_by_tier(whole) == {
        "host": {"mma4z00-ns-flt+mfp7e10-n+mma4z00-ns"},
        "manager": {"mma4z00-ns400+mfp7e20-n+mma4z00-ns"},
        "2": {"mma4z00-ns+mfp7e10-n+mma4z00-ns"},
    }


def test_the_two_links_of_a_manager_are_one_cable() -> None:
    """The published bill has 2 cables beyond its 2,040 links; how is assumed, and told."""
    whole = laid(spec("dgx-h100", 1016, NDR))
    links, manager = whole.fabric.links, whole.cabling.is_manager
    assert int(manager.sum()) == 4
    assert Counter(Counter(links.cable[manager].tolist()).values()) == {2: 2}
    note = next(d for d in whole.cabling.decisions if d.topic == "manager_cables")
    assert "Assumed" in note.why
    assert note.source


def test_the_bill_of_a_basepod_of_eight_nodes() -> None:
    """Source: NVIDIA RA-11127-001 V5, Table 4.2, row of 8 nodes.

    32 twin-port modules at the DGX, 32 at the switches, and 16 twin-port DAC between the two
    switches.
    """
    whole = laid(spec("dgx-h100", 64, "fabric: infiniband, switch: qm9700, topology: fat-tree"))
    assert len(whole.fabric.switches) == 2
    count = modules(whole)
    assert count == {("host", "mma4z00-ns-flt"): 32, ("switch", "mma4z00-ns"): 32}
    between = whole.fabric.links.tier == 4
    assert len(np.unique(whole.fabric.links.cable[between])) == 16
    assert parts_by_tier(whole)["4"] == {"mcp4y10-n"}


def test_modules_of_the_b300_xdr_superpod() -> None:
    """Source of the counts: RA-11339-001 V01, Table 3, 2 SUs: 1,152 links in each tier.

    A single-port module for each of 1,152 NICs; a twin-port one for two of 3 x 1,152 switch
    links.
    """
    whole = laid(spec("dgx-b300", 1152, NDR))
    assert modules(whole) == {
        ("host", "mms4a20-xm800"): 1152,
        ("switch", "mms4a00-xm"): 3 * 1152 // 2,
    }


def test_meta_style_racks_join_hosts_to_their_switch_in_copper() -> None:
    """Source: SIGCOMM 2024, Meta: two hosts and their RTSW in a rack, "copper DAC"."""
    family = (
        "fabric: roce, topology: fat-tree, switch: th5-128x400g, hosts_per_rack: 2, su_hosts: 2, "
        "leafs_per_host: 1"
    )
    whole = laid(spec("grand-teton-h100", 1024, family))
    host = whole.fabric.links.tier == 1
    assert parts_by_tier(whole)["host"] == {"qsfp112-400g-dac"}
    assert whole.fabric.links.length_m[host].max() <= 2.0


# Breakouts ----------------------------------------------------------------------------------


def test_one_switch_cage_serves_two_hosts_with_one_splitting_cable() -> None:
    whole = laid(spec("hgx-h100", 1024, ROCE))
    links = whole.fabric.links
    host = links.tier == 1
    assert parts_by_tier(whole)["host"] == {"osfp-2x400g-osfp-aoc"}
    assert len(np.unique(links.cable[host])) == 512
    leaf_cage = whole.cabling.cages.b[host]
    for values in (links.cable[host], leaf_cage):
        assert (np.bincount(values)[values] == 2).all()


def test_a_nic_split_over_two_planes_takes_a_fibre_to_each() -> None:
    """A twin-port module has two connectors: the two planes' fibres are cables of their own."""
    family = "fabric: roce, switch: sn5610, topology: multi-plane, planes: 2"
    whole = laid(spec("dgx-b300", 512, family))
    links = whole.fabric.links
    host = links.tier == 1
    assert len(np.unique(links.cable[host])) == int(host.sum()) == 1024
    assert modules(whole)["host", "mma4z00-ns-flt"] == 512
    assert modules(whole)["switch", "mma4z00-ns"] >= 512


def test_a_nic_split_over_four_planes_takes_splitters() -> None:
    family = "fabric: roce, switch: sn5610, topology: multi-plane, planes: 4"
    whole = laid(spec("dgx-b300", 512, family))
    media = whole.cabling.media[int(whole.fabric.links.part[0])]
    assert media.splitter_a is not None
    assert media.splitter_b is not None
    assert "splitter at each" in whole.cabling.decisions[0].why


def test_growth_is_cabled_with_its_stage() -> None:
    whole = laid(spec("dgx-h100", 512, NDR, more="growth: {gpus: 1024}\n"))
    links = whole.fabric.links
    first = whole.cabling.first_links
    assert set(links.stage[first].tolist()) == {0, 1}
    host = links.tier[first] == 1
    assert int((links.stage[first][host & ~whole.cabling.is_manager[first]] == 0).sum()) == 512


# Cages and stars ----------------------------------------------------------------------------


def test_cages_and_the_place_of_a_link_in_its_cage() -> None:
    _requirement, design = designed(spec("dgx-h100", 1016, NDR))
    cages = link_cages(design.fabric)
    assert np.bincount(cages.a[:1016]).max() == 2
    assert set(cages.a_offset_gbps[:1016].tolist()) == {0.0, 400.0}
    assert cages.n_cages == 127 * 4 + 48 * 32 + 2 * 2


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(9, 17)), min_size=1, max_size=30))
def test_stars_are_what_their_definition_says(pairs: list[tuple[int, int]]) -> None:
    a, b = (np.array(column) for column in zip(*pairs, strict=True))
    stars = find_stars(a, b, 18)
    around: dict[int, set[int]] = {}
    for low, high in pairs:
        around.setdefault(low, set()).add(high)
        around.setdefault(high, set()).add(low)
    for link, (low, high) in enumerate(pairs):
        assert stars.at_a[link] == all(around[other] == {low} for other in around[low])
        assert stars.at_b[link] == all(around[other] == {high} for other in around[high])
        assert stars.plugs_a[link] == len(around[low])


# Faults -------------------------------------------------------------------------------------


def test_a_fabric_that_no_part_joins_is_refused() -> None:
    requirement, design, placement = placed(spec("dgx-h100", 64, NDR))
    fibres = {n: p for n, p in catalog().parts.items() if p.form in ("fibre", "splitter")}
    with pytest.raises(InputError) as caught:
        lay_cables(placement.fabric, design, requirement.site, replace(catalog(), parts=fibres))
    assert str(caught.value).startswith(
        'candidate "infiniband": cabling: no part joins host_leaf links of 400 Gb/s from osfp '
        "cages (2 a cage) to osfp cages (2 a cage) over "
    )


# Speed --------------------------------------------------------------------------------------


def test_131072_gpus_are_placed_and_cabled_within_seconds() -> None:
    text = spec("hgx-h100", 131_072, ROCE)
    requirement, design = designed(text)
    start = time.process_time()
    _requirement, _design, placement = placed(text)
    cabling = lay_cables(placement.fabric, design, requirement.site, catalog())
    assert time.process_time() - start < 8.0
    assert len(cabling.fabric.links) == 262_144
