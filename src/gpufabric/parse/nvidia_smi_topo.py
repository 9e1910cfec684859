"""The matrix that ``nvidia-smi topo -m`` prints, as a table of relations.

Source: NVIDIA, nvidia-smi manual, section "topo"; the legend that the tool prints itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _

__all__ = ["RELATIONS", "SmiMatrix", "n_nvlinks", "parse_nvidia_smi_topo"]

RELATIONS = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""From near to far: one PCIe bridge, several, the processor's host bridge, between host bridges
of one NUMA domain, between NUMA domains. ``NV#`` is # NVLinks side by side."""

_OLD_NAMES = {"SOC": "SYS", "PSB": "PIX", "LOC": "X"}
_NVLINK = re.compile(r"NV([0-9]{1,3})")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_DEVICE = re.compile(r"(?:GPU|NIC)[0-9]+|[a-z][A-Za-z0-9_:.-]*[0-9]")
_AFFINITY = re.compile(r"[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*")


@dataclass(frozen=True)
class SmiMatrix:
    """What one matrix says.

    Parameters
    ----------
    name
        How messages call the text.
    devices
        Of the header, in order: GPUs, then NICs.
    relations
        From a row's device and a column's to ``X``, ``NV18``, ``PIX`` ….
    cpu_affinity, numa
        Of each row that states them.
    lines
        Of each row, from 1.
    nic_names
        From ``NIC0`` to the device's name, where the text has the legend.
    warnings
        What is missing or contradicts itself.
    """

    name: str
    devices: tuple[str, ...]
    relations: dict[tuple[str, str], str]
    cpu_affinity: dict[str, str]
    numa: dict[str, int]
    lines: dict[str, int]
    nic_names: dict[str, str]
    warnings: tuple[Fault, ...]

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs, in order."""
        return tuple(name for name in self.devices if name.startswith("GPU"))

    @property
    def nics(self) -> tuple[str, ...]:
        """The NICs, in order."""
        return tuple(name for name in self.devices if not name.startswith("GPU"))

    def relation(self, first: str, second: str) -> str | None:
        """How two devices are joined, from either row; None where neither row is there."""
        found = self.relations.get((first, second))
        return self.relations.get((second, first)) if found is None else found


def n_nvlinks(relation: str | None) -> int:
    """Number of NVLinks that a relation states; 0 where it is none.

    Examples
    --------
    >>> n_nvlinks("NV18"), n_nvlinks("PIX")
    (18, 0)
    """
    match = _NVLINK.fullmatch(relation or "")
    return int(match[1]) if match else 0


def parse_nvidia_smi_topo(text: str, name: str = "nvidia-smi topo -m") -> SmiMatrix:
    r"""Return the matrix of `text`; what stands before and after it is passed over.

    Raises
    ------
    InputError
        With line and reason, if there is no header, a row has too few cells, a cell is no
        relation, or a device has two rows.

    Examples
    --------
    >>> found = parse_nvidia_smi_topo("     GPU0 NIC0 CPU Affinity\nGPU0  X   PIX  0-31\n")
    >>> found.relation("NIC0", "GPU0"), found.cpu_affinity
    ('PIX', {'GPU0': '0-31'})
    """
    rows = [
        (number, _COLOUR.sub("", line)) for number, line in enumerate(text.splitlines(), start=1)
    ]
    at = next((at for at, (_number, line) in enumerate(rows) if _header(line)), None)
    if at is None:
        what = _("there is no line that names GPUs as columns.")
        raise InputError(Fault(name, what, "GPU0 GPU1 … CPU Affinity"))
    devices = _header(rows[at][1])
    table = _Table(name, devices)
    for number, line in rows[at + 1 :]:
        table.read(number, line)
    if not table.lines:
        what = _("the header has no row below it.")
        table.faults.append(Fault(f"{name}:{rows[at][0]}", what))
    if table.faults:
        raise InputError(table.faults)
    return SmiMatrix(
        name,
        devices,
        table.relations,
        table.cpu_affinity,
        table.numa,
        table.lines,
        dict(_legend(rows[at + 1 :])),
        tuple(_doubts(name, devices, table)),
    )


def _header(line: str) -> tuple[str, ...]:
    """The devices that a header names; empty where the line is none."""
    words = line.split()
    if "CPU" in words:
        words = words[: words.index("CPU")]
    is_header = bool(words) and words[0].startswith("GPU") and _DEVICE.fullmatch(words[0])
    if not is_header or not all(_DEVICE.fullmatch(word) for word in words):
        return ()
    return tuple(words)


class _Table:
    """Rows read so far, and what is wrong with them."""

    def __init__(self, name: str, devices: tuple[str, ...]) -> None:
        self.name = name
        self.devices = devices
        self.relations: dict[tuple[str, str], str] = {}
        self.cpu_affinity: dict[str, str] = {}
        self.numa: dict[str, int] = {}
        self.lines: dict[str, int] = {}
        self.faults: list[Fault] = []

    def read(self, number: int, line: str) -> None:
        words = line.split()
        if len(words) < 2 or words[0] not in self.devices or words[1] in {":", "="}:
            self._unknown(number, words)
            return
        row, cells = words[0], words[1:]
        where = f"{self.name}:{number}"
        if row in self.lines:
            what = _("{row} has two rows, first in line {line}.").format(
                row=row, line=self.lines[row]
            )
            self.faults.append(Fault(where, what))
            return
        self.lines[row] = number
        if len(cells) < len(self.devices):
            what = _("{row} has {n} cells.").format(row=row, n=len(cells))
            expected = _("{n}, one for each device").format(n=len(self.devices))
            self.faults.append(Fault(where, what, expected, _("Take the output again, whole.")))
            return
        for column, cell in zip(self.devices, cells, strict=False):
            relation = _OLD_NAMES.get(cell, cell)
            if relation != "X" and relation not in RELATIONS and not _NVLINK.fullmatch(relation):
                what = _('{row}, {column}: "{cell}" is no relation.').format(
                    row=row, column=column, cell=cell[:16]
                )
                known = ("X", *RELATIONS, "NV#")
                self.faults.append(Fault(where, what, ", ".join(known), nearest(cell, known)))
            self.relations[row, column] = relation
        self._read_affinity(row, cells[len(self.devices) :])

    def _read_affinity(self, row: str, rest: list[str]) -> None:
        if rest and _AFFINITY.fullmatch(rest[0]):
            self.cpu_affinity[row] = rest[0]
            if len(rest) > 1 and re.fullmatch(r"[0-9]{1,4}", rest[1]):
                self.numa[row] = int(rest[1])

    def _unknown(self, number: int, words: list[str]) -> None:
        """A row of a device that the header lacks is damage; other text is the legend."""
        is_row = len(words) > 2 and re.fullmatch(r"GPU[0-9]+", words[0]) and words[1] not in ":="
        if is_row and any(word == "X" for word in words):
            what = _("{row} is not in the header.").format(row=words[0])
            self.faults.append(Fault(f"{self.name}:{number}", what, ", ".join(self.devices)))


def _legend(rows: list[tuple[int, str]]) -> Iterator[tuple[str, str]]:
    for _number, line in rows:
        match = re.fullmatch(r"\s*(NIC[0-9]+):\s*(\S+)\s*", line)
        if match:
            yield match[1], match[2]


def _doubts(name: str, devices: tuple[str, ...], table: _Table) -> Iterator[Fault]:
    missing = [device for device in devices if device not in table.lines]
    if missing:
        what = _("rows are missing: {names}.").format(names=", ".join(missing))
        yield Fault(name, what, "", _("Take the output again, whole."))
    for (row, column), relation in table.relations.items():
        other = table.relations.get((column, row), relation)
        where = f"{name}:{table.lines[row]}"
        if row == column and relation != "X":
            what = _("{row} and itself: {relation}.").format(row=row, relation=relation)
            yield Fault(where, what, "X")
        elif row < column and other != relation:
            what = _("{row} to {column} is {relation}, back it is {other}.").format(
                row=row, column=column, relation=relation, other=other
            )
            yield Fault(where, what, _("the same both ways"))
