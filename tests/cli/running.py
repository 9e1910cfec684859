"""Running commands as a user does, in this process."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from gpufabric.cli.main import main
from gpufabric.core.text import use_language


class Ended(NamedTuple):
    """How a command ended: exit code, standard output, standard error."""

    code: int
    out: str
    err: str


def run(capsys: pytest.CaptureFixture[str], *words: str) -> Ended:
    """Run ``gpufabric words…`` and return how it ended."""
    capsys.readouterr()
    try:
        with pytest.raises(SystemExit) as caught:
            main(words)
    finally:
        use_language("en")
    out, err = capsys.readouterr()
    code = caught.value.code
    assert isinstance(code, int)
    return Ended(code, out, err)
