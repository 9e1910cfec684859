from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpufabric.catalog.joining import PortEnd, nic_end, switch_end
from gpufabric.core.errors import InputError
from gpufabric.topology.optics import (
    LinkClass,
    Media,
    choose_media,
    media_name,
    ordered_lengths,
)
from tests.topology.make_laid import catalog

RANK = {"dac": 0, "acc": 1, "aec": 1, "aoc": 2, "optics": 3}


def links(switch: str, gbps: float, need_m: float, host: str = "", **changes: Any) -> LinkClass:
    """Return links between two switches of one model, or from its leafs to hosts."""
    entry = catalog().switch(switch)
    upper = switch_end(entry.ports, gbps)
    lower = upper
    if host:
        known = catalog().host(host)
        lower = nic_end(known, catalog().nic(known.nics.model))
    made = LinkClass(
        kind="host_leaf" if host else "leaf_spine",
        gbps=gbps,
        fabric=entry.fabric,
        lower=lower,
        upper=upper,
        lower_max_w=None if host else entry.max_optic_w,
        upper_max_w=entry.max_optic_w,
        n_links=64,
        need_m=need_m,
        far_plugs={"a": 1, "b": 1},
    )
    return replace(made, **changes)


def chosen(entry: LinkClass) -> Media:
    (media,), _why = choose_media([entry], [], catalog(), "x")
    return media


# Kind by length -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("need_m", "name"),
    [
        (1.6, "mcp4y10-n"),  # twin-port DAC, 2 m: NVIDIA MCP4Y10 specifications
        (4.0, "mma4z00-ns+mfp7e10-n+mma4z00-ns"),  # no active cable: RA-11333-001 V11
        (45.0, "mma4z00-ns+mfp7e10-n+mma4z00-ns"),  # SR4, 50 m
        (80.0, "mms4x00-ns+mfp7e30-n+mms4x00-ns"),  # DR4, 100 m as sold
        (250.0, "mms4x00-nm+os2-mpo12-trunk+mms4x00-nm"),  # DR4, 500 m
    ],
)
def test_infiniband_between_twin_port_switches(need_m: float, name: str) -> None:
    assert chosen(links("qm9700", 400, need_m)).name == name


@pytest.mark.parametrize(
    ("need_m", "kind"), [(1.5, "dac"), (2.1, "acc"), (5.0, "acc"), (5.1, "aoc"), (30.0, "aoc"),
                         (30.1, "optics"), (900.0, "optics")]
)  # fmt: skip
def test_ethernet_follows_the_rule_of_its_class(need_m: float, kind: str) -> None:
    """Source: "DAC <= 2 m, AEC 3-5 m, AOC 5-30 m, optics > 30 m", axiomupgrades.com, 2025-12."""
    assert chosen(links("sn5600", 800, need_m)).kind == kind


def test_a_reach_from_the_makers_papers_counts_more_than_the_rule() -> None:
    """Source: MCP7Y00 is sold up to 3 m (NVIDIA). That MFS1S00 reaches 100 m is only derived."""
    split = links("qm9700", 400, 2.8, "hgx-h100", far_plugs={"b": 2})
    assert (chosen(split).kind, chosen(split).name) == ("dac", "mcp7y00-n")
    assert catalog().part("mfs1s00-h").reach_m == 100.0
    assert chosen(links("qm8700", 200, 30.0)).name == "mfs1s00-h"
    assert chosen(links("qm8700", 200, 30.1)).kind == "optics"


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([("qm9700", 400), ("qm8700", 200), ("q3400-ra", 800), ("sn5600", 800),
                     ("th4-64x400g", 400), ("th5-128x400g", 400)]),
    st.lists(st.floats(0.5, 490.0), min_size=2, max_size=5),
)  # fmt: skip
def test_longer_links_never_take_a_kind_of_shorter_reach(
    switch: tuple[str, float], needs_m: list[float]
) -> None:
    media = [chosen(links(*switch, need_m)) for need_m in sorted(needs_m)]
    ranks = [RANK[entry.kind] for entry in media]
    assert ranks == sorted(ranks)
    for need_m, entry in zip(sorted(needs_m), media, strict=True):
        ordered_m = float(ordered_lengths(entry.cable, np.array([need_m]))[0])
        assert need_m - 1e-6 <= ordered_m <= entry.reach_m


