"""NVIDIA Air: a RoCE fabric as virtual switches and servers, to be imported through the API.

Interfaces of Cumulus VX have their names on the switch (``swp1s0``), those of SONiC in Air are
``eth<port>``. Versions and sizes of the machines are those of the documentation's examples.

Source: NVIDIA Air user guide, "Custom Topology", section "Import a Topology via API" (nodes with
os, cpu, memory; links as pairs of node and interface; oob), and "Import and Export Functionality"
of the Air SDK 1.9 (format, name, content), https://docs.nvidia.com/dsx-air/.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from gpufabric.core.errors import UnsupportedError
from gpufabric.core.text import _
from gpufabric.export.interfaces import interface_names, nos_of_models
from gpufabric.export.registry import Export, ExportOptions
from gpufabric.export.wiring import Wiring
from gpufabric.model.fabric import Fabric

__all__ = ["EXPORT", "air_topology"]

Ints = npt.NDArray[np.int64]

_MACHINES = {
    "cumulus": {"os": "cumulus-vx-5.10.1", "cpu": 2, "memory": 2048, "storage": 10},
    "sonic": {"os": "sonic-vs-202305", "cpu": 2, "memory": 4096, "storage": 10},
}
_SERVER = {"os": "generic/ubuntu2404", "cpu": 1, "memory": 1024, "storage": 10}


def air_topology(fabric: Fabric, options: ExportOptions) -> dict[str, str]:
    """Return the simulation of `fabric` in Air's JSON.

    Raises
    ------
    UnsupportedError
        If the fabric is InfiniBand, or a switch runs neither Cumulus Linux nor SONiC.
    """
    if fabric.protocol != "roce":
        raise UnsupportedError(
            _("NVIDIA Air simulates Ethernet; this fabric is {protocol}. Use ibsim.").format(
                protocol=fabric.protocol
            )
        )
    wiring = Wiring(fabric, options.stage)
    noses = nos_of_models(fabric, options)
    machines: dict[str, Any] = dict.fromkeys(fabric.hosts["name"][wiring.hosts].tolist(), _SERVER)
    for switch in wiring.switches.tolist():
        nos = noses[int(fabric.switches["model"][switch])]
        if nos not in _MACHINES:
            raise UnsupportedError(
                _("NVIDIA Air has no {nos}; ask for the NOS cumulus or sonic.").format(nos=nos)
            )
        machines[str(fabric.switches["name"][switch])] = _MACHINES[nos]
    ends = [_ends(wiring, ports, noses, options) for ports in wiring.ends]
    content = {
        "nodes": machines,
        "links": [list(pair) for pair in zip(*ends, strict=True)],
        "oob": False,
    }
    text = json.dumps(
        {"format": "JSON", "name": fabric.name, "content": content}, ensure_ascii=False, indent=1
    )
    return {"air.json": text + "\n"}


def _ends(
    wiring: Wiring, ports: Ints, noses: list[str], options: ExportOptions
) -> list[dict[str, str]]:
    fabric = wiring.fabric
    names = interface_names(fabric, ports, options)
    rows = zip(
        wiring.devices(ports),
        names,
        fabric.ports["is_switch"][ports].tolist(),
        fabric.ports["device"][ports].tolist(),
        fabric.ports["port"][ports].tolist(),
        strict=True,
    )
    ends = []
    for device, name, is_switch, row, port in rows:
        is_sonic = is_switch and noses[int(fabric.switches["model"][row])] == "sonic"
        ends.append({"node": device, "interface": f"eth{port + 1}" if is_sonic else name})
    return ends


EXPORT = Export(
    "air",
    ".json",
    lambda: _("a RoCE fabric as a simulation for NVIDIA Air"),
    air_topology,
)
