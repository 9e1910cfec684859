"""Messages of queue pairs that have several, turned into the arrays that the kernels run on."""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.packet_message import MESSAGE
from gpufabric.kernels.structs import Records, records
from gpufabric.sim.packet_checks import CheckedPackets
from gpufabric.sim.packet_sizes import Sizes

__all__ = ["message_records"]


def message_records(checked: CheckedPackets, sizes: Sizes, flows: Records) -> Records:
    """Return MESSAGE[n_flows] and set where the queue pairs, `flows`, begin; none without need."""
    if not checked.has_messages:
        return records(MESSAGE, 0)
    rows = records(MESSAGE, checked.n_flows)
    order = np.argsort(checked.queue_pair, kind="stable")
    pair, n_packets = checked.queue_pair[order], sizes.n_packets[order]
    begins = np.flatnonzero(np.diff(pair, prepend=-1))
    ends = np.append(begins[1:], order.size) - 1
    total = np.cumsum(n_packets)
    end = total - (total - n_packets)[begins][pair]
    rows["queue_pair"][order], rows["end"][order] = pair, end
    rows["first"][order] = end - n_packets
    rows["before"][order[1:]], rows["behind"][order[:-1]] = order[:-1], order[1:]
    rows["before"][order[begins]] = rows["behind"][order[ends]] = -1
    rows["size_first"], _middle, rows["size_last"] = sizes.of_flow
    rows["delivered_ps"] = rows["acked_ps"] = -1
    flows["n_packets"] = end[ends]
    flows["posted"] = flows["limit"] = 0
    for name in ("posting", "cutting", "taking", "asking"):
        flows[name] = order[begins]
    return rows