# Cages --------------------------------------------------------------------------------------


def test_twin_port_cages_of_hosts_take_twin_port_modules() -> None:
    media = chosen(links("qm9700", 400, 10.0, "dgx-h100", far_plugs={}, lower=PortEnd(
        "osfp", "nic", 100.0, 2)))  # fmt: skip
    assert (media.module_a.name, media.module_b.name) == ("mma4z00-ns-flt", "mma4z00-ns")
    assert media.module_a.links_per_module == 2


def test_single_port_cages_of_hosts_take_single_modules() -> None:
    media = chosen(links("qm9700", 400, 10.0, "hgx-h100", far_plugs={}))
    assert (media.module_a.name, media.module_b.name) == ("mma4z00-ns400", "mma4z00-ns")


def test_cables_with_fixed_plugs_need_cages_that_lead_nowhere_else() -> None:
    near = links("qm9700", 400, 1.0)
    assert chosen(near).kind == "dac"
    assert chosen(replace(near, far_plugs={})).kind == "optics"
    assert chosen(replace(near, far_plugs={"a": 2, "b": 2})).kind == "optics"


def test_one_cage_to_two_hosts_takes_a_splitting_cable() -> None:
    entry = links("sn5600", 400, 12.0, "hgx-h100", far_plugs={"b": 2})
    media = chosen(entry)
    assert (media.kind, media.cable.link.fan_out, media.trunk) == ("aoc", 2, "b")
    assert media.links_per_cable == 2
    assert chosen(replace(entry, far_plugs={"a": 2})).kind == "optics"  # the wrong way round


def test_a_connector_of_two_links_takes_a_splitter() -> None:
    entry = links("sn5600", 200, 40.0, "mi300x", far_plugs={})
    media = chosen(entry)
    assert media.kind == "optics"
    assert media.cable.form == "splitter"
    assert (media.trunk, media.links_per_cable) == ("b", 2)


def test_links_split_at_both_ends_take_splitters_and_single_fibres() -> None:
    end = PortEnd("osfp", "nic", 200.0, 4)
    media = chosen(links("sn5600", 200, 20.0, "dgx-b300", far_plugs={}, lower=end))
    assert media.splitter_a is not None
    assert media.splitter_b is not None
    assert (media.cable.form, media.links_per_cable, media.trunk) == ("fibre", 1, "")


def test_modules_of_800g_take_two_fibres_a_link() -> None:
    media = chosen(links("sn5600", 800, 80.0))
    assert media.cables_per_link == media.module_a.link.fibres_per_link == 2


def test_modules_without_retimer_are_not_chosen() -> None:
    """LPO is the cheapest 800G module of the catalogue and has the same reach."""
    dr8, lpo = catalog().part("osfp-800g-dr8"), catalog().part("osfp-800g-lpo-dr8")
    assert lpo.price.mid_usd < dr8.price.mid_usd
    assert chosen(links("sn5600", 800, 80.0)).module_a.name == dr8.name
    only = {name: catalog().part(name) for name in (lpo.name, "os2-mpo12-trunk")}
    (media,), _why = choose_media(
        [links("sn5600", 800, 80.0)], [], replace(catalog(), parts=only), "x"
    )
    assert media.module_a.name == lpo.name


# Power --------------------------------------------------------------------------------------


def test_modules_stay_within_the_power_of_the_cage() -> None:
    """SN5400 gives 12 W a cage (NVIDIA SN5000 manual), QM9700 17 W (QM97x0 manual)."""
    for name in ("sn5400", "qm9700"):
        switch = catalog().switch(name)
        for need_m in (1.0, 4.0, 20.0, 45.0, 80.0):
            media = chosen(links(name, 400, need_m))
            for part in (media.module_a or media.cable, media.module_b or media.cable):
                assert part.power_w is None or part.power_w.high <= switch.max_optic_w


