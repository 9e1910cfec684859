"""``bom.csv``: the bill of materials of one candidate, one line a row."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from gpufabric.topology.bill import Bill, BillLine

__all__ = ["BOM_COLUMNS", "bom_csv", "bom_row"]

BOM_COLUMNS = (
    ("section", "Network, or the hosts."),
    ("category", "Kind of thing."),
    ("use", "Where it goes."),
    ("name", "Name in the catalogue."),
    ("title", "Name as its maker writes it."),
    ("length_m", "Length of a cable [m]; empty for what has none."),
    ("quantity", "Pieces today, without spares."),
    ("spares", "Pieces to keep in store."),
    ("later", "Pieces bought on top when the cluster grows."),
    ("low_usd", "Lowest price of one piece [USD]; empty where unknown."),
    ("mid_usd", "Middle price of one piece [USD]."),
    ("high_usd", "Highest price of one piece [USD]."),
    ("total_low_usd", "Today's pieces at the lowest price [USD]."),
    ("total_mid_usd", "Today's pieces at the middle price [USD]."),
    ("total_high_usd", "Today's pieces at the highest price [USD]."),
    ("typical_w", "Typical power of one piece [W]; empty where unknown or none."),
    ("max_w", "Largest power of one piece [W]."),
    ("included_in", "Whose price holds that of this line."),
    ("price_source", "Where the price comes from."),
    ("price_date", "When the source said so."),
    ("price_kind", "How sure the price is."),
    ("note", "What the quantity rests on."),
)
"""Name and meaning of each column."""


def bom_csv(bill: Bill) -> bytes:
    """Return a bill as CSV in UTF-8: a header, then one row a line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([name for name, _meaning in BOM_COLUMNS])
    writer.writerows(bom_row(line) for line in bill.lines)
    return text.getvalue().encode()


def bom_row(line: BillLine) -> Sequence[Any]:
    """Return the values of one line in the order of `BOM_COLUMNS`; unknown ones are empty."""
    price, power = line.price, line.power
    unit = ("", "", "") if price is None else (price.low_usd, price.mid_usd, price.high_usd)
    total = ["" if price is None else round(line.quantity * float(value), 2) for value in unit]
    watts = ("", "") if power is None else (_known(power.typical_w), _known(power.max_w))
    return (
        line.section,
        line.category,
        line.use,
        line.name,
        line.title,
        _known(line.length_m),
        line.quantity,
        line.spares,
        line.later,
        *unit,
        *total,
        *watts,
        line.included_in,
        "" if price is None else price.source,
        "" if price is None else price.date,
        "" if price is None else price.kind,
        line.note,
    )


def _known(value: float | None) -> float | str:
    return "" if value is None else value
