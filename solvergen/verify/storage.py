"""Where Hypothesis puts its files while solvergen uses it: into a folder that is gone afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis import configuration


@contextmanager
def temporary_storage() -> Iterator[None]:
    """Hypothesis's files go to a temporary folder while the block runs, not to ``.hypothesis`` here.

    What was set before, by a test suite that uses Hypothesis itself, is set again at the end.
    """
    # There is a setter but no getter, and storage_directory() decides what is undecided.
    before = getattr(configuration, "__hypothesis_home_directory", None)
    with tempfile.TemporaryDirectory(prefix="solvergen-verify-") as folder:
        configuration.set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            configuration.set_hypothesis_home_dir(before)