def test_a_cage_without_power_for_any_module_is_told() -> None:
    entry = links("qm9700", 400, 40.0, lower_max_w=10.0, upper_max_w=10.0)
    with pytest.raises(InputError, match="do not fit the cages' power"):
        choose_media([entry], [], catalog(), "x")


# Classes that share cages -------------------------------------------------------------------


def test_classes_that_share_cages_take_one_module() -> None:
    hosts = links("qm9700", 400, 10.0, "hgx-h100", far_plugs={})
    spines = links("qm9700", 400, 80.0, far_plugs={})
    apart, _why = choose_media([hosts, spines], [], catalog(), "x")
    assert apart[0].module_b != apart[1].module_a
    joint, _why = choose_media([hosts, spines], [((0, "b"), (1, "a"))], catalog(), "x")
    assert joint[0].module_b == joint[1].module_a
    assert joint[0].module_b.reach_m >= 80.0


def test_classes_that_share_cages_take_no_fixed_plugs() -> None:
    near = links("qm9700", 400, 1.0)
    hosts = links("qm9700", 400, 1.0, "hgx-h100", far_plugs={"b": 2})
    joint, _why = choose_media([hosts, near], [((0, "b"), (1, "a"))], catalog(), "x")
    assert {media.kind for media in joint} == {"optics"}


# Faults and words ---------------------------------------------------------------------------


def test_no_part_is_a_fault_that_names_link_speed_cages_and_distance() -> None:
    entries = [
        links("qm9700", 400, 3000.0),
        links("sn5600", 200, 12.0, "dgx-a100"),
    ]
    with pytest.raises(InputError) as caught:
        choose_media(entries, [], catalog(), "mine")
    far, unfit = caught.value.faults
    assert str(far) == (
        'candidate "mine": cabling: no part joins leaf_spine links of 400 Gb/s from osfp cages '
        "(2 a cage) to osfp cages (2 a cage) over 3000.0 m. Known parts reach 2000 m: shorten "
        "the floor with site.racks_per_row."
    )
    assert str(unfit) == (
        'candidate "mine": cabling: no part joins host_leaf links of 200 Gb/s from qsfp56 cages '
        "(1 a cage) to osfp cages (4 a cage) over 12.0 m. Choose another switch or host, or add "
        "the part with --catalog."
    )


def test_each_choice_is_told_with_its_source() -> None:
    entries = [links("qm9700", 400, 1.0), links("qm9700", 400, 10.0, far_plugs={})]
    media, why = choose_media(entries, [], catalog(), "x")
    assert [decision.choice for decision in why] == [entry.name for entry in media]
    assert all(decision.source and decision.why for decision in why)
    assert "fibre for each link" in why[1].why


def test_a_long_name_is_cut_and_stays_unique() -> None:
    part = catalog().part
    pieces = [part("osfp-2x400g-dr4-nic"), part("os2-mpo12-split-4"), part("os2-mpo12-trunk")]
    one = media_name([*pieces, part("mms4x00-nm")])
    two = media_name([*pieces, part("mms4x00-ns")])
    assert one != two
    assert max(len(one), len(two)) <= 60


@given(st.lists(st.floats(0.01, 400.0), min_size=1, max_size=20))
def test_ordered_lengths_are_sold_or_whole_metres(needs_m: list[float]) -> None:
    for name in ("mfp7e10-n", "os2-mpo12-trunk", "mcp4y10-n"):
        cable = catalog().part(name)
        for need_m, ordered_m in zip(
            needs_m, ordered_lengths(cable, np.array(needs_m)).tolist(), strict=True
        ):
            assert ordered_m >= need_m - 1e-6
            assert ordered_m in (cable.lengths_m or ()) or ordered_m == int(ordered_m)
            shorter = [m for m in cable.lengths_m or () if need_m <= m < ordered_m]
            assert shorter == []
