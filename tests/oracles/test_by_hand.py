"""Optimizers against their rules as written out in ``by_hand/``, step by step."""

from __future__ import annotations

import numpy as np
import pytest

from tests.golden import cases
from tests.golden.case import Case
from tests.golden.data import STEPS, gradients, parameters
from tests.oracles import by_hand
from tests.oracles.comparing import assert_near
from tests.support.shipped import CLASSES, HOST_BACKENDS


def cases_of(name: str) -> tuple[Case, ...]:
    golden = cases.of(name).CASES if name in cases.NAMES else ()
    return (*golden, *getattr(by_hand.of(name), "CASES", ()))


ALL = [(name, index) for name in by_hand.NAMES for index in range(len(cases_of(name)))]


@pytest.mark.parametrize("backend", HOST_BACKENDS)
@pytest.mark.parametrize(("name", "index"), ALL, ids=[f"{n}-{cases_of(n)[i].id}" for n, i in ALL])
def test_follows_the_paper(name: str, index: int, backend: str) -> None:
    rule, case = by_hand.of(name), cases_of(name)[index]
    found = parameters()
    optimizer = CLASSES[name](found, backend=backend, **case.settings)
    options = optimizer.options
    defaults = {h.name: h.default for h in optimizer.definition.hyperparameters}
    first = {**defaults, **case.at(1)}
    expected = {n: np.array(w) for n, w in parameters().items()}
    blocks = {n: {"blocks": case.blocks[n]} if n in case.blocks else {} for n in expected}
    states = {n: rule.start(w, **first, **options, **blocks[n]) for n, w in expected.items()}
    shared = rule.start_together(**first, **options) if hasattr(rule, "start_together") else {}
    counts = dict.fromkeys(expected, 0)
    active = optimizer.definition.active_state(**options)
    for step in range(1, STEPS + 1):
        now = {**defaults, **case.at(step)}
        for hyperparameter, value in now.items():
            setattr(optimizer, hyperparameter, value)
        of_step = gradients(step, dense=case.dense)
        assert optimizer.step(of_step)
        present = {tensor: np.array(g) for tensor, g in of_step.items() if g is not None}
        settings = {**now, **options}
        if hasattr(rule, "together"):
            settings |= rule.together(
                {n: (expected[n], g, states[n]) for n, g in present.items()}, shared, **settings
            )
        for tensor, g in present.items():
            counts[tensor] += 1
            new = rule.step(expected[tensor], g, states[tensor], counts[tensor], **settings, **blocks[tensor])
            expected[tensor] = np.asarray(new)
        for tensor in expected:
            assert_near(found[tensor], expected[tensor], f"{tensor} after step {step}")
            for state in set(states[tensor]) & set(active):
                assert_near(
                    optimizer.state[state][tensor], states[tensor][state], f"{state} of {tensor} at {step}"
                )
        for state in set(shared) & set(active):
            assert_near(optimizer.shared[state], shared[state], f"{state} at {step}")
