"""How a training step is divided among GPUs, and which of them talk to each other.

Ranks are numbered as Megatron-LM does: tensor parallelism changes fastest, then context, then
data, then pipeline. Experts lie on consecutive ranks of one pipeline stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gpufabric.catalog.workload_constants import gpu_compute
from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.transformer import Transformer

__all__ = [
    "GROUP_NAMES",
    "MOST",
    "RECOMPUTE",
    "SCHEDULES",
    "Group",
    "TrainingJob",
    "TrainingPlan",
    "placed",
]

RECOMPUTE = ("none", "selective", "full")
"""What is computed again in the backward pass: nothing, attention's core, or all blocks."""

SCHEDULES = ("1f1b", "interleaved", "zero-bubble")
"""Of a pipeline: one forward one backward, the same with several chunks a stage (Narayanan et
al., arXiv:2104.04473), and with the backward pass split in two (Qi et al., arXiv:2401.10241)."""

GROUP_NAMES = (
    "tensor",
    "context",
    "data",
    "expert_tensor",
    "expert",
    "expert_data",
    "pipeline",
)
"""Kinds of groups of ranks."""

MOST = 10**8
"""Of any number of ways, sequences or tokens: larger ones are typing errors."""

PRECISIONS = ("fp16", "bf16", "fp8", "mxfp8", "nvfp4")


class Group(NamedTuple):
    """Ranks that run one collective together.

    Parameters
    ----------
    name
        Such as ``tensor``.
    size
        Ranks of the group.
    inside
        Of these, ranks in one NVLink domain.
    cluster
        The group as a cluster of its own, with its share of the NICs; None for one rank.
    """

    name: str
    size: int
    inside: int
    cluster: Cluster | None

    @property
    def crosses_network(self) -> bool:
        """Whether the group is spread over several NVLink domains."""
        return self.size > self.inside


@dataclass(frozen=True)
class TrainingPlan:
    """How one training step is divided.

    Parameters
    ----------
    tensor, pipeline, context, expert
        Parallel ways; data parallelism takes the GPUs that are left.
    expert_tensor
        Ways by which each expert's matrices are divided; 0: as `tensor` if experts are not spread,
        else 1.
    chunks
        Chunks of layers a pipeline stage has (virtual stages).
    zero
        What data parallelism divides: 0 nothing, 1 the optimizer's state, 2 gradients as well,
        3 parameters as well (FSDP, fully sharded).
    micro_batch, global_batch
        Sequences of a micro-batch, and of a step on all GPUs.
    sequence_tokens
        Length of a sequence.
    precision
        Of matrix products.
    recompute
        One of ``RECOMPUTE``.
    schedule
        One of ``SCHEDULES``.
    trains_adapters
        Whether only small adapters learn (LoRA), so that weights need no gradients.
    """

    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    expert_tensor: int = 0
    chunks: int = 1
    zero: int = 1
    micro_batch: int = 1
    global_batch: int = 1
    sequence_tokens: int = 4096
    precision: str = "bf16"
    recompute: str = "none"
    schedule: str = "1f1b"
    trains_adapters: bool = False

    def faults(self) -> list[Fault]:
        """What is wrong with the plan alone."""
        found = []
        for name in (
            "tensor",
            "pipeline",
            "context",
            "expert",
            "chunks",
            "micro_batch",
            "global_batch",
            "sequence_tokens",
        ):
            if not 1 <= getattr(self, name) <= MOST:
                what = _("the value is {value}.").format(value=getattr(self, name))
                found.append(Fault(name, what, f"1 … {MOST:,}"))
        if self.expert_tensor < 0:
            what = _("the value is {value}.").format(value=self.expert_tensor)
            found.append(Fault("expert_tensor", what, "0 …"))
        if self.zero not in range(4):
            found.append(Fault("zero", _("the value is {value}.").format(value=self.zero), "0 … 3"))
        for name, choices in (
            ("precision", PRECISIONS),
            ("recompute", RECOMPUTE),
            ("schedule", SCHEDULES),
        ):
            value = getattr(self, name)
            if value not in choices:
                what = _('"{name}" is unknown.').format(name=str(value)[:64])
                remedy = nearest(str(value), list(choices))
                found.append(Fault(name, what, ", ".join(choices), remedy))
        return found


