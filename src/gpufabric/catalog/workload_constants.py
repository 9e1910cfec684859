"""Constants of training and inference: models' dimensions, GPUs' rates, and the fitted shares."""

from __future__ import annotations

import functools
import re
from typing import Annotated, Literal

from pydantic import Field, model_validator

from gpufabric.catalog.constants import read_constants
from gpufabric.catalog.groups import Count, Frozen, Positive, Sourced, Text
from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _

__all__ = [
    "GpuCompute",
    "GpuComputes",
    "MeasuredTraining",
    "Software",
    "Softwares",
    "TrainingFit",
    "TrainingResiduals",
    "TransformerDimensions",
    "Transformers",
    "gpu_compute",
    "gpu_computes",
    "gpu_key",
    "model_names",
    "softwares",
    "training_fit",
    "training_software",
    "transformer_dimensions",
    "transformers",
]

Amount = Annotated[int, Field(ge=0)]
Precision = Annotated[str, Field(pattern="^(fp16|bf16|fp8|mxfp8|nvfp4)$")]


class TransformerDimensions(Frozen):
    """Dimensions of one model, by kinds of blocks."""

    hidden: Count
    heads: Count
    kv_heads: Count
    head_size: Count = Field(description="Of a query and key, position included.")
    value_size: Amount = Field(default=0, description="Of a value; 0: as of a key.")
    query_rank: Amount = Field(default=0, description="Width that queries pass (MLA); 0: none.")
    kv_rank: Amount = Field(default=0, description="Width that keys and values pass (MLA).")
    rope_size: Amount = Field(default=0, description="Part of a key that all heads share (MLA).")
    attention_blocks: Amount
    windowed_blocks: Amount = Field(default=0, description="Attention blocks with a window.")
    window: Amount = 0
    mlp_blocks: Amount = 0
    mlp_width: Amount = 0
    gated: bool = True
    moe_blocks: Amount = 0
    experts: Amount = 0
    experts_per_token: Amount = 0
    expert_width: Amount = 0
    expert_input: Amount = Field(default=0, description="Width of what experts get; 0: hidden.")
    shared_width: Amount = 0
    mamba_blocks: Amount = 0
    mamba_heads: Amount = 0
    mamba_head_size: Amount = 0
    mamba_state: Amount = 0
    mamba_groups: Amount = 0
    vocabulary: Count
    tied: bool = Field(default=False, description="One matrix for input and output tokens.")
    predicted_tokens: Count = Field(default=1, description="Tokens predicted at once (MTP).")
    source: Text

    @model_validator(mode="after")
    def _check(self) -> TransformerDimensions:
        if self.moe_blocks and not (self.experts >= self.experts_per_token > 0 < self.expert_width):
            raise ValueError(_("moe_blocks need experts, experts_per_token and expert_width."))
        if self.mlp_blocks and not self.mlp_width:
            raise ValueError(_("mlp_blocks need mlp_width."))
        if self.heads % self.kv_heads:
            raise ValueError(_("heads must be a multiple of kv_heads."))
        return self


class Transformers(Sourced):
    """Presets of models."""

    format_version: Literal[1]
    models: dict[str, TransformerDimensions]


class GpuCompute(Frozen):
    """What a GPU's data sheet promises."""

    tflops: dict[Precision, Positive] = Field(
        description="Matrix products by precision, without sparsity [TFLOP/s]."
    )
    memory_gb: Positive = Field(description="GPU memory [10**9 byte].")
    memory_gbytes_per_s: Positive
    nic_gbps: Positive = Field(description="Network of the reference design, per GPU [Gb/s].")
    source: Text


class GpuComputes(Sourced):
    """All GPUs."""

    format_version: Literal[1]
    gpus: dict[str, GpuCompute]


class Software(Frozen):
    """What a training program does, as its documentation says."""

    description: Text
    fuses_attention: bool = Field(description="Attention as one kernel, without scores in memory.")
    splits_sequence: bool = Field(description="Norms divided with tensor parallelism.")
    overlaps_data: bool = Field(description="Gradients and parameters move while others compute.")
    overlaps_pipeline: bool = Field(description="Sends between stages are hidden.")
    source: Text


class Softwares(Sourced):
    """All training programs."""

    format_version: Literal[1]
    software: dict[str, Software]


class TrainingResiduals(Frozen):
    """Errors of the fit in one class: ln(measured / predicted) of a step's time."""

    n_runs: Count
    n_sources: Count
    low: float = Field(description="Quantile 0.1 where a third of the runs is left out.")
    high: float = Field(description="Quantile 0.9 of the same.")
    far_low: float = Field(description="Quantile 0.1 where the whole source is left out.")
    far_high: float = Field(description="Quantile 0.9 of the same.")
    median_error: float = Field(ge=0, description="Median of |predicted / measured - 1|.")
    far_median_error: float = Field(ge=0, description="The same, the source left out.")


