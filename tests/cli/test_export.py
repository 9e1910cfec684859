from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from gpufabric.cli.export import export
from gpufabric.core.errors import InputError, UnsupportedError
from gpufabric.export import EXPORTS
from gpufabric.model.files import save_fabric
from tests.cli.running import run as run_command
from tests.model.make_fabric import Shape, make_fabric

app = typer.Typer()
app.command()(export)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def fabric(tmp_path: Path) -> Path:
    return save_fabric(make_fabric(), tmp_path / "in" / "fabric.json")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder of its own: exports go to the current one by default."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_files_go_to_a_folder_named_after_fabric_and_format(fabric: Path, here: Path) -> None:
    done = run(fabric, "--to", "netbox")
    assert done.exit_code == 0
    assert make_fabric().name == "by hand"
    folder = here / "by-hand-netbox"
    names = sorted(path.name for path in folder.iterdir())
    assert done.stdout.splitlines() == [str(Path(folder.name, name)) for name in names]
    assert len(names) == 8
    assert [path.name for path in fabric.parent.iterdir()] == ["fabric.json"]


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("../../out of here", "out-of-here-edges"),
        ("infiniband, 64.5", "infiniband-64-5-edges"),
        ("网络", "网络-edges"),
        ("..", "fabric-edges"),
        ("x" * 200, f"{'x' * 60}-edges"),
    ],
)
def test_no_name_leads_out_of_the_current_folder(
    tmp_path: Path, here: Path, name: str, folder: str
) -> None:
    path = save_fabric(make_fabric().replace(name=name), tmp_path / "in" / "fabric.json")
    assert run(path, "--to", "edges").exit_code == 0
    assert [found.name for found in here.iterdir()] == [folder]


@pytest.mark.parametrize("form", ["ibsim", "graphviz"])
def test_an_only_file_goes_to_a_folder_too(tmp_path: Path, here: Path, form: str) -> None:
    path = save_fabric(make_fabric().replace(name="v1.5"), tmp_path / "fabric.json")
    assert run(path, "--to", form).exit_code == 0
    (folder,) = here.iterdir()
    assert (folder.name, folder.is_dir()) == (f"v1-5-{form}", True)


def test_a_plan_can_be_written_again_after_an_export(
    tmp_path: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("{gpus: 64, host: dgx-h100, candidates: [infiniband]}\n")
    words = ("plan", str(spec), "-o", str(here / "out"), "--sizes", "none")
    assert run_command(capsys, *words).code == 0
    assert run(here / "out/infiniband/fabric.json", "--to", "ibsim").exit_code == 0
    assert run_command(capsys, *words).code == 0


def test_an_only_file_can_be_named(fabric: Path, tmp_path: Path) -> None:
    path = tmp_path / "out" / "mine.net"
    done = run(fabric, "--to", "ibsim", "-o", path, "--speed-cap", "hdr")
    assert done.stdout.strip() == str(path)
    text = path.read_text(encoding="utf-8")
    assert "4xHDR" in text
    assert "4xNDR" not in text


def test_several_files_go_to_a_folder(fabric: Path, tmp_path: Path) -> None:
    done = run(fabric, "--to", "edges", "--output", tmp_path / "two.csv", "--json")
    told = json.loads(done.stdout)
    assert told["fabric"] == make_fabric().content_hash
    assert told["files"] == [
        str(tmp_path / "two.csv" / name) for name in ("edges.csv", "edges.txt")
    ]
    assert all(Path(path).exists() for path in told["files"])


def test_the_nos_can_be_chosen(tmp_path: Path) -> None:
    fabric = save_fabric(make_fabric(Shape(generation="ethernet")), tmp_path / "fabric.fab")
    run(fabric, "--to", "ptm", "--nos", "sonic", "-o", tmp_path / "ptm")
    assert '"Ethernet0"' in (tmp_path / "ptm" / "topology.dot").read_text(encoding="utf-8")


def test_list_names_every_format() -> None:
    done = run("--to", "list")
    assert [line.split()[0] for line in done.stdout.splitlines()] == [e.name for e in EXPORTS]
    assert [row["name"] for row in json.loads(run("--to", "list", "--json").stdout)] == [
        export.name for export in EXPORTS
    ]


def test_the_help_names_every_format() -> None:
    words = run("--help").stdout.replace("│", " ").split()
    assert {export.name for export in EXPORTS} <= {word.strip(",;") for word in words}


def test_nothing_is_written_on_wrong_use(fabric: Path, tmp_path: Path) -> None:
    for arguments, error in (
        ((fabric, "--to", "netbocks"), InputError),
        (("--to", "netbox"), InputError),
        ((fabric.parent / "absent.json", "--to", "netbox"), InputError),
        ((fabric, "--to", "ptm"), UnsupportedError),
        ((fabric, "--to", "ibsim", "--speed-cap", "ddr"), InputError),
        ((fabric, "--to", "netbox", "--nos", "ios"), InputError),
    ):
        done = run(*arguments, *(() if len(arguments) == 2 else ("-o", tmp_path / "out")))
        assert isinstance(done.exception, error), arguments
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "in"]
    assert not list((tmp_path / "here").iterdir())
    assert [path.name for path in fabric.parent.iterdir()] == ["fabric.json"]
