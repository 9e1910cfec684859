"""For every pair of ports of the catalogue there is something to join them with."""

from __future__ import annotations

from typing import Literal

import pytest

from gpufabric.catalog.joining import JoinOption, PortEnd, join_options, nic_end, switch_end
from gpufabric.catalog.load import load_catalog
from gpufabric.catalog.switch import Switch

CATALOG = load_catalog()
PARTS = tuple(CATALOG.parts.values())
LENGTHS_M = (1, 4, 20, 45, 90, 400)
LANES = {"qsfp28": 4, "qsfp56": 4, "qsfp112": 4, "qsfp-dd": 8, "osfp": 8, "osfp1600": 8}
SWITCHES = [switch for switch in CATALOG.switches.values() if switch.deployable]


Fabric = Literal["infiniband", "roce"]
Pair = tuple[PortEnd, PortEnd, float, int, Fabric]


def options(
    ends: tuple[PortEnd, PortEnd], link_gbps: float, length_m: float, fabric: Fabric
) -> tuple[JoinOption, ...]:
    return join_options(PARTS, ends, link_gbps, length_m, fabric)


def lane_gbps(end: PortEnd, link_gbps: float) -> float:
    """Lane that is needed for that many links in the cage [Gb/s]."""
    return link_gbps * end.links_per_cage / LANES[end.cage]


def pairs() -> list[Pair]:
    """Give every different pair of a switch and a NIC that could be linked at a speed."""
    found: set[Pair] = set()
    for switch in SWITCHES:
        for host in CATALOG.hosts.values():
            nic = CATALOG.nic(host.nics.model)
            if switch.fabric not in nic.protocols:
                continue
            for mode in nic.port_modes:
                fits = mode.ports * mode.gbps <= host.nics.gbps
                if fits and switch.port_count_at(mode.gbps) is not None:
                    near = switch_end(switch.ports, mode.gbps)
                    far = nic_end(host, nic, mode.ports)
                    found.add((near, far, mode.gbps, mode.ports, switch.fabric))
    return sorted(found, key=repr)


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: switch.name)
def test_switches_can_be_joined_at_every_speed_and_distance(switch: Switch) -> None:
    for gbps in (switch.ports.gbps, *switch.ports.breakouts):
        end = switch_end(switch.ports, gbps)
        for length_m in LENGTHS_M:
            assert options((end, end), gbps, length_m, switch.fabric), (gbps, length_m)


def test_switches_can_be_joined_over_two_kilometres() -> None:
    for switch in SWITCHES:
        gbps = switch.ports.gbps
        end = switch_end(switch.ports, gbps)
        assert options((end, end), gbps, 2000, switch.fabric), switch.name


def test_nics_can_be_joined_to_every_switch_whose_lanes_they_run() -> None:
    pairings = pairs()
    assert len(pairings) > 50
    n_possible = 0
    for near, far, gbps, n_ports, fabric in pairings:
        slowest = min(near.lane_gbps, far.lane_gbps)
        needed = max(lane_gbps(near, gbps), lane_gbps(far, gbps))
        if needed > slowest or (n_ports > 1 and lane_gbps(near, gbps) < 100):
            continue  # lanes that one end cannot run; NICs are split at 100 Gb/s a lane and up
        n_possible += 1
        for length_m in LENGTHS_M:
            assert options((near, far), gbps, length_m, fabric), (near, far, gbps, length_m)
    assert n_possible > 30


def test_nothing_joins_ports_whose_lanes_differ() -> None:
    """Tomahawk 6 ports split in four run lanes of 200 Gb/s; ConnectX-7 stops at 100."""
    near = switch_end(CATALOG.switch("tomahawk-6").ports, 400)
    host = CATALOG.host("hgx-h100")
    far = nic_end(host, CATALOG.nic("connectx-7"))
    assert not any(options((near, far), 400, length_m, "roce") for length_m in LENGTHS_M)


def test_superpod_links() -> None:
    switch = switch_end(CATALOG.switch("qm9700").ports, 400)
    host = CATALOG.host("dgx-h100")
    far = nic_end(host, CATALOG.nic("connectx-7"))
    best = options((switch, far), 400, 30, "infiniband")[0]
    assert (best.near.name, best.far.name) == ("mma4z00-ns", "mma4z00-ns-flt")
    assert (best.near_share, best.far_share) == (2, 2)
    assert best.fibre.mates_with == "om4-mpo12"
    assert options((switch, switch), 400, 1.5, "infiniband")[0].near.name == "mcp4y10-n"
    assert options((switch, switch), 400, 45, "infiniband")[0].far.name == "mma4z00-ns"
    assert options((switch, switch), 400, 80, "infiniband")[0].near.name == "mms4x00-ns"
    assert options((switch, switch), 400, 300, "infiniband")[0].near.name == "mms4x00-nm"


def test_splitter_halves_the_rate() -> None:
    near = switch_end(CATALOG.switch("qm9700").ports, 200)
    far = nic_end(CATALOG.host("hgx-h100"), CATALOG.nic("connectx-7"))
    best = options((near, far), 200, 30, "infiniband")[0]
    assert best.near_splitter.link.fan_out == 2
    assert best.fibre is None
    assert (best.near_share, best.far_share) == (4, 1)


def test_dr4_breaks_out_to_four_single_lane_modules() -> None:
    near = switch_end(CATALOG.switch("sn5400").ports, 100)
    far = switch_end(CATALOG.switch("sn4600c").ports, 100)
    found = options((near, PortEnd("qsfp28", "nic", 25, 1)), 100, 300, "roce")
    assert found[0].near_splitter.name == "os2-mpo12-lc-split-4"
    assert found[0].far.name == "qsfp28-100g-dr1"
    assert far.links_per_cage == 1


def test_no_cable_is_longer_than_its_reach() -> None:
    end = switch_end(CATALOG.switch("sn5600").ports, 800)
    for length_m in (1, 2, 2.5, 6, 60, 150):
        for option in options((end, end), 800, length_m, "roce"):
            pieces = (option.near, option.far, option.fibre)
            assert all(
                piece is None or piece.reach_m is None or piece.reach_m >= length_m
                for piece in pieces
            )


def test_cheapest_comes_first_and_unknown_prices_last() -> None:
    end = switch_end(CATALOG.switch("sn5600").ports, 400)
    prices = [option.mid_usd_per_link(3) for option in options((end, end), 400, 3, "roce")]
    known = [price for price in prices if price is not None]
    assert known == sorted(known)
    assert prices[: len(known)] == known
    unpriced = CATALOG.part("mcp4y10-n").model_copy(update={"price": None})
    found = join_options((unpriced, *PARTS), (end, end), 400, 1, "roce")
    assert found[-1].near is unpriced


def test_a_twin_cable_costs_half_a_link() -> None:
    end = switch_end(CATALOG.switch("qm9700").ports, 400)
    best = options((end, end), 400, 2, "infiniband")[0]
    assert best.mid_usd_per_link(2) == pytest.approx(220)


def test_protocols_are_kept_apart() -> None:
    end = switch_end(CATALOG.switch("sn5600").ports, 800)
    assert options((end, end), 800, 1, "roce")
    assert not options((end, end), 800, 1, "infiniband")


def test_speed_that_ports_do_not_have() -> None:
    with pytest.raises(ValueError, match="300"):
        switch_end(CATALOG.switch("sn5600").ports, 300)
