"""What holds for all tests: how Hypothesis draws, and what is run last."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, settings

from solvergen.verify.seeding import by_seed_alone

IN_CI = bool(os.environ.get("CI"))

# A busy machine is no reason to fail. In CI the same examples are drawn at every run, whichever tests a
# worker has had before, so that a change is judged by what it changes; elsewhere new ones are.
settings.register_profile(
    "solvergen",
    deadline=None,
    derandomize=IN_CI,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("solvergen")


def pytest_configure(config: pytest.Config) -> None:
    """See above."""
    if IN_CI:
        whole_run = ExitStack()
        whole_run.enter_context(by_seed_alone())
        config.add_cleanup(whole_run.close)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Compiling every kernel for every architecture takes minutes a test: what fails fast is run before."""
    items.sort(key=lambda item: item.path.name == "test_cuda_compiles.py")
