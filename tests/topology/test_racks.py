from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from ruamel.yaml import YAML

from gpufabric.core.errors import InputError
from gpufabric.model.check import check_fabric
from gpufabric.model.fabric import Fabric
from gpufabric.model.spec_parts import Site
from gpufabric.topology.cabinets import CABLE_UNITS
from gpufabric.topology.floor import choose_slots, floor_of, lay_floor
from gpufabric.topology.footprint import (
    ASSUMED_SWITCH_W_PER_TBPS,
    Footprint,
    host_footprint,
    manager_footprint,
    switch_footprint,
)
from gpufabric.topology.host_racks import fill_racks
from gpufabric.topology.rack_power import BTU_PER_H_PER_W, optics_power, rack_power
from gpufabric.topology.racks import Placement, place
from tests.topology.make_laid import catalog, designed, laid, placed, spec, specs

NDR = "fabric: infiniband"
MEETS_GRAND_TETON = (
    "fabric: roce, topology: fat-tree, switch: th4-64x400g, hosts_per_rack: {n}, su_hosts: 2, "
    "leafs_per_host: 1"
)


def spans(placement: Placement) -> np.ndarray:
    """Return int[n_devices, 4]: rack, lowest unit, highest unit, and 1 for a switch."""
    fabric = placement.fabric
    rows = []
    for table, is_switch in ((fabric.hosts, 0), (fabric.switches, 1)):
        units = np.array([placement.footprints[fabric.models[m]].units for m in table.model])
        unit = table.rack_unit.astype(int)
        rows.append(np.column_stack([table.rack, unit, unit + units - 1, 0 * unit + is_switch]))
    return np.concatenate(rows).astype(int)


def devices_of(fabric: Fabric, rack: int) -> list[tuple[str, int]]:
    found = []
    for table in (fabric.hosts, fabric.switches):
        here = table.rack == rack
        found += zip(table.name[here].tolist(), table.rack_unit[here].tolist(), strict=True)
    return found


# What always holds --------------------------------------------------------------------------


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(specs())
def test_devices_stand_apart_and_within_the_limits_of_their_racks(text: str) -> None:
    try:
        requirement, design, placement = placed(text)
    except InputError:
        assume(False)  # one host is more than a rack of this site may hold
    fabric, site = placement.fabric, requirement.site
    mine = placement.footprints[design.host.name]

    assert check_fabric(fabric) == check_fabric(design.fabric)
    stand = spans(placement)
    assert (stand[:, 0] >= 0).all()
    assert (stand[:, 1] >= 1).all()
    assert (stand[:, 2] <= fabric.racks.units[stand[:, 0]]).all()
    ordered = stand[np.lexsort((stand[:, 1], stand[:, 0]))]
    same_rack = ordered[1:, 0] == ordered[:-1, 0]
    assert (ordered[1:, 1][same_rack] > ordered[:-1, 2][same_rack]).all()

    own = np.unique(fabric.hosts.rack[fabric.hosts.role == 0]) if mine.is_rack else []
    limited = np.delete(fabric.racks.power_w.astype(float), own)
    assert (limited <= site.rack_power_kw * 1000 * (1 + 1e-6)).all()
    load = np.zeros(len(fabric.racks))
    for table in (fabric.hosts, fabric.switches):
        watts = [placement.footprints[fabric.models[m]].max_w for m in table.model]
        np.add.at(load, table.rack, watts)
    np.testing.assert_allclose(fabric.racks.power_w, load, rtol=1e-6)

    places = fabric.racks["row"].astype(int) * site.racks_per_row + fabric.racks.position
    assert (fabric.racks.position < site.racks_per_row).all()
    assert places.tolist() == list(range(len(fabric.racks)))  # full rows, no rack twice
    assert len(np.unique(stand[:, 0])) == len(fabric.racks)  # no rack is empty


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(specs())
def test_the_same_spec_is_placed_alike(text: str) -> None:
    requirement, design = designed(text)
    given_ = (design.host, design.switches, requirement.site, design.candidate, catalog())
    try:
        once = place(design.fabric, *given_)
    except InputError:
        assume(False)
    assert once.content_hash == place(design.fabric, *given_).content_hash


