"""Inside the host: from a GPU over NVLink or PCIe to its NICs, and in at the other end.

With GPUDirect RDMA the NIC reads GPU memory over PCIe. Without it, data are copied to host memory
first: they cross the memory twice at each end, and every message waits for the copy. With PXN a GPU
hands data over NVLink to the GPU of the destination's rail, whose NIC sends them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gpufabric.catalog.host import Host
from gpufabric.catalog.nic import Nic
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.routing.channels import ChannelBlock, Channels
from gpufabric.routing.paths import REACHED, UNLINKED, AnyInts, WalkedPaths, join_paths, room_for
from gpufabric.topology.decision import Decision

__all__ = ["HostLinks", "HostPaths", "host_links", "pcie_gbps"]

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

LANE_GBPS = {3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}  # PCI Express Base Specification 6.0: GT/s a lane
LINE_CODE = {3: 128 / 130, 4: 128 / 130, 5: 128 / 130, 6: 242 / 256}  # the same; 6: 242 B a flit
# 256 B of payload carry 24 B of headers: R. Neugebauer et al., "Understanding PCIe performance for
# end host networking", SIGCOMM 2018, section 3. The payload size is assumed.
TRANSACTION_SHARE = 256 / (256 + 24)
USUAL_LANES = 16

# Small RDMA writes take 1.5 us with GPUDirect RDMA and 5 us without, end to end
# (https://factryze.ai/scale-atlas/interconnect/gpudirect-rdma, 2025-2026, prose without method);
# 0.3 us of that is one switch with its cables. Half of the rest for each end.
DIRECT_NS = 600.0
STAGED_NS = 2350.0
END_SOURCE = "https://factryze.ai/scale-atlas/interconnect/gpudirect-rdma (2025-2026, prose)"
NVLINK_NS = 1000.0  # assumed, GPU to GPU through a switch chip
MEMORY_GBPS = 4915.2  # assumed: two sockets of eight channels DDR5-4800, both directions together


@dataclass(frozen=True)
class HostLinks:
    """Rates and delays inside a host; each with its origin in `decisions`.

    Parameters
    ----------
    nvlink_gbps
        Rate of a GPU into and out of NVLink, each direction [Gb/s]; None without.
    pcie_gbps
        Rate of a NIC and of a GPU on PCIe, each direction [Gb/s].
    memory_gbps
        Rate of host memory, reads and writes together [Gb/s].
    nvlink_ns
        Delay from GPU to GPU [ns].
    direct_ns, staged_ns
        Delay of one end with and without GPUDirect RDMA: NIC, PCIe, and copy [ns].
    decisions
        Where the numbers come from.
    """

    nvlink_gbps: float | None
    pcie_gbps: float
    memory_gbps: float = MEMORY_GBPS
    nvlink_ns: float = NVLINK_NS
    direct_ns: float = DIRECT_NS
    staged_ns: float = STAGED_NS
    decisions: tuple[Decision, ...] = ()


def pcie_gbps(generation: int, lanes: int = USUAL_LANES) -> float:
    """Return the data rate of a PCIe link, each direction, after line code and headers [Gb/s].

    Examples
    --------
    >>> round(pcie_gbps(5), 1)
    460.9
    """
    rate = LANE_GBPS[generation] * lanes * LINE_CODE[generation]
    return rate * TRANSACTION_SHARE


def host_links(host: Host, nic: Nic) -> HostLinks:
    """Return the rates inside a host of the catalogue, with the NICs it has."""
    nvlink = None
    decisions = []
    if host.scale_up is not None:
        nvlink = host.scale_up.gbytes_per_s_per_gpu / 2 * 8
        source = f"{host.scale_up.source}; {host.scale_up.date}"
        why = _("Half of what is printed for both directions together.")
        decisions.append(Decision("NVLink", f"{nvlink:g} Gb/s", why, source))
    generation, lanes, is_known = _pcie(nic)
    rate = pcie_gbps(generation, lanes)
    text = nic.pcie or _("unknown")
    decisions.append(
        Decision(
            "PCIe",
            f"{rate:.0f} Gb/s",
            _(
                "Gen{generation} x{lanes} after line code and headers; the catalogue says {text}."
            ).format(generation=generation, lanes=lanes, text=text),
            f"{nic.ports.source}; {nic.ports.date}" if is_known else _("assumed"),
            is_warning=not is_known,
        )
    )
    decisions.append(
        Decision(
            "host delay",
            f"{DIRECT_NS:g} ns, {STAGED_NS:g} ns",
            _("One end with and without GPUDirect RDMA."),
            END_SOURCE,
            is_warning=True,
        )
    )
    return HostLinks(nvlink, rate, decisions=tuple(decisions))


def _pcie(nic: Nic) -> tuple[int, int, bool]:
    """Generation and lanes that the catalogue's text names first; Gen5 x16 where it names none."""
    text = nic.pcie or ""
    generation = re.search(r"Gen(\d)", text)
    lanes = re.search(r"x(\d+)", text) or re.search(r"(\d+) lanes", text)
    found = int(generation[1]) if generation else 5
    return found, int(lanes[1]) if lanes else USUAL_LANES, bool(generation and lanes)


