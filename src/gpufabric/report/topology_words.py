"""The words of a topology figure: title, counts, legend and notes, from the fabric's tables."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.report.figure_frame import Frame, Key
from gpufabric.report.figure_style import CORE, MUTED, SMALL, SPINE, rail_colour

__all__ = [
    "family_words",
    "frame_of",
    "host_rows",
    "manager_notes",
    "model_words",
    "protocol_words",
    "rate",
    "tier_rows",
    "tier_words",
]

HASH_DIGITS = 16
_MAX_RAIL_KEYS = 16


def rate(gbps: float) -> str:
    """Return a rate as ports are labelled.

    Examples
    --------
    >>> rate(400.0), rate(1600.0), rate(12.5)
    ('400G', '1.6T', '12.5G')
    """
    if gbps >= 1000:
        return f"{gbps / 1000:g}T"
    return f"{gbps:g}G"


def protocol_words(fabric: Fabric) -> str:
    """Return the fabric's protocol and generation as a reader knows them."""
    if fabric.protocol == "infiniband":
        return f"InfiniBand {fabric.generation.upper()}"
    return "RoCE v2"


def family_words(fabric: Fabric) -> str:
    """Return the topology family in words."""
    kind = fabric.attributes.get("kind", "")
    if kind == "star" and fabric.family != "rail-only":
        many = int(fabric.switches.plane.max()) > 0
        return _("one switch in each plane") if many else _("single switch")
    if kind == "pair":
        return _("two switches back to back")
    names = {
        "single": _("single switch"),
        "fat-tree": _("fat tree"),
        "rail": _("rail-optimised fat tree"),
        "rail-only": _("rail-only"),
        "dual-tor": _("dual-ToR, dual-plane"),
        "multi-plane": _("multi-plane"),
        "dragonfly+": _("dragonfly+"),
        "dragonfly": _("dragonfly"),
    }
    return names.get(fabric.family, fabric.family)


def tier_words(tier: int) -> str:
    """Return the name of a switch tier, in the plural."""
    return {1: _("Leafs"), 2: _("Spines"), 3: _("Cores")}[tier]


def model_words(name: str) -> str:
    """Return a catalogue name as it is printed on a device.

    Examples
    --------
    >>> model_words("qm9700")
    'QM9700'
    """
    return name.upper()


def _host_model(fabric: Fabric) -> str:
    """Return the model of the compute hosts."""
    rows = np.flatnonzero(fabric.hosts.role == 0)
    return model_words(fabric.models[int(fabric.hosts.model[rows[0]])])


def tier_rows(fabric: Fabric) -> dict[int, tuple[str, str]]:
    """Return count and model of each switch tier, ``(32 × QM9700, "")``; later ones second."""
    switches = fabric.switches
    found = {}
    for tier in (3, 2, 1):
        rows = np.flatnonzero(switches.tier == tier)
        if not len(rows):
            continue
        later = int((switches.stage[rows] > 0).sum())
        model = model_words(fabric.models[int(switches.model[rows[0]])])
        found[tier] = (
            f"{len(rows):,} × {model}",
            _("{count} of them later").format(count=f"{later:,}") if later else "",
        )
    return found


def host_rows(fabric: Fabric, width: float) -> list[str]:
    """Return what the margin says of the hosts, in lines of at most `width` pixels.

    Count and model, what of it comes later, and the NICs of one.
    """
    rows = np.flatnonzero(fabric.hosts.role == 0)
    nics = np.flatnonzero(fabric.nics.host == rows[0])
    later = int((fabric.hosts.stage[rows] > 0).sum())
    count, model = f"{fabric.n_hosts:,} ×", _host_model(fabric)
    whole = f"{count} {model}"
    lines = [whole] if SMALL.width(whole) <= width else [count, model]
    if later:
        lines.append(_("{count} of them later").format(count=f"{later:,}"))
    words = _("NICs: {count} × {rate}")
    lines.append(words.format(count=len(nics), rate=rate(float(fabric.nics.gbps[nics[0]]))))
    return [SMALL.shortened(line, width) for line in lines]


