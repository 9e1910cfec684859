"""The catalogue in memory: devices by name, with look-ups that name the nearest on a typo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from gpufabric.catalog.cost_constants import cost_constants
from gpufabric.catalog.host import Host
from gpufabric.catalog.identity import Identity, lookup_key
from gpufabric.catalog.models import AnyDevice
from gpufabric.catalog.nic import Nic
from gpufabric.catalog.part import Part
from gpufabric.catalog.rule import Equipment, FailureRates, MediaRule
from gpufabric.catalog.switch import Switch
from gpufabric.catalog.workload_constants import model_names
from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.model.known_names import KnownNames

__all__ = ["Catalog"]

GENERIC_HOST = "generic"
MEDIA_RULE = "media-by-length"
FAILURE_RATES = "failure-rates"

Entry = TypeVar("Entry", bound=Identity)


@dataclass(frozen=True)
class Catalog:
    """Every device known, by name.

    Parameters
    ----------
    switches, nics, hosts, parts
        Devices by name, in the order of names.
    equipment
        Boxes beside the fabric by name, out-of-band switches among them.
    media_rule
        Which kind of cable to take for which length.
    failure_rates
        Annual failure rates by class.
    origins
        File of each device that did not come with the package.
    """

    switches: Mapping[str, Switch]
    nics: Mapping[str, Nic]
    hosts: Mapping[str, Host]
    parts: Mapping[str, Part]
    equipment: Mapping[str, Equipment | Switch]
    media_rule: MediaRule
    failure_rates: FailureRates
    origins: Mapping[str, str] = field(default_factory=dict)

    def switch(self, name: str) -> Switch:
        """Return the switch of that name or alias.

        Raises
        ------
        InputError
            If there is none; the nearest name is given.
        """
        return self._found(_("switch"), self._switch_keys, name)

    def nic(self, name: str) -> Nic:
        """Return the NIC of that name or alias; see ``switch``."""
        return self._found(_("NIC"), self._nic_keys, name)

    def host(self, name: str) -> Host:
        """Return the host of that name or alias; see ``switch``."""
        return self._found(_("host"), self._host_keys, name)

    def part(self, name: str) -> Part:
        """Return the cabling part of that name or alias; see ``switch``."""
        return self._found(_("part"), self._part_keys, name)

    def equipment_item(self, name: str) -> Equipment | Switch:
        """Return the equipment of that name or alias; see ``switch``."""
        return self._found(_("equipment"), self._equipment_keys, name)

    def device(self, name: str) -> AnyDevice:
        """Return the entry of that name or alias, whatever it is; see ``switch``."""
        return self._found(_("device"), self._all_keys, name)

    def known_names(self) -> KnownNames:
        """Return what a spec is held against: switches with fabric, hosts with GPUs, models."""
        return KnownNames(
            switches={
                name: (switch.fabric, switch.generation)
                for switch in self.switches.values()
                for name in _names_of(switch)
            },
            hosts={name: host.gpus for host in self.hosts.values() for name in _names_of(host)},
            models=model_names(),
            quantities=frozenset(cost_constants()),
        )

    @property
    def devices(self) -> tuple[AnyDevice, ...]:
        """Every entry: switches, NICs, hosts, parts, equipment and rules, each by name."""
        boxes = (item for item in self.equipment.values() if isinstance(item, Equipment))
        return (
            *self.switches.values(),
            *self.nics.values(),
            *self.hosts.values(),
            *self.parts.values(),
            *boxes,
            self.failure_rates,
            self.media_rule,
        )

    @cached_property
    def _switch_keys(self) -> dict[str, Switch]:
        return _keys(self.switches)

    @cached_property
    def _nic_keys(self) -> dict[str, Nic]:
        return _keys(self.nics)

    @cached_property
    def _host_keys(self) -> dict[str, Host]:
        return _keys(self.hosts)

    @cached_property
    def _part_keys(self) -> dict[str, Part]:
        return _keys(self.parts)

    @cached_property
    def _equipment_keys(self) -> dict[str, Equipment | Switch]:
        return _keys(self.equipment)

    @cached_property
    def _all_keys(self) -> dict[str, AnyDevice]:
        return _keys({device.name: device for device in self.devices})

    @staticmethod
    def _found(what: str, keys: Mapping[str, Entry], name: str) -> Entry:
        entry = keys.get(lookup_key(name))
        if entry is None:
            names = sorted({known.name for known in keys.values()})
            raise InputError(
                Fault(
                    "",
                    _('there is no {what} "{name}" in the catalogue.').format(what=what, name=name),
                    remedy=nearest(name, names) or _("See the names with: gpufabric catalog list."),
                )
            )
        return entry

    def generic_host(
        self,
        gpus: int,
        nics: int,
        nic_gbps: float,
        rails: int | Sequence[int] | None = None,
    ) -> Host:
        """Return a host of the given size; everything else is that of the ``generic`` host.

        Parameters
        ----------
        gpus, nics
            How many.
        nic_gbps
            Speed of one NIC [Gb/s]; the NIC model is the slowest known that runs a port at it,
            preferably one for both protocols and with a known price.
        rails
            How many rails the NICs go round, or the rail of each NIC; one rail a NIC if None.

        Raises
        ------
        InputError
            If a number is not positive, no NIC runs at the speed, or the rails do not fit.
        """
        base = self.hosts[GENERIC_HOST]
        faults = [
            Fault(name, _("{value} found.").format(value=value), _("a number above 0"))
            for name, value in (("gpus", gpus), ("nics", nics), ("nic_gbps", nic_gbps))
            if value <= 0
        ]
        if faults:
            raise InputError(faults)
        nic = self._nic_for(nic_gbps)
        changed = {
            "model": nic.name,
            "count": nics,
            "gbps": float(nic_gbps),
            "rail_pattern": _rail_pattern(nics, rails),
            "cage": nic.cage,
        }
        origin = _("given by the spec")
        return base.model_copy(
            update={
                "accelerators": base.accelerators.model_copy(
                    update={"count": gpus, "source": origin}
                ),
                "nics": base.nics.model_copy(update={**changed, "source": origin}),
                "scale_up": None
                if base.scale_up is None
                else base.scale_up.model_copy(update={"domain_gpus": gpus}),
            }
        )

    def _nic_for(self, gbps: float) -> Nic:
        """Return the NIC for a port at `gbps`: one for both protocols, then the slowest, priced."""
        fitting = [
            (len(nic.protocols) < 2, nic.gbps, nic.price is None, nic.name)
            for nic in self.nics.values()
            if nic.deployable and any(mode.gbps == gbps for mode in nic.port_modes)
        ]
        if not fitting:
            speeds = sorted(
                {
                    mode.gbps
                    for nic in self.nics.values()
                    if nic.deployable
                    for mode in nic.port_modes
                }
            )
            raise InputError(
                Fault(
                    "nic_gbps",
                    _("no NIC in the catalogue runs a port at {gbps:g} Gb/s.").format(gbps=gbps),
                    _("one of {names}").format(names=", ".join(f"{speed:g}" for speed in speeds)),
                )
            )
        return self.nics[min(fitting)[3]]


def _keys(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    keys = {lookup_key(alias): entry for entry in entries.values() for alias in entry.aliases}
    keys.update({lookup_key(entry.title): entry for entry in entries.values()})
    keys.update({lookup_key(name): entry for name, entry in entries.items()})
    return keys


def _names_of(entry: Identity) -> list[str]:
    return [name.lower() for name in (entry.name, entry.title, *entry.aliases)]


def _rail_pattern(nics: int, rails: int | Sequence[int] | None) -> tuple[int, ...]:
    if rails is None:
        return tuple(range(nics))
    pattern = tuple(range(rails)) if isinstance(rails, int) else tuple(rails)
    numbered = bool(pattern) and set(pattern) == set(range(max(pattern) + 1))
    if not numbered or nics % len(pattern):
        raise InputError(
            Fault(
                "rails",
                _("{rails} found for {nics} NICs.").format(rails=rails, nics=nics),
                _("a number of rails that divides the NICs, or the rail of each NIC from 0"),
            )
        )
    return pattern
