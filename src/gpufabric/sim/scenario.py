"""Everything that a run of traffic depends on beside the fabric, and how single keys change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.sim.named_faults import NamedFault
from gpufabric.sim.profile import Profile
from gpufabric.sim.profile_fields import scalar_keys
from gpufabric.sim.profile_file import find_profile, with_value
from gpufabric.sim.routing_choice import Routing, check_routing
from gpufabric.sim.traffic import PatternOptions

__all__ = [
    "CROSS_RAIL",
    "ENGINES",
    "FABRIC_KEYS",
    "PROFILE_KEYS",
    "SWEEP_KEYS",
    "Scenario",
    "changed",
    "check_scenario",
    "parse_bytes",
]

CROSS_RAIL = ("fabric", "pxn", "two-step")
NO_FAILURE = "none"
ENGINES = ("flow", "packet")
MOST_BYTES = 1e18
MOST_S = 1e9
MOST_SEED = 2**63 - 1

_UNITS: Mapping[str, float] = MappingProxyType(
    {
        "": 1,
        "b": 1,
        **{f"{sign}b": 1000.0**power for power, sign in enumerate("kmgtp", 1)},
        **{sign: 1000.0**power for power, sign in enumerate("kmgtp", 1)},
        **{f"{sign}ib": 1024.0**power for power, sign in enumerate("kmgtp", 1)},
    }
)


def parse_bytes(text: str, where: str = "--bytes") -> float:
    """Return a number of bytes written as ``1e9``, ``64 KiB`` or ``1GB``.

    Raises
    ------
    InputError
        If the text is none, or negative, or above ``MOST_BYTES``.

    Examples
    --------
    >>> parse_bytes("64 KiB"), parse_bytes("1.5GB")
    (65536.0, 1500000000.0)
    """
    bare = text.strip().lower()
    number = bare.rstrip("bikmgtp ")
    unit = bare[len(number) :].strip()
    try:
        value = float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        value = np.nan
    if not 0 <= value <= MOST_BYTES:
        what = _('"{text}" is no number of bytes.').format(text=text[:64])
        raise InputError(Fault(where, what, _("such as 1e9, 64KiB or 1GB, at most 1e18")))
    return value


@dataclass(frozen=True)
class Scenario:
    """One run: traffic, routing, failures, seed.

    Parameters
    ----------
    pattern
        One of ``traffic.PATTERNS``, or the path of a file of flows.
    options
        What the pattern is made with.
    routing
        How flows find their paths.
    cross_rail
        How a flow gets from one rail to another: through the ``fabric``; ``pxn``: over NVLink to
        the GPU of the destination's rail, all at once; ``two-step``: all over NVLink first, then
        all over the rails. Empty: pxn where the rails are separate networks, else the fabric.
    fail
        What fails; see ``failures.find_failures``.
    faults
        What goes wrong beside, of the packet engine.
    n_gpus
        Only the first GPUs take part; all where None.
    seed
        Draws everything that is random.
    until_s
        End of the run [s].
    reconverge_s
        Time from a failure or repair to new paths [s].
    has_gpudirect
        Whether NICs read and write GPU memory themselves.
    n_bins
        Time bins of the series; 0: none.
    engine
        One of ``ENGINES``.
    profile
        Settings of the packet engine; those of the fabric's protocol where None.
    """

    pattern: str
    options: PatternOptions = field(default_factory=PatternOptions)
    routing: Routing = field(default_factory=Routing)
    cross_rail: str = ""
    fail: tuple[str, ...] = ()
    n_gpus: int | None = None
    seed: int = 0
    until_s: float = np.inf
    reconverge_s: float = 0.0
    has_gpudirect: bool = True
    n_bins: int = 100
    engine: str = "flow"
    profile: Profile | None = None
    faults: tuple[NamedFault, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return what was asked, as results carry it."""
        options = self.options
        return {
            "traffic": {
                "pattern": self.pattern,
                "bytes": options.size_bytes,
                "sizes": options.sizes,
                "fan_in": options.fan_in,
                "load": options.load,
                "flows": options.n_flows,
                "hot_share": options.hot_share,
                "gpus": self.n_gpus,
            },
            "routing": {
                "mode": self.routing.mode,
                "queue_pairs": self.routing.queue_pairs,
                "hash_seeds": self.routing.hash_seeds,
                "lmc": self.routing.lmc,
                "cross_rail": self.cross_rail,
            },
            "fail": list(self.fail),
            "seed": self.seed,
            "until_s": None if self.until_s == np.inf else self.until_s,
            "reconverge_s": self.reconverge_s,
            "gpudirect": self.has_gpudirect,
            **self._engine_json(),
        }

    def _engine_json(self) -> dict[str, Any]:
        if self.engine == "flow":
            return {}
        profile = None if self.profile is None else self.profile.to_json()
        faults = [fault.words for fault in self.faults]
        return {"engine": self.engine, "profile": profile, "faults": faults}


