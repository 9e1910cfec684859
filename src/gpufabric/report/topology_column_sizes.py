"""How wide the parts of a column figure are, and which columns fit on the sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.report.figure_style import SMALL, STRONG
from gpufabric.report.topology_groups import Bank, Cell, Column, Grouped, Pod, is_alike

__all__ = [
    "BANK_PAD",
    "DENSITIES",
    "ELLIPSIS_WIDTH",
    "GUTTER",
    "TOP_SHARE",
    "Density",
    "Fitted",
    "TilePlan",
    "fitted",
    "tile_plan",
]

GUTTER = 152.0
MAX_WIDTH = 1790.0
MIN_CONTENT = 638.0
TOP_SHARE = 0.9
BANK_PAD = 7.0
MIN_BANK = 82.0
POD_PAD = 14.0
ELLIPSIS_WIDTH = 84.0
CELL_GAP = 2.0
BANK_GAP = 10.0
MAX_TOP_GAP = 16.0
TILE_ROWS = 8
MAX_TILES = 144
TILE_SIZES = (15.0, 12.0, 9.0, 7.0, 5.0)
MIN_KEPT = 3


@dataclass(frozen=True)
class Density:
    """How close the parts stand: width of a switch's cell, of a column, and between columns."""

    cell: float
    column: float
    gap: float
    counts_in_cells: bool

    def words(self, cell: Cell, bank: Bank) -> tuple[str, str]:
        """Return the first and second line written in a cell."""
        if len(cell.rows) == 1:
            return cell.label, ""
        if len(bank.cells) == 1:
            return cell.label or f"{len(cell.rows):,}", ""
        return cell.label, f"×{len(cell.rows):,}" if self.counts_in_cells else ""

    def cell_width(self, cell: Cell, bank: Bank) -> float:
        """Width of one cell [px]."""
        if len(cell.rows) == 1:
            return self.cell
        first, second = self.words(cell, bank)
        words = max(STRONG.width(first), SMALL.width(second)) + (8 if second else 3)
        return max(words, self.cell if len(bank.cells) > 1 else 84.0)

    def cells_width(self, bank: Bank) -> float:
        """Width of all cells of a bank without the gaps [px]."""
        return sum(self.cell_width(cell, bank) for cell in bank.cells)

    def gap_between(self, bank: Bank, room: float) -> float:
        """Gap between the cells of a bank that may spread over `room` pixels."""
        if len(bank.cells) < 2:
            return 0.0
        free = (room - self.cells_width(bank) - 2 * BANK_PAD) / (len(bank.cells) - 1)
        return min(MAX_TOP_GAP, max(CELL_GAP, free))

    def bank_width(self, bank: Bank, room: float = 0.0) -> float:
        """Width of a bank that may spread over `room` pixels."""
        gaps = self.gap_between(bank, room) * (len(bank.cells) - 1)
        return max(self.cells_width(bank) + gaps + 2 * BANK_PAD, MIN_BANK)

    def banks_width(self, banks: Sequence[Bank], room: float = 0.0) -> float:
        """Width of banks that stand side by side and may spread over `room` pixels."""
        share = (room - BANK_GAP * (len(banks) - 1)) / max(len(banks), 1)
        widths = [self.bank_width(bank, share) for bank in banks]
        return sum(widths) + BANK_GAP * max(len(banks) - 1, 0)

    def column_width(self, column: Column) -> float:
        """Width of a column."""
        return max(self.column, self.banks_width(column.banks) + 6)

    def pod_width(self, pod: Pod) -> float:
        """Width of a pod, its frame's padding included."""
        columns = sum(self.column_width(column) for column in pod.columns)
        columns += self.gap * (len(pod.columns) - 1)
        inner = max(columns, self.banks_width(pod.spines))
        return inner + (2 * POD_PAD if pod.spines else 0)


DENSITIES = (
    Density(22.0, 124.0, 20.0, counts_in_cells=True),
    Density(18.0, 116.0, 16.0, counts_in_cells=False),
    Density(12.0, 104.0, 14.0, counts_in_cells=False),
    Density(7.0, 90.0, 8.0, counts_in_cells=False),
)


