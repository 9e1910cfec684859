"""One way to have a network: a candidate, the team that runs it, and who owns it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpufabric.cost.facts import NetworkFacts, Skill, Tools

__all__ = ["HIRE", "TOOLS_OF", "Case", "Offer"]

TOOLS_OF: dict[Skill, Tools] = {"none": "none", "basic": "counters", "expert": "telemetry"}
"""Tools that a team of a skill has where nobody says."""


@dataclass(frozen=True)
class Offer:
    """A network as a service (NaaS): what a provider asks. One price or the other is given.

    Parameters
    ----------
    name
        Of the offer.
    usd_per_port_month
        For each GPU's port [USD/month]; None where the other price is given, or where the price is
        reckoned from the provider's own cost.
    usd_per_gbps_month
        For each Gb/s that the NICs inject [USD/month].
    setup_usd
        Once, at the start.
    term_months
        For how long one is bound.
    availability
        What the provider promises, 0 to 1; None without.
    credit_share
        Credit of a month's fee in a month that misses it.
    exit_months
        Fees due on leaving before the term ends.
    includes_operation
        Whether people, support, spares and repair are in the fee.
    source, date
        Of the offer.
    """

    name: str
    usd_per_port_month: float | None = None
    usd_per_gbps_month: float | None = None
    setup_usd: float | None = None
    term_months: int = 36
    availability: float | None = None
    credit_share: float | None = None
    exit_months: float | None = None
    includes_operation: bool = True
    source: str = ""
    date: str = ""

    @property
    def is_reckoned(self) -> bool:
        """Whether the price is reckoned from the provider's own cost, since no offer names one."""
        return self.usd_per_port_month is None and self.usd_per_gbps_month is None


HIRE = "hire"
"""What the name of a case ends in whose experts are hired."""


@dataclass(frozen=True)
class Case:
    """A candidate, the team, and the offer by which it is had.

    Parameters
    ----------
    facts
        The candidate.
    skill
        Of the team, on this fabric.
    offer
        The subscription; None where the network is bought.
    horizon_years
        For how long costs are counted.
    injection_gbps
        What the NICs of all hosts send together [Gb/s], for prices by bandwidth.
    is_hired
        Whether experts are hired to run the bought network, in place of the team.
    tools
        What the team, or the hired, watch the network with; None: as `TOOLS_OF` their skill.
    """

    facts: NetworkFacts
    skill: Skill
    offer: Offer | None = None
    horizon_years: int = 4
    injection_gbps: float = 0.0
    is_hired: bool = False
    tools: Tools | None = None

    @property
    def name(self) -> str:
        """Name of the case: that of the candidate, and of the offer where there is one."""
        if self.is_hired:
            return f"{self.facts.name}+{HIRE}"
        return self.facts.name if self.offer is None else f"{self.facts.name}+{self.offer.name}"

    @property
    def is_served(self) -> bool:
        """Whether a provider runs the network."""
        return self.offer is not None and self.offer.includes_operation

    @property
    def operator_skill(self) -> Skill:
        """Skill of those who run the network: experts, hired or the provider's, or the team."""
        return "expert" if self.is_served or self.is_hired else self.skill

    @property
    def operator_tools(self) -> Tools:
        """Tools of those who run the network; a provider has the best."""
        if self.is_served:
            return "telemetry"
        return self.tools or TOOLS_OF[self.operator_skill]

    @property
    def builder_skill(self) -> Skill:
        """Skill of those who set the network up: experts that are hired come later."""
        return self.skill if self.is_hired else self.operator_skill

    def with_skill(self, skill: Skill) -> Case:
        """Return the case with another team."""
        return replace(self, skill=skill)

    def with_gpudirect(self) -> Case:
        """Return the case as if GPUDirect RDMA were on; the same where it is."""
        direct = self.facts.direct_performance
        return self if direct is None else replace(self, facts=self.facts.with_performance(direct))
