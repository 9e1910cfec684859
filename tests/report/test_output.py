from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from jsonschema import validate

from gpufabric.core.errors import InputError
from gpufabric.model.files import load_fabric
from gpufabric.planner.compare import plan_schema
from gpufabric.report import output
from gpufabric.report.output import MANIFEST, check_folder, folder_names, write_plan
from tests.report.advices import BOTH as BOTH_ADVISED
from tests.report.advices import advice
from tests.report.designs import plan

BOTH = "{gpus: 64, host: dgx-h100, candidates: [infiniband, roce]}"
ONE = "{gpus: 64, host: dgx-h100, candidates: [roce]}"
REPORTS = ["report.html", "report.md", "report.xlsx"]
FILES = ["fabric.json", "bom.csv", "cables.csv", "addresses.csv", "topology.svg", "racks.svg"]


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_everything_is_written_and_named(tmp_path: Path) -> None:
    folder = tmp_path / "deep/out"
    told: list[str] = []
    paths = write_plan(plan(BOTH), folder, told.append)
    wanted = ["plan.json", "bom.xlsx", "workload.html"]
    wanted += [f"{name}/{file}" for name in ("infiniband", "roce") for file in FILES]
    assert [path.relative_to(folder).as_posix() for path in paths] == wanted == told
    assert all(path.stat().st_size for path in paths)
    assert set(contents(folder)) == {*wanted, MANIFEST}
    assert [entry.name for entry in folder.parent.iterdir()] == ["out"]


def test_a_report_is_written_where_there_is_an_advice(tmp_path: Path) -> None:
    told = advice(BOTH_ADVISED)
    paths = write_plan(told.economics.plan, tmp_path / "out", advice=told)
    names = [path.relative_to(tmp_path / "out").as_posix() for path in paths]
    assert names[:6] == [*REPORTS, "plan.json", "bom.xlsx", "workload.html"]
    content = json.loads((tmp_path / "out/plan.json").read_text())
    assert content["advice"]["winner"] == told.winner
    assert len(content["advice"]["ledger"]) == len(told.ledger)
    validate(content, plan_schema())
    write_plan(told.economics.plan, tmp_path / "again", advice=told)
    assert contents(tmp_path / "out") == contents(tmp_path / "again")


def test_what_is_written_is_what_was_planned(tmp_path: Path) -> None:
    write_plan(plan(BOTH), tmp_path / "out")
    content = json.loads((tmp_path / "out/plan.json").read_text())
    for made in plan(BOTH).candidates:
        fabric = load_fabric(tmp_path / "out" / made.name / "fabric.json")
        assert fabric == made.fabric
        facts = next(one for one in content["candidates"] if one["name"] == made.name)
        assert facts["design"]["fabric_hash"] == fabric.content_hash
        for drawing in ("topology.svg", "racks.svg"):
            text = (tmp_path / "out" / made.name / drawing).read_text()
            assert fabric.content_hash[:16] in text


def test_the_same_plan_gives_the_same_bytes(tmp_path: Path) -> None:
    write_plan(plan(BOTH), tmp_path / "a")
    write_plan(plan(BOTH), tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_an_earlier_output_is_replaced_whole(tmp_path: Path) -> None:
    write_plan(plan(BOTH), tmp_path / "out")
    write_plan(plan(ONE), tmp_path / "out")
    assert not (tmp_path / "out/infiniband").exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write_plan(plan(ONE), tmp_path / "out")
    assert (tmp_path / "out/plan.json").exists()


def test_a_link_to_a_folder_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")
    write_plan(plan(ONE), tmp_path / "out")
    assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "real/plan.json").exists()


def test_a_folder_with_files_of_others_is_refused_and_kept(tmp_path: Path) -> None:
    write_plan(plan(ONE), tmp_path / "out")
    (tmp_path / "out/roce/notes.txt").write_text("mine")
    before = contents(tmp_path / "out")
    with pytest.raises(InputError) as caught:
        write_plan(plan(BOTH), tmp_path / "out")
    assert "files that gpufabric plan did not write, or that were changed" in str(caught.value)
    assert "roce/notes.txt" in str(caught.value)
    assert "Choose another folder" in str(caught.value)
    assert contents(tmp_path / "out") == before


