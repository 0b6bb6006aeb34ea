"""Rules that know rows and columns, on tensors of more axes than golden runs have, against their formulas."""

from __future__ import annotations

import numpy as np
import pytest

from tests.golden.case import Case
from tests.oracles import by_hand
from tests.oracles.comparing import assert_near
from tests.support.shipped import CLASSES

SHAPES = {"matrices": (2, 3, 4), "kernels": (3, 2, 3, 2), "wide": (2, 300), "tall": (130, 3), "row": (1, 7)}


@pytest.mark.parametrize("backend", ["numpy", "cpu"])
@pytest.mark.parametrize("name", ["adafactor", "came", "sm3", "rowwise_adagrad"])
def test_follows_the_paper(name: str, backend: str) -> None:
    rule, case = by_hand.of(name), by_hand.of(name).CASES[-1]
    assert isinstance(case, Case)
    rng = np.random.default_rng(3)
    found = {tensor: rng.standard_normal(shape) for tensor, shape in SHAPES.items()}
    expected = {tensor: np.array(w) for tensor, w in found.items()}
    optimizer = CLASSES[name](found, backend=backend, **case.at(1), **case.options)
    defaults = {h.name: h.default for h in optimizer.definition.hyperparameters}
    settings = {**defaults, **case.at(1), **optimizer.options}
    states = {tensor: rule.start(w, **settings) for tensor, w in expected.items()}
    for step in range(1, 5):
        gradients = {tensor: rng.standard_normal(w.shape) for tensor, w in expected.items()}
        assert optimizer.step(gradients)
        for tensor, g in gradients.items():
            expected[tensor] = rule.step(expected[tensor], g, states[tensor], step, **settings)
    active = optimizer.definition.active_state(**optimizer.options)
    for tensor, w in expected.items():
        assert_near(found[tensor], w, tensor)
        for state in set(states[tensor]) & set(active):
            assert_near(optimizer.state[state][tensor], states[tensor][state], f"{state} of {tensor}")
