"""What fails in a run: links and switches by name or at random, from when until when."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric

__all__ = ["Failure", "down_links", "find_failures", "instants"]

Longs = NDArray[np.int64]

MOST_S = 1e9
STREAM = 2
"""Number of the random stream that failures are drawn from."""

_FORM = re.compile(r"(?P<kind>[a-z]+):(?P<name>[^@]+)(?:@(?P<when>[^@]*))?")
_END = re.compile(r"\s*(?P<device>[^\[\]]+?)\s*(?:\[(?P<port>[^\[\]]+)\])?\s*")
KINDS = ("link", "switch", "random")


@dataclass(frozen=True, eq=False)
class Failure:
    """Links that fail together.

    Parameters
    ----------
    words
        As it was asked for.
    links
        int64[n]: rows of ``links``.
    from_s, until_s
        When they fail, and when they are repaired; infinite: never [s].
    """

    words: str
    links: Longs
    from_s: float = 0.0
    until_s: float = np.inf


def find_failures(fabric: Fabric, asked: Sequence[str], seed: int = 0) -> tuple[Failure, ...]:
    """Return the failures asked for.

    Parameters
    ----------
    fabric
        The fabric.
    asked
        Each ``link:NAME``, ``switch:NAME`` or ``random:SHARE``, with ``@FROM`` or
        ``@FROM..UNTIL`` in seconds; without, from the beginning to the end. A link's name is one
        of its ports, ``DEVICE[PORT]``, or ``DEVICE>DEVICE`` for all links between two devices.
    seed
        Draws the random ones. The links of a smaller share are among those of a larger one.

    Raises
    ------
    InputError
        If a name or number is wrong; all faults are told.
    """
    found: list[Failure] = []
    faults: list[Fault] = []
    for words in asked:
        try:
            found.append(_failure(fabric, words, seed))
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(faults)
    return tuple(found)


def instants(failures: Sequence[Failure]) -> list[float]:
    """Return the times at which the fabric changes, 0 included, in order [s]."""
    times = {0.0} | {failure.from_s for failure in failures}
    times |= {failure.until_s for failure in failures if failure.until_s < np.inf}
    return sorted(times)


def down_links(failures: Sequence[Failure], time_s: float) -> Longs:
    """Return the rows of the links that are down from `time_s` on."""
    down = [f.links for f in failures if f.from_s <= time_s < f.until_s]
    return np.unique(np.concatenate(down)) if down else np.empty(0, np.int64)


def _failure(fabric: Fabric, words: str, seed: int) -> Failure:
    match = _FORM.fullmatch(words.strip())
    if match is None or match["kind"] not in KINDS:
        kind = words.split(":", maxsplit=1)[0]
        raise _fault(
            words,
            _('"{words}" is no failure.').format(words=words[:64]),
            _("link:NAME, switch:NAME or random:SHARE, with @FROM..UNTIL in seconds"),
            "" if kind in KINDS else nearest(kind, KINDS),
        )
    name = match["name"].strip()
    from_s, until_s = _times(words, match["when"])
    if match["kind"] == "switch":
        links = _links_of(fabric, _switch(fabric, words, name))
    elif match["kind"] == "random":
        links = _random_links(fabric, words, name, seed)
    else:
        links = _named_links(fabric, words, name)
    return Failure(words, links, from_s, until_s)


def _fault(words: str, what: str, expected: str = "", remedy: str = "") -> InputError:
    return InputError(Fault(f"--fail {words[:64]}", what, expected, remedy))


def _times(words: str, when: str | None) -> tuple[float, float]:
    if when is None:
        return 0.0, np.inf
    start, dots, end = when.partition("..")
    try:
        from_s, until_s = float(start), float(end) if dots else np.inf
    except ValueError:
        from_s = until_s = np.nan
    if not (0 <= from_s < until_s and from_s <= MOST_S):
        raise _fault(
            words,
            _('"{when}" is no time.').format(when=when[:64]),
            _("@FROM or @FROM..UNTIL, seconds, FROM before UNTIL"),
        )
    return from_s, until_s


def _switch(fabric: Fabric, words: str, name: str) -> int:
    names = fabric.switches.name
    found = np.flatnonzero(names == name)
    if not len(found):
        what = _('there is no switch "{name}".').format(name=name[:64])
        raise _fault(words, what, "", nearest(name, names.tolist()))
    return int(found[0])


def _vertex(fabric: Fabric, words: str, name: str) -> int:
    """Return the vertex of a host or switch."""
    for first, names in ((0, fabric.hosts.name), (len(fabric.hosts), fabric.switches.name)):
        found = np.flatnonzero(names == name)
        if len(found):
            return first + int(found[0])
    known = [*fabric.switches.name.tolist(), *fabric.hosts.name.tolist()]
    what = _('there is no host or switch "{name}".').format(name=name[:64])
    raise _fault(words, what, "", nearest(name, known))


def _links_of(fabric: Fabric, switch: int) -> Longs:
    adjacency = fabric.adjacency
    vertex = switch + len(fabric.hosts)
    first, end = adjacency.first[vertex], adjacency.first[vertex + 1]
    return adjacency.link[first:end].astype(np.int64)


def _random_links(fabric: Fabric, words: str, share: str, seed: int) -> Longs:
    try:
        part = float(share.removesuffix("%")) / (100.0 if share.endswith("%") else 1.0)
    except ValueError:
        part = np.nan
    if not 0 <= part <= 1:
        what = _('"{share}" is no share.').format(share=share[:64])
        raise _fault(words, what, _("0 to 1, or 0% to 100%"))
    between = np.flatnonzero((fabric.links.tier > 1) & (fabric.links.stage == 0))
    if not len(between):
        raise _fault(words, _("the fabric has no links between switches."))
    random = np.random.default_rng(np.random.SeedSequence([seed, STREAM]))
    return np.sort(random.permutation(between)[: round(part * len(between))])


def _named_links(fabric: Fabric, words: str, name: str) -> Longs:
    ends = [_END.fullmatch(end) for end in name.split(">")]
    known = [end for end in ends if end is not None]
    if len(known) != len(ends) or len(known) > 2:
        what = _('"{name}" names no link.').format(name=name[:64])
        raise _fault(words, what, _("DEVICE[PORT], or DEVICE>DEVICE"))
    vertices = [_vertex(fabric, words, end["device"]) for end in known]
    if len(known) == 1 and known[0]["port"] is None:
        what = _("a link of {device} needs its port.").format(device=known[0]["device"])
        raise _fault(
            words, what, _("DEVICE[PORT], or DEVICE>DEVICE"), _("For all of them: switch:NAME.")
        )
    links = _links_at(fabric, words, vertices[0], known[0]["port"])
    if len(known) == 2:
        links = np.intersect1d(links, _links_at(fabric, words, vertices[1], known[1]["port"]))
        if not len(links):
            what = _("there is no link between {a} and {b}.").format(
                a=known[0]["device"], b=known[1]["device"]
            )
            raise _fault(words, what)
    return links


def _links_at(fabric: Fabric, words: str, vertex: int, port: str | None) -> Longs:
    """Return the links of a device, or that of one of its ports."""
    adjacency = fabric.adjacency
    links = adjacency.link[adjacency.first[vertex] : adjacency.first[vertex + 1]].astype(np.int64)
    if port is None:
        return links
    a, b = fabric.links.port_a[links], fabric.links.port_b[links]
    mine = np.where(fabric.port_vertex[a] == vertex, a, b)
    names = [fabric.port_name(int(row)) for row in mine]
    found = links[[name == port.strip() for name in names]]
    if not len(found):
        raise _fault(
            words,
            _("{device} has no link on port {port}.").format(
                device=fabric.vertex_name(vertex), port=port[:64]
            ),
            "",
            nearest(port, names),
        )
    return found
