"""Kernels are loaded once, and those that nobody has asked for lately are let go."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from solvergen.runtime.cuda.kernels import KEPT, Kernels
from solvergen.runtime.cuda.nvrtc import Compiled


class Compiler:
    version = (0, 0)
    flags = ("none",)

    def architecture_for(self, capability: int) -> str:
        return f"compute_{capability}"

    def compile(self, text: str, architecture: str, defines: Mapping[str, int] | None = None) -> Compiled:
        return Compiled(repr((text, architecture, defines)).encode(), "ptx", architecture, "", "", ())


class Device:
    number, capability = 0, 90

    def __init__(self) -> None:
        self.loads = 0

    def load(self, image: bytes, name: str) -> object:
        self.loads += 1
        return object()


def test_the_least_recently_used_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOLVERGEN_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "kernel.cu").write_text("text")
    kernels, device = Kernels(Compiler()), Device()

    def kernel(number: int) -> Any:
        options = {f"o{bit}": bool(number >> bit & 1) for bit in range(9)}
        return kernels.update(device, str(tmp_path), "float32", "float32", options)  # type: ignore[arg-type]

    first = kernel(0)
    for number in range(1, KEPT):
        kernel(number)
    assert device.loads == KEPT
    assert kernel(0) is first
    kernel(KEPT)  # number 1 goes, since 0 was asked for again
    assert kernel(0) is first
    assert kernel(2) is not None
    assert device.loads == KEPT + 1
    kernel(1)
    assert device.loads == KEPT + 2
