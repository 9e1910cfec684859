"""The packaged device files parsed once: JSON that counts only while the files are unchanged.

Reading some hundred YAML files takes most of a second. ``compiled.json`` holds their content
and a digest of their bytes; where the digest does not match, the YAML files are read instead.
``scripts/compile_catalog.py`` writes it anew.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import json
from collections.abc import Mapping
from importlib.resources.abc import Traversable

from gpufabric.core.errors import InputError
from gpufabric.model.yaml_source import Content, read_yaml

__all__ = ["compiled_text", "device_files", "packaged_devices"]

FOLDERS = ("equipment", "hosts", "nics", "parts", "rules", "switches")


def _root() -> Traversable:
    return importlib.resources.files("gpufabric.catalog")


def device_files() -> dict[str, bytes]:
    """Return the content of every packaged device file by ``folder/file.yaml``, in order."""
    found = {}
    for folder in FOLDERS:
        for entry in (_root() / "devices" / folder).iterdir():
            if entry.name.endswith(".yaml"):
                found[f"{folder}/{entry.name}"] = entry.read_bytes()
    return dict(sorted(found.items()))


def _digest(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def compiled_text(files: Mapping[str, bytes]) -> str:
    """Return the text of ``compiled.json`` for `files`: a line with the digest, one a device."""
    lines = [
        f"{json.dumps(name)}: {json.dumps(_content(name, content), ensure_ascii=False)}"
        for name, content in files.items()
    ]
    head = json.dumps(_digest(files))
    return '{"digest": ' + head + ',\n"devices": {\n' + ",\n".join(lines) + "\n}}\n"


def _content(name: str, raw: bytes) -> Content:
    document = read_yaml(raw, name)
    if document.faults:
        raise InputError(document.faults)
    return document.content()


def packaged_devices() -> str:
    """Return the packaged devices as JSON text: an object of file names and contents."""
    files = device_files()
    head, _newline, body = _read().partition("\n")
    if head == '{"digest": ' + json.dumps(_digest(files)) + ",":
        return "{" + body
    return "{" + compiled_text(files).partition("\n")[2]


def _read() -> str:
    try:
        return (_root() / "compiled.json").read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
