"""The spec: what network a user asks for, read from YAML and checked as a whole.

``load_requirement`` reads a file; all that is wrong in it is told at once, each fault with
file, line, column and the field's path.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.model.known_names import KnownNames, KnownSource
from gpufabric.model.short_forms import long_candidates, long_spec
from gpufabric.model.spec_coherence import (
    FieldFault,
    catalogue_faults,
    coherence_faults,
    not_a_multiple,
)
from gpufabric.model.spec_faults import field_faults, placed_faults
from gpufabric.model.spec_money import CostQuestion, GivenOffers, SpecOffer, Team
from gpufabric.model.spec_parts import (
    MAX_GPUS,
    MAX_HOSTS,
    Candidate,
    GenericHost,
    GivenCandidate,
    GivenManagement,
    GivenStorage,
    Growth,
    ManagementNetwork,
    Oversubscription,
    Parallelism,
    Site,
    SpecPart,
    StorageNetwork,
    SwitchChoice,
    Text,
    Workload,
)
from gpufabric.model.yaml_source import (
    Content,
    Document,
    FieldPath,
    MappingItem,
    path_text,
    read_document,
    read_yaml,
)
from gpufabric.model.yaml_text import printable

__all__ = [
    "Candidate",
    "CostQuestion",
    "GenericHost",
    "Growth",
    "KnownNames",
    "KnownSource",
    "ManagementNetwork",
    "Oversubscription",
    "Parallelism",
    "Requirement",
    "Site",
    "SpecOffer",
    "StorageNetwork",
    "SwitchChoice",
    "Team",
    "Workload",
    "load_requirement",
    "parse_requirement",
    "requirement_schema",
]

MAX_CANDIDATES = 32
SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True)
class _Origin:
    """Where a spec came from; no part of its meaning, so that all origins are equal."""

    document: Document | None = field(default=None, compare=False)
    folder: Path | None = field(default=None, compare=False)


def _host_form(value: object) -> str:
    return "<generic>" if isinstance(value, Mapping | GenericHost) else "<name>"


_GivenHost = Annotated[
    Annotated[Text, Tag("<name>")] | Annotated[GenericHost, Tag("<generic>")],
    Discriminator(_host_form),
]
_GivenCandidates = Annotated[
    tuple[GivenCandidate, ...],
    Field(strict=False, min_length=1, max_length=MAX_CANDIDATES),
    BeforeValidator(
        long_candidates,
        json_schema_input_type=Literal["auto"]
        | Annotated[list[GivenCandidate], Field(min_length=1, max_length=MAX_CANDIDATES)],
    ),
]


class Requirement(SpecPart):
    """A cluster and the networks to compare for it; gpus or hosts, host and candidates suffice."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["gpus"]}, {"required": ["hosts"]}]}
    )

    name: Text | None = Field(
        default=None, description="Title of the design. Left out: the name of the file."
    )
    gpus: int | None = Field(
        default=None,
        ge=1,
        le=MAX_GPUS,
        description="GPUs of the cluster, a multiple of the host's. Left out: hosts says it.",
        examples=[1024],
    )
    hosts: int | None = Field(
        default=None,
        ge=1,
        le=MAX_HOSTS,
        description="Hosts of the cluster. Left out: gpus says it.",
        examples=[128],
    )
    host: _GivenHost = Field(
        description="Host model: a name from the catalogue, or a mapping for one not in it.",
        examples=["dgx-h100"],
    )
    workload: Workload = Field(
        default=Workload(), description="What the cluster runs. Left out: training."
    )
    candidates: _GivenCandidates = Field(
        description="Networks to design and compare: names (infiniband, infiniband-ndr, roce, "
        "roce:sn5600) or mappings. auto: one of each kind, those that are worth it.",
        examples=[["infiniband", "roce"]],
    )
    growth: Growth | None = Field(
        default=None, description="Size to grow to later. Left out: today's size."
    )
    site: Site = Field(
        default=Site(), description="Racks, rows, cables, energy and currency of the site."
    )
    storage: GivenStorage = Field(
        default=StorageNetwork(),
        description="Storage network: true, false, or a mapping. Left out: wanted.",
    )
    management: GivenManagement = Field(
        default=ManagementNetwork(),
        description="Management (out-of-band) network: true, false, or a mapping. "
        "Left out: wanted.",
    )
    team: Team = Field(
        default=Team(), description="Skill of those who will run the network. Left out: basic."
    )
    offers: GivenOffers = Field(
        default=(SpecOffer(name="naas"),),
        description="Networks as a service to hold against buying: true (one, its price reckoned "
        "from a provider's cost), false (none), or a list of offers. Left out: true.",
    )
    cost: CostQuestion = Field(
        default=CostQuestion(),
        description="Time, bounds and assumptions of the cost model.",
    )
    catalog: Text | None = Field(
        default=None,
        description="Folder of your own devices, relative to the spec's file. Left out: none.",
    )
    spares_pct: float | None = Field(
        default=None,
        ge=0,
        le=50,
        description="Spare parts as a share of those in use [%]. Left out: from failure rates.",
    )
    seed: int = Field(
        default=1,
        ge=0,
        le=4_294_967_295,
        description="Seed of everything that is drawn at random.",
    )

    _origin: _Origin = PrivateAttr(default=_Origin())

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        found = [
            f"{path_text(fault.path)}: {fault.what}" for fault in coherence_faults(self._long())
        ]
        if found:
            raise PydanticCustomError("incoherent", "{faults}", {"faults": " ".join(found)})
        return self

    @property
    def catalog_folder(self) -> Path | None:
        """Folder of the user's own devices; None where the spec names none."""
        if self.catalog is None:
            return None
        return (self._origin.folder or Path()) / self.catalog

    def resolved_hosts(self, host_gpus: int) -> int:
        """Return the number of hosts, each of `host_gpus` GPUs.

        Raises
        ------
        InputError
            If the GPUs do not fill whole hosts.
        """
        return self._hosts_of(self.gpus, self.hosts, ("gpus",), host_gpus)

    def resolved_growth_hosts(self, host_gpus: int) -> int:
        """Return the number of hosts to grow to, each of `host_gpus` GPUs; at least today's.

        Raises
        ------
        InputError
            If the GPUs do not fill whole hosts.
        """
        today = self.resolved_hosts(host_gpus)
        if self.growth is None:
            return today
        later = self._hosts_of(self.growth.gpus, self.growth.hosts, ("growth", "gpus"), host_gpus)
        return max(today, later)

    def candidate(self, name: str) -> Candidate:
        """Return the candidate called `name`; its fabric will do where only one has that fabric.

        Raises
        ------
        InputError
            If there is no such candidate.
        """
        wanted = name.strip().lower().replace(":", "-")
        by_name = [
            entry for entry in self.candidates if entry.name.lower().replace(":", "-") == wanted
        ]
        by_fabric = [entry for entry in self.candidates if entry.fabric == wanted]
        if by_name:
            return by_name[0]
        if len(by_fabric) == 1:
            return by_fabric[0]
        names = [entry.name for entry in self.candidates]
        raise InputError(
            Fault(
                self.where("candidates"),
                _('there is no candidate "{name}".').format(name=printable(name)),
                expected=_("one of {names}").format(names=", ".join(names)),
                remedy=nearest(name[:64], names),
            )
        )

    def where(self, *path: str | int) -> str:
        """Return where the field at `path` stands, for a fault: ``file:line:column: path``.

        Where the spec came from no file, the path alone is returned.
        """
        document = self._origin.document
        return path_text(path) if document is None else document.at(path)

    def check_against(self, known: KnownNames) -> None:
        """Hold the spec against the catalogue's names, hosts and switches.

        Raises
        ------
        InputError
            With all faults: unknown names, a switch for another fabric, GPUs that do not
            fill whole hosts.
        """
        long = self._long()
        found = [*coherence_faults(long, known), *catalogue_faults(long, known)]
        document = self._origin.document or Document("", MappingItem.empty())
        if found:
            raise InputError(placed_faults(found, document))

    def _long(self) -> dict[str, Any]:
        return self.model_dump(exclude_unset=True)

    def _hosts_of(
        self, gpus: int | None, hosts: int | None, path: FieldPath, host_gpus: int
    ) -> int:
        if hosts is not None:
            return hosts
        assert gpus is not None, "one of the two is given: _agrees has checked it"
        if gpus % host_gpus:
            found = not_a_multiple(path, gpus, host_gpus)
            raise InputError(Fault(self.where(*path), found.what, found.expected, found.remedy))
        return gpus // host_gpus


