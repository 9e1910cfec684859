"""Settings that are allowed and hardly meant are warned of, wherever the profile is used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpufabric.model.files import save_fabric
from gpufabric.sim.packet_config import ClassKind, Ecn, PacketConfig, PortOverride, TrafficClass
from gpufabric.sim.packet_doubts import doubts
from tests.cli.running import Ended, run
from tests.sim.plants import RAIL, fabric

Capture = pytest.CaptureFixture[str]

WRONG = Ecn(1_600_000.0, 400_000.0)
MARKED, UNMARKED = (
    TrafficClass(ClassKind.LOSSLESS, is_marked=is_marked) for is_marked in (True, False)
)
QUICK = ("--bytes", "100KB", "--fan-in", "2", "--jobs", "1", "--json")
SAID = "Kmin is above Kmax"


@pytest.mark.parametrize(
    ("config", "places"),
    [
        (PacketConfig(), []),
        (PacketConfig(ecn=Ecn(400_000.0, 400_000.0)), []),
        (PacketConfig(classes=(MARKED,), ecn=WRONG), ["ecn"]),
        (PacketConfig(classes=(UNMARKED,), ecn=WRONG), []),
        (
            PacketConfig(classes=(TrafficClass(ClassKind.LOSSLESS, is_marked=True, ecn=WRONG),)),
            ["classes[0].ecn"],
        ),
        (
            PacketConfig(classes=(MARKED,), overrides=(PortOverride(kmin_bytes=5e6),)),
            ["overrides[0]"],
        ),
        (PacketConfig(classes=(MARKED,), overrides=(PortOverride(kmin_bytes=1e6),)), []),
        (
            PacketConfig(
                classes=(MARKED,), overrides=(PortOverride(kmin_bytes=5e6, is_marked=False),)
            ),
            [],
        ),
        (
            PacketConfig(
                classes=(MARKED, UNMARKED), overrides=(PortOverride(kmax_bytes=1.0, classes=(1,)),)
            ),
            [],
        ),
    ],
)
def test_thresholds_the_wrong_way_round(config: PacketConfig, places: list[str]) -> None:
    assert [one.topic for one in doubts(config)] == places
    assert all(one.is_warning for one in doubts(config))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("doubts")
    save_fabric(fabric(RAIL), folder / "rail.fab")
    text = "base: roce-tuned\necn: {kmin_bytes: 6400000, kmax_bytes: 1600000}\n"
    (folder / "odd.yaml").write_text(text, encoding="utf-8")
    return folder


def with_odd(capsys: Capture, made: Path, *words: str) -> Ended:
    ended = run(capsys, *words, str(made / "rail.fab"), "--profile", str(made / "odd.yaml"))
    assert (ended.code, ended.err) == (0, "")
    return ended


def test_a_run_warns(capsys: Capture, made: Path) -> None:
    words = ("simulate", "traffic", "--engine", "packet", "--pattern", "incast", "--fan-in", "2")
    ended = with_odd(capsys, made, *words, "--bytes", "100KB", "--json")
    warned = [one for one in json.loads(ended.out)["decisions"] if one["topic"] == "ecn"]
    assert [(one["warning"], one["choice"]) for one in warned] == [
        (True, "6,400,000 > 1,600,000 B")
    ]
    assert SAID in warned[0]["why"]


def test_a_comparison_warns(capsys: Capture, made: Path) -> None:
    words = ("simulate", "compare", "--pattern", "incast", "--variant", "roce-tuned")
    ended = with_odd(capsys, made, *words, "--iterations", "1", *QUICK)
    assert [SAID in one for one in json.loads(ended.out)["warnings"]] == [True]


def test_a_search_warns(capsys: Capture, made: Path) -> None:
    ended = with_odd(capsys, made, "tune", "ecn", "--traffic", "incast", "--seeds", "1", *QUICK)
    assert sum(SAID in one for one in json.loads(ended.out)["assumed"]) == 1


def test_a_sweep_names_the_points_once(capsys: Capture, tmp_path: Path) -> None:
    save_fabric(fabric(RAIL), tmp_path / "rail.fab")
    words = ("simulate", "traffic", str(tmp_path / "rail.fab"), "--engine", "packet")
    axes = ("--sweep", "ecn.kmin_bytes=1e5,3e6", "--sweep", "ecn.kmax_bytes=2e5,4e6")
    few = ("--pattern", "incast", *QUICK[:-1], "--seeds", "2")
    folder = tmp_path / "out"
    ended = run(capsys, *words, *few, *axes, "-o", str(folder))
    assert (ended.code, ended.err) == (0, "")
    told = " ".join(ended.out.split())
    assert told.count(SAID) == 1
    assert "ecn.kmin_bytes=3e6 ecn.kmax_bytes=2e5" in told
    (warning,) = json.loads((folder / "sweep.json").read_text())["warnings"]
    assert warning in told
    assert "ecn.kmin_bytes=3e6" in (folder / "sweep.html").read_text()
    right = run(capsys, *words, *few, "--sweep", "ecn.kmin_bytes=1e5,2e5", "--json")
    assert json.loads(right.out)["warnings"] == []
    fault = ("--fault", "override switches=leaf-su01-r1 kmin_bytes=3e6 kmax_bytes=1e6")
    wrong = run(capsys, *words, *few, "--sweep", "ecn.pmax=0.1,0.2", *fault, "--json")
    (warning,) = json.loads(wrong.out)["warnings"]
    assert "ecn.pmax=0.1; ecn.pmax=0.2" in warning
