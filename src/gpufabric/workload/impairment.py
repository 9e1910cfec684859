"""What usually goes wrong on a cluster, as a change of its rates: ask for it, see what it costs.

Every impairment changes the `Cluster` or the fitted rates, by a mechanism and with constants that
are named below with their source; the closed form then gives the times. The constants come from
other runs than those the tests compare with, except the packets a second of `tcp`, for which there
are two runs and one constant, and the time of `slow_steps`, where one rate of six is used.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from gpufabric.catalog.constants import CollectiveFit, collective_fit
from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.workload.closed_form import Estimate, estimate
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.operations import operation

__all__ = [
    "IMPAIRMENTS",
    "Ask",
    "Impaired",
    "Impairment",
    "asks_of",
    "estimate_impaired",
    "impair",
]

PCIE_GBYTES_PER_S = {"volta": 12.0, "ampere": 24.0}
"""What a x16 slot carries one way: 12 GB/s for PCIe 3.0 (NCCL, src/include/graph/topo.h), twice
and four times that for 4.0 and 5.0."""

PCIE_5_GBYTES_PER_S = 48.0

GPUS_PER_SWITCH = {"volta": 2, "ampere": 2}
"""GPUs behind one uplink of a PCIe switch, others one. Source: topology files of AWS p4d, Azure
NDv4 and OCI (A100: two GPUs a switch), of Azure NDv5 and OCI BM.GPU.H100.8 (one)."""

CROSS_NUMA_SHARE = 11 / 23
"""Of a NIC's rate left where GPU and NIC are on different sockets: 11 of 23 GB/s with GPU memory
and with host memory. Source: linux-rdma/perftest issue 241."""

TCP_PACKETS_PER_S = 420e3
"""Full packets that the sockets of a host carry, one way. Source: between 6.0 GB/s on two hosts
with 9,000 B (eth-cscs/cscs-docs, nccl.md) and 3.2 GB/s with 4,092 B (Azure/aks-rdma-infiniband,
expected-output.md), of which a tree over two hosts counts twice what is sent."""

STEP_BYTES = 131_072
"""What NCCL sends with one step and connection. Source: NVIDIA/nccl issue 2409."""

LINKS = {"volta": 6, "ampere": 12, "cdna3": 7, "cdna4": 7}
"""NVLink or xGMI links of a GPU, others 18. Source: GPU data sheets."""

NO_NVLINK_GBYTES_PER_S = 20.0
"""Bus bandwidth between GPUs without NVLink, over PCIe 4.0. Source: NVIDIA/nccl-tests issue 178."""

_INSIDE = ("ring_gbytes_per_s", "tree_gbytes_per_s", "nvls_gbytes_per_s", "pairwise_gbytes_per_s")
COUNTED = frozenset({"shared_nic", "nvlink_down"})
"""Impairments whose amount is a number of things."""
_PAIRWISE = frozenset({"alltoall", "sendrecv", "gather", "scatter"})


@dataclasses.dataclass(frozen=True)
class Impaired:
    """A cluster and the fitted rates, after impairments."""

    cluster: Cluster
    fit: CollectiveFit


Change = Callable[[Impaired, float, str], Impaired]


@dataclasses.dataclass(frozen=True)
class Impairment:
    """One thing that goes wrong.

    Parameters
    ----------
    name
        By which it is asked for.
    default, least, most
        Of its amount.
    unit
        Of the amount; empty where it has none.
    source
        Who measured the loss.
    change
        From what is, the amount and the operation's name to what then is.
    """

    name: str
    default: float
    least: float
    most: float
    unit: str
    source: str
    change: Change

    @property
    def title(self) -> str:
        """What is wrong, for a reader."""
        return _titles()[self.name]

    @property
    def remedy(self) -> str:
        """What to do about it, for a reader."""
        return _remedies()[self.name]

    def takes(self, amount: float) -> bool:
        """Whether the amount is in range, and whole where things are counted."""
        if not self.least <= amount <= self.most:
            return False
        return self.name not in COUNTED or amount == int(amount)

    def applies_to(self, cluster: Cluster) -> bool:
        """Whether the cluster has what this impairs."""
        if self.name == "shared_nic" and cluster.n_nics < 2:
            return False
        if self.name in {"gdr_off", "acs_on", "far_nic"} and cluster.transport != "rdma":
            return False
        if self.name == "nvlink_down":
            return cluster.gpus_per_domain > 1
        return cluster.n_domains > 1


@dataclasses.dataclass(frozen=True)
class Ask:
    """An impairment that is asked for, and its amount."""

    impairment: Impairment
    amount: float

    def __str__(self) -> str:
        if not self.impairment.unit:
            return self.impairment.title
        return f"{self.impairment.title} ({self.amount:g} {self.impairment.unit})"


def _with_wire(now: Impaired, gbytes_per_s: float) -> Impaired:
    """The same, with at most so much of all NICs of a domain."""
    wire = now.cluster.wire_gbytes_per_s
    if wire is None:
        return now
    less = dataclasses.replace(now.cluster, wire_gbytes_per_s=min(wire, gbytes_per_s))
    return Impaired(less, now.fit)


def _wire(now: Impaired) -> float:
    return now.cluster.wire_gbytes_per_s or math.inf


def _through_host(now: Impaired, _amount: float, _op: str) -> Impaired:
    """Every byte crosses the PCIe switch's uplink twice, once each way for sending and receiving.

    Without GPUDirect RDMA a byte goes from the GPU to host memory and from there to the NIC; with
    ACS the switch sends it up to the root port and down again. So an uplink carries half its rate
    for each direction of the network.
    """
    cluster = now.cluster
    rate = PCIE_GBYTES_PER_S.get(cluster.generation, PCIE_5_GBYTES_PER_S)
    switches = math.ceil(cluster.gpus_per_domain / GPUS_PER_SWITCH.get(cluster.generation, 1))
    return _with_wire(now, min(cluster.n_nics, switches) * rate / 2)


def _shared_nic(now: Impaired, amount: float, op: str) -> Impaired:
    """Fewer NICs carry everything; without rings inside the host the far half crosses sockets."""
    used = min(int(amount), now.cluster.n_nics)
    share = used / now.cluster.n_nics
    is_far = operation(op).name in _PAIRWISE and now.cluster.gpus_per_domain >= 4 * used
    less = _with_wire(now, _wire(now) * share * (CROSS_NUMA_SHARE if is_far else 1.0))
    return Impaired(dataclasses.replace(less.cluster, n_nics=used), less.fit)


def _tcp(now: Impaired, amount: float, _op: str) -> Impaired:
    """Sockets carry so many full packets a second, whatever the NICs could."""
    fit = now.fit.model_copy(update={"wire_efficiency": {**now.fit.wire_efficiency, "tcp": 1.0}})
    slow = _with_wire(now, TCP_PACKETS_PER_S * amount / 1e9).cluster
    return Impaired(dataclasses.replace(slow, transport="tcp", has_sharp=False), fit)


def _nvlink_down(now: Impaired, amount: float, _op: str) -> Impaired:
    """The rates inside a domain follow the links that are left; without any, PCIe is."""
    generation = now.cluster.generation
    own = now.cluster.link_share
    share = 1 - amount / (LINKS.get(generation, 18) * own)
    rates = {}
    for field in _INSIDE:
        by_generation = dict(getattr(now.fit, field))
        whole = by_generation[generation]
        by_generation[generation] = max(whole * share, min(NO_NVLINK_GBYTES_PER_S / own, whole))
        rates[field] = by_generation
    cluster = now.cluster
    if share <= 0:
        cluster = dataclasses.replace(cluster, has_nvls=False)
    return Impaired(cluster, now.fit.model_copy(update=rates))


def _degraded_nic(now: Impaired, amount: float, _op: str) -> Impaired:
    """Channels get equal parts of a message, so that all wait for the slowest NIC."""
    return _with_wire(now, _wire(now) * amount)


def _far_nic(now: Impaired, _amount: float, _op: str) -> Impaired:
    return _with_wire(now, _wire(now) * CROSS_NUMA_SHARE)


def _one_port(now: Impaired, _amount: float, _op: str) -> Impaired:
    return _with_wire(now, _wire(now) / 2)


def _slow_steps(now: Impaired, amount: float, _op: str) -> Impaired:
    """A NIC sends one step in each such time; the rest of the wire's efficiency is in it."""
    efficiency = now.fit.wire_efficiency[now.cluster.network]
    return _with_wire(now, now.cluster.n_nics * STEP_BYTES / amount / 1e3 / efficiency)


