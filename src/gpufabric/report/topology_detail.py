"""The figure of a small fabric: every host with its NICs, every switch, every link."""

from __future__ import annotations

from gpufabric.model.fabric import Fabric
from gpufabric.report.svg import Drawing
from gpufabric.report.topology_detail_boxes import place_detail
from gpufabric.report.topology_detail_links import draw_detail_links
from gpufabric.report.topology_detail_sheet import (
    GUTTER,
    INSET,
    SCALES,
    DetailSheet,
    networks_of,
)

__all__ = ["draw_detail"]

MAX_WIDTH = 1760.0
MIN_CONTENT = 638.0
MAX_LINKS = 1000
MAX_HOSTS = 80


def draw_detail(fabric: Fabric) -> tuple[Drawing, tuple[float, float], list[str]] | None:
    """Return the figure, its width and height, and notes; None if the fabric is too large."""
    if len(fabric.links) > MAX_LINKS or len(fabric.hosts) > MAX_HOSTS:
        return None
    networks = networks_of(fabric)
    for scale in SCALES:
        sheet = DetailSheet(fabric, scale)
        content = max(sheet.hosts_width, sheet.networks_width(networks), MIN_CONTENT)
        if GUTTER + content <= MAX_WIDTH:
            break
    else:
        return None
    height = place_detail(sheet, networks, content)
    draw_detail_links(sheet)
    whole = Drawing()
    for part in (sheet.lines, sheet.boxes, sheet.labels):
        whole.extend(part)
    return whole, (GUTTER + content + INSET, height), []
