"""What must agree between the fields of a spec, and between a spec and the catalogue.

The checks take the long form of a spec as plain mappings (see `short_forms`), not the model:
so they also run, and find what they can, where other fields of the same spec are wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpufabric.core.errors import nearest
from gpufabric.core.text import _
from gpufabric.model.known_names import KnownNames
from gpufabric.model.money_coherence import assumption_faults, money_faults
from gpufabric.model.short_forms import BEST, FABRICS, TIERS
from gpufabric.model.spec_fields import (
    FieldFault,
    Spec,
    candidates_of,
    host_gpus_of,
    mapping_at,
    number_at,
    size_of,
    whole_at,
)
from gpufabric.model.spec_parts import MAX_GPUS
from gpufabric.model.workload_coherence import model_faults, workload_faults
from gpufabric.model.yaml_source import FieldPath
from gpufabric.model.yaml_text import printable

__all__ = ["FieldFault", "catalogue_faults", "coherence_faults", "not_a_multiple"]

_OWN_TIERS: Mapping[object, int] = {"dragonfly": 1, "dragonfly+": 2}
"""Topologies whose number of tiers is fixed."""


def coherence_faults(spec: Spec, known: KnownNames | None = None) -> Iterator[FieldFault]:
    """Return what does not agree between the fields of `spec`, given in its long form.

    Parameters
    ----------
    spec
        The spec as nested mappings. Fields of a wrong type are passed over.
    known
        The catalogue's names, for the GPUs of a host given by name.
    """
    host_gpus = host_gpus_of(spec, known)
    yield from _size_faults(spec, host_gpus)
    yield from _growth_faults(spec, host_gpus)
    yield from _host_faults(mapping_at(spec, "host"), mapping_at(spec, "site"))
    yield from workload_faults(spec, size_of(spec, "gpus", host_gpus))
    yield from _name_faults(spec)
    yield from money_faults(spec)
    for index, candidate in enumerate(candidates_of(spec)):
        yield from _candidate_faults(candidate, ("candidates", index))
        yield from _rail_faults(candidate, mapping_at(spec, "host"), ("candidates", index))


def catalogue_faults(spec: Spec, known: KnownNames) -> Iterator[FieldFault]:
    """Return the names of `spec`, given in its long form, that the catalogue has not or not so."""
    host = spec.get("host")
    if isinstance(host, str) and known.host_gpus(host) is None:
        yield FieldFault(
            ("host",),
            _('the catalogue has no host "{name}".').format(name=printable(host)),
            expected=_(
                'one that "gpufabric catalog list" shows, or a mapping with gpus, nics, nic_gbps'
            ),
            remedy=nearest(host[:64], sorted(known.hosts)),
        )
    yield from model_faults(mapping_at(spec, "workload").get("model"), known)
    for index, candidate in enumerate(candidates_of(spec)):
        switches = mapping_at(candidate, "switch")
        told: set[str] = set()
        for tier in TIERS:
            name = switches.get(tier)
            if isinstance(name, str) and name != BEST and name not in told:
                told.add(name)
                path = ("candidates", index, "switch", tier)
                yield from _switch_faults(name, candidate, path, known)
    yield from _switches_as_candidates(spec, known)
    yield from assumption_faults(spec, known)


def _switch_faults(
    name: str, candidate: Spec, path: FieldPath, known: KnownNames
) -> Iterator[FieldFault]:
    fabric = candidate.get("fabric")
    found = known.switch(name)
    if found is None:
        of_fabric = sorted(
            switch for switch, (kind, _generation) in known.switches.items() if kind == fabric
        )
        yield FieldFault(
            path,
            _('the catalogue has no switch "{name}".').format(name=printable(name)),
            expected=_('one that "gpufabric catalog list" shows, or "best"'),
            remedy=nearest(name[:64], of_fabric or sorted(known.switches)),
        )
        return
    kind, generation = found
    if fabric in FABRICS and kind != fabric:
        yield FieldFault(
            path,
            _('the switch "{name}" is for {kind}, the candidate for {fabric}.').format(
                name=printable(name), kind=kind, fabric=fabric
            ),
            remedy=_("Choose another switch or another fabric."),
        )
    wanted = candidate.get("generation")
    if kind == fabric == "infiniband" and wanted is not None and generation != wanted:
        yield FieldFault(
            path,
            _('the switch "{name}" is of generation {generation}, not {wanted}.').format(
                name=printable(name), generation=generation, wanted=printable(str(wanted))
            ),
            remedy=_("Choose another switch or leave out the generation."),
        )


def _switches_as_candidates(spec: Spec, known: KnownNames) -> Iterator[FieldFault]:
    """Tell how to write a switch's name that stands alone as a candidate."""
    candidates = spec.get("candidates")
    for index, entry in enumerate(candidates if isinstance(candidates, list | tuple) else ()):
        found = known.switch(entry) if isinstance(entry, str) else None
        if found is not None:
            yield FieldFault(
                ("candidates", index),
                _('"{name}" is a switch, not a candidate.').format(name=printable(str(entry))),
                remedy=_('Write "{fabric}:{name}".').format(
                    fabric=found[0], name=printable(str(entry))
                ),
            )


