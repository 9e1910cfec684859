"""Whether a Fabric's tables fit together: every index, block, name, port and link."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from gpufabric.core.errors import Fault
from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.model.tables import LINK_TIERS, PORT_USES, ROLES, SWITCH_TIERS, Table

__all__ = [
    "GENERATIONS",
    "MAX_NAME_LENGTH",
    "PROTOCOLS",
    "RANGES",
    "SLUG_PATTERN",
    "Range",
    "check_fabric",
]

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

PROTOCOLS = ("infiniband", "roce")
GENERATIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"infiniband": ("edr", "hdr", "ndr", "xdr"), "roce": ("ethernet",)}
)
MAX_NAME_LENGTH = 200
SLUG_PATTERN = "[a-z0-9][a-z0-9.+-]{0,63}"
"""Names of the catalogue, and of topology families."""

_LINKED = 1  # value of ports.use
_HOST_LINK = 1  # value of links.tier
_GLOBAL_LINK = 5

_ENDS = {2: (1, 2), 3: (2, 3), 4: (1, 1)}
"""Switch tiers of the lower and upper end, by the link's tier (host links are apart)."""

_DEVICE_NAME = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_RACK_NAME = _DEVICE_NAME | frozenset(b" /:")
_SLUG = re.compile(SLUG_PATTERN)
_SLUG_SIGNS = "a-z 0-9 . + -"
_FIRST_SIGN = frozenset(b"._- /:")


@dataclass(frozen=True)
class Range:
    """Values that a numeric column may hold.

    Parameters
    ----------
    low, high
        Smallest and largest value, both allowed; None for no bound.
    index_of
        Table, or ``models`` or ``parts``, whose rows the column points at; it bounds the value.
    positive
        True if the value must be greater than zero.
    may_be_open
        True if NaN, "not known yet", is allowed.
    """

    low: float | None = None
    high: float | None = None
    index_of: str = ""
    positive: bool = False
    may_be_open: bool = False


_COUNT = Range(0)
_OPTIONAL = Range(-1)
_STAGE = Range(0, 1)
_RATE = Range(positive=True)
_MODEL = Range(0, index_of="models")
_RACK = Range(-1, index_of="racks")

RANGES: Mapping[str, Mapping[str, Range]] = MappingProxyType(
    {
        "racks": {
            "kind": Range(0, 1),
            "row": _COUNT,
            "position": _COUNT,
            "units": _COUNT,
            "power_w": _COUNT,
        },
        "hosts": {
            "role": Range(min(ROLES), max(ROLES)),
            "model": _MODEL,
            "n_gpus": _COUNT,
            "su": _OPTIONAL,
            "pod": _OPTIONAL,
            "stage": _STAGE,
            "rack": _RACK,
            "rack_unit": _COUNT,
        },
        "nics": {
            "host": Range(0, index_of="hosts"),
            "index": _COUNT,
            "rail": _OPTIONAL,
            "model": _MODEL,
            "gbps": _RATE,
            "port_first": _COUNT,
            "n_ports": Range(1),
        },
        "switches": {
            "model": _MODEL,
            "tier": Range(min(SWITCH_TIERS), max(SWITCH_TIERS)),
            "plane": _COUNT,
            "rail": _OPTIONAL,
            "su": _OPTIONAL,
            "pod": _OPTIONAL,
            "group": _OPTIONAL,
            "port_first": _COUNT,
            "n_ports": Range(1),
            "stage": _STAGE,
            "rack": _RACK,
            "rack_unit": _COUNT,
        },
        "ports": {
            "is_switch": Range(0, 1),
            "device": _COUNT,
            "port": _COUNT,
            "cage": _COUNT,
            "lane": _COUNT,
            "gbps": _RATE,
            "use": Range(min(PORT_USES), max(PORT_USES)),
        },
        "links": {
            "port_a": Range(0, index_of="ports"),
            "port_b": Range(0, index_of="ports"),
            "gbps": _RATE,
            "tier": Range(min(LINK_TIERS), max(LINK_TIERS)),
            "plane": _COUNT,
            "rail": _OPTIONAL,
            "stage": _STAGE,
            "cable": _COUNT,
            "length_m": Range(0, may_be_open=True),
            "part": Range(-1, index_of="parts"),
        },
    }
)