class MeasuredTraining(Frozen):
    """What the training runs on one GPU cover."""

    gpu: Text
    most_gpus: Count
    precisions: tuple[Text, ...]
    software: tuple[Text, ...]


class TrainingFit(Sourced):
    """What `make calibrate` fitted on measured training runs."""

    format_version: Literal[1]
    n_runs: Count
    product_efficiency: dict[str, Positive] = Field(description="By GPU, of the 16-bit rate.")
    precision_factor: dict[str, Positive] = Field(description="On that, by precision.")
    core_efficiency: dict[str, Positive] = Field(description="Of attention, by generation.")
    core_factor: dict[str, Positive] = Field(description="On that, by software.")
    odd_core_factor: dict[str, Positive] = Field(description="Cores without tensor cores.")
    operand_share: dict[str, Positive] = Field(description="Of operand traffic not hidden.")
    stream_passes: dict[str, Positive] = Field(description="By software.")
    routed_passes: dict[str, Positive] = Field(description="By software.")
    mamba_passes: dict[str, Positive] = Field(description="Memory passes of Mamba.")
    kernel_us: dict[str, Positive] = Field(description="By software.")
    tensor_exposed: dict[str, Positive] = Field(description="By software.")
    expert_exposed: dict[str, Positive] = Field(description="By software.")
    expert_far_exposed: dict[str, Positive] = Field(description="The same over the network.")
    steal: dict[str, Positive] = Field(description="Compute lost to hidden communication.")
    residuals: dict[str, TrainingResiduals] = Field(description="By class of runs.")
    measured: tuple[MeasuredTraining, ...] = Field(description="What the runs cover, by GPU.")


@functools.cache
def softwares() -> Softwares:
    """Return the training programs."""
    return Softwares.model_validate_json(read_constants("training_software.yaml"))


@functools.cache
def training_fit() -> TrainingFit:
    """Return the fitted constants of training."""
    return TrainingFit.model_validate_json(read_constants("training_fit.yaml"))


def training_software(name: str, where: str = "--software") -> Software:
    """Return what a training program does.

    Raises
    ------
    InputError
        If it is unknown.
    """
    known = softwares().software
    if name in known:
        return known[name]
    what = _('"{name}" is unknown.').format(name=name[:64])
    raise InputError(Fault(where, what, ", ".join(known), nearest(name, list(known))))


@functools.cache
def transformers() -> Transformers:
    """Return the presets of models."""
    return Transformers.model_validate_json(read_constants("transformers.yaml"))


@functools.cache
def gpu_computes() -> GpuComputes:
    """Return the GPUs' rates."""
    return GpuComputes.model_validate_json(read_constants("gpu_compute.yaml"))


def transformer_dimensions(name: str, where: str = "--model") -> TransformerDimensions:
    """Return the dimensions of a model by its name, such as ``llama3-70b``.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    models = transformers().models
    key = _model_keys().get(_model_key(name))
    if key is not None:
        return models[key]
    what = _('the model "{name}" is unknown.').format(name=name[:64])
    remedy = nearest(name[:64].strip().lower(), list(models))
    raise InputError(Fault(where, what, ", ".join(models), remedy))


def model_names() -> frozenset[str]:
    """Return the names of models with their aliases: Llama 3.1 has the dimensions of Llama 3."""
    names = list(transformers().models)
    older = [name.replace("llama3-", "llama3.1-") for name in names]
    return frozenset({*names, *older})


def _model_key(name: str) -> str:
    """Return the form in which names are compared: case and separators do not count."""
    return re.sub(r"[\s_-]+", "", name).lower().replace("llama3.1", "llama3")


@functools.cache
def _model_keys() -> dict[str, str]:
    return {_model_key(name): name for name in transformers().models}


def gpu_key(gpu: str, where: str = "gpu") -> str:
    """Return the catalogue's name of a GPU, such as ``H100`` for ``H100-SXM-80GB``.

    Raises
    ------
    InputError
        If no GPU's name begins so.
    """
    key = gpu.strip().upper().removeprefix("NVIDIA ").removeprefix("AMD ").removeprefix("INSTINCT ")
    known = gpu_computes().gpus
    for name in sorted(known, key=len, reverse=True):
        if key.startswith(name) and not key[len(name) :][:1].isdigit():
            return name
    what = _('the GPU "{gpu}" has no compute rates.').format(gpu=gpu[:64])
    raise InputError(Fault(where, what, ", ".join(known), nearest(key, list(known))))


def gpu_compute(gpu: str, where: str = "gpu") -> GpuCompute:
    """Return what the data sheet of a GPU promises.

    Raises
    ------
    InputError
        If the GPU is unknown.
    """
    return gpu_computes().gpus[gpu_key(gpu, where)]
