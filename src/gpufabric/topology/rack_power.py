"""Power and heat of every rack and of the whole fabric, typical and at most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpufabric.catalog.part import Part
from gpufabric.model.fabric import Fabric
from gpufabric.topology.cabling import Cabling
from gpufabric.topology.footprint import Footprint
from gpufabric.topology.optics import Side

__all__ = ["BTU_PER_H_PER_W", "RackPower", "optics_power", "rack_power"]

Float = npt.NDArray[np.float64]

BTU_PER_H_PER_W = 3.412142
"""Heat of one watt [BTU/h]: 3,600 J divided by 1,055.06 J (international table BTU)."""

_COMPUTE = 0  # value of hosts.role


@dataclass(frozen=True)
class RackPower:
    """Power of the racks; all of it becomes heat.

    Parameters
    ----------
    typical_w, max_w
        float64[n_racks]: of what stands in each rack [W].
    is_assumed
        bool[n_racks]: some figure of a device in it was assumed.
    by_role_max_w
        Largest power of ``hosts``, ``managers`` and ``switches`` [W].
    """

    typical_w: Float
    max_w: Float
    is_assumed: npt.NDArray[np.bool_]
    by_role_max_w: Mapping[str, float]

    @property
    def total_typical_w(self) -> float:
        """Typical power of all racks [W]."""
        return float(self.typical_w.sum())

    @property
    def total_max_w(self) -> float:
        """Largest power of all racks [W]."""
        return float(self.max_w.sum())

    @property
    def typical_btu_per_h(self) -> Float:
        """float64[n_racks]: typical heat [BTU/h]."""
        return self.typical_w * BTU_PER_H_PER_W

    @property
    def max_btu_per_h(self) -> Float:
        """float64[n_racks]: largest heat [BTU/h]."""
        return self.max_w * BTU_PER_H_PER_W


def rack_power(
    fabric: Fabric,
    footprints: Mapping[str, Footprint],
    cabling: Cabling | None = None,
    stage: int = 1,
) -> RackPower:
    """Return power and heat of every rack, of devices up to `stage`.

    Parameters
    ----------
    fabric
        With every device in a rack.
    footprints
        Of its models.
    cabling
        Gives the modules in the switches' cages. They are added to the typical power of switches
        whose figure counts none; without cabling that figure stays bare.
    stage
        0 for today's devices, 1 for all.
    """
    n_racks = len(fabric.racks)
    typical_w, max_w = np.zeros(n_racks), np.zeros(n_racks)
    is_assumed = np.zeros(n_racks, bool)
    by_role = {"hosts": 0.0, "managers": 0.0, "switches": 0.0}
    prints = [footprints.get(model) for model in fabric.models]
    most = np.array([p.max_w if p is not None else 0.0 for p in prints])
    usual = np.array([p.typical_w if p is not None else 0.0 for p in prints])
    bare = np.array([p is not None and not p.typical_has_optics for p in prints])
    guessed = np.array([p is not None and bool(p.assumed) for p in prints])
    modules_w = np.zeros(len(fabric.switches))
    if cabling is not None:
        modules_w = optics_power(cabling, stage)
    for table, is_switch in ((fabric.hosts, False), (fabric.switches, True)):
        here = np.flatnonzero(table.stage <= stage)
        model, rack = table.model[here], table.rack[here]
        extra = bare[model] * modules_w[here] if is_switch else 0.0
        np.add.at(typical_w, rack, usual[model] + extra)
        np.add.at(max_w, rack, most[model])
        is_assumed[rack[guessed[model]]] = True
        if is_switch:
            by_role["switches"] = float(most[model].sum())
        else:
            is_host = table.role[here] == _COMPUTE
            by_role["hosts"] = float(most[model][is_host].sum())
            by_role["managers"] = float(most[model][~is_host].sum())
    return RackPower(typical_w, max_w, is_assumed, by_role)


def optics_power(cabling: Cabling, stage: int = 1) -> Float:
    """Return float64[n_switches]: power of the modules and plugs in each switch's cages [W].

    A module counts once for each cage that holds a link up to `stage`. Parts of unknown power
    count nothing here; they are in the switch's largest figure.
    """
    fabric, links = cabling.fabric, cabling.fabric.links
    today = links.stage <= stage
    owner: list[npt.NDArray[np.int64]] = []
    power: list[Float] = []
    sides: tuple[tuple[Side, npt.NDArray[np.int64], npt.NDArray[np.int32]], ...] = (
        ("a", cabling.cages.a, links.port_a),
        ("b", cabling.cages.b, links.port_b),
    )
    cages: list[npt.NDArray[np.int64]] = []
    for side, cage, port in sides:
        each_w = np.array([_plug_w(media.module(side) or media.cable) for media in cabling.media])
        mine = today & (fabric.ports.is_switch[port] == 1)
        cages.append(cage[mine])
        owner.append(fabric.ports.device[port[mine]].astype(np.int64))
        power.append(each_w[links.part[mine]] if len(each_w) else np.zeros(0))
    _cage, first = np.unique(np.concatenate(cages), return_index=True)
    total_w = np.zeros(len(fabric.switches))
    np.add.at(total_w, np.concatenate(owner)[first], np.concatenate(power)[first])
    return total_w


def _plug_w(part: Part) -> float:
    return part.power_w.value if part.power_w is not None else 0.0
