"""What networks cost to run and what their faults cost: ranges, each with source and date."""

from __future__ import annotations

import functools
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gpufabric.catalog.constants import read_constants
from gpufabric.catalog.groups import Frozen, NonNegative, Sourced, Text
from gpufabric.core.text import _

__all__ = ["CostConstant", "CostConstants", "cost_constants", "gpu_hour_key"]

Spread = Literal["linear", "log"]


class CostConstant(Sourced):
    """One number of the cost model, as the range of a triangular distribution."""

    low: NonNegative
    mid: NonNegative = Field(description="The most likely value.")
    high: NonNegative
    unit: Text
    spread: Spread = Field(
        default="linear", description="Over what the triangle stands: the value or its logarithm."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low <= self.mid <= self.high:
            raise ValueError(_("low, mid and high must be in that order"))
        if self.spread == "log" and not self.low > 0:
            raise ValueError(_("a logarithm needs values above 0"))
        return self


class CostConstants(Frozen):
    """All of them by key."""

    format_version: Literal[1]
    quantities: dict[Annotated[str, Field(pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)+$")], CostConstant]


@functools.cache
def cost_constants() -> dict[str, CostConstant]:
    """Return the constants of the cost model by key."""
    return CostConstants.model_validate_json(read_constants("costs.yaml")).quantities


def gpu_hour_key(gpu: str) -> str:
    """Return the key of a GPU-hour's value, by the GPU's name in the catalogue.

    Examples
    --------
    >>> gpu_hour_key("H100-SXM-80GB"), gpu_hour_key("GB300")
    ('gpu_hour.usd.h100', 'gpu_hour.usd.other')
    """
    name = gpu.strip().lower()
    for key in cost_constants():
        head, _dot, tail = key.rpartition(".")
        if head == "gpu_hour.usd" and name.startswith(tail):
            return key
    return "gpu_hour.usd.other"
