"""Rules that know lines and evaluate the gradient again: against formulas by hand, and undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from solvergen.runtime.wrappers import Wrappers
from solvergen.verify import built_from, check_agreement, why_unavailable, wrapped_of
from tests.oracles.comparing import assert_near
from tests.support.bits import assert_same_bits
from tests.support.shipped import HOST_BACKENDS

SPEC = """
name: steep_rows
summary: A step uphill by rows, then one down by what both gradients have left of rows and columns.
description: For tests.
hyperparameters:
  lr: {default: 0.125, min: 0, doc: rate}
  rho: {default: 0.25, min: 0, doc: length of the step uphill of each row}
state:
  r: {init: 0, shape: rows, doc: sum of the norms of rows of first gradients}
  c: {init: 0, shape: columns, doc: largest element of columns of second gradients}
  s: {init: 0, shape: scalar, doc: sum of the norms of first gradients}
update:
  - before = param
  - steep = norm2(grad, rows)
  - r = r + steep
  - s = s + norm2(grad)
  - param = param + where(steep > 0, rho/steep, 0)*grad
  - gradient
  - c = max(c, max_abs(grad, columns))
  - param = before - lr*grad/(1 + r*c/(1 + s))
"""
OTHERS = {
    "a value of each row": """
update:
  - before = param
  - param = mean(grad, rows) + 0*lr
  - gradient
  - param = before - lr*grad
""",
    "one value": """
update:
  - before = param
  - n = mean(grad, rows)
  - param = lr
  - gradient
  - param = before - lr*grad*n
""",
    "three gradients": """
state:
  v: {init: 0, shape: columns, doc: norms}
update:
  - u = param - lr*sum(param, columns)
  - param = u - lr*grad/(1 + max_abs(grad, columns))
  - gradient
  - q = norm2(grad - param, rows)
  - param = param - lr*grad/(q + 1)
  - gradient
  - v = v + norm1(grad, columns)
  - param = u - lr*grad*v/(v + 1)
""",
    "a gradient that nothing reads": """
update:
  - n = max_abs(grad, matrices)
  - param = param - lr*grad/(n + 1)
  - gradient
""",
    "lines of all that leads": """
state:
  v: {init: 0, shape: leading, doc: squares}
update:
  - before = param
  - first = grad
  - param = param - lr*grad
  - gradient
  - v = 0.5*v + mean(grad**2, leading)
  - param = before - lr*(grad + first)/(sqrt(v) + 1e-3)
""",
}
WORKING = [name for name in ("cpu", "ptx") if why_unavailable(name) is None]


@pytest.fixture(scope="module")
def steep_rows(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("lines")
    (folder / "steep_rows.yaml").write_text(SPEC, encoding="utf-8")
    with built_from([folder], wrap=True) as found:
        yield found["steep_rows"]


def slope(x: Any) -> Any:
    return np.asarray(x * abs(x) - 1).astype(x.dtype)


def start(*dtypes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    shapes = ((66, 20), (2, 3, 260), (9,))
    return {
        f"p{i}": rng.normal(size=s).astype(t) for i, (s, t) in enumerate(zip(shapes, dtypes, strict=True))
    }


class ByHand:
    """The rule for one tensor, as matrices."""

    def __init__(self, param: Any) -> None:
        matrices = (1, *param.shape) if param.ndim == 2 else param.shape if param.ndim == 3 else (1, -1, 1)
        self.x = param.reshape(matrices).copy()
        self.r, self.c, self.s = 0.0, 0.0, 0.0

    def step(self, lr: float = 0.125, rho: float = 0.25) -> None:
        g = slope(self.x)
        steep = np.sqrt((g * g).sum(-1, keepdims=True))
        self.r, self.s = self.r + steep, self.s + np.sqrt((g * g).sum())
        g = slope(self.x + rho / steep * g)
        self.c = np.maximum(self.c, abs(g).max(1, keepdims=True))
        self.x = self.x - lr * g / (1 + self.r * self.c / (1 + self.s))


@pytest.mark.parametrize("backend", HOST_BACKENDS[:2])
def test_formulas_by_hand(steep_rows: Any, backend: str) -> None:
    of = start(np.float64, np.float64, np.float64)
    expected = {name: ByHand(param) for name, param in of.items()}
    opt = steep_rows(of, backend=backend)
    for _ in range(3):
        opt.step(lambda: (0.0, {name: slope(param) for name, param in of.items()}))
        for one in expected.values():
            one.step()
    for name, one in expected.items():
        assert_near(of[name], one.x.reshape(of[name].shape), name)
        assert_near(np.ravel(opt.state["r"][name]), np.ravel(one.r), f"r of {name}")
        assert_near(np.ravel(opt.state["c"][name]), np.ravel(one.c), f"c of {name}")
        assert opt.state["s"][name] == pytest.approx(one.s, rel=1e-12)


@pytest.mark.parametrize("backend", WORKING)
@pytest.mark.parametrize("wraps", [False, True])
def test_all_backends_have_the_same_bits(steep_rows: Any, backend: str, wraps: bool) -> None:
    wrappers = Wrappers(clip_tensor_norm=4, clip_grad_norm=3, l2=0.1, weight_decay=0.1, average=0.5)
    types = (np.float32, np.float32, np.float32) if wraps else (np.float32, ml_dtypes.bfloat16, np.float64)
    ends = []
    for one in ("numpy", backend):
        of = start(*types)
        opt = steep_rows(of, backend=one, wrappers=wrappers if wraps else None)
        for _ in range(2):
            opt.step(lambda of=of: (0.0, {name: slope(param) for name, param in of.items()}))
        states = {f"{s} {n}": np.array(a) for s in opt.state for n, a in opt.state[s].items()}
        ends.append(of | states)
    for name, array in ends[0].items():
        assert_same_bits(ends[1][name], array)


@pytest.mark.parametrize("backend", HOST_BACKENDS)
def test_nothing_is_left_of_a_step_that_comes_to_no_end(steep_rows: Any, backend: str) -> None:
    of = start(np.float32, np.float16, np.float64)
    opt = steep_rows(of, backend=backend)
    calls: list[int] = []

    def closure() -> tuple[float, dict[str, Any]]:
        calls.append(1)
        if len(calls) == 4:
            raise ZeroDivisionError
        return 0.0, {name: slope(param) for name, param in of.items()}

    def kept() -> dict[str, Any]:
        states = {f"{s} {n}": np.array(a) for s in opt.state for n, a in opt.state[s].items()}
        return {name: param.copy() for name, param in of.items()} | states

    opt.step(closure)
    before = kept()
    with pytest.raises(ZeroDivisionError):
        opt.step(closure)
    for name, array in kept().items():
        assert_same_bits(array, before[name])
    assert opt.t == 1
    opt.step(closure)
    assert opt.t == 2


def test_what_is_drawn(steep_rows: Any) -> None:
    backends = ("numpy", *WORKING[:1])
    check_agreement(steep_rows, backends=backends, examples=5)
    wrapped = wrapped_of({"steep_rows": steep_rows})["wrapped_steep_rows"]
    check_agreement(wrapped, backends=backends, examples=3)


@pytest.mark.parametrize("what", OTHERS)
def test_other_rules(tmp_path: Path, what: str) -> None:
    head = "name: other\nsummary: A rule.\ndescription: For tests.\n"
    head += "hyperparameters:\n  lr: {default: 0.125, min: 0, doc: rate}"
    (tmp_path / "other.yaml").write_text(head + OTHERS[what], encoding="utf-8")
    with built_from([tmp_path]) as found:
        check_agreement(found["other"], backends=("numpy", *WORKING[:1]), examples=5)