def test_leafs_stand_amid_the_hosts_they_serve() -> None:
    _requirement, _design, placement = placed(spec("dgx-h100", 8192, NDR))
    fabric = placement.fabric
    floor = floor_of(fabric.racks, Site())
    host = fabric.port_vertex[fabric.links.port_a]
    leaf = fabric.port_vertex[fabric.links.port_b] - len(fabric.hosts)
    mine = (fabric.links.tier == 1) & (host < len(fabric.hosts))
    a, b = fabric.hosts.rack[host[mine]], fabric.switches.rack[leaf[mine]]
    away_m = np.abs(floor.x_m[a] - floor.x_m[b]) + np.abs(floor.y_m[a] - floor.y_m[b])
    # two SUs of 8 racks and their leaf rack are two rows: 6 m long, 2.4 m apart
    assert away_m.max() <= 6 + 2 * 2.4


def test_spines_stand_in_the_middle_of_the_floor() -> None:
    _requirement, _design, placement = placed(spec("dgx-h100", 1016, NDR))
    fabric = placement.fabric
    spines = np.unique(fabric.switches.rack[fabric.switches.tier == 2])
    assert fabric.racks.name[spines].tolist() == ["B05"]  # of four rows A to D of ten racks
    managers = fabric.hosts.rack[fabric.hosts.role == 1]
    assert set(managers.tolist()) == set(spines.tolist())


def test_switches_stand_from_the_top_with_a_free_unit_for_cables() -> None:
    _requirement, _design, placement = placed(spec("dgx-h100", 1016, NDR))
    fabric = placement.fabric
    first = fabric.switches.rack == fabric.switches.rack[0]
    assert fabric.switches.rack_unit[first].tolist() == [
        48 - place_ * (1 + CABLE_UNITS) for place_ in range(16)
    ]


# Published racks ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "n_hosts", "limit_kw", "published"),
    [
        ("dgx-b200", 2, 40.8, "2x DGX B200"),
        ("dgx-b200", 4, 60.0, "4x DGX B200"),
        ("dgx-h100", 4, 40.8, "4x DGX H100"),
        ("dgx-b300", 4, 58.0, "4x DGX B300"),
    ],
)
def test_power_of_a_full_rack_is_the_published_one(
    shared: Path, host: str, n_hosts: int, limit_kw: float, published: str
) -> None:
    """Source: reference/servers.yaml, `racks`.

    Four DGX B300 are printed as 56 kW (RA-11339-001 V01); four times the 14.5 kW of the user
    guide are 58 kW: 3.6 % more.
    """
    reference = YAML(typ="safe").load(shared / "reference/servers.yaml")["racks"]
    printed = next(rack["kw"] for rack in reference if rack["config"] == published)
    site = f"{{rack_power_kw: {limit_kw}, rack_units: 52}}"
    _requirement, _design, placement = placed(spec(host, 32 * 8, NDR, site))
    fabric = placement.fabric
    per_rack = np.bincount(fabric.hosts.rack[fabric.hosts.role == 0])
    assert per_rack.max() == n_hosts
    assert fabric.racks.power_w.max() / 1000 == pytest.approx(printed, rel=0.036)
    if published != "4x DGX B300":
        assert fabric.racks.power_w.max() / 1000 == pytest.approx(printed, abs=0.05)


def test_an_su_of_dgx_b200_draws_458_kw() -> None:
    """Source: NVIDIA RA-11334-001 V08, "458 kW" an SU: 32 nodes of 14.3 kW are 457.6 kW."""
    _requirement, design, placement = placed(spec("dgx-b200", 256, NDR))
    power = rack_power(placement.fabric, placement.footprints)
    assert round(power.by_role_max_w["hosts"] / 1000) == 458
    assert design.sized.su_hosts == 32


