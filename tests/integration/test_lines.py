"""Much of what the language can do with lines, in one rule: against plain NumPy; on the CPU, its bits."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.oracles.comparing import assert_near
from tests.support.bits import assert_same_bits
from tests.support.packages import built_package
from tests.support.ptx import needs_nvrtc

RULE = """
name: many_lines
summary: For a test.
hyperparameters:
  lr: {default: 0.1, min: 0}
  beta: {default: 0.9, min: 0, below: 1}
options:
  scaled: {default: true}
state:
  r: {shape: rows, init: 1}
  c: {shape: columns, init: lr}
  m: {shape: matrices}
  k: {shape: matrices, when: scaled, output: true}
  s: {shape: scalar, init: 0.5}
  q: {shape: shared}
  e: {init: 0, output: true}
update:
  - old = c
  - r = beta*r + (1 - beta)*norm2(grad, rows)
  - c = max(c, max_abs(grad*r, columns))
  - m = m + mean(grad, matrices) + s
  - x = where(r > mean(r, matrices), r, 1)
  - when: scaled
    do:
      - k = count_nonzero(r - 1, matrices) + norm2(c, matrices) + q
      - x = x*k + ndim(param)
  - y = dot(grad, param) + norm2(grad, all)
  - s = s + mean(c) + max_abs(m) + sum(x) + y/1000
  - q = q + dot(c, old) + lr + norm1(x)/norm1(m)
  - u = grad*x + old*r**2 - m/s + c**1.5
  - u = u/(1 + norm2(u) + norm2(u, rows)*norm1(u, columns)*max_abs(u, matrices) + norm2(u, matrices))
  - e = where(c > r, r, e)
  - param = where(not (r > 0 and c > 1), param - lr*u, param - lr*u/(1 + s)) + ndim(param)
