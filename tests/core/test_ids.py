from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.core.errors import InputError
from gpufabric.core.ids import Guid, Lid, PKey


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Guid(0x946DAE0300123456), "0x946dae0300123456"),
        (Guid(1), "0x0000000000000001"),
        (Lid(0xBFFF), "0xbfff"),
        (Lid(1), "0x0001"),
        (PKey(0xFFFF), "0xffff"),
    ],
)
def test_it_prints_in_hex_with_all_digits(number: Guid | Lid | PKey, text: str) -> None:
    assert str(number) == text
    assert f"{number}" == text
    assert repr(number) == f"{type(number).__name__}({text})"


@given(st.integers(0, 2**64 - 1))
def test_a_guid_is_read_back_from_its_text(value: int) -> None:
    assert Guid.parse(str(Guid(value))) == value


@pytest.mark.parametrize("text", ["0002:c903:00a1:b2c3", "0x0002C90300A1B2C3", " 2c90300a1b2c3\n"])
def test_other_ways_to_write_a_guid(text: str) -> None:
    assert Guid.parse(text) == 0x0002C90300A1B2C3


@pytest.mark.parametrize("text", ["", "0x", "lid", "0x10000", "-1", "1.5", "1_0"])
def test_what_is_no_lid_is_said(text: str) -> None:
    with pytest.raises(InputError, match="is not a LID") as caught:
        Lid.parse(text, "ports.csv:3")
    assert str(caught.value).startswith("ports.csv:3: ")
    assert "up to 4 hex digits" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "is_unicast"), [(0, False), (1, True), (0xBFFF, True), (0xC000, False)]
)
def test_unicast_lids(value: int, is_unicast: bool) -> None:
    assert Lid(value).is_unicast is is_unicast


@given(st.integers(0, 0x7FFF), st.booleans())
def test_a_pkey_is_key_and_membership(key: int, is_full: bool) -> None:
    pkey = PKey.of(key, is_full_member=is_full)
    assert (pkey.key, pkey.is_full_member) == (key, is_full)


@pytest.mark.parametrize("value", [-1, 0x10000])
def test_a_number_that_does_not_fit_is_our_fault(value: int) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        PKey(value)


def test_a_key_has_fifteen_bits() -> None:
    with pytest.raises(ValueError, match="15 bits"):
        PKey.of(0x8000, is_full_member=False)
