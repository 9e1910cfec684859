"""The host of a spec: an entry of the catalogue, or one made from the spec's own numbers."""

from __future__ import annotations

from typing import Literal, TypedDict

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.groups import Power, Price, Size
from gpufabric.catalog.host import Accelerators, Host
from gpufabric.core.text import _
from gpufabric.model.requirement import Requirement
from gpufabric.model.spec_parts import GenericHost

__all__ = ["resolve_host"]


class _Origin(TypedDict):
    source: str
    date: str
    kind: Literal["assumed"]


def resolve_host(requirement: Requirement, catalog: Catalog) -> Host:
    """Return the host of a spec: from the catalogue, or made from the spec's own numbers."""
    given = requirement.host
    if isinstance(given, GenericHost):
        rails = tuple(nic % given.n_rails for nic in range(given.nics))
        host = catalog.generic_host(given.gpus, given.nics, float(given.nic_gbps), rails)
        return host.model_copy(update=_given_groups(given, host.nics.date))
    return catalog.host(given)


def _given_groups(
    given: GenericHost, date: str
) -> dict[str, Accelerators | Power | Size | Price | None]:
    """Return power, size and price as the spec gives them; power is unknown where it does not."""
    origin: _Origin = {"source": _("given by the spec"), "date": date, "kind": "assumed"}
    groups: dict[str, Accelerators | Power | Size | Price | None] = {}
    if given.gpu is not None:
        groups["accelerators"] = Accelerators(count=given.gpus, model=given.gpu, **origin)
    if given.power_kw is not None:
        groups["power"] = Power(max_w=given.power_kw * 1000, **origin)
    if given.ru is not None:
        groups["size"] = Size(ru=given.ru, **origin)
    if given.price_usd is not None:
        price = given.price_usd
        groups["price"] = Price(low_usd=price, mid_usd=price, high_usd=price, **origin)
    return groups
