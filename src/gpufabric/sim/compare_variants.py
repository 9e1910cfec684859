"""What ``simulate compare`` runs: protocols as they should be, and with one thing wrong each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from gpufabric.core.text import _
from gpufabric.sim.packet_config import ClassKind, Ecn, PortOverride
from gpufabric.sim.packet_faults import (
    BitErrors,
    LinkFlap,
    PacketFault,
    PauseStorm,
    SlowHost,
    SlowLink,
    SmallMtu,
)
from gpufabric.sim.packet_headroom import headroom_for
from gpufabric.sim.packet_prepared import PreparedRun
from gpufabric.sim.profile import PROFILES, Profile

__all__ = ["MISCONFIGURATIONS", "Variant", "meanings", "variants_of"]

HEADROOM_SHARE = 0.1
LOSS_PER_PACKET = 1e-3
STANDARD_FRAME_BYTES = 1518
"""Longest frame of a port whose MTU was never raised (IEEE 802.3, clause 3)."""
SLOW_SHARE = 0.5
FLAP_US = (100.0, 1000.0, 1e6)
"""First time down, from one to the next, and the end; down for a tenth of the time. Assumed: short,
so that an iteration of a millisecond meets one."""


@dataclass(frozen=True)
class Variant:
    """One thing to compare.

    Parameters
    ----------
    name
        Its name.
    protocol
        ``infiniband`` or ``roce``.
    profile
        Its settings.
    faults
        What goes wrong beside.
    """

    name: str
    protocol: str
    profile: Profile
    faults: tuple[PacketFault, ...] = ()


Change = Callable[[PreparedRun, Profile], tuple[Profile, tuple[PacketFault, ...]]]


def _with(profile: Profile, **change: object) -> Profile:
    return replace(profile, config=replace(profile.config, **change))  # type: ignore[arg-type]


def _overridden(profile: Profile, override: PortOverride) -> Profile:
    return _with(profile, overrides=(*profile.config.overrides, override))


def _busiest_switch(run: PreparedRun) -> int:
    """Return the switch into which most bytes of the traffic go."""
    pairs = run.pairs
    n_bytes = np.repeat(np.maximum(1, pairs.size_bytes), np.diff(pairs.paths.first))
    head = run.wires.head[pairs.paths.channel]
    inside = head >= 0
    return int(np.argmax(np.bincount(head[inside], n_bytes[inside], minlength=1)))


def _busiest_channel(run: PreparedRun, *, is_into_nic: bool) -> int:
    """Return the channel, from a NIC or into one, that most bytes of the traffic cross."""
    pairs = run.pairs
    place = pairs.paths.first[1:] - 1 if is_into_nic else pairs.paths.first[:-1]
    load = np.bincount(pairs.paths.channel[place], np.maximum(1, pairs.size_bytes))
    return int(np.argmax(load))


def _ecn_off(_run: PreparedRun, profile: Profile) -> tuple[Profile, tuple[PacketFault, ...]]:
    return _with(profile, ecn=None), ()


def _ecn_off_one(run: PreparedRun, profile: Profile) -> tuple[Profile, tuple[PacketFault, ...]]:
    override = PortOverride(switches=(_busiest_switch(run),), is_marked=False)
    return _overridden(profile, override), ()


def _kmin_above(run: PreparedRun, profile: Profile) -> tuple[Profile, tuple[PacketFault, ...]]:
    ecn = profile.config.ecn or Ecn()
    override = PortOverride(
        switches=(_busiest_switch(run),), kmin_bytes=ecn.kmax_bytes, kmax_bytes=ecn.kmin_bytes
    )
    return _overridden(profile, override), ()


def _cc_off(_run: PreparedRun, profile: Profile) -> tuple[Profile, tuple[PacketFault, ...]]:
    return _with(profile, dcqcn=None), ()


def _pfc_off_one(run: PreparedRun, profile: Profile) -> tuple[Profile, tuple[PacketFault, ...]]:
    override = PortOverride(switches=(_busiest_switch(run),), has_pfc=False)
    return _overridden(profile, override), ()


def _pfc_off(_run: PreparedRun, profile: Profile) -> tuple[Profile, tuple[PacketFault, ...]]:
    return _overridden(profile, PortOverride(has_pfc=False)), ()


def _lossy_one(run: PreparedRun, profile: Profile) -> tuple[Profile, tuple[PacketFault, ...]]:
    override = PortOverride(
        switches=(_busiest_switch(run),),
        classes=(profile.config.data_class,),
        kind=ClassKind.LOSSY,
    )
    return _overridden(profile, override), ()


def _pfc_elsewhere(run: PreparedRun, profile: Profile) -> tuple[Profile, tuple[PacketFault, ...]]:
    override = PortOverride(
        switches=(_busiest_switch(run),),
        classes=(profile.config.data_class,),
        kind=ClassKind.LOSSY,
        has_pfc=False,
    )
    return _overridden(profile, override), ()


def _headroom(run: PreparedRun, profile: Profile) -> tuple[Profile, tuple[PacketFault, ...]]:
    inside = run.wires.head >= 0
    forwarding_ps = np.full(int(inside.sum()), round(profile.config.forwarding_ns * 1000))
    needed = headroom_for(
        run.wires.gbps[inside], run.wires.delay_ps[inside], forwarding_ps, profile.config
    )
    short_bytes = int(needed.max(initial=0) * HEADROOM_SHARE)
    return _overridden(profile, PortOverride(headroom_bytes=short_bytes)), ()


def _mtu(run: PreparedRun, profile: Profile) -> tuple[Profile, tuple[PacketFault, ...]]:
    return profile, (SmallMtu(_busiest_channel(run, is_into_nic=True), STANDARD_FRAME_BYTES),)


def _slow_host(run: PreparedRun, profile: Profile) -> tuple[Profile, tuple[PacketFault, ...]]:
    channel = _busiest_channel(run, is_into_nic=True)
    return profile, (SlowHost(channel, float(run.wires.gbps[channel]) * SLOW_SHARE),)


def _slow_link(run: PreparedRun, profile: Profile) -> tuple[Profile, tuple[PacketFault, ...]]:
    channel = _busiest_channel(run, is_into_nic=True)
    return profile, (SlowLink(channel, float(run.wires.gbps[channel]) * SLOW_SHARE),)


def _flap(run: PreparedRun, profile: Profile) -> tuple[Profile, tuple[PacketFault, ...]]:
    start_us, every_us, end_us = FLAP_US
    channel, down_us = _busiest_channel(run, is_into_nic=True), every_us / 10
    return profile, (LinkFlap(channel, start_us, end_us, down_us, every_us - down_us),)


def _storm(run: PreparedRun, profile: Profile) -> tuple[Profile, tuple[PacketFault, ...]]:
    channel = int(run.wires.reverse[_busiest_channel(run, is_into_nic=True)])
    return profile, (PauseStorm(channel, traffic_class=profile.config.data_class),)


def _bit_errors(run: PreparedRun, profile: Profile) -> tuple[Profile, tuple[PacketFault, ...]]:
    channel = _busiest_channel(run, is_into_nic=True)
    return profile, (BitErrors(channel, loss_per_packet=LOSS_PER_PACKET),)


MISCONFIGURATIONS: Mapping[str, Change] = MappingProxyType(
    {
        "ecn-off": _ecn_off,
        "ecn-off-on-one-switch": _ecn_off_one,
        "kmin-above-kmax-on-one-switch": _kmin_above,
        "no-rate-control": _cc_off,
        "pfc-off": _pfc_off,
        "pfc-off-on-one-switch": _pfc_off_one,
        "pfc-on-another-priority": _pfc_elsewhere,
        "lossy-on-one-switch": _lossy_one,
        "headroom-short": _headroom,
        "mtu-mismatch": _mtu,
        "slow-host": _slow_host,
        "half-speed-link": _slow_link,
        "link-flap": _flap,
        "bit-errors": _bit_errors,
        "pause-storm": _storm,
    }
)
"""What can be wrong with RoCE; each changes one thing of the tuned profile."""


def meanings() -> dict[str, str]:
    """Return what each variant is, in the language in use."""
    return {
        "infiniband": _("credits for each virtual lane; nothing to tune"),
        "roce-tuned": _("PFC, ECN and DCQCN as tuned"),
        "roce-default": _("PFC, ECN and DCQCN at their defaults"),
        "ecn-off": _("no switch marks: PFC alone holds senders back"),
        "ecn-off-on-one-switch": _("the busiest switch does not mark"),
        "kmin-above-kmax-on-one-switch": _("the busiest switch has Kmin and Kmax exchanged"),
        "no-rate-control": _("NICs do not heed CNPs"),
        "pfc-off": _("no port sends or obeys PFC"),
        "pfc-off-on-one-switch": _("the busiest switch neither sends nor obeys PFC"),
        "pfc-on-another-priority": _("the busiest switch has PFC on a priority without data"),
        "lossy-on-one-switch": _("the busiest switch has the DSCP of the data in a lossy queue"),
        "headroom-short": _("a tenth of the headroom that the cables need"),
        "mtu-mismatch": _("the port to the busiest NIC takes frames up to 1,518 B"),
        "slow-host": _("the host of the busiest NIC takes data at half the link's rate"),
        "half-speed-link": _("the link to the busiest NIC runs at half of its speed"),
        "link-flap": _("the link to the busiest NIC is down for 0.1 ms of each millisecond"),
        "bit-errors": _("the link to the busiest NIC loses one packet in a thousand"),
        "pause-storm": _("the busiest NIC sends XOFF for ever"),
    }


def variants_of(run: PreparedRun, tuned: Profile, wanted: tuple[str, ...]) -> tuple[Variant, ...]:
    """Return the variants of RoCE that are wanted.

    Parameters
    ----------
    run
        The traffic; what is wrong is wrong where it hurts it most.
    tuned
        The profile as tuned.
    wanted
        Names, of ``meanings``.
    """
    default = PROFILES["roce-default"]()
    run.config(0, tuned)  # raises where it names a switch that there is not
    found = []
    if "roce-tuned" in wanted:
        found.append(Variant("roce-tuned", "roce", tuned))
    if "roce-default" in wanted:
        found.append(Variant("roce-default", "roce", default))
    for name, change in MISCONFIGURATIONS.items():
        if name in wanted:
            profile, faults = change(run, tuned)
            found.append(Variant(name, "roce", replace(profile, name=name), faults))
    return tuple(found)
