"""The names that the catalogue knows, as far as a spec must be held against them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

__all__ = ["KnownNames", "KnownSource"]

_SEPARATORS = re.compile(r"[\s_-]+")


@dataclass(frozen=True)
class KnownNames:
    """Switches, hosts and models by name, passed in so that the spec needs no catalogue.

    Parameters
    ----------
    switches
        Lower-case name or alias of each switch: its fabric (``infiniband`` or ``roce``) and
        generation (``hdr``, ``ndr``, ``xdr``; anything else for Ethernet, or None).
    hosts
        Lower-case name or alias of each host: its GPUs.
    models
        Lower-case name or alias of each language model; none is checked where it is empty.
    quantities
        Keys of the cost model.
    """

    switches: Mapping[str, tuple[str, str | None]]
    hosts: Mapping[str, int]
    models: frozenset[str] = field(default=frozenset())
    quantities: frozenset[str] = frozenset()

    def switch(self, name: str) -> tuple[str, str | None] | None:
        """Return fabric and generation of the switch `name`, or None where it is unknown."""
        return self._switches.get(_key(name))

    def host_gpus(self, name: str) -> int | None:
        """Return the GPUs of the host `name`, or None where it is unknown.

        Examples
        --------
        >>> KnownNames(switches={}, hosts={"dgx-h100": 8}).host_gpus("DGX H100")
        8
        """
        return self._hosts.get(_key(name))

    def has_model(self, name: str) -> bool:
        """Whether the language model `name` is known.

        Examples
        --------
        >>> known = KnownNames(switches={}, hosts={}, models=frozenset({"llama3-70b"}))
        >>> known.has_model("Llama3 70B"), known.has_model("llama3-71b")
        (True, False)
        """
        return not self.models or _key(name) in {_key(each) for each in self.models}

    @cached_property
    def _switches(self) -> dict[str, tuple[str, str | None]]:
        return {_key(name): found for name, found in self.switches.items()}

    @cached_property
    def _hosts(self) -> dict[str, int]:
        return {_key(name): gpus for name, gpus in self.hosts.items()}


KnownSource = KnownNames | Callable[[Path | None], KnownNames]
"""The known names, or what gives them for the folder that a spec's ``catalog`` names."""


def _key(name: str) -> str:
    """Return the form in which names are compared: case and separators do not count."""
    return _SEPARATORS.sub("", name).lower()
