"""PTM: the cabling plan that ``ptmd`` holds against LLDP on every switch.

Source: NVIDIA Cumulus Linux user guide, "Prescriptive Topology Manager - PTM", under
https://docs.nvidia.com/networking-ethernet-software/cumulus-linux/ (undirected graph,
``"leaf01":"swp1" -- "spine01":"swp1"``, in /etc/ptm.d/topology.dot);
https://github.com/CumulusNetworks/ptm, topology.dot.sample.
"""

from __future__ import annotations

from gpufabric.core.errors import UnsupportedError
from gpufabric.core.text import _
from gpufabric.export.interfaces import interface_names
from gpufabric.export.registry import Export, ExportOptions
from gpufabric.export.wiring import Wiring, slug
from gpufabric.model.fabric import Fabric

__all__ = ["EXPORT", "ptm_topology"]


def ptm_topology(fabric: Fabric, options: ExportOptions) -> dict[str, str]:
    """Return ``topology.dot`` of `fabric`.

    Raises
    ------
    UnsupportedError
        If the fabric is InfiniBand, which has no LLDP.
    """
    if fabric.protocol != "roce":
        raise UnsupportedError(
            _("PTM compares LLDP neighbours, which {protocol} has not. Use ibsim.").format(
                protocol=fabric.protocol
            )
        )
    wiring = Wiring(fabric, options.stage)
    ends = [
        [
            f'"{device}":"{interface}"'
            for device, interface in zip(
                wiring.devices(ports), interface_names(fabric, ports, options), strict=True
            )
        ]
        for ports in wiring.ends
    ]
    lines = [
        f"# gpufabric fabric {fabric.content_hash}",
        f'graph "{slug(fabric.name)}" {{',
        *(f"  {a} -- {b}" for a, b in zip(*ends, strict=True)),
        "}",
        "",
    ]
    return {"topology.dot": "\n".join(lines)}


EXPORT = Export(
    "ptm",
    ".dot",
    lambda: _("the cabling plan that PTM checks against LLDP on the switches"),
    ptm_topology,
)
