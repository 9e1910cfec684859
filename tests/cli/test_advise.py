"""``gpufabric advise``: eight questions, a spec, and nothing written over unasked."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from gpufabric.catalog.load import load_catalog
from gpufabric.model.requirement import load_requirement
from gpufabric.planner.questions import questions
from tests.cli.running import run

GIVEN = """\
gpus: 1024
workload: training llama3-70b
growth: 2k
team: [none, expert]
aim: stability 20000000
subscription: 45
value: 3 5
"""


def test_answers_in_a_file_make_a_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers, spec = tmp_path / "answers.yaml", tmp_path / "spec.yaml"
    answers.write_text(GIVEN, encoding="utf-8")
    ended = run(capsys, "advise", "--answers", str(answers), "-o", str(spec), "--json")
    assert (ended.code, ended.err) == (0, "")
    told = json.loads(ended.out)
    assert told["next"] == f"gpufabric plan {spec} -o {tmp_path / 'spec'}"
    found = load_requirement(spec, load_catalog().known_names())
    assert (found.gpus, found.host, found.workload.model) == (1024, "dgx-h100", "llama3-70b")
    assert found.growth is not None
    assert found.growth.gpus == 2048
    assert (found.team.infiniband, found.team.ethernet) == ("none", "expert")
    assert (found.cost.decide_by, found.cost.budget_usd) == ("p90", 20_000_000)
    assert found.cost.horizon_years == 5
    assert found.cost.assumptions["gpu_hour.usd.h100"].mid == 3
    assert [offer.usd_per_port_month for offer in found.offers] == [45]
    assert len(found.candidates) > 5
    assert all(one.optional for one in found.candidates)


def test_a_spec_that_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("mine", encoding="utf-8")
    words = ("advise", "--answer", "gpus=64", "-o", str(spec))
    ended = run(capsys, *words)
    assert ended.code == 2
    assert "is there already. Name another file, or give --overwrite." in ended.err
    assert spec.read_text(encoding="utf-8") == "mine"
    assert run(capsys, *words, "--overwrite").code == 0
    assert "gpus: 64" in spec.read_text(encoding="utf-8")


def test_all_faults_come_at_once_with_a_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = {
        "gpus": "1001",
        "growth": "64",
        "team": "wizard expert",
        "aim": "luck",
        "subscription": "-4",
        "value": "3 4.5",
        "workload": "training llama3-71b",
        "hots": "x",
    }
    words = [word for key, text in wrong.items() for word in ("--answer", f"{key}={text}")]
    ended = run(capsys, "advise", *words, "-o", str(tmp_path / "spec.yaml"))
    assert ended.code == 2
    for told in (
        'aim, subscription, value. Did you mean "host"?',
        "gpus: 1001 GPUs do not fill hosts of 8. Expected: a multiple of 8. Take 1000 or 1008.",
        'team: "wizard" is no answer. Expected: two of none, basic, expert.',
        'aim: "luck" is no answer. Expected: cost or stability, then an amount or nothing.',
        (
            'subscription: "-4" is no answer. Expected: yes, no, or a number above 0, at most '
            "1,000,000."
        ),
        'value: "4.5" is no answer. Expected: whole years, at most 15.',
        'Did you mean "llama3-70b"?',
    ):
        assert told in ended.err
    assert not list(tmp_path.iterdir())


def test_what_is_wrong_in_a_file_is_told_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers, spec = tmp_path / "answers.yaml", tmp_path / "spec.yaml"
    answers.write_text("gpus: 100\nvalue: foo\n", encoding="utf-8")
    ended = run(capsys, "advise", "--answers", str(answers), "-o", str(spec))
    assert ended.code == 2
    assert ended.err.splitlines() == [
        (
            f"Error: {answers}:1:7: gpus: 100 GPUs do not fill hosts of 8. "
            "Expected: a multiple of 8. Take 96 or 104."
        ),
        (
            f'Error: {answers}:2:8: value: "foo" is no answer. '
            "Expected: market, or a number above 0, at most 1,000,000."
        ),
    ]
    assert not spec.exists()
    told = run(capsys, "advise", "--lang", "zh_CN", "--answers", str(answers), "-o", str(spec))
    assert "应为" in told.err


def test_it_asks_each_question_until_the_answer_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = tmp_path / "spec.yaml"
    typed = "\nmany\n100\n96\n\n\nnone none\ncost\nno\nmarket\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    ended = run(capsys, "advise", "-o", str(spec))
    assert ended.code == 0
    assert [f"{number}. " in ended.err for number in range(1, 9)] == [True] * len(questions())
    assert ended.err.count("2. How many GPUs?") == 3
    assert "Take 96 or 104." in ended.err
    found = load_requirement(spec, load_catalog().known_names())
    assert (found.gpus, found.offers, found.team.ethernet) == (96, (), "none")

    monkeypatch.setattr("sys.stdin", io.StringIO(typed + "no\n"))
    before = spec.read_text(encoding="utf-8")
    assert run(capsys, "advise", "-o", str(spec)).code == 2
    assert spec.read_text(encoding="utf-8") == before

    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    ended = run(capsys, "advise", "-o", str(tmp_path / "other.yaml"))
    assert ended.code == 2
    assert "the input ended before the last question." in ended.err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("gpus: [1, 2]", ":1:7: gpus: a mapping or list is no answer. Expected: text or a number."),
        ("gpus: 8\nvalue: {a: 1}", ":2:8: value: a mapping or list is no answer."),
        ("gpus: 8\nteam: [[none], basic]", ":2:7: team: a mapping or list is no answer."),
        ("gpus: 64\ngpus: 128", "gpus"),
        ("gpus: 7", "Expected: a multiple of 8. Take 8."),
    ],
)
def test_an_answer_in_a_file_is_what_one_could_type(
    content: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers, spec = tmp_path / "answers.yaml", tmp_path / "spec.yaml"
    answers.write_text(content, encoding="utf-8")
    ended = run(capsys, "advise", "--answers", str(answers), "-o", str(spec))
    assert ended.code == 2
    assert told in ended.err
    assert ended.err.count("\n") == 1
    assert not spec.exists()


def test_two_options_for_one_question_are_no_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--answer", "gpus=64", "--answer", "gpus=128", "-o", str(tmp_path / "spec.yaml"))
    ended = run(capsys, "advise", *words)
    assert (ended.code, list(tmp_path.iterdir())) == (2, [])
    assert "--answer: gpus: there are two answers. Name it once." in ended.err


def test_a_spec_that_cannot_be_written_is_told_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    for output in (tmp_path, tmp_path / "file" / "spec.yaml"):
        words = ("advise", "--answer", "gpus=64", "--overwrite", "-o", str(output))
        ended = run(capsys, *words)
        assert ended.code == 2
        assert f"{output}: cannot be written: " in ended.err
    below = tmp_path / "new" / "spec.yaml"
    assert run(capsys, "advise", "--answer", "gpus=64", "-o", str(below)).code == 0
    assert below.is_file()