def _size_faults(spec: Spec, host_gpus: int | None) -> Iterator[FieldFault]:
    if spec.get("gpus") is None and spec.get("hosts") is None:
        yield FieldFault(
            ("gpus",),
            _("is missing, and so is hosts."),
            expected=_("the number of GPUs or of hosts"),
            remedy=_('Add a line such as "gpus: 1024".'),
            is_about_key=True,
        )
    yield from _count_faults(spec, (), host_gpus)


def _count_faults(part: Spec, path: FieldPath, host_gpus: int | None) -> Iterator[FieldFault]:
    """Hold gpus, hosts and the GPUs of one host against each other."""
    gpus, hosts = whole_at(part, "gpus"), whole_at(part, "hosts")
    if host_gpus is None:
        return
    if hosts is not None and hosts * host_gpus > MAX_GPUS:
        yield FieldFault(
            (*path, "hosts"),
            _("{hosts} hosts of {host_gpus} GPUs are {gpus} GPUs.").format(
                hosts=f"{hosts:,}", host_gpus=host_gpus, gpus=f"{hosts * host_gpus:,}"
            ),
            expected=_("at most {limit} GPUs").format(limit=f"{MAX_GPUS:,}"),
        )
    elif gpus is not None and gpus % host_gpus:
        yield not_a_multiple((*path, "gpus"), gpus, host_gpus)
    elif gpus is not None and hosts is not None and gpus != hosts * host_gpus:
        yield FieldFault(
            (*path, "hosts"),
            _("{hosts} hosts of {host_gpus} GPUs are {product} GPUs, but gpus is {gpus}.").format(
                hosts=f"{hosts:,}",
                host_gpus=host_gpus,
                product=f"{hosts * host_gpus:,}",
                gpus=f"{gpus:,}",
            ),
            remedy=_("Give one of the two."),
        )


def not_a_multiple(path: FieldPath, gpus: int, host_gpus: int) -> FieldFault:
    """Return the fault of `gpus` that do not fill whole hosts, with the nearest that do."""
    hosts = gpus // host_gpus
    options = [count for count in (hosts, hosts + 1) if count > 0]
    return FieldFault(
        path,
        _("{gpus} GPUs do not fill whole hosts of {host_gpus}.").format(
            gpus=f"{gpus:,}", host_gpus=host_gpus
        ),
        expected=_("a multiple of {host_gpus}").format(host_gpus=host_gpus),
        remedy=_("Nearest: {options}.").format(
            options=_(" or ").join(
                _("{gpus} ({hosts} x {host_gpus})").format(
                    gpus=count * host_gpus, hosts=count, host_gpus=host_gpus
                )
                for count in options
            )
        ),
    )


def _growth_faults(spec: Spec, host_gpus: int | None) -> Iterator[FieldFault]:
    growth = spec.get("growth")
    if not isinstance(growth, Mapping):
        return
    if growth.get("gpus") is None and growth.get("hosts") is None:
        yield FieldFault(
            ("growth", "gpus"),
            _("is missing, and so is hosts."),
            expected=_("the number of GPUs or of hosts to grow to"),
            is_about_key=True,
        )
    yield from _count_faults(growth, ("growth",), host_gpus)
    for key in ("gpus", "hosts"):
        later, today = whole_at(growth, key), size_of(spec, key, host_gpus)
        if later is not None and today is not None and later < today:
            yield FieldFault(
                ("growth", key),
                _("{later} is less than today's {today}.").format(
                    later=f"{later:,}", today=f"{today:,}"
                ),
                expected=_("at least today's size"),
            )


