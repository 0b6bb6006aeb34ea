"""Optimizers against the float64 trajectories of other packages (``tests/golden``)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.golden import cases
from tests.golden.case import Case
from tests.golden.data import RECORDED, SHAPES, SIZE, STEPS, gradients, parameters, split
from tests.oracles import by_hand
from tests.oracles.comparing import assert_near
from tests.support.shipped import CLASSES, HOST_BACKENDS

GOLDEN = Path(__file__).parents[1] / "golden"

ALL = [(name, index) for name in cases.NAMES for index in range(len(cases.of(name).CASES))]


@cache
def golden(name: str) -> dict[str, np.ndarray]:
    with np.load(GOLDEN / f"{name}.npz", allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def recorded_states(name: str) -> dict[str, np.ndarray]:
    """State -> what the file has of it, a row a case; NaN where a case has none."""
    return {
        key.removeprefix("state."): array for key, array in golden(name).items() if key.startswith("state.")
    }


@pytest.mark.parametrize("backend", HOST_BACKENDS)
@pytest.mark.parametrize(("name", "index"), ALL, ids=[f"{n}-{cases.of(n).CASES[i].id}" for n, i in ALL])
def test_follows_the_trajectory(name: str, index: int, backend: str) -> None:
    every: tuple[Case, ...] = cases.of(name).CASES
    case = every[index]
    assert golden(name)["cases"][index] == case.id

    params = parameters()
    optimizer = CLASSES[name](params, backend=backend, **case.settings)
    recorded = iter(golden(name)["params"][index])
    for step in range(1, STEPS + 1):
        for hyperparameter, value in case.at(step).items():
            setattr(optimizer, hyperparameter, value)
        assert optimizer.step(gradients(step, dense=case.dense))
        if step in RECORDED:
            for tensor, expected in split(next(recorded)).items():
                assert_near(params[tensor], expected, f"{tensor} after step {step}")
    active = optimizer.definition.active_state(**optimizer.options)
    for state, rows in recorded_states(name).items():
        there = [not np.isnan(row).any() for row in rows]
        # A package either keeps a state of ours in every case that needs it, or never.
        if case.by in {other.by for other, is_there in zip(every, there, strict=True) if is_there}:
            assert (state in active) == there[index], state
        if there[index] and rows.shape[1:] == (1,):
            assert_near(optimizer.shared[state], rows[index, 0], state)
        elif there[index]:
            values = optimizer.state[state]
            one_a_tensor = rows.shape[1:] == (len(SHAPES),)
            expected_values = (
                dict(zip(SHAPES, rows[index], strict=True)) if one_a_tensor else split(rows[index])
            )
            for tensor, expected in expected_values.items():
                found = values[tensor]
                if one_a_tensor and np.shape(found) == (1,):
                    (found,) = found  # of the tensor's only block
                assert_near(found, expected, f"{state} of {tensor}")


@pytest.mark.parametrize("name", cases.NAMES)
def test_the_file_is_what_the_cases_say(name: str) -> None:
    module, arrays = cases.of(name), golden(name)
    assert list(arrays["cases"]) == [case.id for case in module.CASES]
    assert len(set(arrays["cases"])) == len(module.CASES)
    assert arrays["params"].shape == (len(module.CASES), len(RECORDED), SIZE)
    assert arrays["params"].dtype == np.float64
    assert np.isfinite(arrays["params"]).all()
    assert (GOLDEN / f"{name}.npz").stat().st_size < 48_000


@pytest.mark.parametrize("name", cases.NAMES)
def test_every_state_and_option_is_in_some_case(name: str) -> None:
    module, definition = cases.of(name), CLASSES[name].definition
    without = getattr(module, "UNRECORDED", ())
    states = {state.name for state in definition.state}
    assert set(recorded_states(name)) == states - set(without)
    # What no package offers is followed by hand alone.
    every = (*module.CASES, *(getattr(by_hand.of(name), "CASES", ()) if name in by_hand.NAMES else ()))
    for option in definition.options:
        if option.default is not None:  # those that are derived follow from hyperparameters
            settings = {case.options.get(option.name, option.default) for case in every}
            assert settings == {False, True}, option.name
    for hyperparameter in definition.hyperparameters:
        values = {case.at(step).get(hyperparameter.name) for case in every for step in (1, STEPS)}
        assert values - {hyperparameter.default, None}, f"{hyperparameter.name} is always at its default"


def test_steps_and_sizes() -> None:
    assert STEPS >= 30
    assert RECORDED[-1] == STEPS
    assert sum(int(np.prod(shape)) for shape in SHAPES.values()) == SIZE
