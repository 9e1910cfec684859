"""Which share of a cluster's hardware its networks are, NICs counted as network."""

from __future__ import annotations

from gpufabric.catalog.collection import Catalog
from gpufabric.core.errors import InputError
from gpufabric.cost.capital import Amount, Share
from gpufabric.planner.plan import CandidatePlan

__all__ = ["networks_share"]


def networks_share(one: CandidatePlan, catalog: Catalog) -> Share | None:
    """Return the share of all networks and compute NICs in the price of networks and hosts.

    None where the price of the hosts or of a NIC is unknown. Published shares that count NICs,
    storage and management networks are 15 to 25 %, those of the compute fabric alone 9 to 13 %.

    Parameters
    ----------
    one
        The candidate.
    catalog
        Where NICs have their prices, which in a bill are within that of the host.
    """
    hosts = one.capital.sections["hosts"]
    nics = _nics(one, catalog)
    if nics is None or hosts.is_lower_bound or not hosts.mid_usd:
        return None
    networks = one.capital.all_networks
    return Share(
        _fraction(networks.low_usd + nics.low_usd, networks.low_usd + hosts.high_usd),
        _fraction(networks.mid_usd + nics.mid_usd, networks.mid_usd + hosts.mid_usd),
        _fraction(networks.high_usd + nics.high_usd, networks.high_usd + hosts.low_usd),
    )


def _fraction(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _nics(one: CandidatePlan, catalog: Catalog) -> Amount | None:
    total = Amount(0.0, 0.0, 0.0)
    for line in one.bill.of("hosts"):
        if line.category != "nic" or not line.included_in:
            continue
        try:
            price = catalog.nic(line.name).price
        except InputError:
            return None
        if price is None:
            return None
        n = line.quantity
        total += Amount(n * price.low_usd, n * price.mid_usd, n * price.high_usd)
    return total