def frame_of(fabric: Fabric, rails: list[int], extra: list[Key], notes: list[str]) -> Frame:
    """Return title, counts, legend and notes.

    Parameters
    ----------
    fabric
        The fabric.
    rails
        Rails whose colours the figure shows.
    extra, notes
        Entries of the legend, and sentences, that are the figure's own.
    """
    title = _("{gpus} GPUs on {protocol}: {family}").format(
        gpus=f"{fabric.n_gpus:,}", protocol=protocol_words(fabric), family=family_words(fabric)
    )
    today = int(fabric.hosts.n_gpus[fabric.hosts.stage == 0].sum())
    if today < fabric.n_gpus:
        title = _("{today} GPUs growing to {gpus} on {protocol}: {family}").format(
            today=f"{today:,}",
            gpus=f"{fabric.n_gpus:,}",
            protocol=protocol_words(fabric),
            family=family_words(fabric),
        )
    counts = [f"{fabric.n_hosts:,} × {_host_model(fabric)}"]
    counts += [f"{tier_words(tier)}: {rows[0]}" for tier, rows in tier_rows(fabric).items()]
    counts.append(_("{count} links").format(count=f"{len(fabric.links):,}"))
    name = str(fabric.attributes.get("spec") or "")
    head = " · ".join(part for part in (name, fabric.name) if part)
    return Frame(
        title=title,
        subtitle=" · ".join([head, *counts]),
        legend=[*_rail_keys(rails), *_tier_keys(fabric), *extra, *_later_keys(fabric)],
        notes=[*_balance_notes(fabric), *_plane_notes(fabric), *notes],
        footer=(
            _("gpufabric · G = Gb/s in each direction"),
            _("fabric {digits}").format(digits=fabric.content_hash[:HASH_DIGITS]),
        ),
    )


def _rail_keys(rails: list[int]) -> list[Key]:
    if not 1 < len(rails) <= _MAX_RAIL_KEYS:
        return []
    keys = [Key(f"r{rail}", rail_colour(rail)) for rail in rails]
    return [Key(_("Rail r{rail}").format(rail=rails[0]), keys[0].fill), *keys[1:]]


def _tier_keys(fabric: Fabric) -> list[Key]:
    keys = []
    if (fabric.switches.tier == 2).any():
        keys.append(Key(_("Spine"), SPINE))
    if (fabric.switches.tier == 3).any():
        keys.append(Key(_("Core"), CORE))
    return keys


def _later_keys(fabric: Fabric) -> list[Key]:
    if not (fabric.hosts.stage > 0).any():
        return []
    return [Key(_("Bought when the cluster grows"), MUTED, is_later=True)]


def _balance_notes(fabric: Fabric) -> list[str]:
    """Say what the fullest leaf and spine carry down and up."""
    notes = []
    switches = fabric.switches
    for tier, up_tiers, words in (
        (1, (2, 4, 5), _("Fullest leaf: {down} down, {up} up or across.")),
        (2, (3, 5), _("Fullest spine: {down} down, {up} up or across.")),
    ):
        up = _ends(fabric, up_tiers)
        down = _ends(fabric, (tier,))
        mine = switches.tier == tier
        if not up[mine].any():
            continue
        fullest = int(np.flatnonzero(mine)[np.argmax(down[mine])])
        notes.append(
            words.format(
                down=_port_words(fabric, fullest, (tier,)),
                up=_port_words(fabric, fullest, up_tiers),
            )
        )
    return notes


def _ends(fabric: Fabric, tiers: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Return how many links of some tiers each switch has, on either end."""
    links = fabric.links
    rows = np.isin(links.tier, tiers)
    total = np.zeros(len(fabric.switches), np.int64)
    for side in (links.port_a[rows], links.port_b[rows]):
        on_switch = side[fabric.ports.is_switch[side] == 1]
        total += np.bincount(fabric.ports.device[on_switch], minlength=len(total))
    return total


def _port_words(fabric: Fabric, switch: int, tiers: tuple[int, ...]) -> str:
    links = fabric.links
    rows = np.flatnonzero(np.isin(links.tier, tiers))
    offset = len(fabric.hosts)
    mine = (fabric.port_vertex[links.port_a[rows]] == switch + offset) | (
        fabric.port_vertex[links.port_b[rows]] == switch + offset
    )
    rates, counts = np.unique(links.gbps[rows[mine]], return_counts=True)
    return " + ".join(
        f"{count:,} × {rate(float(gbps))}" for gbps, count in zip(rates, counts, strict=True)
    )


def manager_notes(fabric: Fabric) -> list[str]:
    """Return a sentence on the managers, for figures that do not draw them."""
    managers = int((fabric.hosts.role == 1).sum())
    if not managers:
        return []
    owner = fabric.hosts.role[fabric.nics.host] == 1
    ports = int(fabric.nics.n_ports[owner].sum())
    words = _("Not drawn: {count} managers (subnet manager or controller) on {ports} leaf ports.")
    return [words.format(count=managers, ports=ports)]


def _plane_notes(fabric: Fabric) -> list[str]:
    planes = int(fabric.switches.plane.max()) + 1
    if planes == 1:
        return []
    return [_("{planes} planes: networks with no link between them.").format(planes=planes)]
