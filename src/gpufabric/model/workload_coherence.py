"""What must agree between the fields of a spec's workload, and between these and the catalogue."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from gpufabric.core.errors import nearest
from gpufabric.core.text import _
from gpufabric.model.known_names import KnownNames
from gpufabric.model.spec_fields import FieldFault, Spec, mapping_at, whole_at
from gpufabric.model.yaml_text import printable

__all__ = ["model_faults", "workload_faults"]

_KEYS_OF_KIND: Mapping[object, tuple[str, ...]] = {
    "training": ("global_batch", "sequence_tokens"),
    "inference": ("sequences", "prompt_tokens", "output_tokens"),
}
"""Keys of `workload` that mean nothing to the other kind."""


def workload_faults(spec: Spec, gpus: int | None) -> Iterator[FieldFault]:
    """Return what does not agree in the workload of `spec`, of so many GPUs where known."""
    yield from _parallelism_faults(spec, gpus)
    yield from _kind_faults(mapping_at(spec, "workload"))


def model_faults(name: object, known: KnownNames) -> Iterator[FieldFault]:
    """Return the fault of a model that is unknown."""
    if isinstance(name, str) and not known.has_model(name):
        yield FieldFault(
            ("workload", "model"),
            _('the model "{name}" is unknown.').format(name=printable(name)),
            expected=_("one of {names}").format(names=", ".join(sorted(known.models))),
            remedy=nearest(name[:64].lower(), sorted(known.models)),
        )


def _parallelism_faults(spec: Spec, gpus: int | None) -> Iterator[FieldFault]:
    parallelism = mapping_at(mapping_at(spec, "workload"), "parallelism")
    degrees = {key: whole_at(parallelism, key) for key in ("tp", "pp", "dp", "cp")}
    given = {key: degree for key, degree in degrees.items() if degree is not None}
    if gpus is None or not parallelism:
        return
    product = math.prod(given.values())
    is_whole = len(given) == len(degrees)
    if product > gpus or (is_whole and gpus % product):
        yield FieldFault(
            ("workload", "parallelism"),
            _("{degrees} is {product}, but there are {gpus} GPUs.").format(
                degrees=" x ".join(f"{key} {degree}" for key, degree in given.items()),
                product=f"{product:,}",
                gpus=f"{gpus:,}",
            ),
            expected=_("a product that divides the number of GPUs"),
        )
    experts = whole_at(parallelism, "ep")
    if experts is not None and experts > gpus:
        yield FieldFault(
            ("workload", "parallelism", "ep"),
            _("{experts} is more than the {gpus} GPUs.").format(
                experts=f"{experts:,}", gpus=f"{gpus:,}"
            ),
            expected=_("at most the number of GPUs"),
        )


def _kind_faults(workload: Spec) -> Iterator[FieldFault]:
    """Tell of keys that mean nothing to the kind of workload."""
    kind = workload.get("kind", "training")
    if not isinstance(kind, str) or kind not in _KEYS_OF_KIND:
        return
    for name, keys in _KEYS_OF_KIND.items():
        for key in keys:
            if kind != name and workload.get(key) is not None:
                yield FieldFault(
                    ("workload", key),
                    _("{key} goes with {name}, and this workload is {kind}.").format(
                        key=key, name=name, kind=kind
                    ),
                    remedy=_("Remove it."),
                    is_about_key=True,
                )
