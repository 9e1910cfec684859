"""A fabric file on a terminal: its counts, or the links of one switch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric, LinkView
from gpufabric.model.tables import LINK_TIERS, SWITCH_TIERS
from gpufabric.report.design_table import link_rows, rack_words, with_growth
from gpufabric.report.side_by_side import terminal
from gpufabric.report.topology_words import family_words, protocol_words, rate, tier_words

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


def print_fabric(fabric: Fabric, console: Console) -> None:
    """Print what a fabric holds: today's counts, with those after growth in brackets."""
    counts, hosts = fabric_counts(fabric), fabric.hosts
    today, is_host = hosts.stage == 0, hosts.role == 0
    table = Table(box=None, pad_edge=True, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    rows = [
        (_("Fabric"), f"{fabric.name}, {protocol_words(fabric)}, {family_words(fabric)}"),
        (_("GPUs"), with_growth(int(hosts.n_gpus[today].sum()), counts["gpus"])),
        (_("Hosts"), with_growth(int((today & is_host).sum()), counts["hosts"])),
        (_("Managers"), f"{counts['managers']:,}"),
        (_("NICs"), with_growth(int(today[fabric.nics.host].sum()), counts["nics"])),
    ]
    rows += [
        (tier_words(tier), with_growth(fabric.n_switches(tier, 0), fabric.n_switches(tier)))
        for tier in SWITCH_TIERS
        if fabric.n_switches(tier)
    ]
    rows += [(label, words) for label, words in link_rows(fabric).items() if words]
    rows += [
        (_("Racks"), rack_words(fabric)),
        (_("Models"), ", ".join(fabric.models)),
        (_("Cable parts"), ", ".join(fabric.parts)),
    ]
    for label, value in rows:
        table.add_row(Text(label, "dim"), Text(value or "–"))
    console.print(table)
    console.print(Text.assemble((_("Hash"), "dim"), "  ", fabric.content_hash), soft_wrap=True)


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
    table = Table(box=None, pad_edge=True, header_style="bold", padding=(0, 2, 0, 0))
    for heading in (_("Tier"), _("Lower end"), _("Port"), _("Upper end"), _("Port"), _("Rate")):
        table.add_column(heading, overflow="fold")
    for link in links:
        cells = (link.tier, link.a, link.a_port, link.b, link.b_port, rate(link.gbps))
        table.add_row(*(Text(cell) for cell in cells))
    terminal().print(table)
