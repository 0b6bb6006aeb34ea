"""Kernels of these tests are kept in a folder of their own, made anew for each run."""

from __future__ import annotations

from pathlib import Path

import pytest

from solvergen.runtime import native


@pytest.fixture(scope="session")
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kernels")
    folder.chmod(0o700)
    return folder


@pytest.fixture(autouse=True)
def _use_kernel_cache(kernel_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOLVERGEN_CACHE_DIR", str(kernel_cache))
    monkeypatch.delenv("SOLVERGEN_NUM_THREADS", raising=False)
    monkeypatch.delenv("SOLVERGEN_CC", raising=False)
    reason = native.available()
    if reason is not None:
        pytest.skip(reason)