@dataclass(frozen=True, eq=False)
class HostPaths:
    """Paths between GPUs, host included.

    Parameters
    ----------
    channels
        The fabric's channels, then those inside hosts.
    links
        Rates and delays inside hosts.
    has_gpudirect
        Whether NICs read and write GPU memory themselves.
    """

    channels: Channels
    links: HostLinks
    has_gpudirect: bool = True

    @classmethod
    def attach(
        cls, channels: Channels, links: HostLinks, *, has_gpudirect: bool = True
    ) -> HostPaths:
        """Return paths over `channels` with those inside hosts added after them.

        Compute paths of NIC ports with the channels of the result, or with `channels`: numbers of
        links are the same.
        """
        blocks, capacity = _blocks(channels, links)
        return cls(
            replace(
                channels,
                capacity_gbps=np.concatenate([channels.capacity_gbps, capacity]),
                latency_ns=np.concatenate([channels.latency_ns, np.zeros(len(capacity))]),
                decisions=channels.decisions + links.decisions,
                blocks=blocks,
            ),
            links,
            has_gpudirect,
        )

    @cached_property
    def host_of_gpu(self) -> Ints:
        """int32[n_gpus]: host of each GPU, in order of host, then of GPU."""
        hosts = self.channels.fabric.hosts
        return np.repeat(np.arange(len(hosts), dtype=np.int32), hosts.n_gpus)

    @cached_property
    def first_gpu(self) -> Longs:
        """int64[n_hosts + 1]: first GPU of each host."""
        n_gpus = self.channels.fabric.hosts.n_gpus
        return np.concatenate([[0], np.cumsum(n_gpus, dtype=np.int64)])

    @cached_property
    def ports_of_gpu(self) -> Ints:
        """int32[n_gpus, k]: NIC ports that each GPU uses; -1 fills up.

        The NICs of a host are dealt to its GPUs in order, several a GPU or several GPUs a NIC.
        """
        fabric = self.channels.fabric
        gpu, nic = _gpu_nics(fabric, self.first_gpu)
        size = fabric.nics.n_ports[nic].astype(np.int64)
        owner = np.repeat(gpu, size)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size)
        port = np.repeat(fabric.nics.port_first[nic], size) + within
        count = np.bincount(owner, minlength=len(self.host_of_gpu))
        ports = np.full((len(count), int(count.max(initial=0))), -1, np.int32)
        ports[owner, np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)] = port
        return ports

    def walk(
        self,
        route: Callable[[Ints, Ints], WalkedPaths],
        src_gpu: AnyInts,
        dst_gpu: AnyInts,
        *,
        pxn: bool = False,
    ) -> WalkedPaths:
        """Return the paths of flows between GPUs, each divided equally over the GPUs' NIC ports.

        Parameters
        ----------
        route
            Gives the paths between NIC ports, such as ``Router.walk``.
        src_gpu, dst_gpu
            int[n_flows]: GPUs, numbered through all hosts.
        pxn
            Send through the source host's GPU of the destination's number, and so of its rail.
        """
        src, dst = self._checked(src_gpu, "src_gpu"), self._checked(dst_gpu, "dst_gpu")
        is_near = self.host_of_gpu[src] == self.host_of_gpu[dst]
        sender = self._senders(src, dst) if pxn else src
        sender = np.where(is_near, src, sender)
        ports = self.ports_of_gpu
        each = ports.shape[1]
        src_port, dst_port = ports[sender], ports[dst]
        is_used = (src_port >= 0) & (dst_port >= 0) & ~is_near[:, None]
        inner = route(src_port[is_used], dst_port[is_used])
        status = np.full(is_used.shape, UNLINKED, np.int8)
        status[is_used] = inner.status
        status[is_near, 0] = REACHED
        out = self._leg_out(src, sender, dst, is_near, src_port)
        into = self._leg_in(dst, is_near, dst_port)
        for leg in (out, into):
            leg.channel[status != REACHED] = -1
            leg.channel[src == dst] = -1
        delay_ns = np.where(is_near, self.links.nvlink_ns * (src != dst), 2 * self._end_ns)
        delay_ns = delay_ns + np.where(sender == src, 0.0, self.links.nvlink_ns)
        rows = _join_legs(out, inner, into, is_used, status)
        rows.latency_s[:] += np.repeat(delay_ns * 1e-9, each) * (status.ravel() == REACHED)
        return rows if each == 1 else join_paths(rows, each)

    @property
    def _end_ns(self) -> float:
        return self.links.direct_ns if self.has_gpudirect else self.links.staged_ns

    def _leg_out(self, src: Longs, sender: Longs, dst: Longs, is_near: Bools, port: Ints) -> _Leg:
        """From the source GPU to its NIC, or to the destination GPU of the same host."""
        blocks = self.channels.blocks
        has_nvlink = self.links.nvlink_gbps is not None
        handed = (sender != src) | (is_near & has_nvlink)
        sides = np.where(is_near, dst, sender)
        nic = self.channels.fabric.ports.device[port]
        columns = [
            (np.where(handed, blocks[GPU_NVLINK].first + src, -1), 1.0),
            (np.where(handed, blocks[NVLINK_GPU].first + sides, -1), 1.0),
            (np.where(is_near & has_nvlink, -1, blocks[GPU_PCIE].first + sender), 1.0),
            (self._memory(sender, is_near), 2.0),
        ]
        last = np.where(is_near[:, None], -1, blocks[PCIE_NIC].first + nic)
        return _leg([(np.broadcast_to(c[:, None], last.shape), f) for c, f in columns], (last, 1.0))

    def _leg_in(self, dst: Longs, is_near: Bools, port: Ints) -> _Leg:
        """From the NIC to the destination GPU; over PCIe alone inside a host without NVLink."""
        blocks = self.channels.blocks
        has_nvlink = self.links.nvlink_gbps is not None
        nic = self.channels.fabric.ports.device[port]
        first = np.where(is_near[:, None], -1, blocks[NIC_PCIE].first + nic)
        last = np.where(is_near & has_nvlink, -1, blocks[PCIE_GPU].first + dst)
        return _leg(
            [
                (first, 1.0),
                (np.broadcast_to(self._memory(dst, is_near)[:, None], first.shape), 2.0),
            ],
            (np.broadcast_to(last[:, None], first.shape), 1.0),
        )

    def _memory(self, gpu: Longs, is_near: Bools) -> Longs:
        """Channel of the memory that a staged copy is written to and read from; -1 without."""
        memory = self.channels.blocks[MEMORY].first + self.host_of_gpu[gpu]
        return np.where(is_near | self.has_gpudirect, -1, memory).astype(np.int64)

    def _senders(self, src: Longs, dst: Longs) -> Longs:
        """GPU of the source host that has the destination's number; the source if there is none."""
        local = dst - self.first_gpu[self.host_of_gpu[dst]]
        host = self.host_of_gpu[src]
        sender = self.first_gpu[host] + local
        return np.where(sender < self.first_gpu[host + 1], sender, src)

    def _checked(self, gpu: AnyInts, where: str) -> Longs:
        array = np.asarray(gpu, np.int64)
        wrong = (array < 0) | (array >= len(self.host_of_gpu))
        if wrong.any():
            at = int(np.argmax(wrong))
            what = _("there is no GPU {gpu}.").format(gpu=array[at])
            last = len(self.host_of_gpu) - 1
            raise InputError(Fault(f"{where}[{at}]", what, _("0 to {last}").format(last=last)))
        return array


