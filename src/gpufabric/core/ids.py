"""Identifiers of InfiniBand: GUID, LID and PKey, whole numbers that print in hex."""

from __future__ import annotations

import re
from typing import ClassVar, Self

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _

__all__ = ["Guid", "Lid", "PKey"]

_HEX = re.compile(r"(?:0[xX])?[0-9a-fA-F]+")


class _HexNumber(int):
    """A whole number of fixed width that prints in hex with all its digits."""

    digits: ClassVar[int]
    what: ClassVar[str]

    def __new__(cls, value: int) -> Self:
        """Return the identifier of that value.

        Raises
        ------
        ValueError
            If the value is negative or has too many bits.
        """
        if not 0 <= value < 16**cls.digits:
            raise ValueError(f"{value:#x} does not fit {cls.digits} hex digits")
        return super().__new__(cls, value)

    @classmethod
    def parse(cls, text: str, where: str = "") -> Self:
        """Return the identifier that `text` gives in hex, with or without ``0x``.

        Raises
        ------
        InputError
            If the text is no hex number of this width; `where` says where it stands.
        """
        bare = text.strip().replace(":", "")
        if _HEX.fullmatch(bare) and int(bare, 16) < 16**cls.digits:
            return cls(int(bare, 16))
        raise InputError(
            Fault(
                where,
                _('"{text}" is not a {what}.').format(text=text[:64], what=cls.what),
                _("up to {digits} hex digits").format(digits=cls.digits),
            )
        )

    def __str__(self) -> str:
        return f"0x{int(self):0{self.digits}x}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"


class Guid(_HexNumber):
    """64-bit identifier that a device keeps for life.

    Examples
    --------
    >>> print(Guid(0x0002C90300A1B2C3))
    0x0002c90300a1b2c3
    >>> Guid.parse("0002:c903:00a1:b2c3") == Guid(0x0002C90300A1B2C3)
    True
    """

    digits = 16
    what = "GUID"


class Lid(_HexNumber):
    """16-bit routing identifier that a subnet manager gives to a port.

    Examples
    --------
    >>> print(Lid(1), Lid(0xC000).is_unicast)
    0x0001 False
    """

    digits = 4
    what = "LID"

    FIRST_UNICAST: ClassVar[int] = 0x0001
    LAST_UNICAST: ClassVar[int] = 0xBFFF
    """InfiniBand architecture specification, volume 1, section 4.1.3."""

    @property
    def is_unicast(self) -> bool:
        """Whether it can belong to a single port."""
        return self.FIRST_UNICAST <= self <= self.LAST_UNICAST


class PKey(_HexNumber):
    """15-bit partition key with the full-member bit on top.

    Examples
    --------
    >>> print(PKey.of(0x7FFF, is_full_member=True))
    0xffff
    >>> PKey(0x0011).is_full_member
    False
    """

    digits = 4
    what = "PKey"

    FULL_MEMBER: ClassVar[int] = 0x8000

    @classmethod
    def of(cls, key: int, *, is_full_member: bool) -> Self:
        """Return the PKey of a 15-bit `key` and a kind of membership.

        Raises
        ------
        ValueError
            If the key has more than 15 bits.
        """
        if not 0 <= key < cls.FULL_MEMBER:
            raise ValueError(f"{key:#x} has more than 15 bits")
        return cls(key | cls.FULL_MEMBER if is_full_member else key)

    @property
    def key(self) -> int:
        """The 15 bits that name the partition."""
        return int(self) & ~self.FULL_MEMBER

    @property
    def is_full_member(self) -> bool:
        """Whether its holder may talk to limited members too."""
        return bool(int(self) & self.FULL_MEMBER)
