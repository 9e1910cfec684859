"""What must agree in the parts of a spec that money hangs on: offers, assumptions, currency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date

from gpufabric.core.errors import nearest
from gpufabric.core.text import _
from gpufabric.model.known_names import KnownNames
from gpufabric.model.spec_fields import FieldFault, Spec, candidates_of, mapping_at, number_at
from gpufabric.model.yaml_source import FieldPath
from gpufabric.model.yaml_text import printable

__all__ = ["assumption_faults", "money_faults"]

_PRICES = ("usd_per_port_month", "usd_per_gbps_month")
_AMOUNTS = (*_PRICES, "setup_usd", "exit_months", "availability_pct", "credit_pct")
_RANGE = ("low", "mid", "high")
HIRE = "hire"
"""Ends the names of cases whose experts are hired, and so names no offer."""


def money_faults(spec: Spec) -> Iterator[FieldFault]:
    """Return what does not agree in the offers, assumptions and currency of `spec`."""
    yield from _offer_faults(spec)
    cost = mapping_at(spec, "cost")
    budget = number_at(cost, "budget_usd")
    if budget is not None and budget < 0:
        yield _negative(("cost", "budget_usd"), budget)
    for key, value in mapping_at(cost, "assumptions").items():
        yield from _range_faults(value, ("cost", "assumptions", str(key)))
    yield from _currency_faults(mapping_at(spec, "site"))


def assumption_faults(spec: Spec, known: KnownNames) -> Iterator[FieldFault]:
    """Return the assumptions of `spec` that are no number of the cost model."""
    for key in mapping_at(mapping_at(spec, "cost"), "assumptions"):
        if key not in known.quantities:
            yield FieldFault(
                ("cost", "assumptions", key),
                _("the cost model has no such number."),
                expected=_("a key of the ledger, such as {key}").format(key="energy.usd_per_kwh"),
                remedy=nearest(str(key)[:64], sorted(known.quantities)),
                is_about_key=True,
            )


def _offer_faults(spec: Spec) -> Iterator[FieldFault]:
    """Refuse offers of one name, of two prices, and of a candidate that is not there."""
    offers = spec.get("offers")
    of = {str(each.get("name")): str(each.get("fabric")) for each in candidates_of(spec)}
    names, fabrics = set(of), set(of.values())
    taken: set[str] = set()
    for index, offer in enumerate(offers if isinstance(offers, list | tuple) else ()):
        if not isinstance(offer, Mapping):
            continue
        yield from _price_faults(offer, ("offers", index))
        name, candidate = offer.get("name"), offer.get("candidate")
        if isinstance(name, str) and name.lower() in taken:
            yield FieldFault(
                ("offers", index, "name"),
                _('the name "{name}" is taken by another offer.').format(name=printable(name)),
                expected=_("another name for each offer"),
            )
        if isinstance(name, str) and name.lower() == HIRE:
            yield FieldFault(
                ("offers", index, "name"),
                _('"{name}" stands for buying with experts hired.').format(name=printable(name)),
                expected=_("another name for each offer"),
            )
        taken.add(str(name).lower())
        if isinstance(candidate, str) and candidate not in names:
            yield FieldFault(
                ("offers", index, "candidate"),
                _('there is no candidate "{name}".').format(name=printable(candidate)),
                expected=_("one of {names}").format(names=", ".join(sorted(names))),
                remedy=nearest(candidate[:64], sorted(names)),
            )
        elif isinstance(candidate, str) and offer.get("fabric") not in (None, of[candidate]):
            yield FieldFault(
                ("offers", index, "fabric"),
                _("it is {fabric}, and the offer's candidate {name} is {own}.").format(
                    fabric=offer["fabric"], name=candidate, own=of[candidate]
                ),
                remedy=_("Remove the fabric, or name another candidate."),
            )
        elif fabrics and offer.get("fabric") in {"infiniband", "roce"} - fabrics:
            yield FieldFault(
                ("offers", index, "fabric"),
                _("no candidate is {fabric}.").format(fabric=offer["fabric"]),
                expected=_("one of {names}").format(names=", ".join(sorted(fabrics))),
                remedy=_("Add such a candidate: the offer is held against owning it."),
            )


def _price_faults(offer: Spec, path: FieldPath) -> Iterator[FieldFault]:
    """Refuse two prices in one offer, and amounts below 0."""
    per_port, per_gbps = (number_at(offer, key) for key in _PRICES)
    if per_port is not None and per_gbps is not None:
        what = _("there are two prices: {port} USD a port and {gbps} USD a Gb/s.")
        yield FieldFault(
            path,
            what.format(port=f"{per_port:g}", gbps=f"{per_gbps:g}"),
            expected=_("usd_per_port_month or usd_per_gbps_month"),
            remedy=_("Remove one of the two."),
        )
    for key in _AMOUNTS:
        amount = number_at(offer, key)
        if amount is not None and amount < 0:
            yield _negative((*path, key), amount)


def _range_faults(value: object, path: FieldPath) -> Iterator[FieldFault]:
    """Refuse an assumption below 0, or whose low, middle and high value are not in that order."""
    if isinstance(value, list | tuple) and len(value) != len(_RANGE):
        yield FieldFault(
            path,
            _("the list has {count} entries.").format(count=len(value)),
            expected=_("one value, or [low, mid, high]"),
        )
        return
    found = _numbers(value)
    if not found:
        return
    least = min(found)
    if least < 0:
        yield _negative(path, least)
    elif len(found) == len(_RANGE) and sorted(found) != found:
        low, mid, high = (f"{number:g}" for number in found)
        yield FieldFault(
            path,
            _("low is {low}, mid {mid} and high {high}.").format(low=low, mid=mid, high=high),
            expected=_("low at most mid, and mid at most high"),
            remedy=_("In order they are {numbers}.").format(
                numbers=", ".join(f"{number:g}" for number in sorted(found))
            ),
        )


def _numbers(value: object) -> list[float]:
    """The numbers of an assumption in any of its forms; empty where one is none."""
    parts = value if isinstance(value, list | tuple) else [value]
    if isinstance(value, Mapping):
        parts = [value.get(key) for key in _RANGE]
    found = [part for part in parts if isinstance(part, int | float) and not isinstance(part, bool)]
    return [float(part) for part in found] if len(found) == len(parts) else []


def _negative(path: FieldPath, amount: float) -> FieldFault:
    return FieldFault(path, _("{amount} is below 0.").format(amount=f"{amount:g}"), _("0 or more"))


def _currency_faults(site: Spec) -> Iterator[FieldFault]:
    is_usd = site.get("currency", "USD") == "USD"
    if number_at(site, "currency_rate") not in (None, 1) and is_usd:
        yield FieldFault(
            ("site", "currency_rate"),
            _("a rate is given, but the currency is USD."),
            remedy=_("Set site.currency or remove the rate."),
        )
    day = site.get("currency_date")
    if isinstance(day, str) and not _is_date(day):
        yield FieldFault(
            ("site", "currency_date"),
            _('"{found}" is no date.').format(found=printable(day)),
            expected=_("year, month and day, such as {date}").format(date="2026-11-30"),
        )
    if day is not None and number_at(site, "currency_rate") is None:
        yield FieldFault(
            ("site", "currency_date"),
            _("the date of a rate is given, but no rate."),
            remedy=_("Add site.currency_rate or remove the date."),
        )


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