IMPAIRMENTS: dict[str, Impairment] = {
    entry.name: entry
    for entry in (
        Impairment("gdr_off", 1, 1, 1, "", "NVIDIA/nccl issue 1412", _through_host),
        Impairment("acs_on", 1, 1, 1, "", "NVIDIA/nccl-tests issue 112", _through_host),
        Impairment(
            "shared_nic", 1, 1, 64, "NIC",
            "NVIDIA/nccl issue 439; CCI-MOC/roce-testing", _shared_nic,
        ),
        Impairment(
            "tcp", 9000, 576, 65_520, "B MTU",
            "Azure/aks-rdma-infiniband; eth-cscs/cscs-docs", _tcp,
        ),
        Impairment("nvlink_down", 1, 1, 18, "links", "NVIDIA/nccl issue 1374", _nvlink_down),
        Impairment(
            "degraded_nic", 0.5, 0.001, 1, "of its rate",
            "NVIDIA/nccl-tests issue 353", _degraded_nic,
        ),
        Impairment("far_nic", 1, 1, 1, "", "NVIDIA/nccl-tests issue 347", _far_nic),
        Impairment("one_port", 1, 1, 1, "", "NVIDIA/nccl issue 1303", _one_port),
        Impairment(
            "slow_steps", 10, 0.1, 10_000, "us a step", "NVIDIA/nccl issue 2409", _slow_steps
        ),
    )
}  # fmt: skip


