from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ASK = """
from gpufabric.kernels.jit import is_compiled, is_kept
print(is_kept, is_compiled("flow"))
"""


def ask(folder: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}
    environment["NUMBA_CACHE_DIR"] = folder
    ended = subprocess.run(
        [sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=True
    )
    assert ended.stderr == ""
    return ended.stdout.strip()


def test_kernels_are_kept_where_the_folder_can_be_written(tmp_path: Path) -> None:
    assert ask(str(tmp_path / "new")) == "True False"


def test_kernels_are_there_where_the_folder_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert ask(str(tmp_path / "file" / "below")) == "False False"


def test_a_compiled_file_is_found(tmp_path: Path) -> None:
    assert ask(str(tmp_path)) == "True False"
    (hashed,) = tmp_path.iterdir()
    (hashed / "kernels_1").mkdir()
    (hashed / "kernels_1" / "flow.begin-143.py311.nbi").write_text("")
    assert ask(str(tmp_path)) == "True True"
