"""Results of a run of traffic as files: flows, channels, time series, and the summary as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from gpufabric.core.files import write_text, writing
from gpufabric.sim.flow_columns import (
    FLOW_RESULTS,
    LINK_RESULTS,
    PACKET_FLOW_RESULTS,
    PACKET_LINK_RESULTS,
    PACKET_SERIES_RESULTS,
    SERIES_RESULTS,
    FileColumn,
)
from gpufabric.sim.packet_series import queues_of_tiers
from gpufabric.sim.traffic_result import STATUS_WORDS, TrafficResult

__all__ = ["FORMATS", "TableFormat", "write_table", "write_traffic"]

TableFormat = Literal["csv", "parquet"]
FORMATS: tuple[TableFormat, ...] = ("csv", "parquet")


def write_traffic(result: TrafficResult, folder: Path, form: TableFormat = "csv") -> list[Path]:
    """Write ``result.json`` and the tables of flows, channels and time; return the paths."""
    text = json.dumps(result.summary(), indent=2, ensure_ascii=False, allow_nan=False)
    paths = [
        write_text(folder / "result.json", text + "\n"),
        write_table(folder / f"flows.{form}", *_flow_table(result)),
        write_table(folder / f"channels.{form}", *_channel_table(result)),
    ]
    if result.series is not None:
        paths.append(write_table(folder / f"series.{form}", *_series_table(result)))
    return paths


def _flow_table(result: TrafficResult) -> tuple[tuple[FileColumn, ...], dict[str, Any]]:
    if result.packets is None:
        return FLOW_RESULTS, _flows(result)
    more = result.packets.by_flow(result.traffic.n_flows)
    return (*FLOW_RESULTS, *PACKET_FLOW_RESULTS), {**_flows(result), **more}


def _channel_table(result: TrafficResult) -> tuple[tuple[FileColumn, ...], dict[str, Any]]:
    if result.packets is None:
        return LINK_RESULTS, _channels(result)
    more = result.packets.by_channel(len(result.channels))
    return (*LINK_RESULTS, *PACKET_LINK_RESULTS), {**_channels(result), **more}


def _series_table(result: TrafficResult) -> tuple[tuple[FileColumn, ...], dict[str, Any]]:
    if result.packets is None or result.packets.result.series is None:
        return SERIES_RESULTS, _series(result)
    deepest_bytes, paused = queues_of_tiers(result.packets.result.series, result.channels)
    used = _used_tiers(result)
    more = {"deepest_bytes": deepest_bytes[:, used].ravel(), "paused": paused[:, used].ravel()}
    return (*SERIES_RESULTS, *PACKET_SERIES_RESULTS), {**_series(result), **more}


def write_table(path: Path, columns: tuple[FileColumn, ...], values: Mapping[str, Any]) -> Path:
    """Write a table with those columns, as CSV or Parquet by the file's suffix; return `path`."""
    arrays = [_array(values[column.name]) for column in columns]
    table = pa.table(arrays, names=[column.name for column in columns])
    with writing(path) as file:
        if path.suffix == ".parquet":
            pyarrow.parquet.write_table(table, file, compression="zstd")
        else:
            style = "needed" if any(_needs_quotes(array) for array in arrays) else "none"
            options = pyarrow.csv.WriteOptions(quoting_style=style)
            pyarrow.csv.write_csv(table, file, options)
    return path


def _array(values: Any) -> pa.Array:
    """Return a column; nan is null."""
    array = np.asarray(values)
    if array.dtype.kind == "f":
        return pa.array(array, mask=np.isnan(array))
    return pa.array(array)


def _needs_quotes(array: pa.Array) -> bool:
    if not pa.types.is_string(array.type):
        return False
    return any(sign in text for text in array.to_pylist() for sign in ',"\r\n')


def _flows(result: TrafficResult) -> dict[str, Any]:
    traffic = result.traffic
    words = np.array([STATUS_WORDS[code] for code in range(len(STATUS_WORDS))])
    number = np.arange(traffic.n_flows).astype(np.str_)
    return {
        "flow_id": number if traffic.flow_id is None else traffic.flow_id,
        "src": result.names[traffic.src],
        "dst": result.names[traffic.dst],
        "size_bytes": traffic.size_bytes,
        "start_s": traffic.start_s,
        "status": words[result.status],
        "finish_s": np.where(result.is_finished, result.finish_s, np.nan),
        "fct_us": result.fct_s * 1e6,
        "ideal_us": result.ideal_s * 1e6,
        "slowdown": result.slowdown,
        "mean_gbps": result.mean_gbps,
        "hops": result.hops,
    }


def _channels(result: TrafficResult) -> dict[str, Any]:
    channels = result.channels
    rows = range(len(channels))
    return {
        "channel": np.arange(len(channels)),
        "name": np.array([channels.name(row) for row in rows], np.str_),
        "tier": np.array(channels.tiers)[channels.tier],
        "gbps": channels.capacity_gbps,
        "carried_bytes": result.carried_bytes,
        "utilisation": result.utilisation(),
    }


def _series(result: TrafficResult) -> dict[str, Any]:
    series = result.series
    assert series is not None
    n_bins, n_tiers = series.mean.shape
    used = _used_tiers(result)
    start_s = np.repeat(np.arange(n_bins) * series.bin_s, len(used))
    tiers = np.array(result.channels.tiers)[used]
    assert n_tiers == len(result.channels.tiers)
    return {
        "time_s": start_s,
        "tier": np.tile(tiers, n_bins),
        "mean": series.mean[:, used].ravel(),
        "most": series.most[:, used].ravel(),
    }


def _used_tiers(result: TrafficResult) -> NDArray[np.intp]:
    """Return the tiers that have channels."""
    assert result.series is not None
    used: NDArray[np.intp] = np.flatnonzero(np.isfinite(result.series.mean).any(axis=0))
    return used
