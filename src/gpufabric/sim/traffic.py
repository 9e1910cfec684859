"""Traffic: which GPU sends how much to which other, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.sim.endpoints import Endpoints
from gpufabric.sim.flow_problem import Predecessors

__all__ = ["PATTERNS", "SIZES", "PatternOptions", "Rows", "Traffic", "make_traffic"]

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Random = np.random.Generator

SIZES = ("fixed", "exponential", "pareto")
PARETO_SHAPE = 1.5
"""Shape of the heavy tail: finite mean, infinite variance. Assumed."""
MOST_FLOWS = 17_000_000
"""All pairs of 4,096 GPUs; each flow takes some 1.3 kB in a run."""
STREAM = 1
"""Number of the random stream that traffic is drawn from; failures and routing have others."""


class Rows(NamedTuple):
    """Rows of channels in CSR form: row r has entries ``first[r]`` … ``first[r + 1] - 1``."""

    first: Longs
    channel: Ints


@dataclass(frozen=True, eq=False)
class Traffic:
    """Flows between GPUs, before they have paths.

    Parameters
    ----------
    name
        Name of the pattern, or of the file.
    src, dst
        int32[n_flows]: GPUs, or numbers of `labels` where flows come without a fabric.
    size_bytes
        float64[n_flows] [byte].
    start_s
        float64[n_flows] [s].
    weight
        float64[n_flows]: share of a full channel relative to other flows [1]; 1 where None.
    cap_gbps
        float64[n_flows]: largest rate, infinite for none [Gb/s]; no caps where None.
    predecessors
        Flows to wait for; none where None.
    routes
        Explicit paths; a flow with an empty row is routed. All are routed where None.
    flow_id
        str[n_flows]: names of the flows; their numbers where None.
    labels
        Names that `src` and `dst` count where there is no fabric.
    """

    name: str
    src: Ints
    dst: Ints
    size_bytes: Floats
    start_s: Floats
    weight: Floats | None = None
    cap_gbps: Floats | None = None
    predecessors: Predecessors | None = None
    routes: Rows | None = None
    flow_id: NDArray[np.str_] | None = None
    labels: NDArray[np.str_] | None = None

    @property
    def n_flows(self) -> int:
        """Number of flows."""
        return int(self.src.size)


@dataclass(frozen=True)
class PatternOptions:
    """What a pattern is made with.

    Parameters
    ----------
    size_bytes
        Bytes of one flow, on average [byte].
    sizes
        One of ``SIZES``: all alike, or drawn around that average.
    fan_in
        Senders of an incast.
    load
        Bytes that arrive for all NICs to send, as a share of what they can send (``uniform``) [1].
    n_flows
        Flows of ``uniform``.
    hot_share
        Part of the GPUs of ``hotspot`` that send to the hot host [1].
    """

    size_bytes: float = 1e9
    sizes: str = "fixed"
    fan_in: int = 16
    load: float = 0.5
    n_flows: int = 10_000
    hot_share: float = 0.25


class _Drawn(NamedTuple):
    """Pairs that a pattern draws, and when they start; at 0 where None."""

    src: NDArray[np.integer]
    dst: NDArray[np.integer]
    start_s: Floats | None = None


def permutation(endpoints: Endpoints, _options: PatternOptions, random: Random) -> _Drawn:
    """Every GPU sends to one other and receives from one other: a random derangement."""
    src = np.arange(len(endpoints))
    while True:
        dst = random.permutation(len(endpoints))
        if not (dst == src).any():
            return _Drawn(src, dst)


def all_to_all(endpoints: Endpoints, _options: PatternOptions, _random: Random) -> _Drawn:
    """Every GPU sends to every other, its next one first."""
    n_gpus = len(endpoints)
    _check_count("--gpus", n_gpus * (n_gpus - 1))
    src = np.repeat(np.arange(n_gpus), n_gpus - 1)
    step = np.tile(np.arange(1, n_gpus), n_gpus)
    return _Drawn(src, (src + step) % n_gpus)


def incast(endpoints: Endpoints, options: PatternOptions, random: Random) -> _Drawn:
    """`fan_in` GPUs of other hosts send to one, all drawn."""
    receiver = int(random.integers(len(endpoints)))
    others = np.flatnonzero(endpoints.block != endpoints.block[receiver])
    if len(others) == 0:
        others = np.flatnonzero(np.arange(len(endpoints)) != receiver)
    if not 1 <= options.fan_in <= len(others):
        raise InputError(
            Fault(
                "--fan-in",
                _("{n} senders.").format(n=options.fan_in),
                _("1 to {most}, the GPUs of other hosts").format(most=len(others)),
            )
        )
    src = np.sort(random.choice(others, options.fan_in, replace=False))
    return _Drawn(src, np.full(len(src), receiver))


def ring(endpoints: Endpoints, _options: PatternOptions, _random: Random) -> _Drawn:
    """Every GPU sends to the GPU of its number in the next host, as NCCL's rings do rail by rail.

    In a single host, to the next GPU.
    """
    src = np.arange(len(endpoints))
    if endpoints.n_hosts == 1:
        return _Drawn(src, (src + 1) % len(endpoints))
    following = (endpoints.block + 1) % endpoints.n_hosts
    size = np.diff(endpoints.first)[following]
    dst = endpoints.first[following] + np.minimum(endpoints.gpu, size - 1)
    return _Drawn(src, dst)


def uniform(endpoints: Endpoints, options: PatternOptions, random: Random) -> _Drawn:
    """Poisson arrivals between random GPUs of different hosts, at a load on the NICs."""
    faults = []
    if not 1e-9 <= options.load <= 1e9:
        what = _("the value is {value}.").format(value=options.load)
        faults.append(Fault("--load", what, _("1e-9 to 1e9; 1 is all that the NICs can send")))
    if options.n_flows < 1:
        what = _("the value is {value}.").format(value=options.n_flows)
        faults.append(Fault("--flows", what, _("1 or more")))
    if faults:
        raise InputError(faults)
    _check_count("--flows", options.n_flows)
    odds = endpoints.gbps / endpoints.gbps.sum()
    src = random.choice(len(endpoints), options.n_flows, p=odds)
    dst = _elsewhere(endpoints, src, random)
    bytes_per_s = options.load * float(endpoints.gbps.sum()) * 1.25e8
    gap_s = random.exponential(max(options.size_bytes, 1.0) / bytes_per_s, options.n_flows)
    gap_s[0] = 0.0
    return _Drawn(src, dst, np.cumsum(gap_s))


def hotspot(endpoints: Endpoints, options: PatternOptions, random: Random) -> _Drawn:
    """Every GPU sends to a random GPU of another host; a part of them all to one hot host."""
    if not 0 <= options.hot_share <= 1:
        what = _("the value is {value}.").format(value=options.hot_share)
        raise InputError(Fault("--hot-share", what, _("0 to 1")))
    src = np.arange(len(endpoints))
    dst = _elsewhere(endpoints, src, random)
    hot = int(random.integers(endpoints.n_hosts))
    outside = np.flatnonzero(endpoints.block != hot)
    n_hot = round(options.hot_share * len(outside))
    senders = np.sort(random.choice(outside, n_hot, replace=False)) if n_hot else outside[:0]
    size = int(endpoints.first[hot + 1] - endpoints.first[hot])
    dst[senders] = endpoints.first[hot] + np.arange(n_hot) % size
    return _Drawn(src, dst)


def _elsewhere(endpoints: Endpoints, src: Longs, random: Random) -> Longs:
    """Draw for each GPU of `src` a GPU of another host; in a single host, another GPU."""
    if endpoints.n_hosts == 1:
        return (src + random.integers(1, len(endpoints), len(src))) % len(endpoints)
    block = endpoints.block[src]
    start, end = endpoints.first[block], endpoints.first[block + 1]
    drawn = random.integers(0, len(endpoints) - (end - start))
    return np.where(drawn < start, drawn, drawn + (end - start))


Pattern = Callable[[Endpoints, PatternOptions, Random], _Drawn]

PATTERNS: Mapping[str, Pattern] = MappingProxyType(
    {
        "permutation": permutation,
        "all-to-all": all_to_all,
        "incast": incast,
        "ring": ring,
        "uniform": uniform,
        "hotspot": hotspot,
    }
)


def make_traffic(
    pattern: str, endpoints: Endpoints, options: PatternOptions, seed: int = 0
) -> Traffic:
    """Return the traffic of a pattern; the same seed gives the same flows.

    Raises
    ------
    InputError
        If there is no such pattern, or an option does not fit.
    """
    _check(pattern, endpoints, options)
    random = np.random.default_rng(np.random.SeedSequence([seed, STREAM]))
    drawn = PATTERNS[pattern](endpoints, options, random)
    n_flows = len(drawn.src)
    return Traffic(
        name=pattern,
        src=np.asarray(drawn.src, np.int32),
        dst=np.asarray(drawn.dst, np.int32),
        size_bytes=_sizes(options, n_flows, random),
        start_s=np.zeros(n_flows) if drawn.start_s is None else drawn.start_s,
    )


def _check(pattern: str, endpoints: Endpoints, options: PatternOptions) -> None:
    faults = []
    if pattern not in PATTERNS:
        faults.append(
            Fault(
                "--pattern",
                _('there is no pattern "{name}".').format(name=pattern[:64]),
                ", ".join(PATTERNS) + _(", or a file of flows (.csv, .parquet)"),
                nearest(pattern, list(PATTERNS)),
            )
        )
    if options.sizes not in SIZES:
        what = _('"{name}" is unknown.').format(name=options.sizes[:64])
        faults.append(Fault("--sizes", what, ", ".join(SIZES), nearest(options.sizes, SIZES)))
    if not 0 <= options.size_bytes < np.inf:
        what = _("the value is {value}.").format(value=options.size_bytes)
        faults.append(Fault("--bytes", what, _("0 or more")))
    if len(endpoints) < 2:
        faults.append(Fault("FABRIC", _("it has one GPU."), _("2 GPUs or more")))
    if faults:
        raise InputError(faults)


def _check_count(where: str, n_flows: int) -> None:
    if n_flows > MOST_FLOWS:
        raise InputError(
            Fault(
                where,
                _("{n} flows.").format(n=f"{n_flows:,}"),
                _("at most {most}").format(most=f"{MOST_FLOWS:,}"),
            )
        )


def _sizes(options: PatternOptions, n_flows: int, random: Random) -> Floats:
    """Draw whole numbers of bytes with the average asked for."""
    if options.sizes == "fixed":
        return np.full(n_flows, float(options.size_bytes))
    if options.sizes == "exponential":
        drawn = random.exponential(options.size_bytes, n_flows)
    else:
        least = options.size_bytes * (PARETO_SHAPE - 1) / PARETO_SHAPE
        drawn = least * (1.0 + random.pareto(PARETO_SHAPE, n_flows))
    return np.maximum(1.0, np.round(drawn))
