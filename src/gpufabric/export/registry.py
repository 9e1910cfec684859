"""What an export is: its name, its files, and what it may be asked to do differently."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.load import load_catalog
from gpufabric.model.fabric import Fabric

__all__ = ["Export", "ExportOptions"]


@dataclass(frozen=True)
class ExportOptions:
    """What an export may be asked to do differently.

    Parameters
    ----------
    catalog
        Where facts about the models are looked up.
    speed_cap
        InfiniBand generation above which no speed is written; empty for none.
    nos
        Network OS whose interface names are written; empty for that of each switch's vendor.
    stage
        0 for what is built today, 1 for the fabric after growth.
    """

    catalog: Catalog = field(default_factory=load_catalog)
    speed_cap: str = ""
    nos: str = ""
    stage: int = 0


@dataclass(frozen=True)
class Export:
    """One format that a fabric can be written in.

    Parameters
    ----------
    name
        What the user calls it.
    suffix
        End of the name of its main file.
    describe
        Gives one sentence on what it is for, in the user's language.
    function
        Turns a fabric into text by file name.
    """

    name: str
    suffix: str
    describe: Callable[[], str]
    function: Callable[[Fabric, ExportOptions], Mapping[str, str]]
