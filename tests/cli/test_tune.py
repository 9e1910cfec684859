"""``tune ecn``, as a user types it, and the search behind it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from gpufabric.model.files import save_fabric
from gpufabric.sim.ecn_search import EcnSetting, SearchResult, search_ecn, with_setting
from gpufabric.sim.packet_prepared import prepare
from gpufabric.sim.profile import PROFILES
from gpufabric.sim.profile_file import read_profile, with_value
from gpufabric.sim.routing_choice import Routing
from gpufabric.sim.scenario import Scenario
from gpufabric.sim.traffic import PatternOptions
from tests.cli.running import Ended, run
from tests.sim.plants import HALF_SMALL_LEAFS, RAIL, fabric, plant

Capture = pytest.CaptureFixture[str]

QUICK = ("--traffic", "incast", "--fan-in", "4", "--bytes", "200KB", "--seeds", "1", "--jobs", "1")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tune")
    save_fabric(fabric(RAIL), folder / "rail.fab")
    return folder


def tune(capsys: Capture, made: Path, *words: str) -> Ended:
    return run(capsys, "tune", "ecn", str(made / "rail.fab"), *words)


@cache
def found() -> SearchResult:
    """Sixteen to one through a buffer that is small."""
    small = with_value(PROFILES["roce-default"](), "buffer.total_bytes", "8000000", "")
    scenario = Scenario(
        "incast",
        options=PatternOptions(size_bytes=5e5, fan_in=16),
        routing=Routing("ecmp"),
        engine="packet",
        profile=small,
    )
    run_ready = prepare(plant(HALF_SMALL_LEAFS, gpus=32), scenario)
    return search_ecn(run_ready, 1, 5e-3, 0.01, lambda _n, _all: None)


def test_the_best_has_the_shortest_tail_at_full_goodput() -> None:
    result = found()
    full = max(one.goodput_gbps for one in result.tried if one.drops == 0) * 0.99
    assert result.best.drops == 0
    assert result.best.goodput_gbps >= full
    rivals = [one for one in result.tried if one.drops == 0 and one.goodput_gbps >= full]
    assert result.best.tail_us == min(one.tail_us for one in rivals)
    assert result.best.tail_us <= result.before.tail_us or result.before.goodput_gbps < full


def test_settings_as_good_as_the_best_are_counted() -> None:
    result = found()
    assert result.best in result.equals
    assert all(one.tail_us <= 1.01 * result.best.tail_us for one in result.equals)
    assert result.before in result.equals
    assert result.best.pauses < result.before.pauses  # what decided
    best = result.best
    worse = (
        replace(best, tail_us=best.tail_us * 1.02),
        replace(best, drops=1.0),
        replace(best, goodput_gbps=best.goodput_gbps * 0.98),
    )
    assert replace(result, tried=(best, *worse)).equals == (best,)


def test_no_setting_is_tried_twice_and_the_search_ends_at_a_best() -> None:
    result = found()
    settings = [one.setting for one in result.tried]
    assert len(set(settings)) == len(settings) > 33
    best = result.best.setting
    assert best._replace(alpha_log2=best.alpha_log2 - 1) in settings
    assert all(one.kmin_bytes <= one.kmax_bytes for one in settings)


def test_a_setting_changes_thresholds_and_alpha_alone() -> None:
    profile = PROFILES["roce-default"]()
    tuned = with_setting(profile, EcnSetting(1e4, 4e4, 0.5, 1), "mine")
    assert tuned.config.ecn is not None
    assert (tuned.config.ecn.kmin_bytes, tuned.config.ecn.kmax_bytes) == (1e4, 4e4)
    assert tuned.config.buffer.alpha_log2 == 1
    assert (tuned.name, tuned.config.dcqcn) == ("mine", profile.config.dcqcn)


def test_a_profile_is_written_that_a_run_takes(capsys: Capture, made: Path, tmp_path: Path) -> None:
    path = tmp_path / "tuned.yaml"
    ended = tune(capsys, made, *QUICK, "-o", str(path))
    assert (ended.code, ended.err) == (0, "")
    for words in ("Kmin", "FCT p99.9", "before", "best", "Traffic: incast", str(path)):
        assert words in ended.out
    assert path.read_text(encoding="utf-8").startswith("# Found by gpufabric tune ecn for ")
    profile = read_profile(path)
    assert profile.name == "roce-tuned"
    words = ("--engine", "packet", "--profile", str(path), "--bytes", "100KB", "--json")
    ran = run(capsys, "simulate", "traffic", str(made / "rail.fab"), *words)
    assert json.loads(ran.out)["profile"] == profile.to_json()


def test_json_tells_all_that_was_tried_and_assumed(capsys: Capture, made: Path) -> None:
    ended = tune(capsys, made, *QUICK, "--json")
    content = json.loads(ended.out)
    assert content["best"] in content["tried"]
    assert content["before"] == content["tried"][0]
    assert len(content["assumed"]) == 5
    # Four short messages fill no queue.
    assert "the one before too, have a tail within 1.0% of the shortest" in content["assumed"][4]
    assert content["profile"]["ecn"]["kmin_bytes"] == content["best"]["kmin_bytes"]
    assert tune(capsys, made, *QUICK, "--json").out == ended.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--seeds", "0"), ["--seeds: 0 runs."]),
        (("--tolerance", "1"), ["--tolerance: the value is 1"]),
        (("--jobs", "0"), ["--jobs: 0 jobs."]),
        (("--profile", "roce-defalt"), ['Did you mean "roce-default"?']),
        (("--profile", "infiniband-default"), ["no class of this profile is marked"]),
        (("-o", "out.txt"), ["-o: out.txt is no profile."]),
        (("--traffic", "incats"), ['Did you mean "incast"?']),
        (("--bytes", "many"), ["--bytes"]),
        (("--candidate", "x"), ["--candidate"]),
        (("--seeds", "0", "--tolerance", "-1"), ["--seeds", "--tolerance"]),
    ],
)
def test_what_is_wrong_is_told(
    capsys: Capture, made: Path, words: tuple[str, ...], expected: list[str]
) -> None:
    ended = tune(capsys, made, *words)
    assert (ended.code, ended.out) == (2, "")
    assert "Traceback" not in ended.err
    for said in expected:
        assert said in ended.err
