"""Files are written whole or not at all, and nothing but a file is ever replaced."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from gpufabric.core.errors import InputError
from gpufabric.core.files import write_bytes, write_text, writing


def test_the_folder_is_made_and_the_file_holds_the_text(tmp_path: Path) -> None:
    path = write_text(tmp_path / "a/b/c.txt", "ä\n")
    assert path.read_bytes() == "ä\n".encode()
    assert [entry.name for entry in path.parent.iterdir()] == ["c.txt"]


def test_a_name_of_the_greatest_length_can_be_written(tmp_path: Path) -> None:
    assert write_bytes(tmp_path / ("n" * 255), b"x").read_bytes() == b"x"


def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="not a regular file"):
        write_bytes(pipe, b"x")
    assert pipe.is_fifo()


def test_a_socket_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(InputError, match="not a regular file"):
            write_bytes(Path("socket"), b"x")
        assert Path("socket").is_socket()


def test_a_link_to_a_device_is_not_replaced(tmp_path: Path) -> None:
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    with pytest.raises(InputError, match="not a regular file"):
        write_bytes(link, b"x")
    assert link.is_symlink()


def test_a_disk_that_is_full_is_told_of_the_target(tmp_path: Path) -> None:
    target = tmp_path / "old.txt"
    target.write_text("old")

    def fill() -> None:
        with writing(target) as file:
            file.write(b"half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(InputError, match=r"old\.txt: cannot be written: No space left"):
        fill()
    assert target.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["old.txt"]


def test_a_name_with_nul_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="null"):
        write_bytes(tmp_path / "a\0b", b"x")
