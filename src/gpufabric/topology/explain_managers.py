"""Where the subnet managers of a fabric connect, or why they do not."""

from __future__ import annotations

from collections.abc import Sequence

from gpufabric.core.text import _, sentences
from gpufabric.model.spec_parts import Candidate
from gpufabric.topology.assemble import ManagerLinks
from gpufabric.topology.decision import Decision
from gpufabric.topology.layout import Kind
from gpufabric.topology.port_plan import SwitchPorts
from gpufabric.topology.sizing import managers_wanted

__all__ = ["explain_managers"]

_SOURCE = "NVIDIA RA-11334-001 V08, Table 4.1 (one node per system is given up for UFM)"


def explain_managers(
    candidate: Candidate,
    kind: Kind,
    leaf: SwitchPorts,
    managers: Sequence[ManagerLinks],
    short: int,
) -> tuple[Decision, ...]:
    """Return the decision on manager ports; none on Ethernet, which is managed out of band.

    Parameters
    ----------
    candidate, kind, leaf
        What was asked for, the kind of network, and its leaf switch.
    managers
        Where managers were connected, one entry a network.
    short
        Ports wanted that the hosts left no room for.
    """
    wanted = managers_wanted(candidate, kind, leaf) * len(managers)
    if not wanted:
        if candidate.fabric == "infiniband" and candidate.manager_ports is None and leaf.managed:
            why = _("The {switch} is managed and runs the subnet manager itself.")
            return (Decision("managers", "0", why.format(switch=leaf.name)),)
        return ()
    placed = sum(len(links.switch) for links in managers)
    if not short:
        why = _("{n} free leaf ports carry the subnet managers.")
        return (Decision("managers", str(placed), why.format(n=placed), _SOURCE),)
    missing = _(
        "The hosts fill the leafs: {short} of {wanted} ports for subnet managers are missing."
    ).format(short=short, wanted=wanted)
    if leaf.managed:
        remedy = _(
            "Run the subnet manager on a {switch}, which is managed, or give up one host for "
            "appliances, as the reference architecture does."
        )
    else:
        remedy = _(
            "The {switch} is not managed: give up one host for appliances, as the reference "
            "architecture does, or use one managed switch."
        )
    why = sentences(missing, remedy.format(switch=leaf.name))
    found = _("{placed} of {wanted} ports").format(placed=placed, wanted=wanted)
    return (Decision("managers", found, why, _SOURCE, is_warning=True),)
