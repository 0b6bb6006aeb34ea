"""Where the command line names the backends itself, so as not to import them, it names all of them."""

from __future__ import annotations

from solvergen.cli import verify
from solvergen.runtime import backends


def test_verify_takes_all_backends_by_default() -> None:
    assert verify.DEFAULT_BACKENDS.split(",") == list(backends.NAMES)