def check_fabric(fabric: Fabric) -> list[Fault]:
    """Return everything that does not fit together in `fabric`; an empty list if all does.

    A check that needs sound indices is left out while the indices are unsound, so that one
    wrong number is not reported many times.

    Examples
    --------
    >>> from gpufabric.model.tables import SCHEMAS
    >>> empty = {name: schema.table(0) for name, schema in SCHEMAS.items()}
    >>> bad = Fabric("a", "infiniband", "ndr", "rail", models=("x", "x"), **empty)
    >>> [str(fault) for fault in check_fabric(bad)]
    ['models: "x" is there twice.']
    """
    faults = [*_head(fabric), *_texts(fabric), *_ranges(fabric)]
    if not faults:
        faults = [*_unique_names(fabric), *_blocks(fabric)]
    if not faults:
        faults = [*_ports(fabric), *_links(fabric)]
    return faults


def _wrong(table: Table, column: str, bad: Mask | Ints, expected: str) -> Iterator[Fault]:
    """Yield one fault for all the rows of one column that `bad` marks or lists."""
    rows = np.flatnonzero(bad) if bad.dtype == np.bool_ else bad
    if not len(rows):
        return
    first = int(rows[0])
    yield Fault(
        f"{table.schema.name}.{column}[{first}]",
        _("{value} is wrong; rows wrong in the same way: {count} of {total}.").format(
            value=table[column][first], count=len(rows), total=len(table)
        ),
        expected,
    )


# Head ---------------------------------------------------------------------------------------


def _head(fabric: Fabric) -> Iterator[Fault]:
    if fabric.protocol not in PROTOCOLS:
        yield Fault("protocol", f'"{fabric.protocol[:40]}".', ", ".join(PROTOCOLS))
    elif fabric.generation not in GENERATIONS[fabric.protocol]:
        yield Fault(
            "generation",
            f'"{fabric.generation[:40]}".',
            ", ".join(GENERATIONS[fabric.protocol]),
        )
    if not (0 < len(fabric.name) <= MAX_NAME_LENGTH and fabric.name.isprintable()):
        yield Fault("name", _("is empty, too long, or has characters that do not print."))
    if not _SLUG.fullmatch(fabric.family):
        yield Fault("family", _("is empty, too long, or has other characters."), _SLUG_SIGNS)
    for where, names in (("models", fabric.models), ("parts", fabric.parts)):
        seen: set[str] = set()
        for name in names:
            if not _SLUG.fullmatch(name):
                yield Fault(
                    where, _("a name is empty, too long, or has other characters."), _SLUG_SIGNS
                )
                break
            if name in seen:
                yield Fault(where, _('"{name}" is there twice.').format(name=name))
                break
            seen.add(name)


# Texts --------------------------------------------------------------------------------------


def _texts(fabric: Fabric) -> Iterator[Fault]:
    """Check that names are safe in every export; a rack's may hold a little more."""
    for table, allowed, expected in (
        (fabric.racks, _RACK_NAME, _("letters, digits, and . _ - / : or blanks inside")),
        (fabric.hosts, _DEVICE_NAME, _("letters, digits, and . _ - inside")),
        (fabric.switches, _DEVICE_NAME, _("letters, digits, and . _ - inside")),
    ):
        rows = np.flatnonzero(_bad_names(table["name"], allowed))
        if len(rows):
            yield Fault(
                f"{table.schema.name}.name[{rows[0]}]",
                _("{count} of {total} names are empty or have other characters.").format(
                    count=len(rows), total=len(table)
                ),
                expected,
            )


def _bad_names(names: npt.NDArray[Any], allowed: frozenset[int]) -> Mask:
    """Mark names that are empty, start with a sign, or hold characters not in `allowed`.

    Works on the code points, so that an array with impossible code points is safe to judge.
    """
    width = names.dtype.itemsize // 4
    codes = np.ascontiguousarray(names).view("<u4").reshape(len(names), width)
    good = np.zeros(129, np.bool_)
    good[list(allowed)] = True
    known = good[np.minimum(codes, 128)]
    length = np.count_nonzero(codes, axis=1)
    inside = np.arange(width) < length[:, None]
    bad: Mask = (length == 0) | np.any(known != inside, axis=1)
    signs = np.fromiter(_FIRST_SIGN, np.uint32)
    bad |= np.isin(codes[:, 0], signs)
    return bad


