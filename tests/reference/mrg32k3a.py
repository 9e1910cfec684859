"""The random numbers of ns-3: MRG32k3a with streams far apart, seed 1, run 1.

Source: P. L'Ecuyer et al., Operations Research 50(6), 2002. ns-3 numbers the streams from 0 as its
random variables are made, and takes substream 1.
"""

from __future__ import annotations

M1, M2 = 4294967087, 4294944443
A1 = ((0, 1, 0), (0, 0, 1), (-810728, 1403580, 0))
A2 = ((0, 1, 0), (0, 0, 1), (-1370589, 0, 527612))
Matrix = tuple[tuple[int, ...], ...]


def product(a: Matrix, b: Matrix, m: int) -> Matrix:
    return tuple(
        tuple(sum(a[i][k] * b[k][j] for k in range(3)) % m for j in range(3)) for i in range(3)
    )


def doubled(a: Matrix, times: int, m: int) -> Matrix:
    """``a`` to the power ``2 ** times``."""
    for _ in range(times):
        a = product(a, a, m)
    return a


def applied(a: Matrix, state: list[int], m: int) -> list[int]:
    return [sum(a[i][k] * state[k] for k in range(3)) % m for i in range(3)]


def first_numbers(first_stream: int, n: int) -> tuple[float, ...]:
    """First number of `n` streams, one after the other: each draw has a variable of its own."""
    stream = doubled(A1, 127, M1), doubled(A2, 127, M2)
    states = (
        applied(doubled(A1, 76, M1), [1, 1, 1], M1),
        applied(doubled(A2, 76, M2), [1, 1, 1], M2),
    )
    numbers = []
    for at in range(first_stream + n):
        if at >= first_stream:
            low = applied(A1, states[0], M1)[2]
            high = applied(A2, states[1], M2)[2]
            numbers.append(((low - high) % M1 or M1) / (M1 + 1))
        states = applied(stream[0], states[0], M1), applied(stream[1], states[1], M2)
    return tuple(numbers)
