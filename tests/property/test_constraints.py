"""Constraints of drawn parameters: the same bits on every backend, and what the formulas say in float64."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from solvergen.constraints import Constraint, MaxNorm, MinMax, MinMaxNorm, NonNegative, UnitNorm
from solvergen.verify import check_agreement
from tests.support.bits import assert_same_bits
from tests.support.shipped import CLASSES, HOST_BACKENDS

DTYPES = (np.float32, np.float64, ml_dtypes.bfloat16, np.float16)
LIMITS = (0.0, 0.25, 1.0, 3.0, 1e-30)
EXAMPLES = {"cpu": 40, "ptx": 4}


@st.composite
def parameters(draw: st.DrawFn) -> tuple[Any, Constraint]:
    """A parameter, and a constraint for it."""
    shape = tuple(draw(st.lists(st.sampled_from((1, 2, 3, 7, 65, 0)), max_size=4)))
    if draw(st.booleans()):
        shape = (*shape[:2], draw(st.sampled_from((256, 259))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    array = (draw(st.sampled_from((1.0, 1e-3, 100.0))) * rng.normal(size=shape)).astype(
        draw(st.sampled_from(DTYPES))
    )
    axis: int | list[int] | None = None
    if shape and draw(st.booleans()):
        first = draw(st.integers(0, len(shape) - 1))
        last = draw(st.integers(first, len(shape) - 1))
        axis = (
            list(range(first, last + 1))
            if draw(st.booleans())
            else first - draw(st.sampled_from((0, len(shape))))
        )
    low, high = sorted((draw(st.sampled_from(LIMITS)), draw(st.sampled_from(LIMITS))))
    kind = draw(st.sampled_from((MaxNorm, MinMaxNorm, UnitNorm, MinMax, NonNegative)))
    made: Constraint
    if kind is MaxNorm:
        made = MaxNorm(high, axis)
    elif kind is MinMaxNorm:
        made = MinMaxNorm(low, high, draw(st.sampled_from((0.0, 0.3, 1.0))), axis)
    elif kind is UnitNorm:
        made = UnitNorm(axis)
    elif kind is MinMax:
        made = MinMax(draw(st.sampled_from((None, -high))), low)
    else:
        made = NonNegative()
    return np.array(array), made


def held(of: dict[str, Any], constraints: dict[str, Constraint], backend: str) -> dict[str, Any]:
    of = {name: np.array(array) for name, array in of.items()}
    optimizer = CLASSES["sgd"](of, lr=1.0, backend=backend)
    optimizer.constraint = constraints
    optimizer.step({name: np.zeros_like(array) for name, array in of.items()})
    return of


def expected(array: Any, constraint: Constraint) -> Any:
    """The formulas, in float64."""
    x = np.asarray(array, np.float64)
    if isinstance(constraint, NonNegative):
        return np.maximum(x, 0.0)
    if isinstance(constraint, MinMax):
        return x.clip(constraint.low, constraint.high)
    axis = constraint.axis  # type: ignore[attr-defined]
    norm = np.sqrt((x * x).sum(axis=tuple(axis) if isinstance(axis, (list, tuple)) else axis, keepdims=True))
    if isinstance(constraint, UnitNorm):
        return x / (1e-7 + norm)
    if isinstance(constraint, MaxNorm):
        return x * norm.clip(0.0, constraint.max_value) / (1e-7 + norm)
    assert isinstance(constraint, MinMaxNorm)
    limited = norm.clip(constraint.min_value, constraint.max_value)
    return x * (constraint.rate * limited + (1 - constraint.rate) * norm) / (1e-7 + norm)


@pytest.mark.parametrize("backend", HOST_BACKENDS[1:])
def test_bits_and_formulas(backend: str) -> None:
    @settings(max_examples=EXAMPLES[backend], phases=(Phase.explicit, Phase.generate))
    @given(st.lists(parameters(), min_size=1, max_size=4))
    def check(drawn: list[tuple[Any, Constraint]]) -> None:
        of = {str(i): array for i, (array, _) in enumerate(drawn)}
        constraints = {str(i): constraint for i, (_, constraint) in enumerate(drawn)}
        ours, theirs = held(of, constraints, backend), held(of, constraints, "numpy")
        for name, array in of.items():
            assert_same_bits(ours[name], theirs[name])
            wide = ours[name].astype(np.float64)
            info = ml_dtypes.finfo(array.dtype)
            with np.errstate(all="ignore"):
                exact = expected(array, constraints[name])
            error = np.abs(wide - exact)
            tiny = 4 * float(info.smallest_subnormal)
            assert (error <= 3 * float(info.eps) * np.abs(exact) + tiny).all(), (name, constraints[name])

    check()


@pytest.mark.parametrize("rule", ["_constrain", "_constrain_lines"])
@pytest.mark.parametrize("backend", HOST_BACKENDS[1:])
def test_the_rules_as_verify_draws_runs(rule: str, backend: str) -> None:
    module = import_module(f"generated.{rule}")
    cls = module.Constrain if rule == "_constrain" else module.ConstrainLines
    check_agreement(cls, backends=(backend,), examples={"cpu": 12, "ptx": 2}[backend])
