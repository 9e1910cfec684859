"""Designs on a terminal: counts side by side, then what each chose and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from rich.text import Text

from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.report.side_by_side import Fact, decision_texts, side_by_side, terminal
from gpufabric.report.topology_words import family_words, protocol_words, rate
from gpufabric.topology.design import Design
from gpufabric.topology.racks import rack_stages

__all__ = [
    "bandwidth_words",
    "design_facts",
    "link_rows",
    "print_designs",
    "rack_words",
    "ratio_words",
    "with_growth",
]


def print_designs(designs: Sequence[Design]) -> None:
    """Print the counts of designs side by side, and the decisions of each."""
    console = terminal()
    names = [design.candidate.name for design in designs]
    for table in side_by_side(names, design_facts(designs), console.width):
        console.print(table)
        console.print()
    for design in designs:
        console.print(Text(_("Decisions of {name}").format(name=design.candidate.name), "bold"))
        for text in decision_texts(design.decisions):
            console.print(text)
        console.print()


def design_facts(designs: Sequence[Design]) -> list[Fact]:
    """Return the counts of designs, a row each; today's, with those after growth in brackets."""
    links = [link_rows(design.fabric) for design in designs]
    return [
        _fact(designs, _("GPUs"), _gpus),
        _fact(designs, _("Hosts"), _hosts),
        _fact(designs, _("Fabric"), lambda design: protocol_words(design.fabric)),
        _fact(designs, _("Topology"), lambda design: family_words(design.fabric)),
        _fact(designs, _("Leafs"), lambda design: _switches(design, 1), opens=True),
        _fact(designs, _("Spines"), lambda design: _switches(design, 2)),
        _fact(designs, _("Cores"), lambda design: _switches(design, 3)),
        *(
            Fact(label, tuple(rows[label] for rows in links), opens=index == 0)
            for index, label in enumerate(links[0])
        ),
        _fact(designs, _("Planes"), lambda design: str(design.layout.planes), opens=True),
        _fact(designs, _("Rails"), lambda design: str(design.layout.n_rails)),
        _fact(designs, _("Tiers"), lambda design: str(design.sized.tiers)),
        _fact(designs, _("Switches on a path"), _path),
        _fact(designs, _("Oversubscription"), _ratios),
        _fact(designs, _("Bisection, one way"), bandwidth_words),
    ]


def _fact(
    designs: Sequence[Design], label: str, value: Callable[[Design], str], *, opens: bool = False
) -> Fact:
    return Fact(label, tuple(value(design) for design in designs), opens)


def with_growth(today: int, later: int) -> str:
    """Return a count of today, with that after growth in brackets where it differs."""
    if later == today:
        return f"{today:,}"
    return _("{today} (later {later})").format(today=f"{today:,}", later=f"{later:,}")


def rack_words(fabric: Fabric) -> str:
    """Return the racks that hold something today, with those after growth in brackets."""
    return with_growth(int((rack_stages(fabric) == 0).sum()), len(fabric.racks))


def _gpus(design: Design) -> str:
    hosts = design.fabric.hosts
    return with_growth(int(hosts.n_gpus[hosts.stage == 0].sum()), design.fabric.n_gpus)


def _hosts(design: Design) -> str:
    hosts = design.fabric.hosts
    count = with_growth(int(((hosts.role == 0) & (hosts.stage == 0)).sum()), design.fabric.n_hosts)
    return f"{count} × {design.host.name}"


def _switches(design: Design, tier: int) -> str:
    fabric = design.fabric
    total = fabric.n_switches(tier)
    if not total:
        return ""
    name = list(design.switches.by_tier().values())[tier - 1].name
    return f"{with_growth(fabric.n_switches(tier, 0), total)} × {name}"


def link_rows(fabric: Fabric) -> dict[str, str]:
    """Return count and rate of the links of every kind by its name; empty where there are none."""
    links, hosts = fabric.links, fabric.hosts
    lower = fabric.port_vertex[links.port_a]
    managers = np.flatnonzero(hosts.role == 1)
    is_managed = np.isin(lower, managers)
    rows = {
        _("Links host–leaf"): (links.tier == 1) & ~is_managed,
        _("Links manager–leaf"): (links.tier == 1) & is_managed,
        _("Links leaf–spine"): links.tier == 2,
        _("Links spine–core"): links.tier == 3,
        _("Links leaf–leaf"): links.tier == 4,
        _("Links between groups"): links.tier == 5,
    }
    return {label: _links(fabric, mine) for label, mine in rows.items()}


def _links(fabric: Fabric, mine: npt.NDArray[np.bool_]) -> str:
    links = fabric.links
    if not mine.any():
        return ""
    rates = sorted({float(gbps) for gbps in links.gbps[mine]})
    count = with_growth(int((mine & (links.stage == 0)).sum()), int(mine.sum()))
    return f"{count} × {' / '.join(rate(gbps) for gbps in rates)}"


def _path(design: Design) -> str:
    return _("at most {count}").format(count=design.sized.hops)


def ratio_words(ratio: float) -> str:
    """Return an oversubscription as a ratio to one.

    Examples
    --------
    >>> ratio_words(1.0), ratio_words(2.5), ratio_words(0.5)
    ('1:1', '2.5:1', '0.5:1')
    """
    return f"{ratio:g}:1"


def _ratios(design: Design) -> str:
    ratios = design.oversubscription_by_tier()
    if len(set(ratios.values())) == 1:
        return ratio_words(next(iter(ratios.values())))
    names = {"leaf": _("leaf"), "spine": _("spine")}
    return ", ".join(
        f"{names.get(tier, tier)} {ratio_words(ratio)}" for tier, ratio in ratios.items()
    )


def bandwidth_words(design: Design) -> str:
    """Return the bisection of today's hosts and its share of a non-blocking one."""
    band = design.bandwidth
    return _("{tbps} Tb/s ({share} of non-blocking)").format(
        tbps=f"{band.bisection_gbps / 1000:,.1f}", share=f"{100 * band.share:.3g} %"
    )
