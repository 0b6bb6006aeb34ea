"""What findings leave to be run again goes to a folder of each test's own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SOLVERGEN_REPLAY_DIR", str(tmp_path / "replays"))
    return tmp_path / "replays"
