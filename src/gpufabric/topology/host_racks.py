"""Compute racks: how many hosts stand in one, and which host in which."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpufabric.catalog.host import Host
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.model.spec_parts import Candidate, Site
from gpufabric.topology.cabinets import POWER_SLACK_W
from gpufabric.topology.decision import Decision
from gpufabric.topology.footprint import Footprint

__all__ = ["HostRacks", "fill_racks", "hosts_per_rack"]

Int = npt.NDArray[np.int64]

_WASTE = 8
"""An SU begins a rack of its own if at most one place in so many stays empty for it."""


@dataclass(frozen=True)
class HostRacks:
    """Compute racks in the order of hosts, not yet on the floor.

    Parameters
    ----------
    rack
        int64[n_compute_hosts]: compute rack of each host.
    slot
        int64[n_compute_hosts]: place of the host in its rack, from 0 at the bottom.
    count
        int64[n_racks]: hosts of each rack.
    """

    rack: Int
    slot: Int
    count: Int

    @property
    def below_middle(self) -> Int:
        """int64[n_racks]: hosts in the lower half of each rack."""
        return -(-self.count // 2)


def hosts_per_rack(
    host: Host, mine: Footprint, site: Site, candidate: Candidate
) -> tuple[int, Decision]:
    """Return the hosts of one rack: as asked for, as published, or as many as fit; and why.

    A host that is a rack of its own stands alone, whatever the rack's limits.

    Raises
    ------
    InputError
        If one host, or the number asked for, is more than a rack may hold.
    """
    if mine.is_rack:
        return 1, _own_rack(mine, site, candidate)
    _check_one_host(mine, site)
    limit_w = site.rack_power_kw * 1000.0 + POWER_SLACK_W
    by_power, by_units = int(limit_w / mine.max_w), site.rack_units // mine.units
    fitting = min(by_power, by_units)
    if candidate.hosts_per_rack is not None:
        return candidate.hosts_per_rack, _asked_for(mine, fitting, site, candidate)
    why = _(
        "{max_kw:g} kW and {units} rack units each: {by_power} by the {limit:g} kW, {by_units} by "
        "the {room} units of a rack."
    ).format(
        max_kw=round(mine.max_w / 1000.0, 3),
        units=mine.units,
        by_power=by_power,
        limit=site.rack_power_kw,
        by_units=by_units,
        room=site.rack_units,
    )
    if host.racking is None or host.racking.hosts_per_rack >= fitting:
        return fitting, Decision("hosts_per_rack", str(fitting), why)
    published = host.racking.hosts_per_rack
    why += " " + _("The published rack holds {n}.").format(n=published)
    return published, Decision("hosts_per_rack", str(published), why, host.racking.source)


def _own_rack(mine: Footprint, site: Site, candidate: Candidate) -> Decision:
    is_over = mine.max_w > site.rack_power_kw * 1000.0 + POWER_SLACK_W
    why = _("A {model} is a rack of its own and draws up to {kw:g} kW.").format(
        model=mine.model, kw=round(mine.max_w / 1000.0, 3)
    )
    if is_over:
        why += " " + _("That is more than site.rack_power_kw, {limit:g} kW: feed it apart.").format(
            limit=site.rack_power_kw
        )
    if candidate.hosts_per_rack not in (None, 1):
        why += " " + _("hosts_per_rack has no meaning for it.")
    return Decision("hosts_per_rack", "1", why, is_warning=is_over)


def _check_one_host(mine: Footprint, site: Site) -> None:
    faults: list[Fault] = []
    if mine.max_w > site.rack_power_kw * 1000.0 + POWER_SLACK_W:
        kw = round(mine.max_w / 1000.0, 3)
        faults.append(
            Fault(
                "site.rack_power_kw",
                _("one {host} draws up to {kw:g} kW, but a rack may draw {limit:g} kW.").format(
                    host=mine.model, kw=kw, limit=site.rack_power_kw
                ),
                _("{kw:g} or more").format(kw=kw),
                _("Raise site.rack_power_kw, or choose a smaller host."),
            )
        )
    if mine.units > site.rack_units:
        faults.append(
            Fault(
                "site.rack_units",
                _("one {host} takes {units} rack units, but a rack has {limit}.").format(
                    host=mine.model, units=mine.units, limit=site.rack_units
                ),
                _("{units} or more").format(units=mine.units),
                _("Raise site.rack_units, or choose a smaller host."),
            )
        )
    if faults:
        raise InputError(faults)


def _asked_for(mine: Footprint, fitting: int, site: Site, candidate: Candidate) -> Decision:
    wanted = candidate.hosts_per_rack or 1
    if wanted > fitting:
        raise InputError(
            Fault(
                _('candidate "{name}": hosts_per_rack').format(name=candidate.name),
                _(
                    "{n} {host} draw up to {kw:g} kW and take {units} rack units, but a rack may "
                    "draw {limit:g} kW and has {room}."
                ).format(
                    n=wanted,
                    host=mine.model,
                    kw=round(wanted * mine.max_w / 1000.0, 3),
                    units=wanted * mine.units,
                    limit=site.rack_power_kw,
                    room=site.rack_units,
                ),
                _("at most {n}").format(n=fitting),
                _("Lower hosts_per_rack, or raise site.rack_power_kw or site.rack_units."),
            )
        )
    return Decision("hosts_per_rack", str(wanted), _("Given by the spec."))


def fill_racks(su: npt.NDArray[np.int32], per_rack: int) -> HostRacks:
    """Return the racks of compute hosts in their order, `per_rack` to a rack.

    Parameters
    ----------
    su
        int32[n_compute_hosts]: SU of each host, rising.
    per_rack
        Hosts of one full rack.

    Notes
    -----
    Each SU begins a rack if at most an eighth of the places stay empty for that, the last SU
    left out of account; else racks are filled without regard to SUs.

    Examples
    --------
    >>> fill_racks(np.array([0] * 4 + [1] * 3, np.int32), 2).rack.tolist()
    [0, 0, 1, 1, 2, 2, 3]
    """
    n_hosts = len(su)
    begins = np.flatnonzero(np.concatenate([[True], su[1:] != su[:-1]]))[:n_hosts]
    size = np.diff(np.append(begins, n_hosts))
    room = -(-size // per_rack) * per_rack
    counted = slice(None, -1 if len(size) > 1 else None)
    waste = int((room - size)[counted].sum())
    if waste * _WASTE <= int(room[counted].sum()):
        first_rack = np.cumsum(room // per_rack) - room // per_rack
        block = np.repeat(np.arange(len(size)), size)
        index = np.arange(n_hosts) - begins[block]
        rack, slot = first_rack[block] + index // per_rack, index % per_rack
    else:
        rack, slot = np.arange(n_hosts) // per_rack, np.arange(n_hosts) % per_rack
    return HostRacks(rack.astype(np.int64), slot.astype(np.int64), np.bincount(rack))
