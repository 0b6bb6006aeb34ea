"""Rules from a few lines of text, compiled, and stepped on the backends that run anywhere."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.bits import assert_same_bits
from tests.support.packages import built_package
from tests.support.rules import spec_text

_numbers = itertools.count()


def rule(folder: Path, update: str, **parts: str) -> Any:
    """The optimizer class of a rule; ``parts`` as for ``spec_text``."""
    number = next(_numbers)
    path = folder / f"rule{number}.yaml"
    path.write_text(spec_text(update, **parts), encoding="utf-8")
    return built_package([path], folder / f"pitfalls{number}").Rule


def stepped(
    cls: Any, param: Any, grad: Any, *, backend: str, dtype: Any = np.float32, steps: int = 1, **settings: Any
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The parameter and the array states after ``steps`` steps with the same gradient."""
    array = np.array(param, dtype)
    optimizer = cls(array, backend=backend, **settings)
    for _ in range(steps):
        optimizer.step(np.array(grad, dtype))
    names = [state.name for state in cls.definition.state if state.shape == "param"]
    return array, {name: np.array(next(iter(optimizer.state[name].values()))) for name in names}


def agreed(
    cls: Any, param: Any, grad: Any, *, dtype: Any = np.float32, steps: int = 1, **settings: Any
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """As ``stepped``, on NumPy and on the CPU, which must come to the same bits."""
    want = stepped(cls, param, grad, backend="numpy", dtype=dtype, steps=steps, **settings)
    got = stepped(cls, param, grad, backend="cpu", dtype=dtype, steps=steps, **settings)
    assert_same_bits(got[0], want[0])
    for name in want[1]:
        assert_same_bits(got[1][name], want[1][name])
    return want