def _host_faults(host: Spec, site: Spec) -> Iterator[FieldFault]:
    nics, rails = whole_at(host, "nics"), whole_at(host, "rails")
    per_rail = whole_at(host, "nics_per_rail")
    if nics is not None and nics % (rails or 1):
        yield FieldFault(
            ("host", "rails"),
            _("{nics} NICs do not spread evenly over {rails} rails.").format(
                nics=nics, rails=rails
            ),
            expected=_("a number that divides nics"),
        )
    elif nics is not None and per_rail is not None and not _is_spread(nics, rails, per_rail):
        yield FieldFault(
            ("host", "nics_per_rail"),
            _("{nics} NICs cannot be {per_rail} on each rail.").format(
                nics=nics, per_rail=per_rail
            ),
            expected=_("nics divided by rails"),
        )
    for key, limit, unit in (("power_kw", "rack_power_kw", "kW"), ("ru", "rack_units", "RU")):
        need, have = number_at(host, key), number_at(site, limit)
        if need is not None and have is not None and need > have:
            yield FieldFault(
                ("host", key),
                _("one host needs {need} {unit}, but a rack has {have} {unit}.").format(
                    need=f"{need:g}", have=f"{have:g}", unit=unit
                ),
                remedy=_("Raise site.{key} to at least {need}.").format(
                    key=limit, need=f"{need:g}"
                ),
            )


def _is_spread(nics: int, rails: int | None, per_rail: int) -> bool:
    return nics % per_rail == 0 if rails is None else per_rail * rails == nics


def _name_faults(spec: Spec) -> Iterator[FieldFault]:
    first: dict[str, int] = {}
    for index, candidate in enumerate(candidates_of(spec)):
        name = candidate.get("name")
        if not isinstance(name, str) or not name:
            continue
        if name.lower() in first:
            yield FieldFault(
                ("candidates", index, "name"),
                _('the name "{name}" is taken by candidates[{first}].').format(
                    name=printable(name), first=first[name.lower()]
                ),
                expected=_("another name for each candidate"),
            )
        first.setdefault(name.lower(), index)


def _candidate_faults(candidate: Spec, path: FieldPath) -> Iterator[FieldFault]:
    topology, planes, tiers = (candidate.get(key) for key in ("topology", "planes", "tiers"))
    if candidate.get("fabric") == "roce" and candidate.get("generation") is not None:
        yield FieldFault(
            (*path, "generation"),
            _("a generation goes with InfiniBand, and this candidate is RoCE."),
            remedy=_("Remove it, or name the switch instead."),
        )
    if topology == "multi-plane" and planes == 1:
        yield FieldFault(
            (*path, "planes"),
            _("a multi-plane network has more than one plane."),
            expected=_("one of {names}").format(names="2, 4, 8"),
        )
    if topology == "dual-tor" and planes in (1, 4, 8):
        yield FieldFault((*path, "planes"), _("a dual-ToR network has two planes."), expected="2")
    if topology == "rail-only" and planes in (2, 4, 8):
        yield FieldFault(
            (*path, "planes"),
            _("the rails of a rail-only network are not split over planes."),
            expected="1",
            remedy=_("Leave it out, or choose another topology."),
        )
    if tiers is not None and topology in _OWN_TIERS and tiers != _OWN_TIERS[topology]:
        yield FieldFault(
            (*path, "tiers"),
            _("a {topology} network has tiers of its own.").format(topology=topology),
            expected=str(_OWN_TIERS[topology]),
            remedy=_("Choose another topology or leave out the tiers."),
        )
    if topology == "single" and tiers in (2, 3):
        yield FieldFault(
            (*path, "tiers"),
            _("a single switch is one tier."),
            remedy=_("Choose another topology or leave out the tiers."),
        )
    yield from _upper_tier_faults(candidate, path)


def _upper_tier_faults(candidate: Spec, path: FieldPath) -> Iterator[FieldFault]:
    """Refuse what is demanded of tiers that the candidate has not."""
    tiers = 1 if candidate.get("topology") == "single" else candidate.get("tiers")
    ratios = mapping_at(candidate, "oversubscription")
    demands = (
        (1, "spines", candidate.get("spines") is not None),
        # Two switches back to back are one tier and have an oversubscription between them.
        (
            1,
            "oversubscription",
            candidate.get("topology") == "single" and number_at(ratios, "leaf") not in (None, 1),
        ),
        (2, "oversubscription", number_at(ratios, "spine") not in (None, 1)),
    )
    told: set[str] = set()
    for highest, key, is_demanded in demands:
        if is_demanded and isinstance(tiers, int) and tiers <= highest and key not in told:
            told.add(key)
            yield FieldFault(
                (*path, key),
                _("this asks something of tier {tier}, but the network has {tiers}.").format(
                    tier=highest + 1, tiers=tiers
                ),
                remedy=_("Remove it or allow more tiers."),
            )


def _rail_faults(candidate: Spec, host: Spec, path: FieldPath) -> Iterator[FieldFault]:
    rails, nics = whole_at(candidate, "rails"), whole_at(host, "nics")
    if rails is not None and nics is not None and rails > nics:
        yield FieldFault(
            (*path, "rails"),
            _("{rails} rails need as many NICs, but a host has {nics}.").format(
                rails=rails, nics=nics
            ),
            expected=_("at most {nics}").format(nics=nics),
        )