def load_requirement(path: Path, known: KnownSource | None = None) -> Requirement:
    """Return the spec in the YAML file `path`.

    Parameters
    ----------
    path
        File to read.
    known
        The catalogue's names, or a function that gives them for the folder that the spec's
        `catalog` names (None where it names none). Left out, names are not checked.

    Raises
    ------
    InputError
        With all faults of the file.
    """
    where = os.fsencode(path).decode("utf-8", "replace")
    return _checked(read_document(path, printable(where, 4096)), known, path.parent)


def parse_requirement(
    text: bytes, where: str, known: KnownSource | None = None, base: Path | None = None
) -> Requirement:
    """Return the spec in the YAML `text`, called `where` in faults.

    Parameters
    ----------
    text
        The YAML, in UTF-8.
    where
        Name of the source, such as a file's name.
    known
        As in `load_requirement`.
    base
        Folder from which the spec's `catalog` is found. Left out: the working folder, and
        whether the catalogue's folder exists is not checked.

    Raises
    ------
    InputError
        With all faults of the text.
    """
    return _checked(read_yaml(text, where), known, base)


def requirement_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a spec, with descriptions and defaults."""
    schema = Requirement.model_json_schema()
    return {
        "$schema": SCHEMA_DIALECT,
        **schema,
        "title": "gpufabric spec",
    }


def _checked(document: Document, known: KnownSource | None, base: Path | None) -> Requirement:
    content = document.content()
    assert isinstance(content, dict), "a document is a mapping: read_yaml has checked it"
    structural: list[FieldFault] = []
    requirement: Requirement | None = None
    try:
        requirement = Requirement.model_validate(content)
    except ValidationError as error:
        structural.extend(field_faults(error, document, requirement_schema()))
    names, noted = _known_names(known, content, base)
    long = long_spec(content)
    found = [*_folder_faults(content, base), *coherence_faults(long, names)]
    if names is not None:
        found.extend(catalogue_faults(long, names))
    told = {fault.path for fault in found}
    found.extend(fault for fault in structural if fault.path not in told)
    faults = placed_faults(found, document, noted)
    if faults or requirement is None:
        raise InputError(faults)
    requirement._origin = _Origin(document, base)  # noqa: SLF001 - the maker sets it
    return requirement


def _known_names(
    known: KnownSource | None, content: Mapping[str, Content], base: Path | None
) -> tuple[KnownNames | None, tuple[Fault, ...]]:
    """Return the catalogue's names, and the faults of the user's own catalogue."""
    if known is None or isinstance(known, KnownNames):
        return known, ()
    catalog = content.get("catalog")
    folder = (base or Path()) / catalog if isinstance(catalog, str) and catalog else None
    if folder is not None and not _is_folder(folder):
        return None, ()
    try:
        return known(folder), ()
    except InputError as error:
        return None, error.faults


def _folder_faults(content: Mapping[str, Content], base: Path | None) -> list[FieldFault]:
    catalog = content.get("catalog")
    if base is None or not isinstance(catalog, str) or not catalog or _is_folder(base / catalog):
        return []
    return [
        FieldFault(
            ("catalog",),
            _('there is no folder "{folder}" beside the spec.').format(folder=printable(catalog)),
            expected=_("a folder with device files"),
        )
    ]


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
