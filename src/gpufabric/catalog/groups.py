"""Groups of numbers that always carry where they come from, when, and how sure they are."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from gpufabric.core.text import _

__all__ = [
    "Availability",
    "Cage",
    "Count",
    "Frozen",
    "Kind",
    "Positive",
    "Power",
    "Price",
    "Range",
    "Size",
    "Sourced",
    "kind_meanings",
]

Kind = Literal[
    "measured",
    "datasheet",
    "datasheet-via-secondary",
    "vendor",
    "paper",
    "analyst",
    "community",
    "third-party",
    "planning",
    "prose",
    "estimate",
    "derived",
    "conflict",
    "assumed",
]

Cage = Literal[
    "rj45", "sfp28", "sfp56", "qsfp28", "qsfp56", "qsfp112", "qsfp-dd", "osfp", "osfp1600"
]

Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(gt=0)]
Text = Annotated[str, Field(min_length=1, max_length=1000)]


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Date = Annotated[
    str,
    BeforeValidator(_as_text, json_schema_input_type=str | int),
    Field(
        pattern=r"^\d{4}(-\d{2}){0,2}(\.\.\d{4}(-\d{2}){0,2})?$",
        description="When the source said so: YYYY, YYYY-MM, YYYY-MM-DD or a span A..B.",
    ),
]


def kind_meanings() -> dict[str, str]:
    """Return what each kind of source means, in the language in use."""
    return {
        "measured": _("read in a vendor's datasheet or manual, or measured"),
        "datasheet": _("read in a vendor's datasheet or manual by this project"),
        "datasheet-via-secondary": _("a secondary source that quotes the vendor's datasheet"),
        "vendor": _("a vendor's statement outside a datasheet"),
        "paper": _("a scientific paper"),
        "analyst": _("an analyst's figure"),
        "community": _("a community library"),
        "third-party": _("a third party's figure or model parameter"),
        "planning": _("a planning value of a published design"),
        "prose": _("stated in prose, without method"),
        "estimate": _("an estimate made by the source"),
        "derived": _("arithmetic of this project from sourced figures"),
        "conflict": _("sources disagree: the range holds all of them"),
        "assumed": _("no source read: assumed by this project"),
    }


class Frozen(BaseModel):
    """Base of all catalogue models: immutable, no unknown keys, no coercion, no NaN."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True
    )


class Sourced(Frozen):
    """A group of numbers with its source."""

    source: Text = Field(description="Document and section, or address, of the numbers.")
    date: Date
    kind: Kind = Field(description="How sure the numbers are.")
    note: Text | None = Field(default=None, description="What a reader must know about them.")
    primary: Text | None = Field(default=None, description="The page that the source quotes.")

    @property
    def is_assumed(self) -> bool:
        """Whether no source stands behind the numbers."""
        return self.kind == "assumed"


class Range(Sourced):
    """A number as the range its sources give, in the unit that the field's name ends in."""

    low: NonNegative
    high: NonNegative
    use: NonNegative | None = Field(
        default=None, description="The value to reckon with; the middle where absent."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError(_("low must not exceed high"))
        if self.use is not None and not self.low <= self.use <= self.high:
            raise ValueError(_("use must lie between low and high"))
        return self

    @property
    def value(self) -> float:
        """The value to reckon with, in the unit of the field."""
        return (self.low + self.high) / 2 if self.use is None else self.use


class Power(Sourced):
    """Power drawn by one device.

    Where sources conflict the single figures are the highest, which is the safe side for a
    power feed, and the ranges hold what the sources say.
    """

    typical_w: Positive | None = None
    max_w: Positive | None = None
    with_optics_w: Positive | None = Field(default=None, description="With every cage filled.")
    typical_is: Text | None = Field(default=None, description="What typical stands for.")
    max_is: Text | None = Field(default=None, description="What max stands for.")
    typical_low_w: Positive | None = Field(default=None, description="Lowest of the sources.")
    max_low_w: Positive | None = Field(default=None, description="Lowest of the sources.")
    gpu_w: Positive | None = Field(default=None, description="One GPU.")
    other_w_per_gpu: Positive | None = Field(default=None, description="All but the GPU, per GPU.")
    nominal_w: Positive | None = Field(default=None, description="Nominal, as an OEM states it.")
    supplies: Text | None = Field(default=None, description="Power supplies and redundancy.")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        pairs = (
            (self.typical_low_w, self.typical_w, _("typical_low_w must not exceed typical_w")),
            (self.max_low_w, self.max_w, _("max_low_w must not exceed max_w")),
            (self.typical_w, self.max_w, _("typical_w must not exceed max_w")),
        )
        for low, high, message in pairs:
            if low is not None and high is not None and low > high:
                raise ValueError(message)
        return self


class Price(Sourced):
    """Price of one piece in US dollars: a fixed part and, for cables, a part per metre.

    Examples
    --------
    >>> price = Price(low_usd=100, mid_usd=200, high_usd=300, usd_per_m=10,
    ...               source="x", date="2026", kind="estimate")
    >>> price.at(4)
    (120.0, 240.0, 360.0)
    """

    low_usd: NonNegative
    mid_usd: NonNegative
    high_usd: NonNegative
    usd_per_m: NonNegative | None = Field(
        default=None, description="Added for each metre of length, at the middle price."
    )
    includes_nics: bool | None = Field(
        default=None, description="The price of a host holds that of its NICs."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low_usd <= self.mid_usd <= self.high_usd:
            raise ValueError(_("low_usd, mid_usd and high_usd must rise"))
        return self

    def at(self, length_m: float) -> tuple[float, float, float]:
        """Low, middle and high price of a piece `length_m` long [USD].

        The part per metre is spread around its middle value as the fixed part is.
        """
        per_m = (self.usd_per_m or 0.0) * length_m
        if not self.mid_usd:
            return self.low_usd + per_m, self.mid_usd + per_m, self.high_usd + per_m
        share = 1.0 + per_m / self.mid_usd
        return self.low_usd * share, self.mid_usd * share, self.high_usd * share


class Size(Sourced):
    """Height and weight of one device."""

    ru: Positive = Field(description="Rack units.")
    weight_kg: Positive | None = None


class Availability(Sourced):
    """When a device that is announced can be bought."""

    quarter: Annotated[str, Field(pattern=r"^\d{4}-Q[1-4]$")]
