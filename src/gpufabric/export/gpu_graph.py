"""The graph that packet simulators read: GPUs, a scale-up switch per host, switches, merged links.

Vertices are numbered GPUs first (host by host), then scale-up switches (one a host), then switches.
Managers are left out. The simulators keep one link between two vertices and attach a GPU straight
to the network, so that

* parallel links become one link of their rate together;
* the ports of a GPU's NICs become links of the GPU; GPUs that share a NIC share its rate equally.

A scale-up switch stands for NVLink or Infinity Fabric, at one direction of the rate per GPU in the
catalogue; a host whose scale-up network is unknown has none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpufabric.catalog.collection import Catalog
from gpufabric.core.errors import UnsupportedError
from gpufabric.core.text import _
from gpufabric.export.registry import ExportOptions
from gpufabric.export.wiring import Wiring
from gpufabric.model.fabric import Fabric

__all__ = ["GpuGraph", "Links", "gpu_graph", "rate_word"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LINK_DELAY_NS = 500
"""Delay of a network link: the default of SimAI's gen_Topo_Template.py, assumed to hold cable and
switch together [ns]."""

SCALE_UP_DELAY_NS = 25
"""Delay of a scale-up link: the default of SimAI's gen_Topo_Template.py, assumed [ns]."""


@dataclass(frozen=True)
class Links:
    """Links between vertices, each pair once, lower vertex first."""

    a: Ints
    b: Ints
    gbps: Floats


@dataclass(frozen=True)
class GpuGraph:
    """Vertices and links as the simulators read them.

    Parameters
    ----------
    n_gpus, gpus_per_host
        GPUs in all and in each host.
    gpu
        Name of the GPU; empty if unknown.
    n_scale_up, n_switches
        Scale-up switches and network switches.
    scale_up, host, network
        Links of GPUs to scale-up switches, of GPUs to leafs, and between switches.
    """

    n_gpus: int
    gpus_per_host: int
    gpu: str
    n_scale_up: int
    n_switches: int
    scale_up: Links
    host: Links
    network: Links

    @property
    def n_vertices(self) -> int:
        """All vertices."""
        return self.n_gpus + self.n_scale_up + self.n_switches

    @property
    def n_links(self) -> int:
        """All links."""
        return len(self.scale_up.a) + len(self.host.a) + len(self.network.a)


def rate_word(gbps: float) -> str:
    """Return a rate as ns-3 reads it.

    Examples
    --------
    >>> rate_word(400.0), rate_word(3600.0), rate_word(133.3)
    ('400Gbps', '3600Gbps', '133.3Gbps')
    """
    return f"{gbps:.10g}Gbps"


def gpu_graph(fabric: Fabric, options: ExportOptions) -> GpuGraph:
    """Return the graph of `fabric`.

    Raises
    ------
    UnsupportedError
        If hosts differ in their GPUs, or NICs and GPUs do not divide evenly.
    """
    wiring = Wiring(fabric, options.stage)
    per_host = np.unique(fabric.hosts["n_gpus"][wiring.compute_hosts])
    models = np.unique(fabric.hosts["model"][wiring.compute_hosts])
    if len(per_host) != 1 or per_host[0] < 1 or len(models) != 1:
        raise UnsupportedError(_("the simulators want hosts that are all alike, with GPUs."))
    gpus, model = int(per_host[0]), fabric.models[int(models[0])]
    gpu, scale_up_gbps = _gpu(model, options.catalog)
    n_hosts = len(wiring.compute_hosts)
    n_gpus = n_hosts * gpus
    n_scale_up = n_hosts if scale_up_gbps and gpus > 1 else 0
    vertex = _switch_vertices(wiring, n_gpus + n_scale_up)
    every = np.arange(n_gpus if n_scale_up else 0)
    return GpuGraph(
        n_gpus=n_gpus,
        gpus_per_host=gpus,
        gpu=gpu,
        n_scale_up=n_scale_up,
        n_switches=len(wiring.switches),
        scale_up=Links(every, n_gpus + every // gpus, np.full(len(every), scale_up_gbps)),
        host=_host_links(wiring, vertex, gpus),
        network=_network_links(wiring, vertex),
    )


def _gpu(model: str, catalog: Catalog) -> tuple[str, float]:
    """Return a GPU's name and its scale-up rate in one direction [Gb/s]; 0 if unknown."""
    host = catalog.hosts.get(model)
    if host is None:
        return "", 0.0
    both = host.scale_up.gbytes_per_s_per_gpu if host.scale_up else 0.0
    return host.gpu, both * 8 / 2


def _switch_vertices(wiring: Wiring, first: int) -> Ints:
    """int64[n_switch_rows]: vertex of each switch of this stage."""
    vertex = np.full(len(wiring.fabric.switches), -1)
    vertex[wiring.switches] = first + np.arange(len(wiring.switches))
    return vertex


def _host_links(wiring: Wiring, vertex: Ints, gpus: int) -> Links:
    fabric = wiring.fabric
    lower, upper = wiring.ends
    nic = fabric.ports["device"][lower]
    place = np.full(len(fabric.hosts), -1)
    place[wiring.compute_hosts] = np.arange(len(wiring.compute_hosts))
    is_host = fabric.ports["is_switch"][lower] == 0
    host = np.where(is_host, place[fabric.nics["host"][np.where(is_host, nic, 0)]], -1)
    kept = host >= 0
    nic, host, upper, lower = nic[kept], host[kept], upper[kept], lower[kept]
    counts = np.bincount(fabric.nics["host"][wiring.nics], minlength=len(fabric.hosts))
    nics = int(counts[wiring.compute_hosts].max())
    if (counts[wiring.compute_hosts] != nics).any():
        raise UnsupportedError(_("the simulators want hosts that are all alike, with GPUs."))
    if nics % gpus and gpus % nics:
        raise UnsupportedError(
            _("{nics} NICs cannot be shared evenly by {gpus} GPUs.").format(nics=nics, gpus=gpus)
        )
    sharers = max(1, gpus // nics)
    first = fabric.nics["index"][nic].astype(np.int64) * gpus // nics
    gpu = (host * gpus + first)[:, None] + np.arange(sharers)
    leaf = vertex[fabric.ports["device"][upper]]
    gbps = fabric.links["gbps"][wiring.links][kept].astype(np.float64) / sharers
    return _merged(gpu.ravel(), np.repeat(leaf, sharers), np.repeat(gbps, sharers))


def _network_links(wiring: Wiring, vertex: Ints) -> Links:
    fabric = wiring.fabric
    lower, upper = wiring.ends
    between = fabric.ports["is_switch"][lower] == 1
    a = vertex[fabric.ports["device"][lower[between]]]
    b = vertex[fabric.ports["device"][upper[between]]]
    gbps = fabric.links["gbps"][wiring.links][between].astype(np.float64)
    return _merged(np.minimum(a, b), np.maximum(a, b), gbps)


def _merged(a: Ints, b: Ints, gbps: Floats) -> Links:
    """Return one link for each pair of vertices, with the sum of the rates, in order."""
    key, inverse = np.unique(a << 32 | b, return_inverse=True)
    total = np.bincount(inverse, gbps, minlength=len(key))
    return Links(key >> 32, key & 0xFFFFFFFF, total.astype(np.float64))
