"""What every entry of the catalogue is called."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field

from gpufabric.catalog.groups import Frozen, Text

__all__ = ["Identity", "lookup_key"]

Name = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]+([.-][a-z0-9]+)*$",
        max_length=64,
        description="Slug that names the device everywhere: lower case, digits, '-' and '.'.",
    ),
]

_SEPARATORS = re.compile(r"[\s_-]+")


def lookup_key(name: str) -> str:
    """Return the form in which names are compared: case and separators do not count.

    Examples
    --------
    >>> lookup_key("DGX H100") == lookup_key("dgx-h100")
    True
    """
    return _SEPARATORS.sub("", name).lower()


class Identity(Frozen):
    """Names of a device."""

    format_version: Literal[1] = 1
    name: Name
    title: Text = Field(description="The name as its maker writes it.")
    aliases: tuple[Text, ...] = Field(default=(), description="Other names users know it by.")
    vendor: Text = Field(description="Its maker, or 'generic' for a class of devices.")