def test_racks_of_the_h100_superpod() -> None:
    """Source: NVIDIA RA-11333-001 V11: 38 racks for 4 SU, management and storage among them.

    Ours are 35: 32 with hosts as there, two with leafs and one with spines and UFM. The storage
    and in-band switches, management servers and storage of the other racks are no part of the
    compute fabric, and we put two SUs' leafs into one rack.
    """
    _requirement, _design, placement = placed(spec("dgx-h100", 1016, NDR))
    kinds = placement.fabric.racks.kind.tolist()
    assert (kinds.count(0), kinds.count(1)) == (32, 3)


# Hosts per rack -----------------------------------------------------------------------------


def test_a_host_that_exceeds_a_rack_is_refused_with_the_remedy() -> None:
    with pytest.raises(InputError) as caught:
        placed(spec("dgx-h100", 64, NDR, "{rack_power_kw: 10, rack_units: 6}"))
    power, units = caught.value.faults
    assert str(power) == (
        "site.rack_power_kw: one dgx-h100 draws up to 10.2 kW, but a rack may draw 10 kW. "
        "Expected: 10.2 or more. Raise site.rack_power_kw, or choose a smaller host."
    )
    assert str(units) == (
        "site.rack_units: one dgx-h100 takes 8 rack units, but a rack has 6. "
        "Expected: 8 or more. Raise site.rack_units, or choose a smaller host."
    )


def test_too_many_hosts_per_rack_are_refused_with_the_remedy() -> None:
    with pytest.raises(InputError) as caught:
        placed(spec("dgx-h100", 64, "fabric: infiniband, hosts_per_rack: 5"))
    assert str(caught.value) == (
        'candidate "infiniband": hosts_per_rack: 5 dgx-h100 draw up to 51 kW and take 40 rack '
        "units, but a rack may draw 40.8 kW and has 48. Expected: at most 4. "
        "Lower hosts_per_rack, or raise site.rack_power_kw or site.rack_units."
    )


def test_a_switch_that_exceeds_a_rack_is_refused() -> None:
    with pytest.raises(InputError, match=r"a qm9700 draws up to 1\.72 kW, a rack may draw 1\.5"):
        placed(
            spec(
                "{gpus: 8, nics: 8, nic_gbps: 400, power_kw: 1, ru: 4}",
                64,
                NDR,
                "{rack_power_kw: 1.5}",
            )
        )


def test_hosts_per_rack_of_the_spec_is_taken() -> None:
    _requirement, _design, placement = placed(
        spec("dgx-h100", 64, "fabric: infiniband, hosts_per_rack: 2")
    )
    assert np.bincount(placement.fabric.hosts.rack).max() == 2
    assert placement.decisions[0].why == "Given by the spec."


def test_the_published_rack_of_a_host_is_the_default() -> None:
    """Source: reference/servers.yaml, Grand Teton: 2 hosts a rack, though 4 would fit."""
    _requirement, _design, placement = placed(spec("grand-teton-h100", 64, "fabric: roce"))
    assert np.bincount(placement.fabric.hosts.rack[placement.fabric.hosts.role == 0]).max() == 2
    assert placement.decisions[0].source


def test_a_host_that_is_a_rack_stands_alone_whatever_the_limit() -> None:
    _requirement, _design, placement = placed(spec("gb300-nvl72", 576, NDR))
    fabric, first = placement.fabric, placement.decisions[0]
    assert np.bincount(fabric.hosts.rack).max() == 1
    assert fabric.racks.power_w.max() == 142_000
    assert first.is_warning
    assert "a rack of its own" in first.why
    assert "40.8 kW" in first.why


def test_an_su_begins_a_rack_unless_that_wastes_much() -> None:
    su = np.repeat([0, 1, 2], [32, 32, 31]).astype(np.int32)
    assert fill_racks(su, 4).count.tolist() == [4] * 23 + [3]
    wasteful = np.repeat(np.arange(20), 5).astype(np.int32)
    assert fill_racks(wasteful, 4).count.tolist() == [4] * 25
    begins = fill_racks(np.repeat([0, 1], [31, 31]).astype(np.int32), 4)
    assert begins.count.tolist() == [4] * 7 + [3] + [4] * 7 + [3]


