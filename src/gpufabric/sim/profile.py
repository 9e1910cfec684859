"""A profile: everything about NICs and switches that a fabric does not say, under a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from gpufabric.core.text import _
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_profiles import infiniband, roce, roce_tuned

__all__ = ["CATALOG", "CATALOG_FIELDS", "PROFILES", "Profile", "default_profile"]

CATALOG = "catalog"
"""Word for a value that each switch's own replaces."""

CATALOG_FIELDS = ("forwarding_ns", "buffer.total_bytes")
"""Parameters that may be left to the catalogue's switches."""


@dataclass(frozen=True)
class Profile:
    """Settings of the packet engine.

    Parameters
    ----------
    name
        What results call it.
    config
        The settings.
    from_catalog
        Those of ``CATALOG_FIELDS`` that each switch's own value replaces where the catalogue has
        one.
    remarks
        What it rests on, in sentences; not of files, where they are comments.
    """

    name: str
    config: PacketConfig
    from_catalog: tuple[str, ...] = CATALOG_FIELDS
    remarks: tuple[str, ...] = field(default=(), compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return name and every parameter, as results carry them."""
        values = _plain(self.config)
        for path in self.from_catalog:
            *parts, last = path.split(".")
            place = values
            for part in parts:
                place = place[part]
            place[last] = CATALOG
        return {"name": self.name, **values}


def _plain(value: Any) -> Any:
    """Return dataclasses, enums and tuples as JSON-like values."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Enum):
        return value.value
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _roce_default() -> Profile:
    return Profile("roce-default", roce())


def _roce_tuned() -> Profile:
    remarks = (
        _(
            "Kmin, Kmax, Pmax and alpha as gpufabric tune ecn finds them: of the settings that it "
            "tries on examples/startup-64.yaml, candidate roce-two-tiers, 400 Gb/s, November 2026, "
            "the one with full goodput (within 1 %) for hotspot with 4, 8 and 16 MB a flow, "
            "incast of 16 MB and permutation of 8 MB, no drop, and fewest pauses."
        ),
        _(
            "Assumed: other speeds want the same time in queues, so thresholds grow with speed; "
            "buffers of 64 MB and more. Your traffic may want others: gpufabric tune ecn."
        ),
    )
    return Profile("roce-tuned", roce_tuned(), remarks=remarks)


def _infiniband_default() -> Profile:
    return Profile("infiniband-default", infiniband(), ("forwarding_ns",))


PROFILES: Mapping[str, Callable[[], Profile]] = MappingProxyType(
    {
        "roce-default": _roce_default,
        "roce-tuned": _roce_tuned,
        "infiniband-default": _infiniband_default,
    }
)
"""The profiles that have a name."""


def default_profile(protocol: str) -> Profile:
    """Return the profile of a fabric, ``roce`` or ``infiniband``, where none is named."""
    return PROFILES[f"{protocol}-default"]()
