"""The CPU kernels, the thread pool and the reader of gradients under ASan, UBSan and TSan.

Each test runs Python anew, since the sanitizers must be in a process from its start. Planted faults show
that what is wrong would be reported. ``nox -s sanitizers`` runs more examples.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.sanitizers.support import ADDRESS, ROOT, THREAD, python

FOUND = 99
"""Exit code of a process that a sanitizer ends."""


@pytest.mark.parametrize(
    ("sanitizers", "arguments"),
    [
        (ADDRESS, ["adam", "sgd"]),
        (ADDRESS, ["everything", "--specs", "tests/support/specs"]),
        (THREAD, ["sgd"]),
    ],
    ids=["shipped", "everything", "threads"],
)
def test_drawn_runs_are_clean(sanitizers: str, arguments: list[str]) -> None:
    done = python(sanitizers, "-m", "solvergen", "verify", *arguments, "--backends", "cpu", "-n", "10")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\tpassed\t10\t") == (2 if "adam" in arguments else 1)
    assert "Sanitizer" not in done.stderr


@pytest.mark.parametrize("sanitizers", [ADDRESS, THREAD])
def test_many_chunks_on_several_threads_are_clean(sanitizers: str) -> None:
    done = python(sanitizers, "-m", "tests.sanitizers.planted", "none")
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr


@pytest.mark.parametrize("sanitizers", [ADDRESS, THREAD])
def test_passes_stages_and_reductions_are_clean(sanitizers: str) -> None:
    done = python(sanitizers, "-m", "tests.sanitizers.staged")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.parametrize("sanitizers", [ADDRESS, THREAD])
def test_tiles_and_stages_of_lines_are_clean(sanitizers: str) -> None:
    done = python(sanitizers, "-m", "tests.sanitizers.lines")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.parametrize(
    ("sanitizers", "fault", "report"),
    [
        (ADDRESS, "read behind", "AddressSanitizer: use-after-poison"),
        (ADDRESS, "read before", "AddressSanitizer: use-after-poison"),
        ("undefined", "overflow", "signed integer overflow"),
        ("undefined", "shift", "shift exponent"),
        ("undefined", "cast", "is outside the range of representable values"),
        (THREAD, "race", "ThreadSanitizer: data race"),
    ],
)
def test_what_is_planted_is_reported(sanitizers: str, fault: str, report: str) -> None:
    done = python(sanitizers, "-m", "tests.sanitizers.planted", fault)
    assert done.returncode != 0
    assert report in done.stderr
    assert "kernel.c" in done.stderr  # which line it is
    if sanitizers != "undefined":
        assert done.returncode == FOUND


def test_the_plain_build_overlooks_a_stray_read() -> None:
    """So that it is the sanitizer that sees it."""
    command = [sys.executable, "-m", "tests.sanitizers.planted", "read behind"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr
