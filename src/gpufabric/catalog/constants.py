"""Constants of collective libraries and GPU generations, each file with source and date."""

from __future__ import annotations

import functools
import importlib.resources
import json
from typing import Annotated, Literal

from pydantic import Field

from gpufabric.catalog.groups import Count, Frozen, Positive, Sourced, Text
from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.model.yaml_source import read_yaml

__all__ = [
    "CollectiveFit",
    "Generation",
    "Generations",
    "Measured",
    "NcclConstants",
    "Residuals",
    "Transport",
    "collective_fit",
    "generation_of",
    "gpu_generations",
    "link_share_of",
    "nccl_constants",
    "read_constants",
]

Amount = Annotated[float, Field(ge=0)]
Three = tuple[Amount, Amount, Amount]
ByAlgorithm = dict[str, Three]
ByGeneration = dict[str, Three]


class Transport(Frozen):
    """What those who made a transport for NCCL set for it."""

    algorithms: tuple[Text, ...] = Field(default=(), description="That it can do; empty: all.")
    protocols: tuple[Text, ...] = Field(default=(), description="That it can do; empty: all.")
    latency_us: Amount = Field(default=0.0, description="Told to NCCL's cost model, a hop [us].")
    source: Text


class NcclConstants(Sourced):
    """The constants of NCCL's cost model (``tuning.cc``), as published."""

    format_version: Literal[1]
    version: Text
    protocols: tuple[Text, Text, Text]
    base_latency_us: ByAlgorithm
    hardware_latency_us: dict[Literal["nvlink", "pcie", "network"], ByAlgorithm]
    tree_correction: dict[str, tuple[Positive, ...]]
    ll_most_gbytes_per_s: ByGeneration
    ring_ll128_channel_gbytes_per_s: ByGeneration
    tree_ll128_channel_gbytes_per_s: ByGeneration
    tree_channel_gbytes_per_s: ByGeneration
    nvls_tree_channel_gbytes_per_s: ByGeneration
    nvls_efficiency: dict[str, Positive]
    nvlink_gbytes_per_s: dict[str, Positive]
    transports: dict[str, Transport] = Field(description="Where they differ from RDMA.")


class Generation(Frozen):
    """GPUs that a collective library treats alike."""

    gpus: tuple[Text, ...] = Field(min_length=1)
    tuner: Text
    nvlink_gbytes_per_s: Positive = Field(description="One direction, all links of a GPU [GB/s].")
    channels: Count
    nvls: bool = Field(default=False, description="Reduction inside the NVLink switch.")
    link_share: dict[str, Positive] = Field(
        default_factory=dict, description="Of the links, by model that has fewer of them."
    )
    assumed: bool = False


class Generations(Sourced):
    """All GPU generations."""

    format_version: Literal[1]
    generations: dict[str, Generation]


class Residuals(Frozen):
    """Errors of the fit in one class, the whole source of each point left out."""

    n_points: Count
    n_sources: Count
    low: float = Field(description="Of the 80 % interval of ln(measured / predicted) time.")
    high: float = Field(description="Of the 80 % interval of ln(measured / predicted) time.")
    median_error: Amount = Field(description="Median of |predicted / measured - 1| of busbw.")


class Measured(Frozen):
    """What the runs of one kind cover."""

    generation: Text
    transport: Text
    operation: Text
    n_runs: Count
    n_sources: Count
    most_domains: Count
    least_bytes: Count
    most_bytes: Count


class CollectiveFit(Sourced):
    """What `make calibrate` fitted: rates and delays by generation and transport."""

    format_version: Literal[1]
    n_runs: Count
    n_points: Count
    latency_factor: dict[str, Positive] = Field(description="On NCCL's own latency, by generation.")
    chunk_us: dict[str, Amount] = Field(description="Cost of one chunk inside a host [us].")
    ring_gbytes_per_s: dict[str, Positive] = Field(description="busbw inside a host [GB/s].")
    tree_gbytes_per_s: dict[str, Positive]
    nvls_gbytes_per_s: dict[str, Positive]
    pairwise_gbytes_per_s: dict[str, Positive]
    wire_efficiency: dict[str, Positive] = Field(description="Of what all NICs of a host send.")
    network_us: dict[str, Amount] = Field(description="A hop, beside NCCL's own latency [us].")
    wire_chunk_us: dict[str, Amount] = Field(description="Cost of one chunk on the network [us].")
    residuals: dict[str, Residuals] = Field(description="By class of domains, transport and size.")
    measured: tuple[Measured, ...] = Field(description="What the runs cover.")


def read_constants(name: str) -> str:
    """Return a file of this package's constants as JSON text."""
    folder = importlib.resources.files("gpufabric.catalog") / "constants"
    document = read_yaml((folder / name).read_bytes(), name)
    if document.faults:
        raise InputError(document.faults)
    return json.dumps(document.content())


@functools.cache
def nccl_constants() -> NcclConstants:
    """Return the constants of NCCL's cost model."""
    return NcclConstants.model_validate_json(read_constants("nccl.yaml"))


@functools.cache
def gpu_generations() -> Generations:
    """Return the GPU generations."""
    return Generations.model_validate_json(read_constants("gpu_generations.yaml"))


@functools.cache
def collective_fit() -> CollectiveFit:
    """Return the fitted constants of collectives."""
    return CollectiveFit.model_validate_json(read_constants("collective_fit.yaml"))


def link_share_of(gpu: str) -> float:
    """Return the share of its generation's NVLinks that a GPU model has.

    Examples
    --------
    >>> link_share_of("H100"), link_share_of("A800")
    (1.0, 0.6667)
    """
    key = _bare(gpu)
    shares = gpu_generations().generations[generation_of(gpu)].link_share
    return next((share for name, share in shares.items() if key.startswith(name)), 1.0)


def _bare(gpu: str) -> str:
    """A GPU's name without its maker's."""
    return (
        gpu.strip().upper().removeprefix("NVIDIA ").removeprefix("AMD ").removeprefix("INSTINCT ")
    )


def generation_of(gpu: str, where: str = "gpu") -> str:
    """Return the generation of a GPU model, such as ``H100-SXM-80GB``.

    Raises
    ------
    InputError
        If no generation has a GPU whose name begins so.

    Examples
    --------
    >>> generation_of("H100-SXM-80GB")
    'hopper'
    """
    key = _bare(gpu)
    known = {
        name: generation
        for generation, entry in gpu_generations().generations.items()
        for name in entry.gpus
    }
    for name in sorted(known, key=len, reverse=True):
        if key.startswith(name) and not key[len(name) :][:1].isdigit():
            return known[name]
    raise InputError(
        Fault(
            where,
            _('the GPU "{gpu}" has no collective constants.').format(gpu=gpu[:64]),
            ", ".join(sorted(known)),
            nearest(key, list(known)),
        )
    )
