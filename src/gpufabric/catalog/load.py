"""Loading the catalogue: the packaged devices, and a user's own that override or add."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from gpufabric.catalog.collection import FAILURE_RATES, GENERIC_HOST, MEDIA_RULE, Catalog
from gpufabric.catalog.compiled import device_files, packaged_devices
from gpufabric.catalog.faults import faults_of
from gpufabric.catalog.groups import Frozen, Range
from gpufabric.catalog.host import Host
from gpufabric.catalog.identity import lookup_key
from gpufabric.catalog.models import DEVICE_KINDS, AnyDevice, Device
from gpufabric.catalog.nic import Nic
from gpufabric.catalog.part import Part
from gpufabric.catalog.rule import Equipment, FailureRates, MediaRule
from gpufabric.catalog.switch import Switch
from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.model.yaml_source import Document, read_document, read_yaml

__all__ = ["Catalog", "device_schema", "load_catalog"]

MAX_FILES = 1000
"""Most device files in a user's folder."""

Kept = TypeVar("Kept", bound=AnyDevice)


class _Packaged(Frozen):
    devices: dict[str, Device]


@dataclass(frozen=True)
class _Given:
    """A device of the user, with the file it came from."""

    device: AnyDevice
    document: Document


def load_catalog(extra: Path | None = None) -> Catalog:
    """Return the catalogue: the packaged devices and those of the folder `extra`.

    A device in `extra` with the name of a packaged one replaces it whole; others are added.

    Raises
    ------
    InputError
        With all faults of all files of the folder.
    """
    packaged = _packaged()
    if extra is None:
        return _catalog(packaged, {})
    given = _read_folder(extra)
    faults = [*_name_faults(packaged, given), *_nic_faults(packaged, given)]
    if faults:
        raise InputError(faults)
    devices = {**packaged, **{item.device.name: item.device for item in given}}
    return _catalog(devices, {item.device.name: item.document.where for item in given})


