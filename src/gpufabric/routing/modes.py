"""The ways to route by name: one object that turns NIC ports into paths, whatever the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.routing.channels import Channels
from gpufabric.routing.entropy import Entropy, SeedScope, hash_seeds
from gpufabric.routing.paths import WalkedPaths, join_paths
from gpufabric.routing.shortest import ShortestPaths, shortest_paths
from gpufabric.routing.tables import ENGINES, ForwardingTables, forwarding_tables
from gpufabric.routing.walks import Flows, Walker
from gpufabric.topology.decision import Decision

__all__ = ["ROUTING_MODES", "Router", "mode_meanings"]

Longs = npt.NDArray[np.int64]

ROUTING_MODES = ("ecmp", "wcmp", "flowlet", "spray", "adaptive", "static", *ENGINES)


def mode_meanings() -> dict[str, str]:
    """Return what each mode does, in the language in use."""
    return {
        "ecmp": _("every switch picks one of the shortest paths by hash, per queue pair"),
        "wcmp": _("as ecmp, with odds as the capacity left behind each port"),
        "flowlet": _("every switch picks its least loaded port, per flowlet (DLB)"),
        "spray": _("every switch spreads packets equally over all shortest paths"),
        "adaptive": _("as spray, in proportion to the capacity left behind each port"),
        "static": _("the destination's place decides (D-mod-k), as source routing by rail"),
        "minhop": _("forwarding tables of OpenSM's minhop"),
        "updn": _("forwarding tables of OpenSM's updn"),
        "ftree": _("forwarding tables of OpenSM's ftree"),
    }


@dataclass(frozen=True, eq=False)
class Router:
    """Routes flows over the channels as they are.

    Parameters
    ----------
    channels
        The fabric in one state of health; ``after`` gives the router of another.
    mode
        One of ``ROUTING_MODES``.
    seed
        Draws hash seeds and queue pair numbers.
    queue_pairs
        Queue pairs, or flowlets, that a flow is divided into; not for ``spray``, ``adaptive`` and
        ``static``. Under forwarding tables each uses another LID of the destination.
    seed_scope
        Which switches hash alike; see ``entropy.hash_seeds``.
    lmc, roots
        For forwarding tables; see ``tables.forwarding_tables``.
    """

    channels: Channels
    mode: str = "ecmp"
    seed: int = 0
    queue_pairs: int = 1
    seed_scope: SeedScope = "switch"
    lmc: int = 0
    roots: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if self.mode not in ROUTING_MODES:
            what = _('"{name}" is no way to route.').format(name=self.mode)
            raise InputError(
                Fault("routing", what, ", ".join(ROUTING_MODES), nearest(self.mode, ROUTING_MODES))
            )

    @property
    def has_tables(self) -> bool:
        """Whether the mode is an engine that makes forwarding tables."""
        return self.mode in ENGINES

    @cached_property
    def shortest(self) -> ShortestPaths:
        """Shortest paths of the fabric as it is."""
        return shortest_paths(self.channels)

    @cached_property
    def tables(self) -> ForwardingTables:
        """Forwarding tables of the fabric as it is."""
        engine = next(name for name in ENGINES if name == self.mode)
        return forwarding_tables(self.channels, engine, lmc=self.lmc, roots=self.roots)

    @property
    def forwarding(self) -> ShortestPaths | ForwardingTables:
        """What ``deadlock.turns_of`` takes."""
        return self.tables if self.has_tables else self.shortest

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What was assumed about delays and chosen by the engine."""
        return self.channels.decisions + (self.tables.decisions if self.has_tables else ())

    def after(self, channels: Channels) -> Router:
        """Return the same router for another state of the fabric."""
        return replace(self, channels=channels)

    def walk(self, flows: Flows, *, is_joined: bool = True) -> WalkedPaths:
        """Return the path, or paths, of every flow; one without says why in its status.

        Parameters
        ----------
        flows
            The flows.
        is_joined
            One row a flow; otherwise one a queue pair, those of a flow one after the other. With
            ``spray`` and ``adaptive`` there is always one a flow.
        """
        if self.has_tables:
            return self._along_tables(flows, is_joined=is_joined)
        walker = Walker(
            self.shortest,
            hash_seeds(self.channels.fabric, self.seed, self.seed_scope),
            Entropy(self.seed, self.queue_pairs),
            is_joined,
        )
        if self.mode in ("spray", "adaptive"):
            return walker.spread(flows, is_weighted=self.mode == "adaptive")
        ways = {
            "ecmp": walker.by_hash,
            "wcmp": walker.by_weight,
            "flowlet": walker.by_load,
            "static": walker.striped,
        }
        return ways[self.mode](flows)

    def _along_tables(self, flows: Flows, *, is_joined: bool) -> WalkedPaths:
        each = self.queue_pairs
        if each == 1:
            return self.tables.walk(flows.src_port, flows.dst_port)
        offset = np.tile(np.arange(each) % self.tables.lids.per_port, len(flows))
        src = np.repeat(np.asarray(flows.src_port), each)
        dst = np.repeat(np.asarray(flows.dst_port), each)
        paths = self.tables.walk(src, dst, offset)
        return join_paths(paths, each) if is_joined else paths
