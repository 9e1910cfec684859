"""``simulate training``, as a user types it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gpufabric.model.files import save_fabric
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.parallelism import TrainingJob, TrainingPlan
from gpufabric.workload.training import train
from gpufabric.workload.transformer import preset
from tests.cli.running import Ended, run
from tests.sim.plants import RAIL, fabric

Capture = pytest.CaptureFixture[str]
PLAN = ("--model", "llama3-8b", "--tp", "2", "--pp", "2", "--batch", "128")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("training") / "rail.fab"
    save_fabric(fabric(RAIL), path)
    return path


def ask(capsys: Capture, made: Path, *words: str) -> Ended:
    return run(capsys, "simulate", "training", str(made), *words)


def told(capsys: Capture, made: Path, *words: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(ask(capsys, made, *words, "--json").out)
    return content


def test_the_figures_are_on_the_screen(capsys: Capture, made: Path) -> None:
    ended = ask(capsys, made, *PLAN)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("llama3-8b on 64 × H100")
    for words in ("MFU", "80 % of runs", "tensor (TP)", "NVLink domain", "GPU-hours a day"):
        assert words in ended.out


def test_json_is_the_model_itself(capsys: Capture, made: Path) -> None:
    content = told(capsys, made, *PLAN)
    plan = TrainingPlan(tensor=2, pipeline=2, global_batch=128, sequence_tokens=8192)
    mine = train(TrainingJob(preset("llama3-8b"), Cluster("H100", 8, 8, 400.0), plan))
    assert content["plan"]["data"] == 16
    assert content["step_s"] == pytest.approx(mine.step_s, rel=1e-5)
    assert content["mfu"] == pytest.approx(mine.mfu, rel=1e-5)
    assert content["memory_gb"] == pytest.approx(mine.memory.total_gb, rel=1e-5)
    parts = sum(content["exposed_s"].values())
    parts += content["compute_s"] + content["bubble_s"] + content["optimizer_s"]
    assert parts == pytest.approx(content["step_s"], rel=1e-4)
    assert content["fabric"]["hash"] == fabric(RAIL).content_hash
    assert [point["n_gpus"] for point in content["scaling"]] == [4, 8, 16, 32, 64]
    assert content["scaling"][-1]["step_s"] == content["step_s"]


def test_the_keys_of_json_stay(capsys: Capture, made: Path) -> None:
    content = told(capsys, made, *PLAN, "--optimize")
    assert set(content) == {
        *("model_version", "fabric", "seed", "findings", "gpu", "gpus", "software", "model"),
        *("plan", "step_s", "low_s", "high_s", "tokens_per_s", "mfu", "compute_s", "bubble_s"),
        *("optimizer_s", "exposed_s", "full_rate_step_s", "hashed_step_s", "memory_gb"),
        *("available_gb", "jitter", "lost_gpu_hours_per_day", "extrapolates", "fits", "memory"),
        *("tokens_per_s_per_gpu", "exposed_share", "groups", "scaling", "search"),
    }
    assert set(content["jitter"]) == {"mean_s", "p50_s", "p99_s", "by_cause_s"}
    assert set(content["lost_gpu_hours_per_day"]) == {"communication", "jitter"}


def test_a_search_keeps_what_is_given_and_is_no_slower(capsys: Capture, made: Path) -> None:
    fixed = told(capsys, made, *PLAN)
    found = told(capsys, made, *PLAN, "--optimize")
    assert (found["plan"]["tensor"], found["plan"]["pipeline"]) == (2, 2)
    assert found["step_s"] <= fixed["step_s"]
    steps = [one["step_s"] for one in found["search"]["best"]]
    assert steps == sorted(steps)
    assert found["step_s"] == pytest.approx(steps[0], rel=1e-3)


def test_a_search_keeps_the_schedule_and_the_screen_tells_it(capsys: Capture, made: Path) -> None:
    words = ("--model", "llama3-8b", "--batch", "256", "--optimize", "--schedule", "zero-bubble")
    found = told(capsys, made, *words)
    assert (found["plan"]["schedule"], found["plan"]["pipeline"] > 1) == ("zero-bubble", True)
    assert "zero-bubble" in ask(capsys, made, *words).out


def test_the_same_seed_gives_the_same_files(capsys: Capture, made: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        ended = ask(capsys, made, *PLAN, "-o", str(tmp_path / name))
        assert ended.code == 0
    names = ["training.csv", "training.html", "training.json"]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == names
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    other = told(capsys, made, *PLAN, "--seed", "2")
    first = json.loads((tmp_path / "a/training.json").read_text())
    assert other["jitter"] != first["jitter"]
    assert other["step_s"] == first["step_s"]


def test_the_page_says_in_words_what_its_figures_show(
    capsys: Capture, made: Path, tmp_path: Path
) -> None:
    ask(capsys, made, *PLAN, "--optimize", "-o", str(tmp_path))
    page = (tmp_path / "training.html").read_text(encoding="utf-8")
    figures = re.findall(r'<div role="img" aria-label="([^"]+)">', page)
    titles = ("A step by parts", "Memory", "Steps with jitter", "Scaling", "Fastest plans")
    assert len(figures) == len(titles)
    for title, words in zip(titles, figures, strict=True):
        assert words.startswith(title)
        assert re.search(r"\d", words)
    assert page.count("<figcaption>") == len(titles)
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", page)


def test_a_model_that_does_not_fit_is_a_finding(capsys: Capture, made: Path) -> None:
    words = ("--model", "llama3-405b", "--tp", "8", "--pp", "2")
    ended = ask(capsys, made, *words)
    assert ended.code == 1
    assert "It does not fit" in ended.out
    as_json = ask(capsys, made, *words, "--json")
    assert as_json.code == 1
    assert not json.loads(as_json.out)["fits"]


def test_a_model_that_fits_no_plan_is_a_finding_too(capsys: Capture, made: Path) -> None:
    words = ("--model", "deepseek-v3", "--optimize", "--gpu", "A100")
    ended = ask(capsys, made, *words)
    assert (ended.code, ended.err) == (1, "")
    assert "more memory than 64 GPUs have" in ended.out
    content = json.loads(ask(capsys, made, *words, "--json").out)
    assert not content["fits"]
    assert "more memory" in content["findings"][0]


@pytest.mark.parametrize(
    ("words", "told_words"),
    [
        (("--model", "llama3-71b"), ('"llama3-71b" is unknown', 'mean "llama3-70b"')),
        (("--tp", "8"), ("exactly one of --model and --dims",)),
        (
            (*PLAN, "--dp", "7"),
            ("--dp", "x data is 28, but there are 64 GPUs", "give 16"),
        ),
        ((*PLAN, "--zero", "4"), ("--zero", "0 … 3")),
        (("--model", "llama3-8b", "--tp", "3"), ("--tp", "64 GPUs do not divide")),
        ((*PLAN, "--precision", "nvfp4"), ("--precision", "H100 has no nvfp4")),
        ((*PLAN, "--schedule", "interleave"), ("--schedule", 'mean "interleaved"')),
        ((*PLAN, "--gpu", "H1000x"), ("--gpu", 'mean "H100"')),
        ((*PLAN, "--gpu", "H100-SXM"), ()),
        (("--model", "llama3-8b", "--chunks", "2"), ("--chunks", "no pipeline", "--pp 2")),
        (("--model", "llama3-8b", "--schedule", "zero-bubble"), ("--schedule", "no pipeline")),
        (
            ("--model", "llama3-8b", "--pp", "2", "--schedule", "interleaved"),
            ("--schedule", "--chunks 2"),
        ),
        (
            ("--model", "llama3-8b", "--pp", "2", "--chunks", "2", "--schedule", "zero-bubble"),
            ("--schedule", "one chunk a stage"),
        ),
        ((*PLAN, "--seq", "99999999999"), ("--seq", "1 … 100,000,000")),
        (("--model", "llama3-8b", "--optimize", "--tp", "3"), ("--tp", "64 GPUs do not divide")),
        (("--model", "llama3-8b", "--optimize", "--ep", "4"), ("--ep", "0 experts")),
        ((*PLAN, "--gpu", "Q100"), ("--gpu", "no collective constants")),
        ((*PLAN, "--ranks", "12"), ("--ranks", "a multiple of 8, at most 64")),
        ((*PLAN, "--software", "megatron"), ("--software", '"megatron" is unknown')),
    ],
)
def test_bad_input(
    capsys: Capture, made: Path, words: tuple[str, ...], told_words: tuple[str, ...]
) -> None:
    ended = ask(capsys, made, *words)
    assert ended.code == (2 if told_words else 0)
    assert "Traceback" not in ended.err
    for each in told_words:
        assert each in ended.err


def test_dimensions_of_ones_own(capsys: Capture, made: Path, tmp_path: Path) -> None:
    d = preset("llama3-8b").dimensions.model_dump(exclude_defaults=True, exclude={"source"})
    path = tmp_path / "mine.yaml"
    path.write_text("\n".join(f"{key}: {json.dumps(value)}" for key, value in d.items()))
    words = ("--tp", "2", "--pp", "2", "--batch", "128")
    mine = told(capsys, made, "--dims", str(path), *words)
    assert mine["model"] == "mine"
    assert mine["step_s"] == told(capsys, made, *PLAN)["step_s"]
    path.write_text(path.read_text().replace("kv_heads", "kv_head"))
    ended = ask(capsys, made, "--dims", str(path), *words)
    assert ended.code == 2
    assert "kv_heads" in ended.err


def test_a_host_of_ones_own_needs_its_gpu(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    host = "gpus: 8, nics: 8, nic_gbps: 400"
    text = "{{gpus: 64, candidates: [{{fabric: roce, tiers: 2}}], host: {{{host}}}}}"
    path.write_text(text.format(host=host))
    ended = ask(capsys, path, *PLAN)
    assert ended.code == 2
    assert "--gpu" in ended.err
    told_it = told(capsys, path, *PLAN, "--gpu", "H100")
    path.write_text(text.format(host=f"{host}, gpu: H100"))
    given = told(capsys, path, *PLAN)
    assert given["step_s"] == told_it["step_s"]


def test_the_model_is_that_of_the_spec_where_none_is_given(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    text = "gpus: 64, host: dgx-h100, candidates: [{fabric: roce, tiers: 2}]"
    path.write_text(f"{{{text}, workload: {{model: llama3-8b}}}}")
    assert told(capsys, path, *PLAN[2:])["model"] == "llama3-8b"
    assert told(capsys, path, "--model", "llama2-7b", *PLAN[2:])["model"] == "llama2-7b"
