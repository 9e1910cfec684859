"""Whether settings of InfiniBand links make sense."""

from __future__ import annotations

from gpufabric.core.text import _
from gpufabric.sim.array_checks import ArrayChecks
from gpufabric.sim.packet_config import ClassKind, PacketConfig

__all__ = ["check_credits"]

MOST_BYTES = 2**31 - 1
MOST_WEIGHT = 255


def check_credits(checks: ArrayChecks, config: PacketConfig) -> None:
    """Note what is wrong with the settings of InfiniBand links."""
    rules = config.credits
    n_credited = sum(one.kind is ClassKind.CREDITED for one in config.classes)
    if rules is None:
        for name in ("arbitration", "fecn"):
            if getattr(config, name) is not None:
                checks.fault(name, _("without credits."), _("credits, or none"))
        if n_credited:
            what = _("{n} classes are credited, and there are no credits.").format(n=n_credited)
            checks.fault("credits", what, _("credits, or classes of RoCE"))
        return
    if n_credited < len(config.classes):
        what = _("{n} of {total} classes are credited.").format(
            n=n_credited, total=len(config.classes)
        )
        checks.fault("classes", what, _("credited ones only, with credits"))
    if any(one.kind is not None for one in config.overrides):
        checks.fault("overrides", _("a kind of its own, with credits."), _("none"))
    _check_arbitration(checks, config)
    if config.fecn is not None:
        for name, most in (("threshold", 15), ("marking_rate", 65_535), ("packet_bytes", 65_536)):
            _within(checks, f"fecn.{name}", getattr(config.fecn, name), 0, most)
    for name, least, most in (
        ("buffer_bytes", 0, MOST_BYTES),
        ("update_blocks", 1, 2048),
        ("cut_through_bytes", 0, 65_536),
    ):
        _within(checks, f"credits.{name}", getattr(rules, name), least, most)


def _check_arbitration(checks: ArrayChecks, config: PacketConfig) -> None:
    rules, n_lanes = config.arbitration, len(config.classes)
    if rules is None:
        return
    served: set[int] = set()
    for name in ("high", "low"):
        lanes, weights = getattr(rules, f"{name}_lanes"), getattr(rules, f"{name}_weights")
        if len(lanes) != len(weights):
            what = _("{n} weights.").format(n=len(weights))
            expected = _("{n}, as many as lanes").format(n=len(lanes))
            checks.fault(f"arbitration.{name}_weights", what, expected)
            continue
        if any(not 0 <= lane < n_lanes for lane in lanes):
            expected = _("{least} to {most}").format(least=0, most=n_lanes - 1)
            checks.fault(f"arbitration.{name}_lanes", _("a lane does not exist."), expected)
        if any(not 0 <= weight <= MOST_WEIGHT for weight in weights):
            expected = _("{least} to {most}").format(least=0, most=MOST_WEIGHT)
            checks.fault(f"arbitration.{name}_weights", _("a weight is wrong."), expected)
        served |= {lane for lane, weight in zip(lanes, weights, strict=True) if weight > 0}
    _within(checks, "arbitration.high_limit", rules.high_limit, 0, MOST_WEIGHT)
    missing = sorted(set(range(n_lanes)) - served)
    if missing:
        what = _("lane {lane} has no entry with a weight.").format(lane=missing[0])
        checks.fault("arbitration", what, _("an entry for every class"))


def _within(checks: ArrayChecks, where: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        what = _("the value is {value}.").format(value=value)
        checks.fault(where, what, _("{least} to {most}").format(least=least, most=most))