def device_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a device file whose ``device`` key is `kind`.

    Raises
    ------
    InputError
        If there is no such kind.
    """
    if kind not in DEVICE_KINDS:
        raise InputError(_unknown_kind("device", kind))
    schema = DEVICE_KINDS[kind].model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _unknown_kind(where: str, kind: object) -> Fault:
    return Fault(
        where,
        _('"{value}" found.').format(value=kind),
        _("one of {names}").format(names=", ".join(DEVICE_KINDS)),
        nearest(str(kind), list(DEVICE_KINDS)),
    )


@functools.cache
def _packaged() -> Mapping[str, AnyDevice]:
    try:
        read = TypeAdapter(_Packaged).validate_json(packaged_devices())
    except ValidationError:
        given = _checked(read_yaml(content, name) for name, content in device_files().items())
        return {item.device.name: item.device for item in given}
    return {device.name: device for device in read.devices.values()}


def _read_folder(folder: Path) -> list[_Given]:
    if not folder.is_dir():
        raise InputError(
            Fault(
                str(folder),
                _("there is no such folder."),
                remedy=_("Name a folder with device files."),
            )
        )
    paths = sorted(path for path in folder.rglob("*") if path.suffix in {".yaml", ".yml"})
    if not paths or len(paths) > MAX_FILES:
        raise InputError(
            Fault(
                str(folder),
                _("{count} device files found.").format(count=len(paths)),
                _("1 to {limit} files that end in .yaml").format(limit=MAX_FILES),
            )
        )
    documents: list[Document] = []
    faults: list[Fault] = []
    for path in paths:
        try:
            documents.append(read_document(path, str(path)))
        except InputError as error:
            faults.extend(error.faults)
    try:
        given = _checked(documents)
    except InputError as error:
        raise InputError([*faults, *error.faults]) from error
    if faults:
        raise InputError(faults)
    return given


def _checked(documents: Iterable[Document]) -> list[_Given]:
    """Return the devices of the files, or raise all faults of all of them."""
    given: list[_Given] = []
    faults: list[Fault] = []
    for document in documents:
        try:
            given.append(_Given(_device(document), document))
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(faults)
    return given


def _device(document: Document) -> AnyDevice:
    content = document.content()
    assert isinstance(content, dict)
    kind = content.get("device")
    if not isinstance(kind, str) or kind not in DEVICE_KINDS:
        if "device" not in content:
            raise InputError(
                Fault(
                    document.at(("device",)),
                    _('"{key}" is missing.').format(key="device"),
                    _("one of {names}").format(names=", ".join(DEVICE_KINDS)),
                    _("Add it."),
                )
            )
        raise InputError(_unknown_kind(document.at(("device",)), kind))
    model = DEVICE_KINDS[kind]
    try:
        device = model.model_validate_json(json.dumps(content))
    except ValidationError as error:
        raise InputError([*document.faults, *faults_of(error, document, model)]) from error
    if document.faults:
        raise InputError(document.faults)
    return device


def _name_faults(packaged: Mapping[str, AnyDevice], given: Iterable[_Given]) -> Iterable[Fault]:
    """Give a fault for each name or alias that already means another device."""
    given = list(given)
    replaced = {item.device.name for item in given}
    owner: dict[str, tuple[str, str]] = {}
    for device in packaged.values():
        if device.name not in replaced:
            for name in (device.name, *device.aliases):
                owner[lookup_key(name)] = (device.name, "")
    for item in given:
        known = packaged.get(item.device.name)
        if known is not None and known.device != item.device.device:
            yield Fault(
                item.document.at(("device",)),
                _('"{name}" is a {kind} in the catalogue.').format(
                    name=known.name, kind=known.device
                ),
                remedy=_("Choose another name."),
            )
        for path, name in _names_of(item.device):
            taken = owner.setdefault(lookup_key(name), (item.device.name, item.document.where))
            if taken != (item.device.name, item.document.where):
                yield Fault(
                    item.document.at(path),
                    _('"{name}" already names the device {other}.').format(
                        name=name, other=f"{taken[0]} ({taken[1]})" if taken[1] else taken[0]
                    ),
                    remedy=_("Choose another name."),
                )


def _names_of(device: AnyDevice) -> list[tuple[tuple[str | int, ...], str]]:
    aliases = [(("aliases", index), alias) for index, alias in enumerate(device.aliases)]
    return [(("name",), device.name), *aliases]


def _nic_faults(packaged: Mapping[str, AnyDevice], given: Iterable[_Given]) -> Iterable[Fault]:
    """Give a fault for each host whose NIC is not in the catalogue."""
    devices = [*packaged.values(), *(item.device for item in given)]
    nics = sorted({device.name for device in devices if isinstance(device, Nic)})
    for item in given:
        if isinstance(item.device, Host) and item.device.nics.model not in nics:
            model = item.device.nics.model
            yield Fault(
                item.document.at(("nics", "model")),
                _('there is no NIC "{name}" in the catalogue.').format(name=model),
                remedy=nearest(model, nics),
            )


def _only(devices: Mapping[str, AnyDevice], kind: type[Kept]) -> dict[str, Kept]:
    return {name: device for name, device in sorted(devices.items()) if isinstance(device, kind)}


def _catalog(devices: Mapping[str, AnyDevice], origins: Mapping[str, str]) -> Catalog:
    rates, media, generic = (devices[name] for name in (FAILURE_RATES, MEDIA_RULE, GENERIC_HOST))
    assert isinstance(rates, FailureRates)
    assert isinstance(media, MediaRule)
    assert isinstance(generic, Host)
    full = {name: _with_failure_rate(device, rates) for name, device in devices.items()}
    switches = _only(full, Switch)
    boxes: dict[str, Equipment | Switch] = {
        **_only(full, Equipment),
        **{name: item for name, item in switches.items() if item.role_hint == "management"},
    }
    return Catalog(
        switches=switches,
        nics=_only(full, Nic),
        hosts=_only(full, Host),
        parts=_only(full, Part),
        equipment=dict(sorted(boxes.items())),
        media_rule=media,
        failure_rates=rates,
        origins=dict(sorted(origins.items())),
    )


def _with_failure_rate(device: AnyDevice, rates: FailureRates) -> AnyDevice:
    """Return the device, with the rate of its class where it states none of its own."""
    rate: Range | None = None
    if isinstance(device, Switch) and device.deployable:
        rate = rates.switch
    elif isinstance(device, Nic):
        rate = rates.nic
    elif isinstance(device, Part):
        rate = _part_rate(device, rates)
    if rate is None or isinstance(device, MediaRule | FailureRates):
        return device
    if device.annual_failure_rate is not None:
        return device
    return device.model_copy(update={"annual_failure_rate": rate})


def _part_rate(part: Part, rates: FailureRates) -> Range:
    if part.form == "transceiver":
        return rates.transceiver
    if part.form == "aoc":
        return rates.aoc
    if part.form == "dac":
        return rates.copper
    return rates.active_copper if part.form in {"acc", "aec"} else rates.fibre
