"""How long light takes in a cable."""

from __future__ import annotations

__all__ = ["FIBRE_NS_PER_M", "FIBRE_SOURCE"]

FIBRE_NS_PER_M = 5.0
FIBRE_SOURCE = "https://pingdo.net/tools/roce-vs-infiniband (2025); copper: at most 4.5 ns/m"