@dataclass(frozen=True, eq=False)
class _Leg:
    """A part of paths: int64[n_flows, each, width] of channels, -1 for none; fractions."""

    channel: Longs
    fraction: Floats


def _leg(columns: list[tuple[Longs, float]], last: tuple[Longs, float]) -> _Leg:
    every = [*columns, last]
    channel = np.stack([column for column, _fraction in every], axis=-1)
    return _Leg(channel, np.array([fraction for _column, fraction in every]))


def _join_legs(
    out: _Leg, inner: WalkedPaths, into: _Leg, is_used: Bools, status: npt.NDArray[np.int8]
) -> WalkedPaths:
    """One row for every flow and NIC port: the way out, through the fabric, and in."""
    n_rows = status.size
    sizes = np.zeros((3, n_rows), np.int64)
    sizes[0] = (out.channel >= 0).sum(axis=-1).ravel()
    sizes[1, is_used.ravel()] = np.diff(inner.first)
    sizes[2] = (into.channel >= 0).sum(axis=-1).ravel()
    first = np.concatenate([[0], np.cumsum(sizes.sum(axis=0))])
    room_for(int(first[-1]))
    channel = np.empty(int(first[-1]), np.int32)
    fraction = np.ones(int(first[-1]))
    starts = first[:-1] + np.concatenate([np.zeros((1, n_rows), np.int64), sizes[:2]]).cumsum(0)
    for leg, start, size in ((out, starts[0], sizes[0]), (into, starts[2], sizes[2])):
        at = _spans(start, size)
        kept = leg.channel >= 0
        channel[at] = leg.channel[kept]
        fraction[at] = np.broadcast_to(leg.fraction, leg.channel.shape)[kept]
    at = _spans(starts[1], sizes[1])
    channel[at] = inner.channel
    if inner.fraction is not None:
        fraction[at] = inner.fraction
    latency_s = np.zeros(n_rows)
    latency_s[is_used.ravel()] = inner.latency_s
    return WalkedPaths(first, channel, fraction, latency_s, status.ravel())


