"""Every row of the shared reference files is in the catalogue with equal numbers.

A key of a row that no check below reads makes the test fail, so that nothing is left out.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from gpufabric.catalog.load import load_catalog

CATALOG = load_catalog()
Row = dict[str, Any]
Check = Callable[[Any, Any], bool]

ABOUT = {"model", "vendor", "source", "primary", "date", "kind", "note", "part", "desc", "asic"}
"""Keys that are no numbers."""


@pytest.fixture(scope="module")
def reference(shared: Path) -> Callable[[str], Any]:
    """Read one of the reference files."""

    def read(name: str) -> Any:
        return YAML(typ="safe", pure=True).load(shared / "reference" / name)

    return read


def within(group: Any, value: Any) -> bool:
    """Whether a range holds a value, or the two ends of one, as its own ends."""
    values = value if isinstance(value, list) else [value]
    return {float(item) for item in values} <= {group.low, group.high}


def check_row(row: Row, device: Any, checks: dict[str, Check]) -> None:
    for key, value in row.items():
        if key in ABOUT or value is None:
            continue
        assert key in checks, f"{row.get('model', row.get('part'))}: nothing checks {key}"
        assert checks[key](device, value), f"{device.name}: {key}: {value}"


def _breakout(device: Any, text: str) -> bool:
    return all(
        device.port_count_at(float(gbps)) == int(count)
        for count, gbps in re.findall(r"(\d+)x(\d+)G", text)
    )


def _optic(device: Any, value: Any) -> bool:
    if isinstance(value, str):
        optics = device.optics
        printed = f"{optics.max_w:g} W all ports; {optics.max_some_w:g} W on {optics.some_cages}"
        return value == f"{printed} named ports"
    return bool(device.max_optic_w == value)


def _buffer(device: Any, value: Any) -> bool:
    numbers = [float(n) for n in re.findall(r"\d+", value)] if isinstance(value, str) else value
    return bool(device.buffer_mb.low == min(numbers) and device.buffer_mb.high == max(numbers))


SWITCH_CHECKS: dict[str, Check] = {
    "proto": lambda d, v: d.fabric == ("infiniband" if v.startswith("IB") else "roce"),
    "ports": lambda d, v: d.ports.count == v,
    "port_gbps": lambda d, v: d.ports.gbps == v,
    "cages": lambda d, v: d.ports.cages == v,
    "cage": lambda d, v: d.ports.cage == ("osfp1600" if "1.6T" in v else "osfp"),
    "capacity_tbps": lambda d, v: v in (d.ports.capacity_tbps, d.ports.capacity_bidirectional_tbps),
    "capacity_tbps_bidir": lambda d, v: d.ports.capacity_bidirectional_tbps == v,
    "net_ports": lambda d, v: d.ports.network_ports == v,
    "fabric_ports": lambda d, v: d.ports.fabric_ports == v,
    "uplinks": lambda d, v: v == f"{d.uplinks.count}x{d.uplinks.gbps:g}G",
    "breakout": _breakout,
    "managed": lambda d, v: d.managed is v,
    "ru": lambda d, v: d.size.ru == v,
    "weight_kg": lambda d, v: d.size.weight_kg == v,
    "psu_max_draw_w": lambda d, v: d.power.max_w == v,
    "power_typ_passive_w": lambda d, v: (
        d.power.typical_w == v and d.power.typical_is == "passive cables"
    ),
    "power_max_active_w": lambda d, v: d.power.max_w == v and d.power.max_is == "active cables",
    "power_typ_w": lambda d, v: d.power.typical_w == v,
    "power_max_w": lambda d, v: d.power.max_w == v,
    "power_typ_no_optics_w": lambda d, v: (
        d.power.typical_w == v and d.power.typical_is == "no optics"
    ),
    "power_max_no_optics_w": lambda d, v: d.power.max_w == v and d.power.max_is == "no optics",
    "power_64_optics_w": lambda d, v: d.power.with_optics_w == v and d.ports.cages == 64,
    "power_w_chip": lambda d, v: [d.power.typical_low_w, d.power.typical_w] == v,
    "max_optic_w": _optic,
    "gpps": lambda d, v: d.scale.packets_gpps == v,
    "latency_ns_published": lambda d, v: within(d.hop_latency_ns, v),
    "buffer_mb": _buffer,
    "two_tier_max_endpoints": lambda d, v: d.scale.two_tier_max_endpoints == v,
    "radix_200g": lambda d, v: (d.scale.radix, d.scale.endpoint_gbps) == (v, 200),
    "two_tier_max_200g": lambda d, v: d.scale.two_tier_max_endpoints == v,
    "serdes": lambda d, v: d.ports.serdes == v,
    "availability": lambda d, v: d.availability.quarter == v,
}
SWITCH_NAMES = {"Q3400 (power)": "q3400-ra", "SN5600 buffer": "sn5600"}


def test_switches(reference: Callable[[str], Any]) -> None:
    rows = reference("switches.yaml")["switches"]
    assert len(rows) >= 27
    for row in rows:
        device = CATALOG.switch(SWITCH_NAMES.get(row["model"], row["model"]))
        check_row(row, device, SWITCH_CHECKS)


def test_latencies_beside_the_switches(reference: Callable[[str], Any]) -> None:
    read = reference("switches.yaml")
    hop = read["ethernet_hop_latency_ns"]
    assert CATALOG.switch("sn5600").hop_latency_ns.value == hop["spectrum4"]
    assert CATALOG.switch("qm9700").hop_latency_ns.low == hop["quantum2"]
    rule = CATALOG.media_rule
    assert rule.delay.fibre_ns_per_m == hop["fibre_ns_per_m"]
    assert rule.delay.copper_ns_per_m == read["copper_delay_ns_per_m"]["passive_dac_max"]
    assert within(rule.one_asic_ns, read["nic_to_nic_one_asic_ns"]["range"])


def _protocols(device: Any, value: list[str]) -> bool:
    named = {"infiniband" if text.startswith("IB") else "roce" for text in value}
    return named <= set(device.protocols)


def _helios_nics() -> tuple[str, int]:
    nics = CATALOG.host("helios-mi455x").nics
    return nics.model, nics.count


NIC_CHECKS: dict[str, Check] = {
    "gbps": lambda d, v: d.gbps == v,
    "gbps_per_instance": lambda d, v: d.ports.instance_gbps == v,
    "ports": lambda d, v: all(
        any(f"{mode.ports}x{mode.gbps:g}" == text for mode in d.port_modes)
        for text in re.findall(r"\dx\d00", v)
    ),
    "pcie": lambda d, v: d.pcie == v,
    "protocols": _protocols,
    "power_w_typ": lambda d, v: v in (d.power.typical_low_w, d.power.typical_w),
    "power_w_max": lambda d, v: d.power.max_w == v,
    "power_w_range": lambda d, v: [d.power.max_low_w, d.power.max_w] == v,
    "per_gpu": lambda d, v: (d.name, 72 * v) == _helios_nics(),
}
NIC_NAMES = {
    "BlueField-3 DPU (full)": "bluefield-3-b3240",
    "BlueField-3 (in a server power audit)": "bluefield-3-b3240",
    "ConnectX-8 (on baseboard": "connectx-8",  # a comma ends the name in that file
    "AWS EFA v2/v3 (P5/P5en)": "efa-p5",
}


def test_nics(reference: Callable[[str], Any]) -> None:
    rows = reference("nics.yaml")["nics"]
    assert len(rows) >= 15
    for row in rows:
        device = CATALOG.nic(NIC_NAMES.get(row["model"], row["model"]))
        check_row(row, device, NIC_CHECKS)


def _host_nics(device: Any, text: str) -> bool:
    """Compare what a row says of NICs, in each of the forms used there."""
    compute = device.nics
    if text.startswith("as "):
        other = CATALOG.host(text.removeprefix("as ")).nics
        return bool(compute.count == other.count and compute.gbps == other.gbps)
    if per := re.fullmatch(r"(\d) x .* (\d+)G per GPU", text):
        count = int(per[1]) * device.gpus
        return bool((compute.count, compute.gbps) == (count, float(per[2])))
    if tray := re.fullmatch(r"(\d)x CX-8 (\d+)G per tray", text):
        count = int(tray[1]) * device.rack.compute_trays
        return bool((compute.count, compute.gbps) == (count, float(tray[2])))
    found = re.match(r"(\d+)x(\d+)G", text)
    assert found is not None, text
    cages = re.search(r"on (\d) (twin-port )?OSFP", text)
    fits = cages is None or compute.count == int(cages[1]) * compute.nics_per_cage
    return bool(fits and (compute.count, compute.gbps) == (int(found[1]), float(found[2])))


def _per_gpu(device: Any, text: str) -> bool:
    count, gbytes = re.match(r"(\d) x ([\d.]+) GB/s", text).groups()
    return bool(device.scale_up.gbytes_per_s_per_gpu == pytest.approx(int(count) * float(gbytes)))


def _rack_w(device: Any, value: Any) -> bool:
    if isinstance(value, list):
        return [device.power.max_low_w, device.power.max_w] == [1000 * item for item in value]
    return bool(device.power.max_w == 1000 * value)


def _rack_of_64(device: Any, text: str) -> bool:
    gpus, kilowatt = re.match(r"(\d+) GPUs at (\d+) kW", text).groups()
    rack = device.rack_power[0]
    return bool(rack.hosts * device.gpus == int(gpus) and rack.rack_w == 1000 * int(kilowatt))


HOST_CHECKS: dict[str, Check] = {
    "gpus": lambda d, v: d.gpus == v,
    "hbm_gb": lambda d, v: d.gpus * d.gpu_memory_gb == v,
    "hbm_gb_per_gpu": lambda d, v: d.gpu_memory_gb == v,
    "nvlink_gen": lambda d, v: d.nvlink.generation == v,
    "nvlink_gbytes_per_gpu": lambda d, v: d.nvlink.gbytes_per_s_per_gpu == v,
    "nvlink_total_tbytes": lambda d, v: d.nvlink.total_tbytes_per_s == v,
    "scaleup_gbytes_per_gpu": lambda d, v: d.scale_up.gbytes_per_s_per_gpu == v,
    "fabric": _per_gpu,
    "nics": _host_nics,
    "ru": lambda d, v: d.size.ru == v,
    "weight_kg": lambda d, v: d.size.weight_kg == v,
    "power_kw_max": lambda d, v: d.power.max_w == pytest.approx(1000 * v),
    "power_kw": _rack_w,
    "power_kw_nominal_oem": lambda d, v: d.power.nominal_w == 1000 * v,
    "power_shelves": lambda d, v: d.rack.power_shelves == v,
    "psu": lambda d, v: d.power.supplies == v,
    "trays": lambda d, v: d.rack.compute_trays == v,
    "gpu_w": lambda d, v: d.power.gpu_w == v,
    "other_w_per_gpu": lambda d, v: d.power.other_w_per_gpu == v,
    "total_w_per_gpu": lambda d, v: d.power.max_w == 8 * v,
    "nodes_per_rack": lambda d, v: d.racking.hosts_per_rack == v,
    "cooling": lambda d, v: d.racking.cooling == v,
    "rack": _rack_of_64,
}
HOST_NAMES = {"H100 server overhead": "hgx-h100", "HGX B200 GPU": "hgx-b200"}
HOST_NAMES["HGX B300 server (ASUS XA NB3I-E12)"] = "hgx-b300"


def test_hosts(reference: Callable[[str], Any]) -> None:
    rows = reference("servers.yaml")["servers"]
    assert len(rows) >= 17
    for row in rows:
        if row["model"].startswith("UFM"):
            ufm = CATALOG.equipment_item(row["model"])
            assert (ufm.size.ru, ufm.power.max_w) == (row["ru"], 1000 * row["power_kw_max"])
            continue
        device = CATALOG.host(HOST_NAMES.get(row["model"], row["model"]))
        check_row(row, device, HOST_CHECKS)


def test_racks(reference: Callable[[str], Any]) -> None:
    for row in reference("servers.yaml")["racks"]:
        count, model = re.match(r"(\d)x (.*)", row["config"]).groups()
        racks = {rack.hosts: rack for rack in CATALOG.host(model).rack_power}
        rack = racks[int(count)]
        assert rack.rack_w == pytest.approx(1000 * row["kw"])
        if "ru" in row:
            assert rack.ru == int(str(row["ru"]).split()[0])
        if "feeds" in row:
            assert rack.feeds == row["feeds"].replace("3-ph", "3-phase")


def _power(device: Any, value: Any) -> bool:
    return device.power_w is not None and within(device.power_w, value)


TWO_OM4 = "OM4 MPO-12/APC x2"
PART_CHECKS: dict[str, Check] = {
    "reach_m": lambda d, v: d.reach_m == v,
    "fibre": lambda d, v: (d.mates_with, d.link.links, v) == ("om4-mpo12", 2, TWO_OM4),
    "power_w": _power,
    "power_w_typ": _power,
    "power_w_range": _power,
    "power_at_200g_w": lambda d, v: within(d.power_at_half_speed_w, v),
    "delay_ns_per_m": lambda d, v: d.link.delay_ns_per_m == v,
    "end": lambda d, v: d.end == v or (v == "each" and d.far_cage is not None),
    "reach_note": lambda d, v: v.startswith(f"{min(d.lengths_m):g}-{max(d.lengths_m):g} m"),
}
PART_NAMES = {
    "800G DSP module": "osfp-800g-dr8",
    "800G LPO module": "osfp-800g-lpo-dr8",
    "800G typical": "osfp-800g-sr8",
    "1.6T DR8": "osfp1600-1600g-dr8",
}


def test_parts(reference: Callable[[str], Any]) -> None:
    rows = {row["part"]: row for row in reference("transceivers.yaml")["transceivers"]}
    rule = CATALOG.media_rule
    assert rows.pop("class selection rule")["desc"] == (
        f"DAC <= {rule.limits.dac_max_m:g} m, AEC 3-{rule.limits.aec_max_m:g} m, "
        f"AOC 5-{rule.limits.aoc_max_m:g} m, optics > {rule.limits.aoc_max_m:g} m"
    )
    assert rows.pop("multimode/AOC limit")["reach_m"] == rule.multimode.max_m
    assert rows.pop("copper reach at 800G")["reach_m"] == rule.copper.at_800g_m
    retimed = rows.pop("800G DSP module")["power_w_range"]
    power = CATALOG.part("osfp-800g-dr8").power_w
    assert power.low <= min(retimed)
    assert power.high == max(retimed)
    assert len(rows) >= 16
    for name, row in rows.items():
        part = CATALOG.part(PART_NAMES.get(name, name))
        check_row(row, part, PART_CHECKS)


def test_power_limits_of_cages(reference: Callable[[str], Any]) -> None:
    limits = reference("transceivers.yaml")["switch_port_power_limits_w"]
    assert limits == {
        "QM97xx": CATALOG.switch("qm9790").max_optic_w,
        "SN5600_dual_3kW": CATALOG.switch("sn5600").max_optic_w,
        "SN5400_all": CATALOG.switch("sn5400").max_optic_w,
        "SN5400_sixteen_ports": CATALOG.switch("sn5400").optics.max_some_w,
    }


def test_a_twin_port_module_serves_two_links(reference: Callable[[str], Any]) -> None:
    assert "serves TWO 400G links" in reference("transceivers.yaml")["counting_rules"][0]
    part = CATALOG.part("MMA4Z00-NS")
    assert (part.links_per_module, part.link_gbps, part.gbps) == (2, 400, 800)


PRICED: dict[str, tuple[str, float]] = {
    "64x400G InfiniBand switch (QM9700)": ("qm9700", 0),
    "64x800G Ethernet switch (merchant or Spectrum-4)": ("sn5600", 0),
    "144x800G XDR switch (Q3400)": ("q3400-ra", 0),
    "ConnectX-7 400G": ("connectx-7", 0),
    "ConnectX-8 800G": ("connectx-8", 0),
    "800G twin-port optic (2x400G SR4/DR4)": ("mma4z00-ns", 0),
    "400G NIC-side optic": ("mma4z00-ns400", 0),
    "800G passive DAC 2 m": ("mcp4y10-n", 2),
    "8-GPU H100 node with 8x400G": ("hgx-h100", 0),
}


def test_recommended_prices(shared: Path) -> None:
    with (shared / "reference" / "prices_recommended.csv").open(encoding="utf-8") as file:
        rows = {row["item"]: row for row in csv.DictReader(file)}
    for item, (name, length_m) in PRICED.items():
        row = rows[item]
        price = CATALOG.device(name).price
        expected = [float(row[key]) for key in ("low", "mid", "high")]
        assert list(price.at(length_m)) == pytest.approx(expected, rel=1e-3), name
    hardware = [item for item, row in rows.items() if row["unit"] == "USD"]
    assert set(hardware) == set(PRICED)


def test_failure_rates_follow_from_the_reference(shared: Path) -> None:
    with (shared / "reference" / "failure_rates.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    rates = CATALOG.failure_rates
    nic = next(row for row in rows if row["component"] == "NIC")
    per_year = float(nic["low"]) / (16384 * 54 / 365.25)
    assert rates.nic.value == pytest.approx(per_year, rel=0.01)
    tor = next(row for row in rows if row["component"] == "ToR switch")
    assert rates.switch.value == pytest.approx(12 * float(tor["low"]) / 100, rel=0.01)
    mtbf = next(row for row in rows if row["component"] == "optical module datasheet")
    assert rates.transceiver.high == pytest.approx(8766 / float(mtbf["low"]), rel=0.01)
    assert rates.transceiver.use == pytest.approx(8766 / float(mtbf["high"]), rel=0.01)


def test_every_switch_of_the_reference_architectures_is_known(
    reference: Callable[[str], Any],
) -> None:
    read = reference("reference_architectures.yaml")["architectures"]
    stand_ins = {
        "64x400G NDR": "qm9700",
        "51.2T single-chip": "th5-128x400g",
        "Tomahawk 4, 64x400G, 25.6T": "tomahawk-4-64x400g",
        "64x400G": "qm9700",
        "QFX5240-64OD (TH5)": "qfx5240-64od",
    }
    names = {item["fabric"]["switch"] for item in read if "switch" in item.get("fabric", {})}
    assert len(names) >= 8
    for name in names:
        assert CATALOG.switch(stand_ins.get(name, name)).deployable
