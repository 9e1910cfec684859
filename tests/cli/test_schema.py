import json
from pathlib import Path

import pytest
import typer
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from gpufabric.catalog.models import DEVICE_KINDS
from gpufabric.cli.schema import schema
from gpufabric.core.errors import InputError
from gpufabric.model.requirement import requirement_schema

app = typer.Typer()
app.command()(schema)


def test_schema_is_printed() -> None:
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == requirement_schema()


def test_schema_is_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "spec.schema.json"
    result = CliRunner().invoke(app, ["--output", str(path)])
    assert result.exit_code == 0
    assert result.stdout == f"{path}\n"
    assert json.loads(path.read_text(encoding="utf-8")) == requirement_schema()


@pytest.mark.parametrize(
    "kind", ["fabric", "faults", "plan", "profile", "spec", *(f"device:{k}" for k in DEVICE_KINDS)]
)
def test_each_kind_of_file_has_a_schema(kind: str) -> None:
    result = CliRunner().invoke(app, ["--of", kind])
    assert result.exit_code == 0
    Draft202012Validator.check_schema(json.loads(result.stdout))


@pytest.mark.parametrize("kind", ["fabrics", "device:swich"])
def test_an_unknown_kind_names_the_nearest(kind: str) -> None:
    error = CliRunner().invoke(app, ["--of", kind]).exception
    assert isinstance(error, InputError)
    assert "Did you mean" in error.faults[0].remedy
