"""What holds for all tests: how Hypothesis draws, and what is run last."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no reason to fail. In CI the same examples are drawn at every run, so that a change is
# judged by what it changes; elsewhere new ones are.
settings.register_profile(
    "solvergen",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("solvergen")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Compiling every kernel for every architecture takes minutes a test: what fails fast is run before."""
    items.sort(key=lambda item: item.path.name == "test_cuda_compiles.py")
