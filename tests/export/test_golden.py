"""Every export of two small fabrics, to be looked at by eye when it changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpufabric.export import EXPORTS, export_fabric
from tests.export.designs import SMALL, SMALL_ROCE, by_hand, options
from tests.model.make_fabric import Shape

FOLDER = Path(__file__).parent / "golden"
REFUSED = {("infiniband", "air"), ("infiniband", "containerlab"), ("infiniband", "ptm")} | {
    ("roce", "ibsim")
}
CASES = [
    (shape, export.name)
    for shape in (SMALL, SMALL_ROCE)
    for export in EXPORTS
    if (by_hand(shape).protocol, export.name) not in REFUSED
]


@pytest.mark.parametrize(
    ("shape", "name"), CASES, ids=[f"{by_hand(shape).protocol}-{name}" for shape, name in CASES]
)
def test_text_is_as_it_was(shape: Shape, name: str, golden: Callable[[Path, str], None]) -> None:
    fabric = by_hand(shape)
    for file, text in export_fabric(fabric, name, options()).items():
        path = FOLDER / fabric.protocol / name / file
        golden(path, text.replace(fabric.content_hash, "CONTENT-HASH"))
