"""Injection and bisection of a design in words, so that neither is taken for the other."""

from __future__ import annotations

from gpufabric.core.text import _
from gpufabric.topology.bisection import Bandwidth
from gpufabric.topology.decision import Decision

__all__ = ["explain_bandwidth"]

_TBPS = 1000.0  # Gb/s in 1 Tb/s


def explain_bandwidth(band: Bandwidth) -> Decision:
    """Return the decision that names both bandwidths with their definitions.

    Parameters
    ----------
    band
        Bandwidth of today's hosts.

    Notes
    -----
    Pages of vendors call hosts x NIC rate "bisection" (Kedios, B300 network report, 2026-03, does):
    that is the injection, twice the bisection of a network that does not block.

    Examples
    --------
    32 hosts of 8 NICs at 800 Gb/s on a network that does not block:

    >>> print(explain_bandwidth(Bandwidth(204_800, 102_400, 102_400, None, 0, False)).choice)
    injection 204.8 Tb/s, bisection 102.4 Tb/s
    """
    injection, bisection = band.injection_gbps / _TBPS, band.bisection_gbps / _TBPS
    why = _(
        "Injection is what all NICs send together. Bisection is what one half of the hosts can "
        "send to the other half, one direction: at most half of the injection; here {share:.0%} of "
        "what the smaller half can send."
    ).format(share=band.share)
    if band.rails_are_apart:
        apart = _("Both are of hosts: between rails there is no path.")
        why = f"{why} {apart}"
    return Decision(
        "bandwidth",
        _("injection {injection:,.6g} Tb/s, bisection {bisection:,.6g} Tb/s").format(
            injection=injection, bisection=bisection
        ),
        why,
    )
