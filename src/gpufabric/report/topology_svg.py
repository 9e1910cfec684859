"""``topology.svg``: the fabric as a figure, in as much detail as stays readable."""

from __future__ import annotations

import numpy as np

from gpufabric.model.fabric import Fabric
from gpufabric.report.figure_frame import framed
from gpufabric.report.topology_columns import draw_columns
from gpufabric.report.topology_detail import draw_detail
from gpufabric.report.topology_ring import draw_ring
from gpufabric.report.topology_words import frame_of, manager_notes

__all__ = ["topology_svg"]


def topology_svg(fabric: Fabric) -> str:
    """Return a figure of the fabric as a self-contained SVG.

    Small fabrics are drawn with every host, NIC, switch and link; larger ones by SU; fabrics of
    three tiers by pod; dragonflies by group. Parts that are alike are left out in the middle where
    the sheet would become too wide, and a note says so.
    """
    detail = draw_detail(fabric)
    shown = fabric.switches.rail
    if detail is not None:
        body, size, notes = detail
        shown = fabric.nics.rail
    elif fabric.family in ("dragonfly", "dragonfly+"):
        body, size, notes = draw_ring(fabric)
        notes += manager_notes(fabric)
    else:
        body, size, notes = draw_columns(fabric)
        notes += manager_notes(fabric)
    rails = [int(rail) for rail in np.unique(shown) if rail >= 0]
    return framed(body, size, frame_of(fabric, rails, [], notes), fabric.content_hash[:8])
