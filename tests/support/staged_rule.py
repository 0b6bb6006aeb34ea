"""A rule with every reduction, over a tensor and over all, built by the compiler: for tests of kernels."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.dtypes import numpy_dtype
from solvergen.runtime.optimizer import Optimizer
from tests.support.packages import built_package

SPEC = """
name: weigher
summary: A rule for tests.
hyperparameters:
  lr: {default: 0.1, min: 0}
  beta: {default: 0.9, min: 0, below: 1}
  max_norm: {default: 1, min: 0}
options:
  bounded: {default: false}
  weigh: {default: true}
state:
  m: {init: 0}
  trust: {init: 1, shape: scalar}
  furthest: {init: 0.25, shape: shared}
update:
  - coef = where(bounded, max_norm/max(norm2(grad, all), max_norm), 1)
  - g = coef*grad
  - m = beta*m + (1 - beta)*g
  - long = norm2(param)
  - ratio = where(weigh, long/(norm1(m) + max_abs(m)), 1)
  - present = count_nonzero(grad)
  - trust = where(ratio > 0, ratio, trust)
  - furthest = 0.5*furthest + lr*max_abs(param, all)
  - tilt = mean(m) + sum(g)/(present + 1) + dot(m, param)/(long + 1)
  - param = param - lr*trust*(m + 1e-3*tilt) + 1e-4*furthest*(mean(m, all) - m)
"""


@functools.cache
def package() -> Any:
    """The package built from ``SPEC``; its class is ``Weigher``."""
    folder = Path(tempfile.mkdtemp(prefix="solvergen-tests-"))
    spec = folder / "weigher.yaml"
    spec.write_text(SPEC, encoding="utf-8")
    return built_package([spec], folder / "built_weigher")


def weigher() -> type[Any]:
    """The optimizer."""
    cls: type[Any] = package().Weigher
    return cls


def with_text(text: str, folder: Path) -> type[Optimizer]:
    """The optimizer with another ``kernel.cu``, which is written to ``folder``."""
    (folder / "kernel.cu").write_text(text, encoding="utf-8")
    definition = replace(weigher().definition, folder=str(folder))
    return type("Weigher", (weigher(),), {"definition": definition})


@functools.cache
def text_of() -> str:
    """Its CUDA text."""
    return Path(weigher().definition.folder, "kernel.cu").read_text(encoding="utf-8")


def placed(array: HostArray, elements: int) -> HostArray:
    """A copy that begins ``elements`` behind a 128-bit word."""
    memory = np.zeros(array.nbytes + 64, np.uint8)
    begin = -memory.ctypes.data % 16 + elements * array.itemsize
    copy: HostArray = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def numbers(sizes: Sequence[int], dtype: str, seed: int, misses: Sequence[int] = (0,)) -> list[HostArray]:
    """Arrays of these sizes, each a number of elements past a word."""
    rng = np.random.default_rng(seed)
    return [
        placed(rng.standard_normal(size).astype(numpy_dtype(dtype)), misses[i % len(misses)])
        for i, size in enumerate(sizes)
    ]
