"""A fabric file on a terminal: its counts, or the links of one switch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric, LinkView
from gpufabric.model.tables import LINK_TIERS, SWITCH_TIERS
from gpufabric.report.side_by_side import terminal
from gpufabric.report.topology_words import family_words, protocol_words, rate

__all__ = ["fabric_counts", "print_fabric", "print_links", "switch_links"]


def fabric_counts(fabric: Fabric) -> dict[str, Any]:
    """Return what a fabric holds, as ``gpufabric show --json`` prints it; of every stage."""
    switches, links = fabric.switches, fabric.links
    return {
        "name": fabric.name,
        "fabric_hash": fabric.content_hash,
        "protocol": fabric.protocol,
        "generation": fabric.generation,
        "topology": fabric.family,
        "gpus": fabric.n_gpus,
        "hosts": fabric.n_hosts,
        "managers": int((fabric.hosts.role == 1).sum()),
        "nics": len(fabric.nics),
        "switches": {
            name: int((switches.tier == tier).sum()) for tier, name in SWITCH_TIERS.items()
        },
        "links": {name: int((links.tier == tier).sum()) for tier, name in LINK_TIERS.items()},
        "later": {
            "hosts": int((fabric.hosts.stage > 0).sum()),
            "switches": int((switches.stage > 0).sum()),
            "links": int((links.stage > 0).sum()),
        },
        "racks": len(fabric.racks),
        "models": list(fabric.models),
        "parts": list(fabric.parts),
        "attributes": dict(fabric.attributes),
    }


def print_fabric(fabric: Fabric) -> None:
    """Print what a fabric holds."""
    counts = fabric_counts(fabric)
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    rows = [
        (_("Fabric"), f"{fabric.name}, {protocol_words(fabric)}, {family_words(fabric)}"),
        (_("Hash"), fabric.content_hash),
        (_("GPUs"), f"{counts['gpus']:,}"),
        (_("Hosts"), f"{counts['hosts']:,}"),
        (_("Managers"), f"{counts['managers']:,}"),
        (_("NICs"), f"{counts['nics']:,}"),
    ]
    rows += [(f"{name}", f"{count:,}") for name, count in counts["switches"].items() if count]
    rows += [
        (name, f"{count:,} × {_rates(fabric, tier)}")
        for (name, count), tier in zip(counts["links"].items(), LINK_TIERS, strict=True)
        if count
    ]
    rows += [
        (_("Racks"), f"{counts['racks']:,}"),
        (_("Models"), ", ".join(fabric.models)),
        (_("Cable parts"), ", ".join(fabric.parts)),
    ]
    for label, value in rows:
        table.add_row(Text(label, "dim"), Text(value or "–"))
    terminal().print(table)


def _rates(fabric: Fabric, tier: int) -> str:
    rates = np.unique(fabric.links.gbps[fabric.links.tier == tier])
    return " / ".join(rate(float(gbps)) for gbps in rates)


def switch_links(fabric: Fabric, name: str) -> list[LinkView]:
    """Return the links of one switch.

    Raises
    ------
    InputError
        If no switch has that name.
    """
    try:
        return fabric.links_of(name)
    except KeyError as error:
        names = fabric.switches.name.tolist()
        raise InputError(
            Fault(
                "--switch",
                _('there is no switch "{name}" in the fabric.').format(name=name),
                remedy=nearest(name, names[:5000]),
            )
        ) from error


def print_links(links: Sequence[LinkView]) -> None:
    """Print links, one a line."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in (_("Tier"), _("Lower end"), _("Port"), _("Upper end"), _("Port"), _("Rate")):
        table.add_column(heading)
    for link in links:
        cells = (link.tier, link.a, link.a_port, link.b, link.b_port, rate(link.gbps))
        table.add_row(*(Text(cell) for cell in cells))
    terminal().print(table)