# Leafs among the hosts ----------------------------------------------------------------------


def test_leafs_that_serve_one_rack_stand_between_its_hosts() -> None:
    _requirement, _design, placement = placed(
        spec("grand-teton-h100", 512, MEETS_GRAND_TETON.format(n=2))
    )
    fabric = placement.fabric
    assert devices_of(fabric, 0) == [("host-01", 1), ("host-02", 11), ("leaf-su01", 9)]
    assert any(d.topic == "leaf_racks" and not d.is_warning for d in placement.decisions)


def test_leafs_that_do_not_fit_with_the_hosts_go_to_network_racks() -> None:
    family = MEETS_GRAND_TETON.format(n=2)
    _requirement, _design, placement = placed(
        spec("grand-teton-h100", 512, family, "{rack_power_kw: 21}")
    )
    fabric = placement.fabric
    leaf_racks = fabric.switches.rack[fabric.switches.tier == 1]
    assert (fabric.racks.kind[leaf_racks] == 1).all()
    assert any(d.topic == "leaf_racks" and d.is_warning for d in placement.decisions)


def test_leafs_of_rails_stand_in_network_racks_even_with_hosts_per_rack() -> None:
    _requirement, _design, placement = placed(
        spec("dgx-h100", 1016, "fabric: infiniband, hosts_per_rack: 2")
    )
    fabric = placement.fabric
    assert (fabric.racks.kind[fabric.switches.rack] == 1).all()


# Floor --------------------------------------------------------------------------------------


def test_a_large_floor_is_about_square_and_row_follows_on_row() -> None:
    floor = lay_floor(4416, Site())
    width_m, depth_m = np.ptp(floor.x_m), np.ptp(floor.y_m)
    assert 0.6 < width_m / depth_m < 1.6
    starts = np.flatnonzero(floor.position == 0)
    step_m = np.abs(np.diff(floor.x_m[starts])) + np.abs(np.diff(floor.y_m[starts]))
    assert step_m.max() <= 10 * 0.6 + 2.4 + 1e-9  # to the next row or the next column


def test_network_racks_take_the_places_amid_what_they_serve() -> None:
    floor = lay_floor(9, Site())
    slots = choose_slots(floor, 7, [(0, 6), (0, 2)], 10)
    assert slots.network.tolist() == [4, 1]
    assert slots.compute.tolist() == [0, 2, 3, 5, 6, 7, 8]


# Footprints ---------------------------------------------------------------------------------


def test_unknown_power_and_height_are_assumed_and_marked_never_zero() -> None:
    known = catalog().switch("qm9700")
    bare = switch_footprint(known.model_copy(update={"power": None, "size": None}))
    assert bare == Footprint(
        "qm9700",
        1,
        ASSUMED_SWITCH_W_PER_TBPS * 25.6,
        0.8 * ASSUMED_SWITCH_W_PER_TBPS * 25.6,
        assumed=("height", "largest power", "typical power"),
    )
    host = catalog().host("dgx-h100").model_copy(update={"power": None, "size": None})
    assert host_footprint(host).max_w == 8 * 1275  # the DGX H100's own 10.2 kW
    assert host_footprint(host).assumed == ("height", "largest power", "typical power")
    assert manager_footprint("unheard-of", catalog()).max_w > 0
    assert manager_footprint("unheard-of", None).assumed


def test_every_device_of_the_catalogue_has_a_footprint() -> None:
    prints = [host_footprint(host) for host in catalog().hosts.values()]
    prints += [switch_footprint(switch) for switch in catalog().switches.values()]
    for mine in prints:
        assert mine.units >= 1
        assert 0 < mine.typical_w <= mine.max_w