def check_scenario(scenario: Scenario) -> None:
    """Raise if a value is wrong that needs no fabric to be judged.

    Raises
    ------
    InputError
        With all faults.
    """
    faults = []
    if scenario.cross_rail not in {"", *CROSS_RAIL}:
        what = _('"{name}" is unknown.').format(name=scenario.cross_rail[:64])
        faults.append(
            Fault(
                "--cross-rail",
                what,
                ", ".join(CROSS_RAIL),
                nearest(scenario.cross_rail, CROSS_RAIL),
            )
        )
    if scenario.engine not in ENGINES:
        what = _('"{name}" is unknown.').format(name=scenario.engine[:64])
        faults.append(
            Fault("--engine", what, ", ".join(ENGINES), nearest(scenario.engine, ENGINES))
        )
    for where, value, most in (
        ("--until", scenario.until_s, np.inf),
        ("--reconverge", scenario.reconverge_s, MOST_S),
        ("--seed", scenario.seed, MOST_SEED),
    ):
        if not 0 <= value <= most:
            what = _("the value is {value}.").format(value=value)
            expected = _("0 or more") if most == np.inf else _("0 to {most}").format(most=most)
            faults.append(Fault(where, what, expected))
    try:
        check_routing(scenario.routing)
    except InputError as error:
        faults.extend(error.faults)
    if faults:
        raise InputError(faults)


def _whole(text: str, where: str) -> int:
    if not text.strip().isdecimal():
        what = _('"{text}" is no whole number.').format(text=text[:64])
        raise InputError(Fault(where, what, _("0 or more")))
    return int(text)


def _real(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        what = _('"{text}" is no number.').format(text=text[:64])
        raise InputError(Fault(where, what)) from error


def _yes(text: str, where: str) -> bool:
    if text not in {"yes", "no"}:
        what = _('"{text}" is neither yes nor no.').format(text=text[:64])
        raise InputError(Fault(where, what, "yes, no"))
    return text == "yes"


def _with_option(**change: Any) -> Callable[[Scenario], Scenario]:
    return lambda scenario: replace(scenario, options=replace(scenario.options, **change))


def _with_routing(**change: Any) -> Callable[[Scenario], Scenario]:
    return lambda scenario: replace(scenario, routing=replace(scenario.routing, **change))


def _failures(text: str) -> tuple[str, ...]:
    return () if text == NO_FAILURE else tuple(part.strip() for part in text.split("+"))


_CHANGES: Mapping[str, Callable[[str, str], Callable[[Scenario], Scenario]]] = MappingProxyType(
    {
        "routing": lambda text, _where: _with_routing(mode=text),
        "pattern": lambda text, _where: lambda scenario: replace(scenario, pattern=text),
        "bytes": lambda text, where: _with_option(size_bytes=parse_bytes(text, where)),
        "sizes": lambda text, _where: _with_option(sizes=text),
        "fan-in": lambda text, where: _with_option(fan_in=_whole(text, where)),
        "load": lambda text, where: _with_option(load=_real(text, where)),
        "flows": lambda text, where: _with_option(n_flows=_whole(text, where)),
        "hot-share": lambda text, where: _with_option(hot_share=_real(text, where)),
        "qps": lambda text, where: _with_routing(queue_pairs=_whole(text, where)),
        "hash-seeds": lambda text, _where: _with_routing(hash_seeds=text),
        "lmc": lambda text, where: _with_routing(lmc=_whole(text, where)),
        "cross-rail": lambda text, _where: lambda scenario: replace(scenario, cross_rail=text),
        "gpudirect": lambda text, where: (
            lambda scenario: replace(scenario, has_gpudirect=_yes(text, where))
        ),
        "fail": lambda text, _where: lambda scenario: replace(scenario, fail=_failures(text)),
        "gpus": lambda text, where: lambda scenario: replace(scenario, n_gpus=_whole(text, where)),
    }
)

FABRIC_KEYS = ("candidate", "oversubscription")
"""What a sweep can vary that makes another fabric."""

SWEEP_KEYS = (*_CHANGES, *FABRIC_KEYS)
"""What a sweep can vary; what is not in ``FABRIC_KEYS`` makes another scenario."""

PROFILE_KEYS = ("profile", *scalar_keys())
"""What a sweep with the packet engine can vary beside: the profile, and its single parameters."""


def changed(scenario: Scenario, key: str, text: str) -> Scenario:
    """Return the scenario with one key set from a text.

    Parameters
    ----------
    scenario
        The scenario; for a parameter of a profile it has one.
    key
        One of ``SWEEP_KEYS``, not of ``FABRIC_KEYS``, or of ``PROFILE_KEYS``.
    text
        The value.

    Raises
    ------
    InputError
        If the text does not fit the key.
    """
    where = f"--sweep {key}"
    if key == "profile":
        return replace(scenario, profile=find_profile(text, where))
    if key in PROFILE_KEYS:
        assert scenario.profile is not None
        return replace(scenario, profile=with_value(scenario.profile, key, text, where))
    return _CHANGES[key](text, where)(scenario)