def _titles() -> dict[str, str]:
    return {
        "gdr_off": _("GPUDirect RDMA is off"),
        "acs_on": _("PCIe ACS is on"),
        "shared_nic": _("several GPUs share one NIC"),
        "tcp": _("TCP sockets instead of RDMA"),
        "nvlink_down": _("NVLinks are down"),
        "degraded_nic": _("a NIC runs below its rate"),
        "far_nic": _("GPU and NIC are on different sockets"),
        "one_port": _("one port of a dual-port NIC is used"),
        "slow_steps": _("a fixed cost at each step of NCCL"),
    }


def _remedies() -> dict[str, str]:
    return {
        "gdr_off": _("Load nvidia-peermem or use DMA-BUF; NCCL's log must say GDRDMA."),
        "acs_on": _("Disable ACS on the PCIe bridges: lspci -vvv must not show SrcValid+."),
        "shared_nic": _("Give all NICs in NCCL_IB_HCA, and check the topology file."),
        "tcp": _("NCCL's log must say NET/IB or NET/OFI, not NET/Socket."),
        "nvlink_down": _("Look at nvidia-smi nvlink -s and at the fabric manager's log."),
        "degraded_nic": _("Compare speed and width in ibstat and lspci -vv, NIC by NIC."),
        "far_nic": _("Compare nvidia-smi topo -m: each GPU needs a NIC at PIX or PXB."),
        "one_port": _("Give both ports in NCCL_IB_HCA, with their true rate in the topology."),
        "slow_steps": _("Compare perftest with 128 KiB messages, and other NCCL releases."),
    }


def asks_of(text: str, where: str = "--impair") -> list[Ask]:
    """Return the impairments that a text names: ``gdr_off,degraded_nic=0.25``.

    Raises
    ------
    InputError
        For every unknown name and every amount out of range.

    Examples
    --------
    >>> [(ask.impairment.name, ask.amount) for ask in asks_of("gdr-off, nvlink_down=2")]
    [('gdr_off', 1), ('nvlink_down', 2.0)]
    """
    asks: list[Ask] = []
    faults = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, amount_text = part.partition("=")
        name = name.strip().lower().replace("-", "_")
        entry = IMPAIRMENTS.get(name)
        if entry is None:
            what = _('"{name}" is unknown.').format(name=name[:64])
            faults.append(
                Fault(where, what, ", ".join(IMPAIRMENTS), nearest(name, list(IMPAIRMENTS)))
            )
            continue
        amount = _amount(amount_text) if equals else entry.default
        if entry.name in {ask.impairment.name for ask in asks}:
            what = _("{name}: asked for twice.").format(name=name)
            faults.append(Fault(where, what, remedy=_("Name it once.")))
            continue
        if amount is None or not entry.takes(amount):
            what = _('{name}: the amount is "{value}".').format(name=name, value=amount_text[:32])
            expected = f"{entry.least:g} … {entry.most:g} {entry.unit}".strip()
            faults.append(Fault(where, what, expected))
            continue
        asks.append(Ask(entry, amount))
    if faults:
        raise InputError(faults)
    return asks


def _amount(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def impair(
    cluster: Cluster, asks: Sequence[Ask], op: str = "all_reduce", fit: CollectiveFit | None = None
) -> Impaired:
    """Return the cluster and the rates with all that is asked for.

    Raises
    ------
    InputError
        If the cluster has nothing of what is to be impaired.
    """
    now = Impaired(cluster, fit or collective_fit())
    faults = []
    for ask in asks:
        if not ask.impairment.applies_to(cluster):
            what = _("{title}: this cluster has nothing of the kind.").format(
                title=ask.impairment.title
            )
            faults.append(Fault("--impair", what))
            continue
        now = ask.impairment.change(now, ask.amount, op)
    if faults:
        raise InputError(faults)
    return now


def estimate_impaired(
    cluster: Cluster,
    op: str,
    size_bytes: NDArray[np.float64],
    asks: Sequence[Ask],
    algorithm: str | None = None,
    protocol: str | None = None,
) -> Estimate:
    """Return times of one collective on the cluster with all that is asked for.

    Its interval is that of healthy runs: what an impairment costs is modelled, not fitted, and
    the estimate says so.
    """
    now = impair(cluster, asks, op)
    found = estimate(now.cluster, op, size_bytes, algorithm, protocol, now.fit)
    if not asks:
        return found
    note = _("What impairments cost is modelled, not fitted.")
    return dataclasses.replace(found, extrapolates=(*found.extrapolates, note))
