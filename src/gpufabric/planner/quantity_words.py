"""The cost model's numbers in words, by key."""

from __future__ import annotations

from gpufabric.core.text import _, bracketed

__all__ = [
    "SHARES",
    "TOOLS",
    "choice_label",
    "fabric_label",
    "quantity_label",
    "skill_label",
    "tools_label",
    "unit_words",
]

FABRICS = ("infiniband", "roce")
SHARES = ("share", "1/year")
"""Units of numbers that are told as percentages."""
SKILLS = ("none", "basic", "expert")
TOOLS = ("none", "counters", "telemetry")


def quantity_label(key: str) -> str:
    """Return what a number is called; its key where no words are known.

    Keys that end in a fabric or a skill say so after the words.

    Examples
    --------
    >>> quantity_label("staff.base_fte.roce")
    'People for the smallest network (RoCE)'
    """
    heads = (
        ("gpu_hour.usd.", _value_label),
        ("price.", _price_label),
        ("locate.hours.", _locate_label),
    )
    for head, words in heads:
        if key.startswith(head):
            return words(key.removeprefix(head))
    parts, ends = key.split("."), list[str]()
    while parts and parts[-1] in (*FABRICS, *SKILLS) and ".".join(parts) not in _words():
        end = parts.pop()
        ends.insert(0, fabric_label(end) if end in FABRICS else skill_label(end))
    label = _words().get(".".join(parts))
    if label is None:
        return key
    return bracketed(label, ends)


def fabric_label(fabric: str) -> str:
    """Return the name of a fabric."""
    return {"infiniband": "InfiniBand", "roce": "RoCE"}.get(fabric, fabric)


def unit_words(unit: str) -> str:
    """Return a unit as it is told after a number."""
    words = {
        "share": _("share"),
        "1/year": _("per year"),
        "week": _("weeks"),
        "month": _("months"),
        "USD/month": _("USD/month"),
        "USD/year": _("USD/year"),
        "USD/h": _("USD/h"),
        "USD/(GPU h)": _("USD/(GPU h)"),
        "USD/(RU month)": _("USD/(RU month)"),
        "USD/(switch year)": _("USD/(switch year)"),
        "1/(GPU year)": _("per GPU and year"),
        "1/(NIC year)": _("per NIC and year"),
        "1/(link year)": _("per link and year"),
        "1/(switch year)": _("per switch and year"),
        "FTE": _("FTE"),
        "FTE/100 switches": _("FTE per 100 switches"),
        "of the middle price": _("of the middle price"),
    }
    return words.get(unit, unit)


def skill_label(skill: str) -> str:
    """Return the name of a skill of the team."""
    words = {"none": _("no skill"), "basic": _("some skill"), "expert": _("expert")}
    return words.get(skill, skill)


def tools_label(tools: str) -> str:
    """Return the name of what watches a network."""
    words = {
        "none": _("no tools"),
        "counters": _("dashboards and alarms"),
        "telemetry": _("telemetry"),
    }
    return words.get(tools, tools)


def choice_label(names: tuple[str, ...], place: float) -> str:
    """Return what a choice of skills, tools or other names is called at a place.

    Examples
    --------
    >>> choice_label(TOOLS, 1.0)
    'dashboards and alarms'
    """
    name = names[round(place)]
    return tools_label(name) if names == TOOLS else skill_label(name)


def _locate_label(ends: str) -> str:
    tools, _dot, skill = ends.partition(".")
    return _("Time to find a cause ({tools}, {skill})").format(
        tools=tools_label(tools), skill=skill_label(skill)
    )


def _value_label(gpu: str) -> str:
    name = _("any other GPU") if gpu == "other" else gpu.upper()
    return _("Value of a GPU-hour, {gpu}").format(gpu=name)


def _price_label(part: str) -> str:
    return _("Price of {part}").format(part=part)


def _words() -> dict[str, str]:
    return {**_facility(), **_people(), **_money(), **_operation(), **_delivery()}


