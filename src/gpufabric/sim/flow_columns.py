"""The columns of flow files, link files and results: each is defined here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

__all__ = [
    "ALIASES",
    "FLOW_COLUMNS",
    "FLOW_RESULTS",
    "LINK_COLUMNS",
    "LINK_RESULTS",
    "PACKET_FLOW_RESULTS",
    "PACKET_LINK_RESULTS",
    "PACKET_SERIES_RESULTS",
    "SERIES_RESULTS",
    "FileColumn",
]


class FileColumn(NamedTuple):
    """One column of a CSV or Parquet file.

    Parameters
    ----------
    name
        Heading; its suffix is the unit.
    kind
        ``text``, ``number``, ``numbers`` or ``names`` (several, separated by blanks).
    meaning
        One sentence for the documentation.
    is_required
        True if a file of input without it is of no use.
    """

    name: str
    kind: str
    meaning: str
    is_required: bool = False


FLOW_COLUMNS = (
    FileColumn("flow_id", "text", "Name or number of the flow; unique.", is_required=True),
    FileColumn(
        "src",
        "text",
        "GPU that sends: its number, from 0 in order of host, or `HOST:GPU`. "
        "With `--links` any name.",
        is_required=True,
    ),
    FileColumn("dst", "text", "GPU that receives, likewise.", is_required=True),
    FileColumn("size_bytes", "number", "What it sends [byte].", is_required=True),
    FileColumn("start_s", "number", "Earliest start [s]; 0 where empty."),
    FileColumn(
        "path",
        "names",
        "Channels in order, separated by blanks: `link_id` of the file given with `--links`, "
        "else `channel` of the fabric. Empty: the flow is routed.",
    ),
    FileColumn(
        "weight", "number", "Share of a full channel relative to other flows; 1 where empty."
    ),
    FileColumn("cap_gbps", "number", "Largest rate [Gb/s]; none where empty."),
    FileColumn("after", "names", "`flow_id` of flows that must end first, separated by blanks."),
)

LINK_COLUMNS = (
    FileColumn(
        "link_id", "text", "Name or number of one directed channel; unique.", is_required=True
    ),
    FileColumn("name", "text", "What reports call it; `link_id` where empty."),
    FileColumn("gbps", "number", "Capacity [Gb/s], or instead:"),
    FileColumn("bandwidth_Bps", "number", "Capacity [byte/s]."),
    FileColumn("latency_s", "number", "Delay [s]; 0 where empty."),
)

ALIASES: Mapping[str, str] = MappingProxyType({"path_link_ids": "path"})
"""Headings of other tools, and ours for them."""

FLOW_RESULTS = (
    FileColumn("flow_id", "text", "As in the input; from 0 for a pattern."),
    FileColumn("src", "text", "GPU that sends, `HOST:GPU`."),
    FileColumn("dst", "text", "GPU that receives."),
    FileColumn("size_bytes", "number", "What it had to send [byte]."),
    FileColumn("start_s", "number", "Earliest start [s]."),
    FileColumn(
        "status",
        "text",
        "`finished`; `unreachable`: no path; `stalled`: its path stayed broken; `waiting`: a flow "
        "that it waits for did not end; `running`, `pending`: cut off by `--until`; `failed`: its "
        "queue pair used up its retries.",
    ),
    FileColumn("finish_s", "number", "Last byte [s]; empty unless finished."),
    FileColumn(
        "fct_us",
        "number",
        "Flow completion time: last byte − start, or − the end of the last flow it waited for "
        "[µs].",
    ),
    FileColumn("ideal_us", "number", "The same for the flow alone in the fabric [µs]."),
    FileColumn("slowdown", "number", "`fct_us / ideal_us`."),
    FileColumn("mean_gbps", "number", "Mean rate, `size_bytes / fct_us` [Gb/s]."),
    FileColumn("hops", "number", "Switches on its path, the most where it has several."),
)

LINK_RESULTS = (
    FileColumn("channel", "number", "Number of the directed channel, for `path`."),
    FileColumn("name", "text", "The two ports, or what it is inside the host."),
    FileColumn("tier", "text", "Tier and direction, such as `leaf_spine up`."),
    FileColumn("gbps", "number", "Capacity at the start; 0: failed [Gb/s]."),
    FileColumn("carried_bytes", "number", "What it carried [byte]."),
    FileColumn("utilisation", "number", "Carried / (capacity × completion time) [1]."),
)

PACKET_FLOW_RESULTS = (
    FileColumn("queue_pairs", "number", "Queue pairs that carried it; 0 inside a host."),
    FileColumn("repeats", "number", "Packets sent again."),
    FileColumn("timeouts", "number", "Retry time-outs."),
    FileColumn("cnps", "number", "Congestion notifications that the sender took in."),
    FileColumn("out_of_order", "number", "Packets that came before one that was missing."),
)
"""Columns that ``--engine packet`` adds to ``FLOW_RESULTS``."""

PACKET_LINK_RESULTS = (
    FileColumn("packets", "number", "Packets sent, PFC frames too."),
    FileColumn("marked", "number", "Packets marked by ECN."),
    FileColumn("pauses", "number", "Pauses that stopped its sending port."),
    FileColumn("paused_us", "number", "Time that they lasted, of all classes together [µs]."),
    FileColumn("dropped", "number", "Packets that came by it and found no room."),
    FileColumn("most_queued_bytes", "number", "Deepest queue of a class [byte]."),
)
"""Columns that ``--engine packet`` adds to ``LINK_RESULTS``."""

SERIES_RESULTS = (
    FileColumn("time_s", "number", "Begin of the time bin [s]."),
    FileColumn("tier", "text", "Tier and direction."),
    FileColumn("mean", "number", "Mean utilisation of its channels in the bin [1]."),
    FileColumn("most", "number", "Utilisation of the busiest of them in the bin [1]."),
)

PACKET_SERIES_RESULTS = (
    FileColumn("deepest_bytes", "number", "Deepest queue of a class at its channels [byte]."),
    FileColumn("paused", "number", "Share of the bin that its most paused class stood still [1]."),
)
"""Columns that ``--engine packet`` adds to ``SERIES_RESULTS``."""
