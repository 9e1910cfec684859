"""The tutorial shows what the example prints, and its specs are valid."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from gpufabric.model.requirement import parse_requirement
from gpufabric.report.terminal import print_plan
from tests.report.designs import catalog, plan

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs/tutorial.md"
BEGIN = "<!-- summary: written by tests/report/test_tutorial.py --update -->\n"
END = "<!-- end of summary -->\n"


def summary() -> str:
    """Return what ``gpufabric plan examples/train-1024.yaml`` prints before the warnings."""
    text = io.StringIO()
    spec = (ROOT / "examples/train-1024.yaml").read_text(encoding="utf-8")
    print_plan(plan(spec), Console(width=100, file=text, highlight=False))
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    end = next(number for number, line in enumerate(lines) if line.startswith("List prices are"))
    return "\n".join(lines[:end]).rstrip()


def test_the_tutorial_shows_what_the_example_prints(request: pytest.FixtureRequest) -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    wanted = f"{before}{BEGIN}\n```text\n{summary()}\n```\n\n{END}{after}"
    if request.config.getoption("--update"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert wanted == PAGE.read_text(encoding="utf-8")


def test_what_the_tutorial_tells_of_the_example_is_so() -> None:
    first, second = plan((ROOT / "examples/train-1024.yaml").read_text(encoding="utf-8")).candidates
    assert [first.name, second.name] == ["infiniband", "roce"]
    assert first.design.bandwidth.share == second.design.bandwidth.share == 1
    assert first.design.sized.n_sus == 4
    assert first.bill.count("compute", "switch") > second.bill.count("compute", "switch")
    assert [warning.topic for warning in first.warnings] == ["managers"]


@pytest.mark.parametrize("page", ["docs/tutorial.md", "README.md"])
def test_the_specs_on_the_page_are_valid(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    specs = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert specs
    for spec in specs:
        parse_requirement(spec.encode(), page, catalog().known_names())