def _facility() -> dict[str, str]:
    return {
        "energy.usd_per_kwh": _("Price of energy"),
        "energy.pue": _("Power usage effectiveness (PUE)"),
        "energy.load": _("Mean power between typical and largest"),
        "space.usd_per_unit_month": _("Rent of a rack unit"),
        "installation.minutes_per_cable": _("Time to lay and test a cable"),
        "installation.minutes_per_switch": _("Time to install a switch"),
        "installation.usd_per_hour": _("Price of an installer's hour"),
    }


def _people() -> dict[str, str]:
    return {
        "staff.usd_per_year": _("Cost of an engineer"),
        "staff.base_fte": _("People for the smallest network"),
        "staff.fte_per_100_switches": _("People for each 100 switches"),
        "staff.factor": _("People needed, over a skilled team"),
        "hiring.least_fte": _("Experts that are hired at least"),
        "hiring.usd_per_engineer": _("Hiring of an expert"),
        "training.usd_per_engineer": _("Training of an engineer"),
    }


def _money() -> dict[str, str]:
    return {
        "support.share": _("Vendor support, of the price"),
        "licence.usd_per_switch_year": _("Licences of a switch"),
        "tools.usd_per_switch_year.counters": _("Dashboards and alarms, for a switch"),
        "tools.usd_per_switch_year.telemetry": _("Streamed telemetry, for a switch"),
        "replacement.paid_share": _("Failed parts that are paid for"),
        "finance.discount_rate": _("Discount rate"),
        "finance.financed_share": _("Share that is financed"),
        "finance.interest_rate": _("Interest rate"),
        "finance.residual_share": _("Value after four years, of the price"),
        "subscription.margin": _("Margin of a provider"),
        "subscription.staff_share": _("People of a provider, over a team of one's own"),
        "subscription.setup_share": _("Set-up fee, of the network's price"),
        "subscription.outage_credit": _("Credit of a month that misses the promise"),
        "subscription.missed_months_share": _("Months that miss the promise"),
        "subscription.exit_months": _("Fees due on leaving"),
    }


def _operation() -> dict[str, str]:
    return {
        "cluster.utilisation": _("Hours in which GPUs have work"),
        "performance.tuned_share": _("Time in which routing and congestion control are tuned"),
        "forecast.communication_factor": _("Communication, over the forecast"),
        "failure.optical_link": _("Faults of an optical link"),
        "failure.copper_factor": _("Faults of a copper link, over an optical one"),
        "failure.nic": _("Faults of a NIC"),
        "failure.switch": _("Faults of a switch"),
        "failure.uplink_stops_job": _("Faults between switches that stop a job"),
        "failure.other_per_gpu_year": _("Interruptions that are not the network's"),
        "job.checkpoint_stall_minutes": _("Stall of a checkpoint"),
        "job.restart_hours": _("Time to restart a job"),
        "repair.hours": _("Time to exchange a module, cable or NIC"),
        "repair.switch_hours": _("Time to exchange a switch"),
        "repair.skill_factor": _("Time to repair, over a skilled team"),
        "repair.spare_host_cover": _("Hosts that a spare one stands in for"),
        "skill.unattended_share": _("Faults for which a job waits until the cause is found"),
        "misconfiguration.per_gpu_year": _("Incidents by wrong settings, for a GPU"),
        "misconfiguration.fabric_factor": _("Wrong settings, over RoCE"),
        "misconfiguration.skill_factor": _("Wrong settings, over a skilled team"),
        "misconfiguration.affected_share": _("GPUs of a job that an incident stops"),
    }


def _delivery() -> dict[str, str]:
    return {
        "deployment.network_weeks": _("Delivery of the network"),
        "deployment.extra_weeks": _("Delivery later than the other fabric"),
        "deployment.host_weeks": _("Delivery of the hosts"),
        "deployment.tune_weeks": _("Weeks of tuning"),
        "deployment.idle_share": _("GPUs that stand idle during tuning"),
        "subscription.own_fte": _("People of one's own beside a subscription"),
        "subscription.stock_switches": _("Switches that a provider has in stock"),
        "subscription.weeks": _("Weeks until a subscription serves"),
    }
