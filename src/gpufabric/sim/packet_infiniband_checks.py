"""Whether settings of InfiniBand links make sense."""

from __future__ import annotations

from gpufabric.core.text import _
from gpufabric.sim.array_checks import ArrayChecks
from gpufabric.sim.packet_config import ClassKind, PacketConfig

__all__ = ["check_credits"]

MOST_BYTES = 2**31 - 1


def check_credits(checks: ArrayChecks, config: PacketConfig) -> None:
    """Note what is wrong with the settings of InfiniBand links."""
    rules = config.credits
    n_credited = sum(one.kind is ClassKind.CREDITED for one in config.classes)
    if rules is None:
        if n_credited:
            what = _("{n} classes are credited, and there are no credits.").format(n=n_credited)
            checks.fault("credits", what, _("credits, or classes of RoCE"))
        return
    if n_credited < len(config.classes):
        what = _("{n} of {total} classes are credited.").format(
            n=n_credited, total=len(config.classes)
        )
        checks.fault("classes", what, _("credited ones only, with credits"))
    if any(one.kind is not None or one.queue is not None for one in config.overrides):
        checks.fault("overrides", _("a kind or queue of its own, with credits."), _("neither"))
    for name, least, most in (("buffer_bytes", 0, MOST_BYTES), ("update_blocks", 1, 2048)):
        value = getattr(rules, name)
        if not least <= value <= most:
            what = _("the value is {value}.").format(value=value)
            expected = _("{least} to {most}").format(least=least, most=most)
            checks.fault(f"credits.{name}", what, expected)
