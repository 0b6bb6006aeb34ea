"""write_atomically: the whole file or the old one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from solvergen.files import write_atomically


def test_writes_and_replaces(tmp_path: Path) -> None:
    target = tmp_path / "file"
    write_atomically(target, b"one")
    assert target.read_bytes() == b"one"
    write_atomically(str(target), b"\0two")
    assert target.read_bytes() == b"\0two"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "file"
    write_atomically(target, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_permissions_of_the_old_file_are_kept_and_a_new_one_follows_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_atomically(tmp_path / "new", b"")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    (tmp_path / "new").chmod(0o604)
    write_atomically(tmp_path / "new", b"x")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o604


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(Path("there") / "real")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "real").read_bytes() == b"new"


def test_a_long_name_is_no_obstacle(tmp_path: Path) -> None:
    write_atomically(tmp_path / ("n" * 255), b"x")
    assert (tmp_path / ("n" * 255)).read_bytes() == b"x"


def test_only_a_file_is_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("pipe")
    for name, told in (
        ("pipe", "not a regular file"),
        ("link", "not a regular file"),
        ("folder", "directory"),
    ):
        with pytest.raises(OSError, match=told):
            write_atomically(tmp_path / name, b"new")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link", "pipe"]
    (tmp_path / "dangling").symlink_to("new")
    write_atomically(tmp_path / "dangling", b"new")
    assert (tmp_path / "new").read_bytes() == b"new"


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "missing" / "file", b"x")
    assert list(tmp_path.iterdir()) == []
