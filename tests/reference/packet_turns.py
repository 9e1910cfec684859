"""Classes of a port take turns by weight: what each may still send is kept in a list of credits."""

from __future__ import annotations


def next_by_weight(able: list[int], last: int, credit: list[int], quanta: list[int]) -> int:
    """Class that goes next; `able` is not empty."""
    n = len(credit)
    if last in able and credit[last] > 0:
        return last
    while True:
        if last not in able:
            credit[last] = min(0, credit[last])
        last = (last + 1) % n
        if last in able:
            credit[last] += quanta[last]
            if credit[last] > 0:
                return last


def charge(credit: list[int], traffic: int, wire_bytes: int) -> None:
    """Take what a packet needs."""
    credit[traffic] -= wire_bytes
