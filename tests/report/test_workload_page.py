"""The page of a plan's forecasts: its figures have words, and these the numbers."""

from __future__ import annotations

import re

import pytest

from gpufabric.report.forecast_words import seconds_words
from gpufabric.report.workload_page import workload_page
from tests.report.designs import plan

TRAINING = "{gpus: 64, host: dgx-h100, candidates: [infiniband, roce]}"
INFERENCE = "{gpus: 64, host: dgx-b200, candidates: [roce], workload: {kind: inference}}"
UNKNOWN = "{gpus: 64, host: dgx-rubin-nvl8, candidates: [roce]}"


def figures(page: str) -> list[str]:
    return re.findall(r'<div role="img" aria-label="([^"]+)">', page)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (TRAINING, ["Bus bandwidth", "A training step by parts"]),
        (INFERENCE, ["Bus bandwidth", "Time per output token"]),
    ],
)
def test_each_figure_is_told_in_words(spec: str, words: list[str]) -> None:
    made = plan(spec)
    page = workload_page(made)
    found = figures(page)
    assert len(found) == len(words)
    for text, start in zip(found, words, strict=True):
        assert text.startswith(start)
        assert all(candidate.name in text for candidate in made.candidates)
        assert re.search(r"\d", text)
    assert page == workload_page(made)
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", page)


def test_numbers_are_those_of_the_forecast() -> None:
    made = plan(TRAINING)
    step = made.candidates[0].forecast.training
    assert step is not None
    assert seconds_words(step.step_s) in figures(workload_page(made))[1]
    assert f"{step.exposed_share * 100:.1f} % of it waits" in figures(workload_page(made))[1]


def test_what_is_unknown_has_its_reason_on_the_page() -> None:
    page = workload_page(plan(UNKNOWN))
    assert "No forecast of the workload" in page
    assert "Rubin" in page
