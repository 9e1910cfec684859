"""How flows are routed: what a user can choose."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.routing.channels import Channels
from gpufabric.routing.entropy import SeedScope
from gpufabric.routing.modes import ROUTING_MODES, Router
from gpufabric.routing.tables import ENGINES
from gpufabric.topology.decision import Decision

__all__ = ["SEED_SCOPES", "Routing", "check_routing"]

SEED_SCOPES: tuple[SeedScope, ...] = ("switch", "tier", "fabric")
MOST_QUEUE_PAIRS = 256
MOST_LMC = 3
HASHED = ("ecmp", "wcmp", "flowlet")
"""Modes in which switches hash."""
WITHOUT_PAIRS = ("spray", "adaptive", "static")
"""Modes in which queue pairs make no difference."""

STREAM = 3
"""Number of the random stream that hash seeds and queue pair numbers are drawn from."""


@dataclass(frozen=True)
class Routing:
    """How flows find their paths.

    Parameters
    ----------
    mode
        One of ``ROUTING_MODES``; empty: adaptive on InfiniBand, ECMP on RoCE.
    queue_pairs
        Queue pairs of a flow on each NIC port, each on a path of its own with an equal part.
    hash_seeds
        Which switches share a hash seed: each its own, one a ``tier``, one for the ``fabric``.
    lmc
        InfiniBand LMC: a NIC port has ``2 ** lmc`` LIDs, over which queue pairs are dealt.
    has_one_pair
        Packet engine: flows between the same two NIC ports have their queue pairs together.
    """

    mode: str = ""
    queue_pairs: int = 1
    hash_seeds: SeedScope = "switch"
    lmc: int = 0
    has_one_pair: bool = False

    def resolved(self, protocol: str) -> Routing:
        """Return the same with a mode."""
        if self.mode:
            return self
        return replace(self, mode="adaptive" if protocol == "infiniband" else "ecmp")

    def unused(self) -> list[Decision]:
        """Return what was asked for and means nothing to the mode."""
        why = _("Not used: it means nothing to {mode}.").format(mode=self.mode)
        asked = (
            ("--qps", str(self.queue_pairs), self.queue_pairs != 1, self.mode in WITHOUT_PAIRS),
            ("--lmc", str(self.lmc), self.lmc != 0, self.mode not in ENGINES),
            ("--hash-seeds", self.hash_seeds, self.hash_seeds != "switch", self.mode not in HASHED),
        )
        return [
            Decision(option, choice, why, is_warning=True)
            for option, choice, is_asked, is_unused in asked
            if is_asked and is_unused
        ]

    def strange(self, protocol: str) -> list[Decision]:
        """Return a warning where the switches of this protocol know no such mode."""
        if self.mode not in ENGINES or protocol == "infiniband":
            return []
        why = _("An engine of OpenSM: Ethernet switches do not route so.")
        return [Decision("--routing", self.mode, why, is_warning=True)]

    def router(self, channels: Channels, seed: int) -> Router:
        """Return what finds paths over the channels; a run's seed draws the router's."""
        drawn = np.random.SeedSequence([seed, STREAM]).generate_state(1, np.uint32)
        return Router(
            channels, self.mode, int(drawn[0]), self.queue_pairs, self.hash_seeds, self.lmc
        )


def check_routing(routing: Routing) -> None:
    """Raise if a choice is wrong.

    Raises
    ------
    InputError
        With all faults.
    """
    faults = []
    if routing.mode not in {"", *ROUTING_MODES}:
        what = _('"{name}" is unknown.').format(name=routing.mode[:64])
        remedy = nearest(routing.mode, ROUTING_MODES)
        faults.append(Fault("--routing", what, ", ".join(ROUTING_MODES), remedy))
    if not 1 <= routing.queue_pairs <= MOST_QUEUE_PAIRS:
        what = _("{n} queue pairs a flow.").format(n=routing.queue_pairs)
        faults.append(Fault("--qps", what, _("1 to {most}").format(most=MOST_QUEUE_PAIRS)))
    if routing.hash_seeds not in SEED_SCOPES:
        what = _('"{name}" is unknown.').format(name=routing.hash_seeds[:64])
        remedy = nearest(routing.hash_seeds, SEED_SCOPES)
        faults.append(Fault("--hash-seeds", what, ", ".join(SEED_SCOPES), remedy))
    if not 0 <= routing.lmc <= MOST_LMC:
        what = _("the value is {value}.").format(value=routing.lmc)
        faults.append(Fault("--lmc", what, _("0 to {most}").format(most=MOST_LMC)))
    if faults:
        raise InputError(faults)