def _spans(start: Longs, size: Longs) -> Longs:
    """Numbers from each start on, so many as each size says."""
    within = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
    spans: Longs = np.repeat(start, size) + within
    return spans


GPU_NVLINK, NVLINK_GPU, GPU_PCIE, PCIE_GPU, PCIE_NIC, NIC_PCIE, MEMORY = range(7)


def _blocks(channels: Channels, links: HostLinks) -> tuple[tuple[ChannelBlock, ...], Floats]:
    fabric = channels.fabric
    hosts = fabric.hosts
    host = np.repeat(np.arange(len(hosts)), hosts.n_gpus)
    first = np.cumsum(hosts.n_gpus, dtype=np.int64) - hosts.n_gpus
    number = (np.arange(len(host)) - first[host]).astype(str)
    gpus = np.char.add(np.char.add(hosts.name[host], " GPU "), number)
    nics = np.char.add(
        np.char.add(hosts.name[fabric.nics.host], " NIC "), fabric.nics["index"].astype(str)
    )
    nvlink = links.nvlink_gbps or 0.0
    kinds = (
        (_("GPU to NVLink"), gpus, nvlink),
        (_("NVLink to GPU"), gpus, nvlink),
        (_("GPU to PCIe"), gpus, links.pcie_gbps),
        (_("PCIe to GPU"), gpus, links.pcie_gbps),
        (_("PCIe to NIC"), nics, links.pcie_gbps),
        (_("NIC to PCIe"), nics, links.pcie_gbps),
        (_("host memory"), hosts.name, links.memory_gbps),
    )
    blocks, rates, at = [], [], len(channels.capacity_gbps)
    for what, owners, rate in kinds:
        blocks.append(ChannelBlock(what, at, owners))
        rates.append(np.full(len(owners), rate))
        at += len(owners)
    return tuple(blocks), np.concatenate(rates)


def _gpu_nics(fabric: Fabric, first_gpu: Longs) -> tuple[Longs, Longs]:
    """Pairs of GPU and NIC, sorted by GPU, then by NIC."""
    host = fabric.nics.host.astype(np.int64)
    n_gpus = fabric.hosts.n_gpus.astype(np.int64)[host]
    n_nics = np.bincount(host, minlength=len(fabric.hosts))[host]
    index = fabric.nics["index"].astype(np.int64)
    # GPUs of a NIC: those whose place in the host overlaps the NIC's place.
    low = index * n_gpus // n_nics
    high = np.maximum(((index + 1) * n_gpus - 1) // n_nics, low)
    count = np.where(n_gpus > 0, high - low + 1, 0)
    nic = np.repeat(np.arange(len(host)), count)
    within = np.arange(len(nic)) - np.repeat(np.cumsum(count) - count, count)
    gpu = first_gpu[host[nic]] + low[nic] + within
    order = np.lexsort((nic, gpu))
    return gpu[order], nic[order]
