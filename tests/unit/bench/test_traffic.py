"""The limit moves what the rule must move, as wide as it can, and nothing else."""

from __future__ import annotations

import re

import numpy as np
import pytest

from generated import SGD, Adam
from solvergen.bench.contenders import ours, traffic_limit
from solvergen.bench.traffic import bytes_per_element, sweeps, traffic_text
from solvergen.runtime import native
from solvergen.runtime.native.inspection import assembly
from tests.support.handwritten.closures import Heun
from tests.support.handwritten.lamb import Lamb

NO_COMPILER = native.available()
needs_compiler = pytest.mark.skipif(NO_COMPILER is not None, reason=str(NO_COMPILER))

PACKED_ADDITION = re.compile(r"^\s+(?:v?padd[wdq]\s|add\s+v\d+\.)", re.MULTILINE)

ADAM = {"amsgrad": False, "maximize": False}
AMSGRAD = {**ADAM, "amsgrad": True}
LAMB, CLIPPED = {"clip": False}, {"clip": True}
PLAIN = {"use_momentum": False, "nesterov": False, "maximize": False}


@pytest.mark.parametrize(
    ("optimizer", "options", "dtypes", "expected"),
    [
        (Adam, ADAM, ("float32", "float32"), 7 * 4),  # reads four, writes three
        (Adam, AMSGRAD, ("float32", "float32"), 9 * 4),
        (Adam, ADAM, ("float64", "float64"), 7 * 8),
        (Adam, ADAM, ("bfloat16", "bfloat16"), 3 * 2 + 4 * 4),  # states are float32
        (Adam, ADAM, ("float32", "float16"), 6 * 4 + 2),
        (SGD, PLAIN, ("float32", "float32"), 3 * 4),
        (Lamb, LAMB, ("float32", "float32"), 10 * 4),  # parameter and moments are read by two passes
        (Lamb, CLIPPED, ("float32", "bfloat16"), 9 * 4 + 2 * 2),  # and the gradient by another
        (Heun, {}, ("float32", "float32"), 9 * 4),
        (Heun, {}, ("bfloat16", "bfloat16"), 5 * 2 + 4 * 4),  # what is carried is float32
    ],
)
def test_bytes(optimizer, options, dtypes, expected):
    assert bytes_per_element(optimizer.definition, options, *dtypes) == expected


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(("optimizer", "options"), [(Adam, AMSGRAD), (SGD, PLAIN), (Lamb, LAMB)])
def test_its_loops_are_vectorised(optimizer, options, dtype):
    for sweep in range(len(sweeps(optimizer.definition, options))):
        text = traffic_text(optimizer.definition, options, dtype, dtype, sweep)
        assert PACKED_ADDITION.search(assembly(text))


def test_each_loop_moves_a_buffer_once_and_all_together_what_the_rule_moves():
    moments = ("exp_avg", "exp_avg_sq")
    assert sweeps(Adam.definition, ADAM) == ((("param", "grad", *moments), ("param", *moments)),)
    first, second = sweeps(Lamb.definition, LAMB)
    assert [set(names) for names in first] == [{"param", "m", "v"}, set()]
    assert [set(names) for names in second] == [{"param", "grad", "m", "v"}, {"param", "m", "v"}]


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_touches_every_buffer_of_the_rule_once(dtype):
    params = [np.zeros(n, dtype) for n in (5, 40_000)]
    limit = traffic_limit(Adam, ADAM, lambda: params)
    ones = [np.ones(p.size, f"u{p.itemsize}").view(dtype) for p in params]
    for _ in range(3):
        limit.receive(ones)
        limit.step(None)
    # Each launch adds the gradient's bits, as integers, to all that the rule writes.
    for param in params:
        assert (param.view(f"u{param.itemsize}") == 3).all()
    assert all((gradient.view(f"u{gradient.itemsize}") == 1).all() for gradient in ones)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_loops_that_only_read_leave_all_as_it_is(dtype):
    params = [np.zeros(n, dtype) for n in (5, 40_000)]
    limit = traffic_limit(Lamb, LAMB, lambda: params)
    limit.receive([np.ones(p.size, f"u{p.itemsize}").view(dtype) for p in params])
    limit.step(None)
    for param in params:
        assert (param.view(f"u{param.itemsize}") == 1).all()


@needs_compiler
def test_a_rule_that_evaluates_the_gradient_within_a_step():
    params = [np.ones(5, np.float32), np.ones(70_000, np.float32)]
    contender = ours(Heun, {"lr": 0.5}, "numpy", lambda: params)
    gradients = [np.full_like(p, 0.5) for p in params]
    contender.step(contender.receive(gradients))
    assert all((p == 0.75).all() for p in params)
    limit = traffic_limit(Heun, {}, lambda: params)
    limit.step(limit.receive(gradients))