def _unique_names(fabric: Fabric) -> Iterator[Fault]:
    devices = np.concatenate([fabric.hosts["name"], fabric.switches["name"]])
    for where, names in (("racks.name", fabric.racks["name"]), ("hosts, switches", devices)):
        sorted_names = np.sort(names)
        twice = sorted_names[1:][sorted_names[1:] == sorted_names[:-1]]
        if len(twice):
            yield Fault(where, _('the name "{name}" is there twice.').format(name=twice[0]))


# Ranges -------------------------------------------------------------------------------------


def _ranges(fabric: Fabric) -> Iterator[Fault]:
    tables = fabric.tables()
    sizes = {name: len(table) for name, table in tables.items()}
    sizes |= {"models": len(fabric.models), "parts": len(fabric.parts)}
    for name, ranges in RANGES.items():
        table = tables[name]
        for column, allowed in ranges.items():
            high = allowed.high
            if allowed.index_of:
                high = sizes[allowed.index_of] - 1
            yield from _wrong(
                table, column, _outside(table[column], allowed, high), _describe(allowed, high)
            )


def _outside(values: npt.NDArray[Any], allowed: Range, high: float | None) -> Mask:
    bad = np.zeros(len(values), np.bool_)
    if values.dtype.kind == "f":
        is_open = np.isnan(values)
        bad |= np.isinf(values)
        bad |= is_open & (not allowed.may_be_open)
    if allowed.positive:
        bad |= values <= 0
    if allowed.low is not None:
        bad |= values < allowed.low
    if high is not None:
        bad |= values > high
    return bad


def _describe(allowed: Range, high: float | None) -> str:
    if allowed.positive:
        return _("a finite number above 0")
    if high is None:
        return _("a finite number, {low} or more").format(low=f"{allowed.low:g}")
    return _("{low} to {high}").format(low=f"{allowed.low:g}", high=f"{high:.0f}")


# Blocks of ports ----------------------------------------------------------------------------


def _blocks(fabric: Fabric) -> Iterator[Fault]:
    """Check that the ports of all NICs and then of all switches follow without a gap."""
    n_nic_ports = int(fabric.nics["n_ports"].sum(dtype=np.int64))
    faults: list[Fault] = []
    for table, start in ((fabric.nics, 0), (fabric.switches, n_nic_ports)):
        sizes = table["n_ports"].astype(np.int64)
        expected = start + np.cumsum(sizes) - sizes
        faults += _wrong(
            table,
            "port_first",
            table["port_first"] != expected,
            _("blocks of ports one after the other, those of NICs first"),
        )
    n_ports = n_nic_ports + int(fabric.switches["n_ports"].sum(dtype=np.int64))
    if n_ports != len(fabric.ports):
        faults.append(
            Fault(
                "ports",
                _("{count} rows, but NICs and switches state {stated} ports.").format(
                    count=len(fabric.ports), stated=n_ports
                ),
            )
        )
    yield from faults
    if not faults:
        yield from _owners(fabric, n_nic_ports)


def _owners(fabric: Fabric, n_nic_ports: int) -> Iterator[Fault]:
    """Check that each port names the NIC or switch in whose block it lies, and its place."""
    ports = fabric.ports
    device = np.concatenate(
        [
            np.repeat(np.arange(len(table)), table["n_ports"])
            for table in (fabric.nics, fabric.switches)
        ]
    )
    first = np.concatenate(
        [
            np.repeat(table["port_first"], table["n_ports"])
            for table in (fabric.nics, fabric.switches)
        ]
    )
    row = np.arange(len(ports))
    yield from _wrong(
        ports, "is_switch", ports["is_switch"] != (row >= n_nic_ports), _("the owner of the block")
    )
    yield from _wrong(ports, "device", ports["device"] != device, _("the owner of the block"))
    yield from _wrong(ports, "port", ports["port"] != row - first, _("the place in the block"))


# Ports and links ----------------------------------------------------------------------------


