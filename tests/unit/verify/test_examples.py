"""Examples that are made by hand, of whatever arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from generated import Adam
from solvergen.errors import VerificationError
from solvergen.verify import Example, Group, Step, Tensor, disagreement_on

F = np.float32
ARRAY = np.arange(20, dtype=F).reshape(4, 5)
HYPERPARAMETERS = {h.name: h.default for h in Adam.definition.hyperparameters}


def example(param, gradient, **states):
    options = dict.fromkeys(Adam.definition.option_names, False)
    steps = tuple(Step((gradient,), offset, (HYPERPARAMETERS,)) for offset in (1, 0))
    return Example((Group(options, {}),), (Tensor("w", param, 1, 0, states),), steps)


@pytest.mark.parametrize(
    "array",
    [
        ARRAY[::-1],
        np.asfortranarray(ARRAY),
        np.broadcast_to(F(2), (4, 5)),
        np.frombuffer(b"-" + ARRAY.tobytes(), np.uint8)[1:].view(F).reshape(4, 5),
    ],
    ids=["reversed", "columns first", "broadcast", "misaligned and read-only"],
)
def test_any_layout_will_do(array):
    assert disagreement_on(Adam, "numpy", example(array, ARRAY)) is None
    assert disagreement_on(Adam, "numpy", example(ARRAY, array, exp_avg=array, exp_avg_sq=abs(array))) is None


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (ARRAY.astype(">f4"), "has dtype >f4"),
        (ARRAY.astype(int), "has dtype int64"),
        (ARRAY.astype(object), "has dtype object"),
        (np.ma.masked_array(ARRAY), "is a numpy.ma.*MaskedArray, not a numpy.ndarray"),
        (ARRAY.tolist(), "is a list"),
    ],
    ids=["swapped", "whole", "objects", "masked", "list"],
)
def test_what_no_optimizer_takes_is_no_disagreement(array, said):
    with pytest.raises(VerificationError, match=f"the parameter 'w' {said}"):
        disagreement_on(Adam, "numpy", example(array, ARRAY))
    with pytest.raises(VerificationError, match=f"the state 'exp_avg' of 'w' {said}"):
        disagreement_on(Adam, "numpy", example(ARRAY, ARRAY, exp_avg=array))
    with pytest.raises(VerificationError, match=f"the gradient of 'w' in step 1 {said}"):
        disagreement_on(Adam, "numpy", example(ARRAY, array))


def test_steps_have_a_gradient_for_each_parameter():
    made = example(ARRAY, ARRAY)
    steps = (replace(made.steps[0], gradients=()),)
    with pytest.raises(VerificationError, match="step 1 has 0 gradients, and the example 1 parameters"):
        disagreement_on(Adam, "numpy", replace(made, steps=steps))


def test_gradients_have_the_shapes_of_parameters():
    with pytest.raises(VerificationError, match=r"in step 1 has the shape \(20,\), its parameter \(4, 5\)"):
        disagreement_on(Adam, "numpy", example(ARRAY, ARRAY.reshape(20)))
