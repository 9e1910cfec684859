"""The figure by SU or pod: columns of hosts under their leafs, spines and cores above."""

from __future__ import annotations

from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.report.svg import Drawing
from gpufabric.report.topology_column_boxes import Sheet, place_all
from gpufabric.report.topology_column_lines import draw_links
from gpufabric.report.topology_column_sizes import Fitted, fitted
from gpufabric.report.topology_groups import grouped

__all__ = ["draw_columns", "painted"]


def draw_columns(fabric: Fabric) -> tuple[Drawing, tuple[float, float], list[str]]:
    """Return the figure, its width and height, and the notes it needs."""
    fit = fitted(fabric, grouped(fabric))
    whole, size = painted(fabric, fit)
    notes = [fit.note] if fit.note else []
    figure = fit.figure
    if figure.planes > figure.planes_drawn:
        count = figure.planes - 1
        notes.append(_("Plane 0 is drawn; the other {count} are like it.").format(count=count))
    return whole, size, notes


def painted(fabric: Fabric, fit: Fitted) -> tuple[Drawing, tuple[float, float]]:
    """Return a fitted figure with its links, and its width and height."""
    sheet = Sheet(fabric, fit)
    size = place_all(sheet)
    draw_links(sheet)
    whole = Drawing()
    for part in (sheet.lines, sheet.boxes, sheet.labels):
        whole.extend(part)
    return whole, size