@dataclass(frozen=True)
class Fitted:
    """A figure that fits the sheet.

    Parameters
    ----------
    figure
        What is drawn.
    density
        How close.
    hidden
        Columns or pods left out before the last one.
    note
        What to say of them.
    min_content
        Least width right of the captions [px].
    """

    figure: Grouped
    density: Density
    hidden: int = 0
    note: str = ""
    min_content: float = MIN_CONTENT

    @property
    def pods_width(self) -> float:
        """Width of all pods with the gap for those left out [px]."""
        pods = sum(self.density.pod_width(pod) for pod in self.figure.pods)
        pods += self.density.gap * (len(self.figure.pods) - 1)
        return pods + (ELLIPSIS_WIDTH + self.density.gap if self.hidden else 0)

    @property
    def wide_density(self) -> Density:
        """How close banks stand that have the whole width to themselves."""
        room = max(self.pods_width, self.min_content) * TOP_SHARE
        single = self.figure.pods[0].spines if len(self.figure.pods) == 1 else ()
        for density in DENSITIES:
            if max(density.banks_width(banks) for banks in (self.figure.top, single)) <= room:
                return density
        return DENSITIES[-1]

    @property
    def content_width(self) -> float:
        """Width right of the captions [px]."""
        top = self.wide_density.banks_width(self.figure.top)
        return max(self.pods_width, top, self.min_content)

    @property
    def fits(self) -> bool:
        """Whether it is not wider than the sheet may be."""
        return GUTTER + self.content_width <= MAX_WIDTH


def fitted(fabric: Fabric, figure: Grouped) -> Fitted:
    """Return the figure at the widest density that fits; else with parts in the middle left out."""
    for density in DENSITIES:
        trial = Fitted(figure, density)
        if trial.fits:
            return trial
    many_pods = len(figure.pods) > 1
    whole = figure.pods if many_pods else figure.pods[0].columns
    trial = Fitted(figure, DENSITIES[-1])
    kept = len(whole)
    while kept > MIN_KEPT and not trial.fits:
        kept -= 1
        shown = (*whole[: kept - 1], whole[-1])
        for density in DENSITIES[1:]:
            trial = Fitted(_with_parts(figure, shown), density, len(whole) - kept)
            if trial.fits:
                break
    return replace(trial, note=_left_out(fabric, whole, kept))


def _left_out(fabric: Fabric, whole: Sequence[Pod | Column], kept: int) -> str:
    parts = whole[kept - 1 : -1]
    if not parts:
        return ""
    columns = [
        column
        for part in (whole[0], *parts)
        for column in (part.columns if isinstance(part, Pod) else (part,))
    ]
    alike = is_alike(columns, fabric)
    one = whole[0].title
    if len(parts) == 1:
        words = _("{part} is not drawn: it is like {one}.")
        if not alike:
            words = _("{part} is not drawn: it is not like {one}.")
        return words.format(part=parts[0].title, one=one)
    words = _("{first} to {last} are not drawn: they are like {one}.")
    if not alike:
        words = _("{first} to {last} are not drawn: they are not all like {one}.")
    return words.format(first=parts[0].title, last=parts[-1].title, one=one)


def _with_parts(figure: Grouped, shown: Sequence[Pod | Column]) -> Grouped:
    pods: tuple[Pod, ...] = tuple(part for part in shown if isinstance(part, Pod))
    if not pods:
        columns = tuple(part for part in shown if isinstance(part, Column))
        pods = (replace(figure.pods[0], columns=columns),)
    return replace(figure, pods=pods)


@dataclass(frozen=True)
class TilePlan:
    """The tiles that stand for hosts or SUs: how many, in how many rows, how large [px]."""

    count: int
    per_row: int
    size: float

    @property
    def rows(self) -> int:
        """Rows of tiles."""
        return -(-self.count // self.per_row) if self.per_row else 0

    @property
    def height(self) -> float:
        """Height of the block that holds them [px]."""
        return 16 + self.rows * (self.size + 2) - 2 if self.per_row else 40.0


def tile_plan(fabric: Fabric, figure: Grouped, column: Column, width: float) -> TilePlan:
    """Return how the hosts (or SUs) of a column are drawn within `width` pixels."""
    count = column.n_sus
    if figure.by_su:
        places = int(fabric.attributes.get("su_hosts", 0) or 0)
        count = len(column.hosts)
        count = places if count <= places <= MAX_TILES else count
    if count <= MAX_TILES:
        for size in TILE_SIZES:
            per_row = max(1, int((width - 14) // (size + 2)))
            plan = TilePlan(count, per_row, size)
            if plan.rows <= TILE_ROWS:
                return plan
    return TilePlan(count, 0, 0.0)
