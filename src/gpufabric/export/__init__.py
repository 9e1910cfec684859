"""Other tools' formats, one module each: emulators, drawings, inventories and simulators."""

from __future__ import annotations

from collections.abc import Mapping

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.export import (
    air,
    astra_sim,
    containerlab,
    edges,
    graphviz,
    ibsim,
    netbox,
    ptm,
    simai,
)
from gpufabric.export.registry import Export, ExportOptions
from gpufabric.model.fabric import Fabric

__all__ = ["EXPORTS", "Export", "ExportOptions", "export_fabric", "find_export"]

EXPORTS: tuple[Export, ...] = (
    air.EXPORT,
    astra_sim.EXPORT,
    containerlab.EXPORT,
    edges.EXPORT,
    graphviz.EXPORT,
    ibsim.EXPORT,
    netbox.EXPORT,
    ptm.EXPORT,
    simai.EXPORT,
)
"""Every format, in the order of names."""


def find_export(name: str) -> Export:
    """Return the export of that name.

    Raises
    ------
    InputError
        If there is none; the nearest name is given.
    """
    for export in EXPORTS:
        if export.name == name.lower():
            return export
    names = [export.name for export in EXPORTS]
    raise InputError(
        Fault(
            "--to",
            _('no export is called "{name}".').format(name=name),
            ", ".join(names),
            nearest(name, names),
        )
    )


def export_fabric(
    fabric: Fabric, name: str, options: ExportOptions | None = None
) -> Mapping[str, str]:
    """Return the files of `fabric` in the format `name`: text by file name.

    Raises
    ------
    InputError
        If the name or an option is not known.
    UnsupportedError
        If the format cannot hold this fabric.
    """
    return find_export(name).function(fabric, options or ExportOptions())