"""

SHAPES: tuple[tuple[int, ...], ...] = ((), (5,), (70, 3), (2, 65, 258), (2, 3, 4, 5))
STEPS = 2


@pytest.fixture(scope="module")
def rule(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("lines")
    (folder / "many_lines.yaml").write_text(RULE, encoding="utf-8")
    package = built_package([folder / "many_lines.yaml"], folder / "package_of_lines")
    return importlib.import_module(f"{package.__name__}.many_lines").ManyLines


def data(dtype: str) -> tuple[list[Any], list[list[Any]]]:
    rng = np.random.default_rng(1)
    params = [np.asarray(rng.standard_normal(shape), dtype) for shape in SHAPES]
    return params, [[np.asarray(rng.standard_normal(s), dtype) for s in SHAPES] for _ in range(STEPS)]


def by_numpy(scaled: bool) -> tuple[list[Any], list[dict[str, Any]]]:
    """The rule over [matrices, rows, columns], without regard to the order of sums."""
    params, steps = data("float64")
    views = [p.reshape(1, -1, 1) if p.ndim < 2 else p.reshape(-1, *p.shape[-2:]) for p in params]
    lr, beta, q = 0.1, 0.9, 0.0
    states = [{"r": 1.0, "c": lr, "m": 0.0, "s": 0.5, "e": 0.0 * w, "k": 0.0} for w in views]
    for gradients in steps:
        everywhere = np.sqrt(sum(np.sum(g * g) for g in gradients))
        q_new = None
        for i, (flat, z) in enumerate(zip(gradients, states, strict=True)):
            w, axes = views[i], params[i].ndim
            g, old = flat.reshape(w.shape), z["c"] + 0 * w.max(axis=1, keepdims=True)
            z["r"] = beta * z["r"] + (1 - beta) * np.sqrt((g * g).sum(axis=2, keepdims=True))
            z["c"] = np.maximum(old, abs(g * z["r"]).max(axis=1, keepdims=True))
            z["m"] = z["m"] + g.mean(axis=(1, 2), keepdims=True) + z["s"]
            x = np.where(z["r"] > z["r"].mean(axis=1, keepdims=True), z["r"], 1)
            if scaled:
                count = (z["r"] != 1).sum(axis=1, keepdims=True)
                z["k"] = count + np.sqrt((z["c"] ** 2).sum(axis=2, keepdims=True)) + q
                x = x * z["k"] + axes
            z["s"] = z["s"] + z["c"].mean() + abs(z["m"]).max() + x.sum()
            z["s"] += ((g * w).sum() + everywhere) / 1000
            if q_new is None:
                q_new = q + (z["c"] * old).sum() + lr + abs(x).sum() / abs(z["m"]).sum()
            u = g * x + old * z["r"] ** 2 - z["m"] / z["s"] + z["c"] ** 1.5
            by_row = np.sqrt((u * u).sum(axis=2, keepdims=True))
            by_matrix = np.sqrt((u * u).sum(axis=(1, 2), keepdims=True))
            bound = by_row * abs(u).sum(axis=1, keepdims=True) * abs(u).max(axis=(1, 2), keepdims=True)
            u = u / (1 + np.sqrt((u * u).sum()) + bound + by_matrix)
            z["e"] = np.where(z["c"] > z["r"], z["r"], z["e"])
            smaller = (z["r"] > 0) & (z["c"] > 1)
            views[i] = w - lr * u / np.where(smaller, 1 + z["s"], 1) + axes
        assert q_new is not None
        q = q_new
    for z in states:
        z["q"] = q
    return views, states


@pytest.mark.parametrize("scaled", [True, False])
def test_the_reference_is_the_rule(rule: Any, scaled: bool) -> None:
    params, steps = data("float64")
    optimizer = rule(params, backend="numpy", scaled=scaled)
    for gradients in steps:
        optimizer.step(gradients)
    expected, states = by_numpy(scaled)
    for i, (w, z) in enumerate(zip(expected, states, strict=True)):
        assert_near(params[i].ravel(), w.ravel(), f"tensor {i}")
        for name in ("r", "c", "m", "s", "e", *(["k"] if scaled else [])):
            found = np.ravel(list(optimizer.state[name].values())[i])
            assert_near(found, np.ravel(z[name]), f"{name} of tensor {i}")
    assert_near(optimizer.shared["q"], states[0]["q"], "q")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_cpu_has_the_bits_of_the_reference(rule: Any, dtype: str) -> None:
    results = []
    for backend in ("numpy", "cpu"):
        params, steps = data(dtype)
        optimizer = rule(params, backend=backend)
        for gradients in steps:
            optimizer.step(gradients)
        states = [
            np.array(v) for name in ("r", "c", "m", "k", "s", "e") for v in optimizer.state[name].values()
        ]
        results.append((params, states))
    for found, expected in zip(*results, strict=True):
        for a, b in zip(found, expected, strict=True):
            assert_same_bits(a, b)


OPTIONAL = """
name: optional_lines
summary: For a test.
hyperparameters:
  lr: {default: 0.1, min: 0}
options:
  scaled: {default: true}
state:
  c: {shape: columns}
update:
  - old = c
  - c = c + max_abs(grad, columns)
  - u = grad - mean(grad, rows)
  - {when: scaled, do: "u = u/(1 + norm2(old, matrices) + norm1(old**2) + mean(grad, matrices))"}
  - param = param - lr*u
"""


@needs_nvrtc
@pytest.mark.parametrize("settings", [(True, True), (False, False), (True, False)])
def test_reductions_under_an_option(tmp_path: Path, settings: tuple[bool, bool]) -> None:
    """What an option leaves out is read from nowhere: memory that nothing has written is a fault here."""
    (tmp_path / "optional_lines.yaml").write_text(OPTIONAL, encoding="utf-8")
    package = built_package([tmp_path / "optional_lines.yaml"], tmp_path / "package_of_optional_lines")
    rng = np.random.default_rng(3)
    starts, gradients = ([rng.standard_normal((2, 3, 4)) for _ in settings] for _ in range(2))
    results = []
    for backend in ("numpy", "cpu", "ptx"):
        params = [start.copy() for start in starts]
        groups = [{"params": [p], "scaled": s} for p, s in zip(params, settings, strict=True)]
        optimizer = package.OptionalLines(groups, backend=backend)
        for _ in range(2):
            optimizer.step(gradients)
        results.append(params)
    for found in results[1:]:
        for a, b in zip(found, results[0], strict=True):
            assert_same_bits(a, b)
