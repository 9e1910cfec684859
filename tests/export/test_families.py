"""Every topology family of the builder: sound, saved and read back, and in every format."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpufabric.core.errors import UnsupportedError
from gpufabric.export import EXPORTS, export_fabric
from gpufabric.export.ibsim import ibsim_netlist
from gpufabric.model.check import check_fabric
from gpufabric.model.fabric import Fabric
from gpufabric.model.files import load_fabric, save_fabric
from tests.export.designs import designed, options
from tests.export.subnet import cables

CANDIDATES = {
    "single": ("64", "dgx-h100", "{fabric: roce, switch: sn5600, topology: single}"),
    "small": ("64", "dgx-h100", "{fabric: infiniband}"),
    "rail": ("1000", "dgx-h100", "{fabric: infiniband, topology: rail}"),
    "fat tree": ("1000", "dgx-h100", "{fabric: roce, switch: sn5600, topology: fat-tree}"),
    "three tiers": ("2048", "dgx-h100", "{fabric: infiniband, topology: rail, tiers: 3}"),
    "rail only": ("512", "dgx-h100", "{fabric: infiniband, topology: rail-only}"),
    "dual ToR": ("1024", "dgx-h100", "{fabric: roce, switch: sn5600, topology: dual-tor}"),
    "planes": ("1024", "dgx-b300", "{fabric: roce, switch: sn5600, topology: multi-plane}"),
    "dragonfly+": ("2048", "dgx-h100", "{fabric: infiniband, topology: dragonfly+}"),
    "NVL72": ("1152", "gb300-nvl72", "{fabric: infiniband, switch: q3400-ra}"),
    "growth": ("512", "dgx-h100", "{fabric: infiniband, topology: rail}\ngrowth: {gpus: 1024}"),
}


@pytest.fixture(params=list(CANDIDATES))
def fabric(request: pytest.FixtureRequest) -> Fabric:
    gpus, host, candidate = CANDIDATES[request.param]
    first, *rest = candidate.split("\n")
    return designed("\n".join([f"gpus: {gpus}", f"host: {host}", f"candidates: [{first}]", *rest]))


def test_it_is_sound_and_survives_both_forms(fabric: Fabric, tmp_path: Path) -> None:
    assert check_fabric(fabric) == []
    for suffix in (".json", ".fab"):
        assert load_fabric(save_fabric(fabric, tmp_path / f"f{suffix}")) == fabric


@pytest.mark.parametrize("stage", [0, 1])
def test_every_format_takes_it_or_says_why_not(fabric: Fabric, stage: int) -> None:
    of_roce = {"air", "containerlab", "ptm"}
    refused = {"ibsim"} if fabric.protocol == "roce" else of_roce
    for export in EXPORTS:
        if export.name in refused:
            with pytest.raises(UnsupportedError, match=fabric.protocol):
                export_fabric(fabric, export.name, options(stage=stage))
        else:
            assert export_fabric(fabric, export.name, options(stage=stage))


def test_the_subnets_hold_every_link(fabric: Fabric) -> None:
    if fabric.protocol == "infiniband":
        texts = ibsim_netlist(fabric, options(stage=1)).values()
        assert sum(len(cables(text)) for text in texts) == len(fabric.links)
    else:
        with pytest.raises(UnsupportedError):
            ibsim_netlist(fabric, options())
