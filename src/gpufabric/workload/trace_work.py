"""How long the computing of a trace takes on another GPU.

A measured time is multiplied by the ratio of the two GPUs' attained rates: of matrix products for
kernels that are such by their name or by their work, of memory for all others. Where a trace
gives work and no time, the time is that of the slower of products and memory.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from gpufabric.catalog.workload_constants import gpu_compute, gpu_key, training_fit
from gpufabric.core.text import _
from gpufabric.parse.trace import COMPUTE, MEMORY, TraceOperation

__all__ = ["ComputeTimes", "is_product"]

_PRODUCT = re.compile(
    r"gemm|xmma|cutlass|nvjet|cublas|matmul|(?<![a-z])b?mm(?![a-z])|wgmma|flash|fmha|"
    r"attention|conv(?!ert)|linear|dot_kernel|_fwd_kernel|_bwd_kernel",
    re.IGNORECASE,
)
"""Names of kernels that are products of matrices, or attention."""

DEFAULT_SHARE = 0.5
"""Attained share of the data sheet's rate of products, where none was fitted; assumed."""
MEMORY_SHARE = 0.8
"""Attained share of memory's rate; assumed."""


def is_product(name: str) -> bool:
    """Whether a kernel's name says that it multiplies matrices.

    Examples
    --------
    >>> is_product("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NTT"), is_product("elementwise_kernel")
    (True, False)
    """
    return _PRODUCT.search(name) is not None


@dataclass
class ComputeTimes:
    """Times of computing on one GPU, from those measured on another.

    Parameters
    ----------
    gpu
        That runs now.
    traced
        That the trace was taken on; as `gpu` where empty.
    notes
        What was taken for something, and how often.
    """

    gpu: str
    traced: str = ""
    notes: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._flops, self._bytes = _rates(self.gpu)
        before = _rates(self.traced) if self.traced else (self._flops, self._bytes)
        self.product_ratio = before[0] / self._flops
        self.memory_ratio = before[1] / self._bytes

    def time_us(self, operation: TraceOperation) -> float:
        """Return how long an operation of the GPU's own takes [us]."""
        if operation.kind not in {COMPUTE, MEMORY}:
            return operation.duration_us
        if operation.duration_us:
            return operation.duration_us * self._ratio(operation)
        if operation.flops or operation.moved_bytes:
            self.notes[_("times reckoned from the work, as the trace has none")] += 1
        return 1e6 * max(operation.flops / self._flops, operation.moved_bytes / self._bytes)

    def _ratio(self, operation: TraceOperation) -> float:
        if self.product_ratio == self.memory_ratio == 1.0:
            return 1.0
        if operation.kind == MEMORY:
            return self.memory_ratio
        if operation.flops and operation.moved_bytes:
            is_bound = operation.flops / self._flops > operation.moved_bytes / self._bytes
        else:
            is_bound = is_product(operation.name)
        return self.product_ratio if is_bound else self.memory_ratio


def _rates(gpu: str) -> tuple[float, float]:
    """Attained operations of 16-bit products, and bytes of memory, a second."""
    facts = gpu_compute(gpu)
    share = training_fit().product_efficiency.get(gpu_key(gpu), DEFAULT_SHARE)
    tflops = facts.tflops.get("bf16", facts.tflops["fp16"])
    return tflops * 1e12 * share, facts.memory_gbytes_per_s * 1e9 * MEMORY_SHARE
