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
from tests.model.make_fabric import Shape, make_fabric

app = typer.Typer()
app.command()(export)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def fabric(tmp_path: Path) -> Path:
    return save_fabric(make_fabric(), tmp_path / "in" / "fabric.json")


def test_files_lie_beside_the_fabric_and_are_named_last(fabric: Path) -> None:
    done = run(fabric, "--to", "netbox")
    assert done.exit_code == 0
    folder = fabric.parent / "netbox"
    assert done.stdout.splitlines() == [str(path) for path in sorted(folder.iterdir())]
    assert len(list(folder.iterdir())) == 8


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
    run(fabric, "--to", "ptm", "--nos", "sonic")
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
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert [path.name for path in fabric.parent.iterdir()] == ["fabric.json"]
