"""Settings that are allowed and hardly meant: a run with them says so."""

from __future__ import annotations

from collections.abc import Iterator

from gpufabric.core.text import _
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_switch_config import Ecn, PortOverride
from gpufabric.topology.decision import Decision

__all__ = ["doubts", "sentences"]


def doubts(config: PacketConfig) -> tuple[Decision, ...]:
    """Return a warning for each pair of ECN thresholds that is the wrong way round."""
    pairs = [(where, ecn) for where, ecn in _thresholds(config) if ecn.kmin_bytes > ecn.kmax_bytes]
    why = _(
        "Kmin is above Kmax, so Kmax does nothing: every packet above Kmin is marked and none "
        "below. Were they exchanged?"
    )
    return tuple(
        Decision(where, f"{ecn.kmin_bytes:,.0f} > {ecn.kmax_bytes:,.0f} B", why, is_warning=True)
        for where, ecn in pairs
    )


def sentences(config: PacketConfig, name: str) -> list[str]:
    """Return the warnings of the profile `name`, a sentence each."""
    return [
        _("{name}: {where}: {choice}. {why}").format(
            name=name, where=one.topic, choice=one.choice, why=one.why
        )
        for one in doubts(config)
    ]


def _thresholds(config: PacketConfig) -> Iterator[tuple[str, Ecn]]:
    """Yield all thresholds that some packets meet, with the place in the profile."""
    marked = [one for one in config.classes if one.is_marked]
    if config.ecn is not None and any(one.ecn is None for one in marked):
        yield "ecn", config.ecn
    for at, one in enumerate(config.classes):
        if one.is_marked and one.ecn is not None:
            yield f"classes[{at}].ecn", one.ecn
    for at, override in enumerate(config.overrides):
        if override.kmin_bytes is None and override.kmax_bytes is None:
            continue
        for base in _marked_there(config, override):
            yield f"overrides[{at}]", _with(base, override)


def _marked_there(config: PacketConfig, override: PortOverride) -> list[Ecn]:
    """Return the thresholds, each once, of the classes of an override that are marked."""
    found: dict[Ecn, None] = {}
    for at, one in enumerate(config.classes):
        is_marked = one.is_marked if override.is_marked is None else override.is_marked
        if is_marked and (not override.classes or at in override.classes):
            found[one.ecn or config.ecn or Ecn()] = None
    return list(found)


def _with(ecn: Ecn, override: PortOverride) -> Ecn:
    kmin, kmax = override.kmin_bytes, override.kmax_bytes
    return Ecn(
        ecn.kmin_bytes if kmin is None else kmin, ecn.kmax_bytes if kmax is None else kmax, ecn.pmax
    )
