"""``simulate inference``, as a user types it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gpufabric.model.files import save_fabric
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.inference import ServingPlan, serve
from gpufabric.workload.transformer import preset
from tests.cli.running import Ended, run
from tests.sim.plants import RAIL, fabric

Capture = pytest.CaptureFixture[str]
DEEP = ("--model", "deepseek-v3", "--ep", "32")
SMALL = ("--model", "llama3-70b", "--tp", "8")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("inference") / "rail.fab"
    save_fabric(fabric(RAIL), path)
    return path


def ask(capsys: Capture, made: Path, *words: str) -> Ended:
    return run(capsys, "simulate", "inference", str(made), *words)


def told(capsys: Capture, made: Path, *words: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(ask(capsys, made, *words, "--json").out)
    return content


def test_the_figures_are_on_the_screen(capsys: Capture, made: Path) -> None:
    ended = ask(capsys, made, *DEEP)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("deepseek-v3 served on 64 × H100")
    for words in ("time to first token", "per output token", "p99", "communication", "assumed"):
        assert words in ended.out


def test_json_is_the_model_itself(capsys: Capture, made: Path) -> None:
    content = told(capsys, made, *DEEP, "--sequences", "512", "--precision", "fp8")
    plan = ServingPlan(tensor=1, expert=32, sequences=512)
    mine = serve(preset("deepseek-v3"), Cluster("H100", 8, 4, 400.0), plan)
    assert content["token_s"] == pytest.approx(mine.decode.step_s, rel=1e-5)
    assert content["first_token_s"] == pytest.approx(mine.first_token_s, rel=1e-5)
    assert content["network_share"] == pytest.approx(mine.network_share, rel=1e-5)
    assert content["n_instances"] == 2
    parts = sum(content["first_token_parts_s"].values())
    assert parts == pytest.approx(content["first_token_s"], rel=1e-4)
    decode = content["token_parts_s"]
    assert sum(decode.values()) - decode["jitter"] == pytest.approx(content["token_s"], rel=1e-4)
    assert [point["sequences"] for point in content["by_batch"]][:3] == [4, 8, 16]
    assert (
        next(p for p in content["by_batch"] if p["sequences"] == 512)["token_s"]
        == (content["token_s"])
    )


def test_the_keys_of_json_stay(capsys: Capture, made: Path) -> None:
    assert set(told(capsys, made, *SMALL)) == {
        *("model_version", "fabric", "seed", "findings", "gpu", "gpus", "model", "plan"),
        *("instance_gpus", "n_instances", "first_token_s", "token_s", "low_factor"),
        *("high_factor", "tokens_per_s", "tokens_per_s_per_gpu", "network_share", "transfer_s"),
        *("p50_s", "p99_s", "memory_gb", "available_gb", "extrapolates", "fits"),
        *("is_disaggregated", "utilisation", "prefill_tokens_per_s_per_gpu", "request_s"),
        *("full_rate_token_s", "hashed_token_s"),
        *("first_token_parts_s", "token_parts_s", "full_rate", "tail", "by_batch", "by_jitter"),
        "rate",
    }


def test_jitter_and_latency_of_the_network_reach_the_tail(capsys: Capture, made: Path) -> None:
    def p99_s(*words: str) -> float:
        return float(told(capsys, made, *SMALL, *words)["tail"]["p99_s"])

    still = p99_s("--jitter-us", "0")
    assert p99_s("--jitter-us", "10") > p99_s("--jitter-us", "2") > still
    late = p99_s("--jitter-us", "0", "--latency-us", "5")
    assert late == pytest.approx(still + 160 * 5e-6, rel=1e-4), "two collectives a layer, 80 layers"


def test_keys_and_values_cross_the_network(capsys: Capture, made: Path) -> None:
    together = told(capsys, made, *SMALL, "--prompt", "8192")
    apart = told(capsys, made, *SMALL, "--prompt", "8192", "--disaggregated")
    assert together["transfer_s"] == 0
    assert apart["transfer_s"] > 0
    assert apart["first_token_s"] == pytest.approx(
        together["first_token_s"] + apart["transfer_s"], rel=1e-4
    )


@pytest.mark.parametrize("more", [(), ("--disaggregated",)])
def test_a_rate_keeps_littles_law(capsys: Capture, made: Path, more: tuple[str, ...]) -> None:
    content = told(capsys, made, *SMALL, "--rate", "20", "--answer", "512", *more)
    rate = content["rate"]
    instances = rate["decode_instances"]
    in_flight = 20 / instances * 512 * content["token_s"]
    assert rate["sequences"] == pytest.approx(in_flight, abs=1)
    busy_s = sum(content["first_token_parts_s"][key] for key in ("compute", "network"))
    assert rate["utilisation"] == pytest.approx(20 * busy_s / rate["prefill_instances"], rel=1e-4)
    assert instances + rate["prefill_instances"] == (8 if more else 16)


def test_too_many_requests_and_too_little_memory_are_findings(capsys: Capture, made: Path) -> None:
    ended = ask(capsys, made, *SMALL, "--rate", "5000")
    assert ended.code == 1
    assert "requests a second are too many" in ended.out
    small = ask(capsys, made, "--model", "llama3-405b", "--tp", "2")
    assert small.code == 1
    assert "It does not fit" in small.out


def test_the_same_seed_gives_the_same_files(capsys: Capture, made: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert ask(capsys, made, *DEEP, "-o", str(tmp_path / name)).code == 0
    names = ["inference.csv", "inference.html", "inference.json"]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == names
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    page = (tmp_path / "a/inference.html").read_text(encoding="utf-8")
    figures = re.findall(r'<div role="img" aria-label="([^"]+)">', page)
    assert len(figures) == 4
    assert all(re.search(r"\d", words) for words in figures)


@pytest.mark.parametrize(
    ("words", "told_words"),
    [
        (("--model", "deepseek-v4"), ('"deepseek-v4" is unknown', 'mean "deepseek-v3"')),
        ((*SMALL, "--ep", "8"), ("--ep", "0 experts do not divide")),
        (("--model", "deepseek-v3", "--ep", "128"), ("--tp", "no place on 64 GPUs")),
        ((*SMALL, "--tp", "0"), ("--tp", "1 …")),
        ((*SMALL, "--sequences", "0"), ("--sequences", "1 …")),
        ((*SMALL, "--sequences", str(10**20)), ("--sequences", "1 … 100,000,000")),
        ((*SMALL, "--prompt", str(10**20)), ("--prompt", "1 … 100,000,000")),
        ((*SMALL, "--rate", "1e300"), ("--rate", "at most")),
        ((*SMALL, "--latency-us", "1e300"), ("--latency-us", "0 …")),
        ((*SMALL, "--busy", "1"), ("--busy", "not including, 1")),
        ((*SMALL, "--precision", "nvfp4"), ("--precision", "H100 has no nvfp4")),
        ((*SMALL, "--rate", "-1", "--sequences", "3"), ("--rate", "more than 0", "--sequences")),
        ((*SMALL, "--rate", "5", "--busy", "0.2"), ("--busy", "how busy")),
        ((*SMALL, "--jitter-us", "-1"), ("--jitter-us", "0 …")),
        ((*SMALL, "--ranks", "0"), ("--ranks", "a multiple of 8")),
    ],
)
def test_bad_input(
    capsys: Capture, made: Path, words: tuple[str, ...], told_words: tuple[str, ...]
) -> None:
    ended = ask(capsys, made, *words)
    assert ended.code == 2
    assert "Traceback" not in ended.err
    for each in told_words:
        assert each in ended.err
