"""The fabric that a command runs on: read from a file, or designed from a spec."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.load import load_catalog
from gpufabric.cli.loading import load_spec
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.model.files import load_fabric
from gpufabric.model.requirement import Requirement
from gpufabric.model.spec_parts import Candidate, GenericHost, Oversubscription
from gpufabric.topology.cabling import lay_cables
from gpufabric.topology.design import design_candidate
from gpufabric.topology.racks import arrange

__all__ = ["FabricSource", "designed", "is_spec", "ratio_of"]

SPEC_SUFFIXES = {".yaml", ".yml"}


def is_spec(path: Path) -> bool:
    """Whether a path is that of a spec, by its suffix."""
    return path.suffix.lower() in SPEC_SUFFIXES


def designed(requirement: Requirement, candidate: Candidate, catalog: Catalog) -> Fabric:
    """Return the fabric of a candidate with racks and cables, as ``gpufabric plan`` writes it."""
    design = design_candidate(requirement, candidate, catalog)
    site = requirement.site
    placed = arrange(design.fabric, design.host, design.switches, site, candidate, catalog)
    return lay_cables(placed.fabric, design, site, catalog).fabric


class FabricSource:
    """A fabric file, or a spec with one candidate or more.

    Parameters
    ----------
    path
        Fabric file (``.json``, ``.fab``) or spec (``.yaml``, ``.yml``).
    candidate
        Name of the spec's candidate; None where the spec has only one.
    folder
        The user's own devices.

    Raises
    ------
    InputError
        If the file is wrong, or a candidate is named and there is no spec.
    """

    def __init__(self, path: Path, candidate: str | None, folder: Path | None) -> None:
        self._path = path
        self._candidate = candidate
        self._requirement: Requirement | None = None
        self._fabric: Fabric | None = None
        if is_spec(path):
            self._requirement, self.catalog = load_spec(path, folder)
        else:
            if candidate is not None:
                raise _needs_spec("--candidate", path)
            self._fabric, self.catalog = load_fabric(path), load_catalog(folder)

    def fabric(self, candidate: str = "", oversubscription: str = "") -> Fabric:
        """Return the fabric, with another candidate or ratio at the leaf where one is given.

        Raises
        ------
        InputError
            If there is no spec to design from, or the design fails.
        """
        if self._requirement is None:
            for key, text in (("candidate", candidate), ("oversubscription", oversubscription)):
                if text:
                    raise _needs_spec(f"--sweep {key}", self._path)
            assert self._fabric is not None
            return self._fabric
        wanted = self._chosen(candidate)
        if oversubscription:
            ratio = Oversubscription(
                leaf=ratio_of(oversubscription), spine=wanted.oversubscription.spine
            )
            wanted = wanted.model_copy(update={"oversubscription": ratio})
        return designed(self._requirement, wanted, self.catalog)

    @property
    def given_gpu(self) -> str | None:
        """The model of the GPUs, where a spec names it for a host of its own."""
        host = None if self._requirement is None else self._requirement.host
        return host.gpu if isinstance(host, GenericHost) else None

    @property
    def given_model(self) -> str | None:
        """The language model that a spec names for its workload."""
        return None if self._requirement is None else self._requirement.workload.model

    def fabrics(
        self, values: Sequence[tuple[str, ...]], told: Callable[[int], None]
    ) -> list[Fabric]:
        """Return the fabrics of several pairs of candidate and oversubscription, in order."""
        made = []
        for number, pair in enumerate(values):
            told(number)
            made.append(self.fabric(*pair))
        return made

    def _chosen(self, candidate: str) -> Candidate:
        assert self._requirement is not None
        name = candidate or self._candidate
        if name is not None:
            return self._requirement.candidate(name)
        entries = self._requirement.candidates
        if len(entries) > 1:
            raise InputError(
                Fault(
                    "--candidate",
                    _("the spec has {n} candidates.").format(n=len(entries)),
                    _("one of {names}").format(names=", ".join(entry.name for entry in entries)),
                )
            )
        return entries[0]


def _needs_spec(where: str, path: Path) -> InputError:
    return InputError(
        Fault(
            where,
            _("{path} is a fabric that is made already.").format(path=path),
            _("a spec (.yaml), from which fabrics can be designed"),
        )
    )


def ratio_of(text: str) -> float:
    """Return an oversubscription written as ``2`` or ``2:1``.

    Raises
    ------
    InputError
        If the text is none, or out of range.

    Examples
    --------
    >>> ratio_of("2:1"), ratio_of("1.5")
    (2.0, 1.5)
    """
    down, colon, up = text.partition(":")
    try:
        ratio = float(down) / (float(up) if colon else 1.0)
    except (ValueError, ZeroDivisionError):
        ratio = 0.0
    if not 0.25 <= ratio <= 100:
        what = _('"{text}" is no oversubscription.').format(text=text[:64])
        raise InputError(
            Fault("--sweep oversubscription", what, _("a ratio such as 2 or 2:1, 0.25 to 100"))
        )
    return ratio
