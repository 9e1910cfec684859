"""``simulate compare``, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv
import pytest

from gpufabric.model.files import save_fabric
from gpufabric.report.compare_page import ITERATION_COLUMNS
from tests.cli.running import Ended, run
from tests.sim.plants import INFINIBAND, RAIL, fabric

Capture = pytest.CaptureFixture[str]

SPEC = "{gpus: 16, host: dgx-h100, candidates: [{name: ib, fabric: infiniband, tiers: 2}, \
{name: eth, fabric: roce, tiers: 2}]}"
QUICK = ("--pattern", "permutation", "--bytes", "100KB", "--iterations", "3", "--jobs", "1")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    save_fabric(fabric(RAIL), folder / "rail.fab")
    save_fabric(fabric(INFINIBAND), folder / "ib.fab")
    (folder / "spec.yaml").write_text(SPEC)
    (folder / "tuned.yaml").write_text("ecn: {kmin_bytes: 1e5}\n")
    (folder / "named.yaml").write_text("overrides: [{switches: [leaf-9], has_pfc: false}]\n")
    return folder


def compare(capsys: Capture, *words: str | Path) -> Ended:
    return run(capsys, "simulate", "compare", *(str(word) for word in words))


def test_both_protocols_of_a_spec_side_by_side(capsys: Capture, made: Path, tmp_path: Path) -> None:
    variants = ("--variant", "infiniband", "--variant", "roce-default", "--variant", "ecn-off")
    ended = compare(capsys, made / "spec.yaml", *QUICK, *variants, "-o", tmp_path)
    assert (ended.code, ended.err) == (0, "")
    for words in ("infiniband · ib", "roce-default · eth", "variation", "FCT p99.9"):
        assert words in ended.out
    content = json.loads((tmp_path / "compare.json").read_text())
    assert [one["variant"] for one in content["variants"]] == [
        "infiniband",
        "roce-default",
        "ecn-off",
    ]
    assert [one["protocol"] for one in content["fabrics"]] == ["infiniband", "roce"]
    assert content["variants"][2]["profile"]["ecn"] is None
    assert content["variants"][1]["iterations"] == 3
    table = pyarrow.csv.read_csv(tmp_path / "iterations.csv")
    assert table.column_names == [column.name for column in ITERATION_COLUMNS]
    assert table.num_rows == 9
    page = (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert page.count("<figcaption>") == 3
    assert "InfiniBand, with nothing to tune, takes" not in page  # no tuned RoCE beside it
    assert "RoCE at its defaults takes" in page
    assert "None of 1 single mistakes does harm" in page
    assert "src=" not in page.split("</script>")[-1]


def test_one_fabric_runs_both_protocols(capsys: Capture, made: Path) -> None:
    variants = ("--variant", "infiniband", "--variant", "roce-tuned")
    words = (*QUICK, *variants, "--profile", made / "tuned.yaml", "--json")
    ended = compare(capsys, made / "rail.fab", *words)
    assert (ended.code, ended.err) == (0, "")
    content = json.loads(ended.out)
    assert [one["variant"] for one in content["variants"]] == ["infiniband", "roce-tuned"]
    assert content["variants"][1]["profile"]["ecn"]["kmin_bytes"] == 1e5
    assert content["files"] == []
    assert compare(capsys, made / "rail.fab", *words).out == ended.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("rail.fab", "--variant", "ecn-of"), ['Did you mean "ecn-off"?']),
        (
            ("rail.fab", "--profile", "infiniband-default"),
            ["--profile: infiniband-default is a profile of InfiniBand."],
        ),
        (("rail.fab", "--profile", "named.yaml"), ["overrides[0].switches[0]: there is no switch"]),
        (("ib.fab", "rail.fab", "--candidate", "x"), ["--candidate: needs a spec."]),
        (("spec.yaml", "--candidate", "it"), ["it"]),
        (("spec.yaml", "rail.fab"), ["a spec stands alone."]),
        (
            ("rail.fab", "--iterations", "0", "--skew", "-1", "--until", "0"),
            ["--iterations: 0", "--skew: the value is -1", "--until: the value is 0"],
        ),
        (("rail.fab", "--routing", "spary"), ['Did you mean "spray"?']),
        (("rail.fab", "--profile", "x"), ['there is no profile "x".']),
        (("rail.fab", "--jobs", "0"), ["--jobs: 0 jobs."]),
        (("no.fab",), ["no.fab"]),
        (("rail.fab", "--bytes", "x"), ["--bytes"]),
        (("ib.fab", "ib.fab", "--variant", "ecn-of"), ["ecn-of"]),
    ],
)
def test_what_is_wrong_is_told(
    capsys: Capture, made: Path, words: tuple[str, ...], expected: list[str]
) -> None:
    paths = [made / word if word.endswith((".fab", ".yaml")) else word for word in words]
    ended = compare(capsys, *paths)
    assert (ended.code, ended.out) == (2, "")
    assert "Traceback" not in ended.err
    for said in expected:
        assert said in ended.err
