"""Executes a schedule on symbols: who has added up whose data, piece by piece."""

from __future__ import annotations

from gpufabric.workload.schedule import Messages

Held = list[list[frozenset[int] | None]]


def execute(messages: Messages, start: Held) -> Held:
    """Return what every place holds in the end; `start[place][chunk]` is what it begins with.

    A symbol is the set of ranks whose data are in a sum. Adding the same rank twice is an error,
    and so is sending what a place does not have. A message sees what has arrived in the steps
    before its own, and must have named all of it that it needs.
    """
    held = [list(row) for row in start]
    order = sorted(range(len(messages)), key=lambda at: messages.step[at])
    at = 0
    while at < len(order):
        step = messages.step[order[at]]
        these = []
        while at < len(order) and messages.step[order[at]] == step:
            these.append(order[at])
            at += 1
        carried = []
        for row in these:
            what = held[messages.source[row]][messages.chunk[row]]
            assert what is not None, (row, "sends what it does not have")
            for other in messages.after[messages.first[row] : messages.first[row + 1]]:
                assert messages.step[other] < step
                assert messages.target[other] == messages.source[row]
            carried.append(what)
        for row, what in zip(these, carried, strict=True):
            target, chunk = messages.target[row], messages.chunk[row]
            there = held[target][chunk]
            if messages.adds[row] and there is not None:
                assert not there & what, (row, "adds a rank twice")
                held[target][chunk] = there | what
            else:
                held[target][chunk] = what
    return held
