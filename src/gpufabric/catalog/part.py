"""Cabling parts: transceivers, copper and active optical cables, fibre, splitters."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from gpufabric.catalog.groups import Cage, Count, Positive, Price, Range, Sourced, Text
from gpufabric.catalog.identity import Identity
from gpufabric.core.text import _

__all__ = ["Fibre", "Form", "Link", "Part"]

Form = Literal["transceiver", "dac", "acc", "aec", "aoc", "fibre", "splitter"]
Fibre = Literal["om4-mpo12", "om4-mpo16", "os2-mpo12", "os2-lc"]

_NEEDS: dict[str, tuple[str, ...]] = {
    "transceiver": ("gbps", "links", "link_gbps", "lane_gbps", "cage", "fibre", "reach_m"),
    "fibre": ("fibre",),
    "splitter": ("fibre",),
}
_CABLE_NEEDS = ("gbps", "links", "link_gbps", "lane_gbps", "cage", "far_cage", "reach_m")


class Link(Sourced):
    """What a part carries: links, speeds, lanes, connectors and reach."""

    gbps: Positive | None = Field(default=None, description="The whole module or cable.")
    links: Count | None = Field(default=None, description="2 for a twin-port 2x400G module.")
    link_gbps: Positive | None = Field(default=None, description="One link.")
    lane_gbps: Positive | None = Field(default=None, description="One lane on the fibre or wire.")
    host_lane_gbps: Positive | None = Field(
        default=None, description="One electrical lane, where a gearbox makes it differ."
    )
    cage: Cage | None = Field(default=None, description="Where it plugs in; the switch's end.")
    far_cage: Cage | None = Field(default=None, description="The other end of a cable.")
    fan_out: Count = Field(default=1, description="Ends on the far side: 2 for a 1:2 splitter.")
    fibre: Fibre | None = Field(default=None, description="Fibre and connector.")
    far_fibre: Fibre | None = Field(
        default=None, description="The far ends of a splitter, where they differ."
    )
    fibres_per_link: Count = Field(default=1, description="Fibre cables one link takes.")
    reach_m: Positive | None = None
    lengths_m: tuple[Positive, ...] | None = Field(default=None, description="As sold.")
    delay_ns_per_m: Positive | None = None


class Part(Identity):
    """One cabling part, by part number or as a class."""

    device: Literal["part"]
    form: Form
    end: Literal["switch", "nic", "both"] = Field(
        default="both", description="Which end a module fits: finned at a switch, flat at a NIC."
    )
    fabrics: tuple[Literal["infiniband", "roce"], ...] = Field(min_length=1)
    link: Link
    power_w: Range | None = Field(default=None, description="One module, or one end of a cable.")
    power_at_half_speed_w: Range | None = None
    price: Price | None = None
    annual_failure_rate: Range | None = Field(default=None, description="Failures per year.")
    description: Text | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        missing = [
            name for name in _NEEDS.get(self.form, _CABLE_NEEDS) if getattr(self.link, name) is None
        ]
        if missing:
            raise ValueError(
                _("link of a {form} needs {fields}").format(
                    form=self.form, fields=", ".join(missing)
                )
            )
        link = self.link
        if link.gbps and link.links and link.link_gbps and link.links * link.link_gbps > link.gbps:
            raise ValueError(_("links times link_gbps must not exceed gbps"))
        if self.form == "splitter" and link.fan_out < 2:
            raise ValueError(_("fan_out of a splitter must be at least 2"))
        return self

    @property
    def gbps(self) -> float | None:
        """Speed of the whole module or cable [Gb/s]; None for fibre."""
        return self.link.gbps

    @property
    def links_per_module(self) -> int:
        """Links that one module or cable serves."""
        return self.link.links or 1

    @property
    def link_gbps(self) -> float | None:
        """Speed of one link [Gb/s]; None for fibre."""
        return self.link.link_gbps

    @property
    def cage(self) -> Cage | None:
        """Where it plugs in, at the switch's end of a cable; None for fibre."""
        return self.link.cage

    @property
    def far_cage(self) -> Cage | None:
        """Where the other end of a cable plugs in; None for modules and fibre."""
        return self.link.far_cage

    @property
    def fan_out(self) -> int:
        """Ends on the far side: 2 for a 1:2 splitter, 1 for a straight part."""
        return self.link.fan_out

    @property
    def reach_m(self) -> float | None:
        """Longest link [m]; None where unlimited or unknown."""
        return self.link.reach_m

    @property
    def lengths_m(self) -> tuple[float, ...] | None:
        """Lengths sold [m]; None where unknown."""
        return self.link.lengths_m

    @property
    def mates_with(self) -> Fibre | None:
        """Fibre and connector that it mates with; None for cables with fixed ends."""
        return self.link.fibre
