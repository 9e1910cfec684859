"""LIDs of switches and NIC ports, subnet by subnet, in the order OpenSM gives them out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.ids import Lid
from gpufabric.core.text import _
from gpufabric.routing.channels import Channels

__all__ = ["Lids", "assign_lids"]

Ints = npt.NDArray[np.int32]

LARGEST_LMC = 3  # what this project routes; InfiniBand itself allows 7


@dataclass(frozen=True, eq=False)
class Lids:
    """LIDs by subnet: every network counts from 1.

    Parameters
    ----------
    of_switch
        int32[n_switches].
    of_port
        int32[n_ports]: base LID of each NIC port; 0 where it has no link.
    lmc
        A NIC port has ``2 ** lmc`` LIDs in a row, from its base LID on.
    n_lids
        Entries of a forwarding table: one more than the largest LID.
    """

    of_switch: Ints
    of_port: Ints
    lmc: int
    n_lids: int

    @property
    def per_port(self) -> int:
        """LIDs of one NIC port."""
        return int(2**self.lmc)


def assign_lids(channels: Channels, lmc: int = 0) -> Lids:
    """Return the LIDs: switches by row, then NIC ports by row, aligned to their number of LIDs.

    OpenSM goes by GUID; the GUIDs that exports give to a fabric rise by row, switches first.

    Raises
    ------
    InputError
        If `lmc` is not 0 to 3, or a subnet needs more unicast LIDs than there are.
    """
    if not 0 <= lmc <= LARGEST_LMC:
        what = _("the value is {value}.").format(value=lmc)
        raise InputError(Fault("lmc", what, _("0 to {most}").format(most=LARGEST_LMC)))
    each = 2**lmc
    network = channels.network_of
    of_switch = np.zeros(len(network), np.int32)
    of_port = np.zeros(len(channels.leaf_of), np.int32)
    ports = np.flatnonzero(channels.leaf_of >= 0)
    n_lids = 1
    for number in range(int(network.max(initial=-1)) + 1):
        switches = np.flatnonzero(network == number)
        of_switch[switches] = np.arange(1, len(switches) + 1)
        mine = ports[network[channels.leaf_of[ports]] == number]
        base = -(-(len(switches) + 1) // each) * each
        of_port[mine] = base + each * np.arange(len(mine))
        n_lids = max(n_lids, base + each * len(mine))
    _check_fit(n_lids, each)
    return Lids(of_switch, of_port, lmc, n_lids)


def _check_fit(n_lids: int, each: int) -> None:
    last = int(Lid.LAST_UNICAST)
    if n_lids - 1 > last:
        raise InputError(
            Fault(
                "lmc",
                _("a subnet needs {n} LIDs, {each} for each NIC port.").format(
                    n=n_lids - 1, each=each
                ),
                _("at most {most} unicast LIDs").format(most=last),
                _("Lower the LMC, or split the fabric into planes: each is a subnet."),
            )
        )
