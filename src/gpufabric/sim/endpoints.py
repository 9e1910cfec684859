"""The GPUs of a fabric: what traffic is sent between, each with its host and the NICs it uses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.routing.host_path import HostPaths

__all__ = ["Endpoints", "endpoints_of"]

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Endpoints:
    """GPUs in order of host, then of their number in the host.

    Parameters
    ----------
    host
        int32[n]: row of ``hosts``; never falling.
    gpu
        int32[n]: number of the GPU in its host, from 0.
    host_names
        Name of every row of ``hosts``.
    gbps
        float64[n]: what its NICs send together [Gb/s]; a NIC that GPUs share counts in part.
    number
        int64[n]: number of the GPU among those of all hosts, as ``HostPaths`` counts.
    ports
        int32[n, n_ports]: NIC ports that it uses; -1 fills up.
    """

    host: Ints
    gpu: Ints
    host_names: NDArray[np.str_]
    gbps: Floats
    number: Longs
    ports: Ints

    def __len__(self) -> int:
        return len(self.host)

    @cached_property
    def block(self) -> Ints:
        """int32[n]: number of each GPU's host among the hosts with GPUs, from 0."""
        return np.cumsum(np.concatenate([[0], np.diff(self.host) != 0])).astype(np.int32)

    @cached_property
    def first(self) -> Longs:
        """int64[n_hosts + 1]: first GPU of each host."""
        return np.concatenate([[0], np.cumsum(np.bincount(self.block))]).astype(np.int64)

    @property
    def n_hosts(self) -> int:
        """Hosts with GPUs."""
        return len(self.first) - 1

    @cached_property
    def names(self) -> NDArray[np.str_]:
        """Names of the GPUs, as ``host-001:3``."""
        stem = np.char.add(self.host_names[self.host], ":")
        return np.char.add(stem, self.gpu.astype(np.str_))

    def relays(self, src: Ints, dst: Ints) -> Ints:
        """Return for each pair the GPU of the source's host that has the destination's number."""
        block = self.block[src]
        size = np.diff(self.first)[block]
        relay = self.first[block] + self.gpu[dst]
        return np.where(self.gpu[dst] < size, relay, src).astype(np.int32)

    def first_of(self, n_gpus: int) -> Endpoints:
        """Return the first `n_gpus` GPUs.

        Raises
        ------
        InputError
            If there are fewer.
        """
        if not 2 <= n_gpus <= len(self):
            raise InputError(
                Fault(
                    "--gpus",
                    _("{n} GPUs.").format(n=n_gpus),
                    _("2 to {most}, what the fabric has today").format(most=len(self)),
                )
            )
        return self._rows(np.arange(n_gpus))

    def _rows(self, rows: Longs) -> Endpoints:
        return Endpoints(
            self.host[rows],
            self.gpu[rows],
            self.host_names,
            self.gbps[rows],
            self.number[rows],
            self.ports[rows],
        )

    def index(self, name: str, where: str) -> int:
        """Return the place of the GPU that `name` gives, as a number or as ``HOST:GPU``.

        Raises
        ------
        InputError
            If there is none of that name.
        """
        text = name.strip()
        if text.isdecimal() and int(text) < len(self):
            return int(text)
        found = np.flatnonzero(self.names == text)
        if len(found):
            return int(found[0])
        remedy = ""
        if ":" in text:
            known = self.host_names[np.unique(self.host)].tolist()
            remedy = nearest(text.split(":")[0], known)
        raise InputError(
            Fault(
                where,
                _('there is no GPU "{name}".').format(name=text[:64]),
                _("0 to {last}, or HOST:GPU").format(last=len(self) - 1),
                remedy,
            )
        )


def endpoints_of(paths: HostPaths, stage: int = 0) -> Endpoints:
    """Return the GPUs of the compute hosts of `stage` and before.

    Raises
    ------
    InputError
        If no host has both GPUs and NICs.
    """
    fabric = paths.channels.fabric
    hosts, ports = fabric.hosts, paths.ports_of_gpu
    host = paths.host_of_gpu
    is_there = (hosts.role[host] == 0) & (hosts.stage[host] <= stage)
    number = np.flatnonzero(is_there & (ports >= 0).any(axis=1))
    if not len(number):
        raise InputError(
            Fault(fabric.name, _("no host has both GPUs and NICs."), _("a fabric with GPUs"))
        )
    is_port = ports >= 0
    sharers = np.bincount(ports[is_port], minlength=len(fabric.ports))
    with np.errstate(divide="ignore"):
        part = np.where(is_port, fabric.ports.gbps[ports] / sharers[ports], 0.0)
    return Endpoints(
        host=host[number],
        gpu=(number - paths.first_gpu[host[number]]).astype(np.int32),
        host_names=hosts.name,
        gbps=part.sum(axis=1)[number].astype(np.float64),
        number=number,
        ports=ports[number],
    )
