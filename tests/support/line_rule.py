"""A rule with every kind of reduction along lines, built by the compiler: for tests of kernels."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

from tests.support.packages import built_package

SPEC = """
name: liner
summary: A rule for tests.
hyperparameters:
  lr: {default: 0.1, min: 0}
  beta: {default: 0.9, min: 0, below: 1}
options:
  scaled: {default: true}
state:
  m: {init: 0}
  above: {init: 0.5, shape: rows}
  across: {init: lr, shape: columns}
  whole: {init: 0, shape: matrices}
update:
  - m = beta*m + (1 - beta)*grad
  - size = norm2(m, rows)
  - above = beta*above + (1 - beta)*size + max_abs(grad, rows)
  - across = where(ndim(param) > 1, beta*across + mean(grad*grad, columns), across)
  - top = max_abs(across, matrices)
  - whole = where(scaled, 0.5*whole + sum(above, matrices) + dot(m, grad, matrices), whole)
  - longest = norm2(size) + max_abs(whole)
  - scale = (above*across + whole + 1)/(longest + top + 1)
  - moved = where(scaled, m/(abs(scale) + 0.125), m*above)
  - far = norm2(moved) + count_nonzero(moved)
  - param = param - lr*moved/(far + 1)*sqrt(above + 2)
"""


@functools.cache
def package(spec: str = SPEC, name: str = "liner") -> Any:
    """The package built from a spec; the class of ``SPEC`` is ``Liner``."""
    folder = Path(tempfile.mkdtemp(prefix="solvergen-tests-"))
    path = folder / f"{name}.yaml"
    path.write_text(spec, encoding="utf-8")
    return built_package([path], folder / f"built_{name}")


def liner() -> type[Any]:
    """The optimizer."""
    cls: type[Any] = package().Liner
    return cls