def test_a_file_that_was_changed_is_not_overwritten(tmp_path: Path) -> None:
    write_plan(plan(ONE), tmp_path / "out")
    (tmp_path / "out/roce/bom.csv").write_text("with my notes")
    with pytest.raises(InputError, match=r"roce/bom\.csv"):
        write_plan(plan(ONE), tmp_path / "out")


def test_a_folder_that_only_claims_to_be_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / MANIFEST).write_text('{"files": {"thesis.tex": ""}, "format": "gpufabric-output"}')
    with pytest.raises(InputError, match=r"thesis\.tex"):
        check_folder(tmp_path)
    (tmp_path / MANIFEST).write_text("[")
    with pytest.raises(InputError, match=r"thesis\.tex"):
        check_folder(tmp_path)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(InputError, match="this is not a folder"):
        write_plan(plan(ONE), tmp_path / "out")
    with pytest.raises(InputError, match="cannot be written"):
        write_plan(plan(ONE), tmp_path / "out/below")
    assert (tmp_path / "out").read_text() == "a file"


@pytest.mark.parametrize("error", [RuntimeError("a bug"), KeyboardInterrupt()])
def test_a_failure_midway_leaves_the_old_output_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    write_plan(plan(ONE), tmp_path / "out")
    before = contents(tmp_path / "out")

    def fail(*_args: object) -> str:
        raise error

    monkeypatch.setattr(output, "racks_svg", fail)
    with pytest.raises(type(error)):
        write_plan(plan(BOTH), tmp_path / "out")
    assert contents(tmp_path / "out") == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_a_full_disk_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(output, "write_bytes", fail)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        write_plan(plan(ONE), tmp_path / "new/deep/out")
    assert list(tmp_path.iterdir()) == []


def test_the_old_output_comes_back_when_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plan(plan(ONE), tmp_path / "out")
    before = contents(tmp_path / "out")
    rename = Path.rename

    def fail_once(self: Path, target: Path) -> Path:
        if self.name.endswith(".new"):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_once)
    with pytest.raises(InputError, match="cross-device"):
        write_plan(plan(BOTH), tmp_path / "out")
    assert contents(tmp_path / "out") == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_folders_of_candidates_never_collide() -> None:
    spec = (
        "{gpus: 64, host: dgx-h100, candidates: [{name: plan.json, fabric: roce}, "
        "{name: BOM.xlsx, fabric: roce}]}"
    )
    assert folder_names(plan(spec)) == {"plan.json": "plan.json-2", "BOM.xlsx": "BOM.xlsx-2"}


def test_a_large_folder_of_others_is_refused_at_once(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"file-{number}").write_text("")
    with pytest.raises(InputError) as caught:
        check_folder(tmp_path)
    assert str(caught.value).count("file-") == 3
    with pytest.raises(InputError):
        check_folder(Path("/"))


def test_a_link_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    write_plan(plan(ONE), tmp_path / "out")
    (tmp_path / "out/plan.json").rename(tmp_path / "elsewhere")
    (tmp_path / "out/plan.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"plan\.json"):
        check_folder(tmp_path / "out")


def test_a_loop_of_links_is_told(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    for folder in (loop, loop / "below"):
        with pytest.raises(InputError, match="cannot be written: Too many levels"):
            write_plan(plan(ONE), folder)
    assert [entry.name for entry in tmp_path.iterdir()] == ["loop"]


def test_a_file_that_cannot_be_written_is_told_of_the_folder_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError) as caught:
        write_plan(plan(ONE), tmp_path / "out")
    assert [fault.where for fault in caught.value.faults] == [str(tmp_path / "out")]
    assert list(tmp_path.iterdir()) == []
