"""Edge list: one row a link with both ends, as CSV for programs and as plain text for eyes.

The CSV has a header line and these columns: link (row in the fabric), tier, plane, rail (empty for
none), gbps, cable, length_m and part (empty where open), and for each end a_/b_ device, kind (host
or switch), interface, port (number on the device, from 1).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gpufabric.core.text import _
from gpufabric.export.interfaces import interface_names
from gpufabric.export.registry import Export, ExportOptions
from gpufabric.export.wiring import Wiring
from gpufabric.model.fabric import Fabric
from gpufabric.model.tables import LINK_TIERS

__all__ = ["EXPORT", "edge_list"]

Ints = npt.NDArray[np.int64]

_COLUMNS = (
    *("link", "tier", "plane", "rail", "gbps", "cable", "length_m", "part"),
    *("a_device", "a_kind", "a_interface", "a_port"),
    *("b_device", "b_kind", "b_interface", "b_port"),
)


def edge_list(fabric: Fabric, options: ExportOptions) -> dict[str, str]:
    """Return the links of `fabric` as CSV and as text."""
    wiring = Wiring(fabric, options.stage)
    ends = [list(_ends(wiring, ports, options)) for ports in wiring.ends]
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for facts, a, b in zip(_facts(wiring), *ends, strict=True):
        writer.writerow((*facts, *a, *b))
    return {"edges.csv": table.getvalue(), "edges.txt": "\n".join(_text(wiring, *ends))}


def _ends(
    wiring: Wiring, ports: Ints, options: ExportOptions
) -> Iterator[tuple[str, str, str, int]]:
    fabric = wiring.fabric
    kinds = np.where(fabric.ports["is_switch"][ports] == 1, "switch", "host").tolist()
    numbers = (fabric.ports["port"][ports] + 1).tolist()
    names = interface_names(fabric, ports, options)
    yield from zip(wiring.devices(ports), kinds, names, numbers, strict=True)


def _facts(wiring: Wiring) -> Iterator[tuple[object, ...]]:
    names = [*wiring.fabric.parts, ""]  # part -1: open
    links = wiring.fabric.links
    columns = ("tier", "plane", "rail", "gbps", "cable", "length_m", "part")
    rows = zip(
        wiring.links.tolist(),
        *(links[column][wiring.links].tolist() for column in columns),
        strict=True,
    )
    for link, tier, plane, rail, gbps, cable, length_m, part in rows:
        yield (
            *(link, LINK_TIERS[tier], plane, "" if rail < 0 else rail),
            *(f"{gbps:g}", cable, "" if np.isnan(length_m) else f"{length_m:.4g}", names[part]),
        )


def _text(
    wiring: Wiring,
    lower: list[tuple[str, str, str, int]],
    upper: list[tuple[str, str, str, int]],
) -> Iterator[str]:
    fabric = wiring.fabric
    rates = fabric.links["gbps"][wiring.links].tolist()
    tiers = fabric.links["tier"][wiring.links].tolist()
    wide = max([len(end[0]) + len(end[2]) for end in lower], default=0) + 1
    far = max([len(end[0]) + len(end[2]) for end in upper], default=0) + 1
    yield f"# gpufabric fabric {fabric.content_hash}"
    yield f"# {len(wiring.links)} links: lower end -- upper end, rate in Gb/s, tier"
    for a, b, rate, tier in zip(lower, upper, rates, tiers, strict=True):
        left, right = f"{a[0]} {a[2]}", f"{b[0]} {b[2]}"
        yield f"{left:{wide}} -- {right:{far}} {rate:6g} {LINK_TIERS[tier]}"
    yield ""


EXPORT = Export(
    "edges",
    ".csv",
    lambda: _("every link with both ends, as CSV and as plain text"),
    edge_list,
)
