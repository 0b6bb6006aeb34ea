"""Constraints against Keras', which have the same names, arguments and epsilon."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from solvergen.constraints import Constraint, MaxNorm, MinMaxNorm, NonNegative, UnitNorm
from tests.golden.peers import keras_module
from tests.support.shipped import CLASSES

SHAPES: dict[str, tuple[int, ...]] = {"dense": (40, 7), "kernel": (3, 3, 5, 6), "vector": (30,)}
CASES: list[tuple[type[Constraint], dict[str, Any]]] = [
    (MaxNorm, {}),
    (MaxNorm, {"max_value": 1.5, "axis": 0}),
    (MaxNorm, {"max_value": 1.5, "axis": -1}),
    (MaxNorm, {"max_value": 0.5, "axis": None}),
    (MinMaxNorm, {}),
    (MinMaxNorm, {"min_value": 1.0, "max_value": 2.0, "rate": 0.75, "axis": 0}),
    (MinMaxNorm, {"min_value": 30.0, "max_value": 40.0}),
    (UnitNorm, {}),
    (UnitNorm, {"axis": -1}),
    (NonNegative, {}),
]


def held(constraint: Constraint, array: Any) -> Any:
    """``array`` after an update that changes nothing else."""
    array = array.copy()
    optimizer = CLASSES["sgd"]([array], lr=1.0, backend="numpy")
    optimizer.constraint = constraint
    optimizer.step([np.zeros_like(array)])
    return array


def by_keras(name: str, arguments: dict[str, Any], array: Any) -> Any:
    if not all(map(find_spec, ("keras", "jax"))):  # Keras isn't to be imported before it has its backend
        pytest.skip("keras or jax isn't installed")
    keras = keras_module()
    constraint = getattr(keras.constraints, name)(**arguments)
    return np.asarray(constraint(keras.ops.convert_to_tensor(array, dtype="float64")))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("kind", "arguments"), CASES)
def test_keras(kind: type[Constraint], arguments: dict[str, Any], shape: str) -> None:
    array = np.random.default_rng(4).normal(size=SHAPES[shape])
    name = "NonNeg" if kind is NonNegative else kind.__name__
    expected = by_keras(name, arguments, array)
    assert not np.array_equal(expected, array)
    np.testing.assert_allclose(held(kind(**arguments), array), expected, rtol=1e-14)


@pytest.mark.parametrize("axes", [[0, 1, 2], [1, 2], [2, 1]])
def test_keras_along_several_axes(axes: list[int]) -> None:
    array = np.random.default_rng(5).normal(size=SHAPES["kernel"])
    expected = by_keras("MaxNorm", {"max_value": 1.0, "axis": axes}, array)
    np.testing.assert_allclose(held(MaxNorm(1.0, axis=axes), array), expected, rtol=1e-14)
