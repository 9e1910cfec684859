"""containerlab topology: every host and switch of a RoCE fabric as a container, every link.

Switches are of the kind that runs their network OS, hosts of kind ``linux``. containerlab numbers
the data interfaces of a switch from 1 whatever cage they lie in: ``eth<port>``, or ``swp<port>``
for Cumulus VX. Images are named once per kind, under ``topology.kinds``, as placeholders to
replace: network OS images are to be had from their makers only.

Source: https://github.com/srl-labs/containerlab, schemas/clab.schema.json (name, topology.kinds,
nodes, links with "node:interface" endpoints) and docs/manual/kinds (sonic-vs, ceos: eth1 is the
first data interface; nvidia_cumulusvx: swpN).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpufabric.core.errors import UnsupportedError
from gpufabric.core.text import _
from gpufabric.export.interfaces import interface_names, nos_of_models
from gpufabric.export.registry import Export, ExportOptions
from gpufabric.export.wiring import Wiring, slug
from gpufabric.model.fabric import Fabric
from gpufabric.model.tables import SWITCH_TIERS

__all__ = ["EXPORT", "containerlab_topology"]

Ints = npt.NDArray[np.int64]


class _Kind(NamedTuple):
    """A containerlab kind, its image, and how it names the first data interface less its number."""

    name: str
    image: str
    interface: str = "eth"


_HOST = _Kind("linux", "alpine:3")
_KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        "cumulus": _Kind("nvidia_cumulusvx", "vrnetlab/nvidia_cumulusvx:latest", "swp"),
        "sonic": _Kind("sonic-vs", "docker-sonic-vs:latest"),
        "eos": _Kind("ceos", "ceos:latest"),
        "nxos": _Kind("cisco_n9kv", "vrnetlab/cisco_n9kv:latest"),
        "junos": _Kind("juniper_vjunosevolved", "vrnetlab/juniper_vjunosevolved:latest"),
    }
)


def containerlab_topology(fabric: Fabric, options: ExportOptions) -> dict[str, str]:
    """Return the topology file of `fabric`.

    Raises
    ------
    UnsupportedError
        If the fabric is InfiniBand, or a network OS has no container.
    """
    if fabric.protocol != "roce":
        raise UnsupportedError(
            _("containerlab runs Ethernet switches; this fabric is {protocol}. Use ibsim.").format(
                protocol=fabric.protocol
            )
        )
    wiring = Wiring(fabric, options.stage)
    kinds = [_kind(nos) for nos in nos_of_models(fabric, options)]
    used = {kinds[model] for model in fabric.switches["model"][wiring.switches].tolist()}
    lines = [
        f"# gpufabric fabric {fabric.content_hash}",
        "# Put your own images in the place of those below.",
        f"name: {slug(fabric.name)}",
        "topology:",
        "  kinds:",
        *(f"    {kind.name}: {{image: {_text(kind.image)}}}" for kind in sorted({*used, _HOST})),
        "  nodes:",
        *_nodes(wiring, kinds),
        "  links:",
        *_links(wiring, kinds, options),
        "",
    ]
    return {"fabric.clab.yml": "\n".join(lines)}


def _kind(nos: str) -> _Kind:
    if nos not in _KINDS:
        raise UnsupportedError(_("{nos} has no containerlab kind.").format(nos=nos))
    return _KINDS[nos]


def _text(value: object) -> str:
    """Return `value` as a YAML double-quoted scalar."""
    return json.dumps(str(value))


def _nodes(wiring: Wiring, kinds: list[_Kind]) -> Iterator[str]:
    fabric = wiring.fabric
    for host in wiring.hosts.tolist():
        row = fabric.hosts.row(host)
        group = "manager" if row["role"] else "host"
        labels = {"model": fabric.models[row["model"]], "su": row["su"], "pod": row["pod"]}
        yield _node(row["name"], _HOST, group, labels)
    for switch in wiring.switches.tolist():
        row = fabric.switches.row(switch)
        labels = {key: row[key] for key in ("plane", "rail", "su", "pod")}
        labels = {"model": fabric.models[row["model"]], **labels}
        yield _node(row["name"], kinds[row["model"]], SWITCH_TIERS[row["tier"]], labels)


def _node(name: str, kind: _Kind, group: str, labels: Mapping[str, object]) -> str:
    stated = ", ".join(f"{key}: {_text(value)}" for key, value in labels.items() if value != -1)
    return f"    {_text(name)}: {{kind: {kind.name}, group: {group}, labels: {{{stated}}}}}"


def _links(wiring: Wiring, kinds: list[_Kind], options: ExportOptions) -> Iterator[str]:
    ends = [
        [
            f"{device}:{interface}"
            for device, interface in zip(
                wiring.devices(ports), _interfaces(wiring, ports, kinds, options), strict=True
            )
        ]
        for ports in wiring.ends
    ]
    for a, b in zip(*ends, strict=True):
        yield f"    - endpoints: [{_text(a)}, {_text(b)}]"


def _interfaces(
    wiring: Wiring, ports: Ints, kinds: list[_Kind], options: ExportOptions
) -> Iterator[str]:
    fabric = wiring.fabric
    host_names = interface_names(fabric, ports, options)
    device = fabric.ports["device"][ports].tolist()
    is_switch = fabric.ports["is_switch"][ports].tolist()
    for name, row, switch, port in zip(
        host_names, device, is_switch, fabric.ports["port"][ports].tolist(), strict=True
    ):
        kind = kinds[int(fabric.switches["model"][row])] if switch else None
        yield f"{kind.interface}{port + 1}" if kind else name


EXPORT = Export(
    "containerlab",
    ".clab.yml",
    lambda: _("a RoCE fabric as containers, for containerlab"),
    containerlab_topology,
)
