"""The same traffic under several settings: what each misconfiguration costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gpufabric.sim.compare import Compared, Trial, run_trials
from gpufabric.sim.compare_variants import MISCONFIGURATIONS, Variant, meanings, variants_of
from gpufabric.sim.packet_prepared import PreparedRun, prepare
from gpufabric.sim.profile import PROFILES
from gpufabric.sim.profile_file import with_value
from gpufabric.sim.routing_choice import Routing
from gpufabric.sim.scenario import Scenario
from gpufabric.sim.sweep_journal import open_journal
from gpufabric.sim.traffic import PatternOptions
from tests.sim.plants import HALF_SMALL_LEAFS, plant

SMALL_BUFFER = with_value(
    PROFILES["roce-default"](), "buffer.total_bytes", "8000000", "buffer.total_bytes"
)
INCAST = Scenario(
    "incast",
    options=PatternOptions(size_bytes=1e6, fan_in=16),
    routing=Routing("ecmp"),
    engine="packet",
    profile=SMALL_BUFFER,
)


@cache
def prepared(protocol: str = "roce") -> PreparedRun:
    scenario = INCAST
    if protocol == "infiniband":
        profile = PROFILES["infiniband-default"]()
        scenario = replace(INCAST, routing=Routing("minhop"), profile=profile)
    return prepare(plant(HALF_SMALL_LEAFS, gpus=32), scenario)


@cache
def found(iterations: int = 3) -> dict[str, Compared]:
    run = prepared()
    variants = variants_of(run, SMALL_BUFFER, tuple(meanings()))
    lanes = Variant("infiniband", "infiniband", PROFILES["infiniband-default"]())
    trials = [Trial("small", lanes, 1), *(Trial("small", one, 0) for one in variants)]
    told: list[int] = []
    runs = [run, prepared("infiniband")]
    rows = run_trials(trials, runs, iterations, (5.0, 8e-3), told.append)
    assert told[-1] == len(trials) * iterations
    return {one.trial.variant.name: one for one in rows}


def test_every_variant_is_there_and_has_a_meaning() -> None:
    assert set(found()) == set(meanings())
    assert {"infiniband", "roce-tuned", "roce-default", *MISCONFIGURATIONS} == set(meanings())


@pytest.mark.parametrize(
    "name",
    ["infiniband", "roce-tuned", "ecn-off", "no-rate-control", "kmin-above-kmax-on-one-switch"],
)
def test_lossless_variants_drop_nothing_and_finish(name: str) -> None:
    row = found()[name].summary()
    assert row["per_iteration"]["drops"] == 0
    assert row["unfinished_flows"] == 0
    assert row["iteration_us"]["p50"] <= row["iteration_us"]["p99"] <= row["iteration_us"]["max"]


@pytest.mark.parametrize(
    "name",
    [
        "pfc-off",
        "pfc-off-on-one-switch",
        "pfc-on-another-priority",
        "lossy-on-one-switch",
        "headroom-short",
    ],
)
def test_what_takes_losslessness_away_drops_and_repeats(name: str) -> None:
    row = found()[name].summary()["per_iteration"]
    assert row["drops"] > 0
    assert row["repeats"] > 0


def test_each_fault_shows_its_own_symptom() -> None:
    rows = {name: one.summary() for name, one in found().items()}
    tuned = rows["roce-tuned"]
    assert tuned["per_iteration"]["ecn_marks"] > 0
    assert rows["ecn-off"]["per_iteration"]["ecn_marks"] == 0
    assert rows["ecn-off"]["per_iteration"]["cnps"] == 0
    for name in ("mtu-mismatch", "pause-storm"):
        assert rows[name]["unfinished_flows"] > 0
        assert rows[name]["iteration_us"] is None
        assert rows[name]["coefficient_of_variation"] is None
    slow = rows["slow-host"]["iteration_us"]["p50"]
    assert slow > 1.5 * tuned["iteration_us"]["p50"]
    assert rows["half-speed-link"]["iteration_us"]["p50"] > 1.5 * tuned["iteration_us"]["p50"]
    assert rows["half-speed-link"]["per_iteration"]["drops"] == 0
    assert rows["link-flap"]["per_iteration"]["drops"] > 0
    spoilt = rows["bit-errors"]["per_iteration"]
    assert spoilt["drops"] > 0
    assert spoilt["repeats"] > 0


def test_iterations_differ_and_are_the_same_again_in_any_chunks() -> None:
    one = found()["roce-default"]
    took_s = [it.took_s for it in one.iterations]
    assert len(set(took_s)) == len(took_s)
    trial = Trial("small", one.trial.variant, 0)
    (again,) = run_trials([trial], [prepared()], 7, (5.0, 8e-3), lambda _n: None)
    assert [it.took_s for it in again.iterations][:3] == took_s
    (still,) = run_trials([trial], [prepared()], 1, (0.0, 8e-3), lambda _n: None)
    assert still.summary()["coefficient_of_variation"] is None


class CutError(Exception):
    """The run is cut off."""


def test_a_comparison_that_was_cut_off_goes_on_where_it_was(tmp_path: Path) -> None:
    trials = [one.trial for one in found().values() if one.trial.prepared == 0][:2]

    def cut(n: int) -> None:
        if n >= 5:
            raise CutError

    def done(told: Callable[[int], None]) -> list[Compared]:
        with open_journal(tmp_path / "compare.jsonl") as journal:
            return run_trials(trials, [prepared()], 7, (5.0, 8e-3), told, journal)

    with pytest.raises(CutError):
        done(cut)
    told: list[int] = []
    again = done(told.append)
    assert told[0] == 5
    assert told[-1] == 14
    whole = run_trials(trials, [prepared()], 7, (5.0, 8e-3), lambda _n: None)
    assert [one.summary() for one in again] == [one.summary() for one in whole]
    written = (tmp_path / "compare.jsonl").read_bytes()
    told.clear()
    done(told.append)
    assert told == [14]
    assert (tmp_path / "compare.jsonl").read_bytes() == written
    with open_journal(tmp_path / "compare.jsonl") as journal:
        run_trials(trials, [prepared()], 7, (6.0, 8e-3), told.append, journal)
    assert told[1] == 0


def test_tail_and_variation_are_those_of_the_iterations() -> None:
    one = found()["slow-host"]
    took_us = np.array([it.took_s for it in one.iterations]) * 1e6
    row = one.summary()
    assert row["iteration_us"]["max"] == pytest.approx(took_us.max())
    assert row["coefficient_of_variation"] == pytest.approx(took_us.std(ddof=1) / took_us.mean())
    assert len(one.fct_s) == 16 * 3


def test_the_tuned_profile_is_as_fast_as_without_ecn_and_the_defaults_are_not() -> None:
    scenario = replace(INCAST, pattern="hotspot", options=PatternOptions(8e6, hot_share=0.5))
    run = prepare(plant(HALF_SMALL_LEAFS, gpus=32), scenario)
    wanted = ("roce-tuned", "roce-default", "ecn-off")
    variants = variants_of(run, PROFILES["roce-tuned"](), wanted)
    trials = [Trial("small", one, 0) for one in variants]
    rows = run_trials(trials, [run], 2, (5.0, 8e-3), lambda _n: None)
    tuned, default, off = (float(one.took_s.mean()) for one in rows)
    assert tuned == pytest.approx(off, rel=0.02)
    assert default > 1.2 * tuned
