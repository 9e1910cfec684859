"""The matrix of ``nvidia-smi topo -m``: all shared ones parse, damage gives line and reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.core.errors import InputError
from gpufabric.parse.nvidia_smi_topo import n_nvlinks, parse_nvidia_smi_topo

MATRIX = """\
\t\x1b[4mGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV12\tPIX\tSYS\t0-23\t0\t\tN/A
GPU1\tNV12\t X \tSYS\tPXB\t24-47\t1\t\tN/A
NIC0\tPIX\tSYS\t X \tSYS\t\t\t\t
NIC1\tSYS\tPXB\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  PIX  = Connection traversing at most a single PCIe bridge

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_3
"""


def fault_places(text: str) -> list[str]:
    """Where an InputError points; empty where the text is read."""
    try:
        parse_nvidia_smi_topo(text, "smi")
    except InputError as error:
        return [fault.where for fault in error.faults]
    return []


def test_every_shared_file_parses(shared: Path) -> None:
    files = sorted((shared / "measurements" / "topo").glob("smi_*.txt"))
    assert len(files) >= 11
    for path in files:
        found = parse_nvidia_smi_topo(path.read_text(), path.name)
        assert len(found.gpus) in {2, 4, 8}, path.name
        assert bool(found.warnings) == ("partial" in path.name), path.name
        assert found.relation("GPU0", "GPU1") is not None, path.name


def test_a_whole_matrix() -> None:
    found = parse_nvidia_smi_topo(MATRIX)
    assert found.gpus == ("GPU0", "GPU1")
    assert found.nics == ("NIC0", "NIC1")
    assert found.relation("GPU1", "NIC1") == "PXB"
    assert n_nvlinks(found.relation("GPU0", "GPU1")) == 12
    assert found.cpu_affinity == {"GPU0": "0-23", "GPU1": "24-47"}
    assert found.numa == {"GPU0": 0, "GPU1": 1}
    assert found.nic_names == {"NIC0": "mlx5_0", "NIC1": "mlx5_3"}
    assert not found.warnings


def test_text_around_the_matrix_is_passed_over() -> None:
    found = parse_nvidia_smi_topo("$ nvidia-smi topo -m\n\n" + MATRIX)
    assert found.lines["GPU0"] == 4


@pytest.mark.parametrize(
    ("old", "new", "where", "reason"),
    [
        ("\tSYS\t0-23\t0\t\tN/A", "", "smi:2", "GPU0 has 3 cells"),
        ("\tPXB\t24", "\tPXA\t24", "smi:3", '"PXA" is no relation'),
        ("NIC1\tSYS\tPXB", "NIC0\tSYS\tPXB", "smi:5", "NIC0 has two rows"),
        ("GPU1\tNV12\t X ", "GPU7\tNV12\t X ", "smi:3", "GPU7 is not in the header"),
        ("GPU0\tGPU1\tNIC0", "cuda\tGPU1\tNIC0", "smi", "no line that names GPUs"),
    ],
)
def test_damage_gives_line_and_reason(old: str, new: str, where: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_nvidia_smi_topo(MATRIX.replace(old, new), "smi")
    messages = [str(fault) for fault in caught.value.faults]
    assert any(text.startswith(f"{where}:") and reason in text for text in messages), messages


def test_a_contradiction_is_a_warning() -> None:
    found = parse_nvidia_smi_topo(MATRIX.replace("GPU1\tNV12", "GPU1\tNV10"), "smi")
    assert "GPU0 to GPU1 is NV12, back it is NV10" in str(found.warnings[0])


@given(st.integers(0, len(MATRIX)), st.text(max_size=6))
def test_any_damage_is_an_input_error_or_no_damage(at: int, text: str) -> None:
    places = fault_places(MATRIX[:at] + text + MATRIX[at + 3 :])
    assert all(place.startswith("smi") for place in places)