def _ports(fabric: Fabric) -> Iterator[Fault]:
    nics, ports = fabric.nics, fabric.ports
    place = (ports["is_switch"].astype(np.int64) << 31 | ports["device"]) << 24
    place |= ports["cage"].astype(np.int64) << 8 | ports["lane"]
    yield from _wrong(
        ports, "lane", _repeated(place), _("one port for each lane of a cage of a device")
    )
    slot = nics["host"].astype(np.int64) << 16 | nics["index"]
    yield from _wrong(nics, "index", _repeated(slot), _("one NIC for each index of a host"))


def _repeated(keys: Ints) -> Ints:
    """Return the rows, in order, whose key an earlier row has already."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    again: Ints = order[1:][ordered[1:] == ordered[:-1]]
    return np.sort(again)


def _links(fabric: Fabric) -> Iterator[Fault]:
    links, ports = fabric.links, fabric.ports
    a, b = links["port_a"], links["port_b"]
    ends = np.concatenate([a, b])
    times = np.bincount(ends, minlength=len(ports))
    yield from _shared_ports(fabric, times)
    yield from _wrong(
        ports,
        "use",
        (ports["use"] == _LINKED) != (times > 0),
        _("1 for the ports that a link uses, and for no others"),
    )
    for side in ("port_a", "port_b"):
        yield from _wrong(
            links,
            "gbps",
            ports["gbps"][links[side]] != links["gbps"],
            _("the rate of both ports"),
        )
    switch_a, switch_b = _switch_of(fabric, a), _switch_of(fabric, b)
    yield from _tiers(fabric, switch_a, switch_b)
    for switch in (switch_a, switch_b):
        yield from _plane_and_stage(fabric, switch)
    for ports_of_side in (a, b):
        yield from _host_stage(fabric, ports_of_side)


def _shared_ports(fabric: Fabric, times: npt.NDArray[np.intp]) -> Iterator[Fault]:
    shared = np.flatnonzero(times > 1)
    if not len(shared):
        return
    port = int(shared[0])
    device = fabric.vertex_name(int(fabric.port_vertex[port]))
    yield Fault(
        f"ports[{port}]",
        _("{device} port {port} is used by {times} links; ports used more than once: {n}.").format(
            device=device, port=fabric.port_name(port), times=times[port], n=len(shared)
        ),
        _("at most one link for each port"),
    )


def _switch_of(fabric: Fabric, ports: npt.NDArray[Any]) -> Ints:
    """Return the switch row that owns each port; -1 for a NIC's port."""
    rows: Ints = np.where(
        fabric.ports["is_switch"][ports] == 1, fabric.ports["device"][ports], -1
    ).astype(np.int64)
    return rows


def _tiers(fabric: Fabric, switch_a: Ints, switch_b: Ints) -> Iterator[Fault]:
    tier = fabric.links["tier"]
    tier_of = np.append(fabric.switches["tier"], 0)  # row -1: a NIC
    lower, upper = tier_of[switch_a], tier_of[switch_b]
    bad = (tier == _HOST_LINK) & ((lower != 0) | (upper == 0))
    for link_tier, (low, high) in _ENDS.items():
        bad |= (tier == link_tier) & ((lower != low) | (upper != high))
    bad |= (tier == _GLOBAL_LINK) & ((lower != upper) | (lower == 0))
    yield from _wrong(
        fabric.links, "tier", bad, _("the tiers of the two ends, the lower one as port_a")
    )


def _plane_and_stage(fabric: Fabric, switch: Ints) -> Iterator[Fault]:
    links, switches = fabric.links, fabric.switches
    plane = np.append(switches["plane"], 0)[switch]
    stage = np.append(switches["stage"], 0)[switch]
    is_switch = switch >= 0
    yield from _wrong(
        links, "plane", is_switch & (plane != links["plane"]), _("the plane of its switches")
    )
    yield from _wrong(links, "stage", stage > links["stage"], _("not before its switches"))


def _host_stage(fabric: Fabric, ports: npt.NDArray[Any]) -> Iterator[Fault]:
    on_nic = fabric.ports["is_switch"][ports] == 0
    nic = np.where(on_nic, fabric.ports["device"][ports], -1)
    stage = np.append(fabric.hosts["stage"][fabric.nics["host"]], 0)[nic]
    yield from _wrong(
        fabric.links,
        "stage",
        on_nic & (stage > fabric.links["stage"]),
        _("not before its host"),
    )
