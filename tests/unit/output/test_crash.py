"""A build killed at any moment is put right by the next one, whatever that one builds, without --force."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from solvergen import files
from solvergen.errors import OutputError
from solvergen.output import lock, write, writer
from tests.unit.output.test_write import TREE, content, expected

NEXT = {"__init__.py": "a2\n", "adam/__init__.py": "b2\n", "lion/__init__.py": "l\n"}
OTHER = {"__init__.py": "a3\n", "adam/__init__.py": "b\n", "sgd/__init__.py": "c3\n", "lion/kernel.c": "k\n"}

# Everything by which a build changes the file system.
OPERATIONS = [(os, "replace"), (os, "unlink"), (os, "rmdir"), (os, "mkdir"), (os, "fsync")]


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process, unlike a power cut, loses nothing that it wrote: flushing is counted, not done."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def killed_at(step: int, folder: Path, tree: dict[str, str]) -> bool:
    """Build in a child process that dies before its ``step``-th operation; whether it got that far."""
    child = os.fork()
    if child == 0:
        left = [step]

        def dying(operation: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    os._exit(77)
                return operation(*args, **kwargs)

            return call

        for module, name in OPERATIONS:
            setattr(module, name, dying(getattr(module, name)))
        status = 1
        try:
            write(folder, tree)
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 77)
    return status == 77


def test_a_build_killed_at_any_step_is_repaired_by_the_next(tmp_path: Path) -> None:
    step = 0
    dead = True
    while dead:
        start = tmp_path / f"{step}"
        write(start, TREE)
        dead = killed_at(step, start, NEXT)
        # What is at a path is the old or the new text, never a part of one.
        for path, text in content(start).items():
            if not path.startswith(".solvergen") and path != "manifest.json":
                assert text in (TREE.get(path), NEXT.get(path))
        # The next build may be the same, another one, or another one that is killed as well.
        for number, tree in enumerate((NEXT, OTHER, TREE)):
            again = tmp_path / f"{step}-{number}"
            shutil.copytree(start, again)
            write(again, tree)
            assert content(again) == expected(tree)
        step += 1
    assert step > 20  # the loop above did reach the renames


@pytest.mark.slow
def test_two_builds_killed_one_after_the_other_are_repaired(tmp_path: Path) -> None:
    first = 0
    dead = True
    while dead:
        start = tmp_path / f"{first}"
        write(start, TREE)
        dead = killed_at(first, start, NEXT)
        second = first % 4  # every fourth, beginning at another one each time
        dead_again = True
        while dead_again:
            again = tmp_path / "again"
            shutil.copytree(start, again)
            dead_again = killed_at(second, again, OTHER)
            write(again, NEXT)
            assert content(again) == expected(NEXT)
            shutil.rmtree(again)
            second += 4
        first += 3


def build_repeatedly(folder: Path, tree: dict[str, str], times: int) -> None:
    for _ in range(times):
        write(folder, tree)


def test_builds_at_the_same_time_take_turns(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    trees = [TREE, NEXT, OTHER]
    builds = [context.Process(target=build_repeatedly, args=(tmp_path / "out", tree, 15)) for tree in trees]
    for build in builds:
        build.start()
    for build in builds:
        build.join(60)
    assert [build.exitcode for build in builds] == [0, 0, 0]
    assert content(tmp_path / "out") in [expected(tree) for tree in trees]


def test_a_build_that_waits_too_long_says_so(tmp_path: Path) -> None:
    write(tmp_path, TREE)
    with lock.locked(tmp_path, timeout=0):
        started = time.monotonic()
        with pytest.raises(OutputError, match="another build"):
            write(tmp_path, NEXT, timeout=0.2)
        assert 0.2 <= time.monotonic() - started < 5
    assert content(tmp_path) == expected(TREE)
    write(tmp_path, NEXT, timeout=0)
    assert content(tmp_path) == expected(NEXT)


def test_the_lock_that_a_killed_build_left_is_no_obstacle(tmp_path: Path) -> None:
    tmp_path.joinpath(".solvergen-lock").touch()
    write(tmp_path, TREE, timeout=0)
    assert content(tmp_path) == expected(TREE)


def test_the_writer_uses_no_other_operations() -> None:
    """The list above is complete: nobody shall add a shutil.move and think it was tested."""
    for module in (writer, lock, files):
        source = Path(str(module.__file__)).read_text()
        for name in ("shutil.move", "shutil.copy", ".rename(", ".write_bytes(", ".write_text(", "os.rename("):
            assert name not in source