@pytest.mark.parametrize(
    ("name", "max_w", "source"),
    [
        ("qm9700", 1720, "QM97x0 manual: active cables"),
        ("sn5610", 2080, "SN5000 manual: 64 optics"),
        ("sn5600", 940 + 64 * 18, "940 W with passive cables, 18 W a cage"),
        ("drivenets-2500s", 1684 + 64 * 17, "AMD x DriveNets RA, Table 5, no optics; 17 W each"),
    ],
)
def test_largest_power_of_a_switch_counts_its_optics(name: str, max_w: float, source: str) -> None:
    assert switch_footprint(catalog().switch(name)).max_w == pytest.approx(max_w), source


def test_assumptions_are_told() -> None:
    _requirement, _design, placement = placed(spec("dgx-h100", 64, "fabric: roce"))
    told = {d.choice for d in placement.decisions if d.topic == "footprint"}
    assert told == {mine.model for mine in placement.footprints.values() if mine.assumed}


# Power and heat -----------------------------------------------------------------------------


def test_power_and_heat_of_each_rack_and_in_all() -> None:
    _requirement, _design, placement = placed(spec("dgx-h100", 1016, NDR))
    power = rack_power(placement.fabric, placement.footprints)
    np.testing.assert_allclose(power.max_w, placement.fabric.racks.power_w, rtol=1e-6)
    assert power.by_role_max_w == {
        "hosts": 127 * 10_200.0,
        "managers": 2 * 689.0,
        "switches": 48 * 1720.0,
    }
    assert power.total_max_w == pytest.approx(sum(power.by_role_max_w.values()))
    assert power.max_btu_per_h[0] == pytest.approx(40_800 * 3.412142)
    assert pytest.approx(3600 / 1055.056, rel=1e-6) == BTU_PER_H_PER_W
    assert power.total_typical_w < power.total_max_w


def test_network_share_of_it_power_is_about_six_percent() -> None:
    """Source: reference/prices_recommended.csv: 48 QM9700 at 1.72 kW beside 127 x 10.2 kW."""
    _requirement, _design, placement = placed(spec("dgx-h100", 1016, NDR))
    power = rack_power(placement.fabric, placement.footprints)
    share = power.by_role_max_w["switches"] / power.total_max_w
    assert share == pytest.approx(0.060, abs=0.001)


def test_typical_power_of_a_switch_counts_the_modules_it_holds() -> None:
    whole = laid(spec("dgx-h100", 1016, NDR))
    fabric, prints = whole.fabric, whole.placement.footprints
    modules_w = optics_power(whole.cabling)
    assert modules_w.tolist() == [32 * 15.0] * 48  # 32 cages of MMA4Z00 at 15 W
    bare = rack_power(fabric, prints)
    full = rack_power(fabric, prints, whole.cabling)
    assert full.total_typical_w - bare.total_typical_w == pytest.approx(48 * 32 * 15.0)
    assert (full.typical_w <= full.max_w).all()


def test_todays_power_is_that_of_todays_devices() -> None:
    whole = laid(spec("dgx-h100", 512, NDR, more="growth: {gpus: 1024}\n"))
    today = rack_power(whole.fabric, whole.placement.footprints, whole.cabling, stage=0)
    later = rack_power(whole.fabric, whole.placement.footprints, whole.cabling)
    assert today.by_role_max_w["hosts"] == 64 * 10_200.0
    assert later.by_role_max_w["hosts"] == 128 * 10_200.0
    assert (today.typical_w <= later.typical_w + 1e-9).all()


def test_thousands_of_racks_are_told_with_separators() -> None:
    _requirement, _design, placement = placed(spec("hgx-h100", 32_768, NDR, "{rack_power_kw: 21}"))
    (floor,) = (d for d in placement.decisions if d.topic == "floor")
    n_racks = len(placement.fabric.racks)
    assert n_racks > 2000
    assert floor.choice.startswith(f"{n_racks:,} racks in ")
    compute = int((placement.fabric.racks.kind == 0).sum())
    assert floor.why.startswith(f"{compute:,} racks hold hosts")
