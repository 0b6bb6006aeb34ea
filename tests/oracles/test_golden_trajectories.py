"""sgd and adam against torch's float64 trajectories, lion against optax's (``tests/golden``)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.golden.cases import CASES, RECORDED, SHAPES, SIZE, STEPS, Case, gradients, parameters, split
from tests.oracles.comparing import assert_near
from tests.support.shipped import CLASSES, HOST_BACKENDS

GOLDEN = Path(__file__).parents[1] / "golden"
STATES = {
    "sgd": {"momentum_buffer": "momentum_buffer"},
    "adam": {"exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq", "max_exp_avg_sq": "max_exp_avg_sq"},
    "lion": {"exp_avg": "mu"},
}
"""State of the spec -> array of the golden file."""

ALL = [(name, index) for name, cases in CASES.items() for index in range(len(cases))]


@cache
def golden(name: str) -> dict[str, np.ndarray]:
    with np.load(GOLDEN / f"{name}.npz", allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


@pytest.mark.parametrize("backend", HOST_BACKENDS)
@pytest.mark.parametrize(("name", "index"), ALL, ids=[f"{n}-{CASES[n][i].id}" for n, i in ALL])
def test_follows_the_trajectory(name: str, index: int, backend: str) -> None:
    case: Case = CASES[name][index]
    arrays = golden(name)
    assert arrays["cases"][index] == case.id

    params = parameters()
    optimizer = CLASSES[name](params, backend=backend, **case.at(1), **case.options)
    recorded = iter(arrays["params"][index])
    for step in range(1, STEPS + 1):
        for hyperparameter, value in case.at(step).items():
            setattr(optimizer, hyperparameter, value)
        assert optimizer.step(gradients(step))
        if step in RECORDED:
            for tensor, expected in split(next(recorded)).items():
                assert_near(params[tensor], expected, f"{tensor} after step {step}")
    active = optimizer.definition.active_state(**optimizer.options)
    for state, array in STATES[name].items():
        assert (state in active) == (not np.isnan(arrays[array][index]).any())
        if state in active:
            for tensor, expected in split(arrays[array][index]).items():
                assert_near(optimizer.state[state][tensor], expected, f"{state} of {tensor}")


def test_the_files_are_what_the_cases_say() -> None:
    for name, cases in CASES.items():
        arrays = golden(name)
        assert list(arrays["cases"]) == [case.id for case in cases]
        assert arrays["params"].shape == (len(cases), len(RECORDED), SIZE)
        assert arrays["params"].dtype == np.float64
    assert sum((GOLDEN / f"{name}.npz").stat().st_size for name in CASES) < 60_000
    assert STEPS >= 30
    assert sum(int(np.prod(shape)) for shape in SHAPES.values()) == SIZE