@dataclass(frozen=True)
class TrainingJob:
    """A model on a cluster by a plan.

    Raises
    ------
    InputError
        If the plan does not fit the model or the cluster; all faults together.
    """

    model: Transformer
    cluster: Cluster
    plan: TrainingPlan

    def __post_init__(self) -> None:
        faults = self.plan.faults() or self._faults()
        if faults:
            raise InputError(faults)

    def _faults(self) -> list[Fault]:
        plan, n = self.plan, self.cluster.n_ranks
        found = []
        ways = plan.tensor * plan.pipeline * plan.context
        if n % ways:
            what = _("{n} GPUs do not divide into tensor x pipeline x context = {ways}.")
            found.append(Fault("tensor", what.format(n=n, ways=ways)))
            return found
        spread = plan.expert * self.expert_tensor_ways
        if (n // plan.pipeline) % spread:
            what = _("{n} GPUs of a pipeline stage do not divide into {ways} expert ways.")
            found.append(Fault("expert", what.format(n=n // plan.pipeline, ways=spread)))
        heads = self.model.dimensions.heads
        if heads % plan.tensor:
            what = _("{n} heads do not divide into {ways} tensor ways.")
            found.append(Fault("tensor", what.format(n=heads, ways=plan.tensor)))
        if plan.sequence_tokens % plan.context:
            what = _("{n} tokens do not divide into {ways} context ways.")
            found.append(Fault("context", what.format(n=plan.sequence_tokens, ways=plan.context)))
        experts = self.model.dimensions.experts
        if plan.expert > 1 and (not experts or experts % plan.expert):
            what = _("{n} experts do not divide into {ways} expert ways.")
            found.append(Fault("expert", what.format(n=experts, ways=plan.expert)))
        if plan.pipeline * plan.chunks > self.model.n_layers + 2:
            what = _("{n} layers are fewer than {ways} stages and chunks.")
            ways = plan.pipeline * plan.chunks
            found.append(Fault("pipeline", what.format(n=self.model.n_layers, ways=ways)))
        if plan.global_batch % (self.data_ways * plan.micro_batch):
            what = _("{n} sequences do not divide among {ways} GPUs in micro-batches of {each}.")
            found.append(
                Fault(
                    "global_batch",
                    what.format(n=plan.global_batch, ways=self.data_ways, each=plan.micro_batch),
                )
            )
        tflops = gpu_compute(self.cluster.gpu).tflops
        if plan.precision not in tflops:
            what = _("{gpu} has no {precision}.").format(
                gpu=self.cluster.gpu[:64], precision=plan.precision
            )
            found.append(Fault("precision", what, ", ".join(tflops)))
        return found

    @property
    def data_ways(self) -> int:
        """Data-parallel ways."""
        plan = self.plan
        return self.cluster.n_ranks // (plan.tensor * plan.pipeline * plan.context)

    @property
    def expert_data_ways(self) -> int:
        """Ranks that hold the same experts."""
        spread = self.plan.expert * self.expert_tensor_ways
        return self.cluster.n_ranks // self.plan.pipeline // spread

    @property
    def expert_tensor_ways(self) -> int:
        """Ways by which each expert's matrices are divided."""
        plan = self.plan
        return plan.expert_tensor or (plan.tensor if plan.expert == 1 else 1)

    @property
    def n_micro_batches(self) -> int:
        """Micro-batches that a pipeline runs in a step."""
        return self.plan.global_batch // (self.data_ways * self.plan.micro_batch)

    @property
    def tokens(self) -> int:
        """Tokens of a step on all GPUs."""
        return self.plan.global_batch * self.plan.sequence_tokens

    def group(self, name: str) -> Group:
        """Return the ranks that run the collectives of one kind of parallelism."""
        size, stride = self.size_and_stride(name)
        return placed(self.cluster, name, size, stride)

    def size_and_stride(self, name: str) -> tuple[int, int]:
        """Return the ranks of a group of one kind, and the distance from one to the next."""
        plan = self.plan
        return {
            "tensor": (plan.tensor, 1),
            "context": (plan.context, plan.tensor),
            # Gradients are shared by ranks with other tokens: other sequences or parts of one.
            "data": (self.data_ways * plan.context, plan.tensor),
            "expert_tensor": (self.expert_tensor_ways, 1),
            "expert": (plan.expert, self.expert_tensor_ways),
            "expert_data": (self.expert_data_ways, plan.expert * self.expert_tensor_ways),
            "pipeline": (plan.pipeline, self.cluster.n_ranks // plan.pipeline),
        }[name]

    def ranks_with(self, name: str, rank: int) -> tuple[int, ...]:
        """Return the ranks of the group of one kind of parallelism that a rank is in."""
        size, stride = self.size_and_stride(name)
        first = rank - rank // stride % size * stride
        return tuple(range(first, first + size * stride, stride))


def placed(cluster: Cluster, name: str, size: int, stride: int) -> Group:
    """Return a group of ranks `stride` apart: those of one domain, its share of the NICs.

    All groups of one kind work at the same time, so that each has the NICs of a domain by
    its share of the domain's GPUs.
    """
    each = cluster.gpus_per_domain
    inside = min(size, max(1, each // stride))
    if size == 1:
        return Group(name, 1, 1, None)
    domains = -(-size // inside)
    wire = cluster.wire_gbytes_per_s
    own = Cluster(
        cluster.gpu,
        inside,
        domains,
        wire * inside / each / cluster.slowdown(name) if wire is not None and domains > 1 else None,
        cluster.transport if domains > 1 else "none",
        n_nics=max(1, cluster.n_nics * inside // each),
        has_nvls=cluster.has_nvls,
        has_sharp=cluster.has_sharp,
    )
    return Group(name, size, inside, own)
