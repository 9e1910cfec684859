"""What the figure of a small fabric is made of, and how wide its parts are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.report.figure_style import HEADING, STRONG
from gpufabric.report.svg import Box, Drawing

__all__ = [
    "BOX_GAP",
    "CROSS_GAP",
    "GUTTER",
    "HOST_GAP",
    "INSET",
    "NETWORK_GAP",
    "NETWORK_PAD",
    "SCALES",
    "DetailSheet",
    "Network",
    "Scale",
    "networks_of",
    "short",
]

GUTTER, INSET = 152.0, 14.0
BOX_GAP, HOST_GAP, NETWORK_GAP, CROSS_GAP = 10.0, 8.0, 26.0, 150.0
NETWORK_PAD = 10.0
FULL_NAMES_FROM = 2.4


@dataclass(frozen=True)
class Scale:
    """Widths that shrink together [px]: between two link ends, of a NIC, of a host at least."""

    end: float
    nic: float
    host: float


SCALES = (
    Scale(4.0, 14.0, 58.0),
    Scale(3.2, 11.0, 50.0),
    Scale(2.4, 8.0, 30.0),
    Scale(1.8, 6.0, 20.0),
)


@dataclass(frozen=True)
class Network:
    """Switches that are joined to each other and to no other switch, by tier."""

    title: str
    rows: dict[int, list[int]]


def networks_of(fabric: Fabric) -> list[Network]:
    """Return the separate networks: planes, rails of a rail-only fabric, groups of a dragonfly."""
    switches = fabric.switches
    by_rail = fabric.family == "rail-only"
    key = switches.plane.astype(np.int64) * 4096 + (switches.rail if by_rail else 0)
    if fabric.family in ("dragonfly", "dragonfly+"):
        key = key * 65536 + switches.pod
    found = []
    for order, one in enumerate(np.unique(key)):
        rows = np.flatnonzero(key == one)
        tiers = {
            int(tier): rows[switches.tier[rows] == tier].tolist()
            for tier in np.unique(switches.tier[rows])
        }
        found.append(Network(_network_title(fabric, int(rows[0]), order), tiers))
    return found


def _network_title(fabric: Fabric, switch: int, order: int) -> str:
    if fabric.family in ("dragonfly", "dragonfly+"):
        return _("Group {number}").format(number=order + 1)
    if fabric.family == "rail-only":
        return _("Rail r{rail}").format(rail=int(fabric.switches.rail[switch]))
    return _("Plane {plane}").format(plane=int(fabric.switches.plane[switch]))


def _ends(fabric: Fabric) -> dict[tuple[int, bool], list[int]]:
    """Return the links on each switch's lower (False) and upper (True) side."""
    links, offset = fabric.links, len(fabric.hosts)
    lower = fabric.port_vertex[links.port_a] - offset
    upper = fabric.port_vertex[links.port_b] - offset
    found: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for link, tier in enumerate(links.tier.tolist()):
        if lower[link] >= 0:
            found[int(lower[link]), True].append(link)
        found[int(upper[link]), tier >= 4].append(link)
    return found


def short(name: str) -> str:
    """Return the last part of a device's name.

    Examples
    --------
    >>> short("leaf-su01-r0")
    'r0'
    """
    return name.rsplit("-", 1)[-1]


@dataclass
class DetailSheet:
    """What is drawn so far, in three layers, where everything stands, and how wide it is."""

    fabric: Fabric
    scale: Scale
    ends: dict[tuple[int, bool], list[int]] = field(init=False)
    lines: Drawing = field(default_factory=Drawing)
    boxes: Drawing = field(default_factory=Drawing)
    labels: Drawing = field(default_factory=Drawing)
    box: dict[int, Box] = field(default_factory=dict)
    nic_x: dict[int, float] = field(default_factory=dict)
    host_y: float = 0.0

    def __post_init__(self) -> None:
        self.ends = _ends(self.fabric)

    @property
    def is_pair(self) -> bool:
        """Whether two switches stand side by side with links across."""
        return self.fabric.attributes.get("kind") == "pair"

    def host_width(self, host: int) -> float:
        """Width of a host's box [px]."""
        fabric = self.fabric
        if fabric.hosts.role[host] == 1:
            return STRONG.width(str(fabric.hosts.name[host])) + 10
        nics = int((fabric.nics.host == host).sum())
        return max(self.scale.host, nics * self.scale.nic + 8)

    @property
    def hosts_width(self) -> float:
        """Width of all hosts side by side [px]."""
        n_hosts = len(self.fabric.hosts)
        return sum(map(self.host_width, range(n_hosts))) + HOST_GAP * (n_hosts - 1)

    def switch_width(self, switch: int) -> float:
        """Width of a switch's box [px]: room for its name and the ends of its links."""
        sides = [len(self.ends.get((switch, side), ())) for side in (False, True)]
        if self.is_pair:
            sides = sides[:1]
        name = str(self.fabric.switches.name[switch])
        words = STRONG.width(name) + 12
        if self.scale.end < FULL_NAMES_FROM:
            words = STRONG.width(short(name)) + 8
        return max(words, max(sides) * self.scale.end + 8)

    def tier_width(self, rows: Sequence[int]) -> float:
        """Width of switches side by side [px]."""
        gap = CROSS_GAP if self.is_pair else BOX_GAP
        return sum(map(self.switch_width, rows)) + gap * (len(rows) - 1)

    def network_width(self, network: Network) -> float:
        """Width of a network without its frame [px]."""
        title = HEADING.width(network.title) + 8
        return max(title, *map(self.tier_width, network.rows.values()))

    def networks_width(self, networks: Sequence[Network]) -> float:
        """Width of networks side by side, framed where there are several [px]."""
        pads = 2 * NETWORK_PAD if len(networks) > 1 else 0
        widths = [self.network_width(network) + pads for network in networks]
        return sum(widths) + NETWORK_GAP * (len(networks) - 1)
