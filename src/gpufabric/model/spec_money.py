"""The parts of a spec that money hangs on: the team, offers of networks as a service, costs."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from gpufabric.core.text import _
from gpufabric.model.short_forms import long_assumption, long_offers
from gpufabric.model.spec_parts import SpecPart, Text

__all__ = ["Assumption", "Assumptions", "CostQuestion", "GivenOffers", "SpecOffer", "Team"]

_Skill = Literal["none", "basic", "expert"]
_Tools = Literal["none", "counters", "telemetry"]
_Amount = Annotated[float, Field(ge=0, le=1e12)]


class Team(SpecPart):
    """What the people who will run the network can do, and with which tools."""

    infiniband: _Skill = Field(
        default="basic",
        description="Skill with InfiniBand: none, basic (has run one), expert (runs a large one).",
    )
    ethernet: _Skill = Field(
        default="basic",
        description="Skill with lossless Ethernet (RoCE v2: PFC, ECN, DCQCN), in the same steps.",
    )
    tools: _Tools | None = Field(
        default=None,
        description="What watches the network: none (the switches' own commands), counters "
        "(dashboards and alarms, such as UFM or Prometheus), telemetry (streamed, and locates "
        "faults by itself). Left out: by skill, none with none, counters with basic, telemetry "
        "with expert.",
        examples=["counters"],
    )


class SpecOffer(SpecPart):
    """A network as a service that a provider offers; left out what is not in the offer."""

    name: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[^\s/\\+]+$")] = Field(
        description="Name of the offer, unique in the spec.", examples=["acme"]
    )
    candidate: Text | None = Field(
        default=None, description="Candidate that it delivers. Left out: any of the fabric."
    )
    fabric: Literal["infiniband", "roce"] | None = Field(
        default=None, description="Fabric that it delivers. Left out: any."
    )
    usd_per_port_month: _Amount | None = Field(
        default=None,
        description="Price of one GPU's port [USD/month]. "
        "Left out: usd_per_gbps_month, or else reckoned from the provider's cost.",
    )
    usd_per_gbps_month: _Amount | None = Field(
        default=None,
        description="Price of 1 Gb/s that NICs inject [USD/month]. Left out: usd_per_port_month.",
    )
    setup_usd: _Amount | None = Field(
        default=None, description="Fee at the start [USD]. Left out: the cost model's value."
    )
    term_months: int = Field(default=36, ge=1, le=240, description="Months for which one is bound.")
    availability_pct: float | None = Field(
        default=None, ge=0, le=100, description="Availability promised [%]. Left out: none."
    )
    credit_pct: float | None = Field(
        default=None,
        ge=0,
        le=100,
        description="Credit of a month's fee in a month that misses it [%]. "
        "Left out: the cost model's value.",
    )
    exit_months: float | None = Field(
        default=None,
        ge=0,
        le=240,
        description="Fees due on leaving before the term ends [month]. "
        "Left out: the cost model's value.",
    )
    includes_operation: bool = Field(
        default=True, description="Whether people, support, spares and repair are in the fee."
    )
    source: Text | None = Field(
        default=None, description="Where the offer stands. Left out: the spec."
    )
    date: Text | None = Field(default=None, description="Date of the offer. Left out: unknown.")

    @model_validator(mode="after")
    def _one_price(self) -> Self:
        if self.usd_per_port_month is not None and self.usd_per_gbps_month is not None:
            raise PydanticCustomError(
                "two_prices", _("give usd_per_port_month or usd_per_gbps_month, not both.")
            )
        return self


GivenOffers = Annotated[
    tuple[SpecOffer, ...],
    Field(strict=False, max_length=16),
    BeforeValidator(
        long_offers,
        json_schema_input_type=bool | Annotated[list[SpecOffer], Field(max_length=16)],
    ),
]


class Assumption(SpecPart):
    """A number of the cost model as you know it: one value, [low, mid, high], or a mapping."""

    low: _Amount = Field(description="Lowest value, in the unit of the ledger.")
    mid: _Amount = Field(description="Most likely value.")
    high: _Amount = Field(description="Highest value.")
    source: Text | None = Field(default=None, description="Where it is from. Left out: the spec.")
    date: Text | None = Field(default=None, description="Date of it. Left out: unknown.")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low <= self.mid <= self.high:
            raise PydanticCustomError("order", _("low, mid and high must be in that order."))
        return self


_GivenAssumption = Annotated[
    Assumption,
    BeforeValidator(
        long_assumption,
        json_schema_input_type=_Amount
        | Annotated[list[_Amount], Field(min_length=3, max_length=3)]
        | Assumption,
    ),
]


class Assumptions(dict[str, Assumption]):
    """Assumptions by key; hashable, and not to be changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


class CostQuestion(SpecPart):
    """Over what time costs are counted, by what is decided, and what you know better than we."""

    horizon_years: int = Field(
        default=4, ge=1, le=15, description="Years for which costs are counted. Default: assumed."
    )
    decide_by: Literal["mean", "p90"] = Field(
        default="mean",
        description="What must be least: the mean cost, or what nine of ten draws stay under "
        "(for whom stability counts more than money).",
    )
    budget_usd: _Amount | None = Field(
        default=None,
        description="Most that may be paid for the networks at the start [USD]. "
        "Left out: no bound.",
    )
    draws: int = Field(
        default=10_000,
        ge=64,
        le=1_048_576,
        description="Draws; rounded up to a power of two.",
    )
    assumptions: Annotated[
        dict[
            Annotated[str, Field(pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)+$", max_length=100)],
            _GivenAssumption,
        ],
        AfterValidator(Assumptions),
    ] = Field(
        default_factory=Assumptions,
        json_schema_extra={"default": {}},
        max_length=200,
        description="Numbers of the cost model by their key in the ledger: a value, "
        "[low, mid, high], or a mapping with source and date. Left out: the catalogue's.",
        examples=[{"energy.usd_per_kwh": 0.12}],
    )
