"""Runge-Kutta methods along gradient flows whose solutions are known: order, estimates, tableaus."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from solvergen.spec.source import Source
from solvergen.spec.tableau import read_tableau
from solvergen.spec.tree import Mapping, parse_tree
from tests.support.shipped import CLASSES, HOST_BACKENDS

BACKENDS = HOST_BACKENDS[:2]
"""The third, an interpreter, takes its time; it says the same bits elsewhere."""

FOLDER = Path(__file__).parents[2] / "specs"


START = {"a": np.array([1.0, -2.0, 0.5]), "b": np.array([[0.25, -1.5]])}
RATES = {"a": np.array([1.0, 0.25, 2.0]), "b": np.array([[0.5, 1.5]])}


def quadratic(rates=RATES):
    """x' = -c*x, the flow of the quadratic c*x**2/2: its gradient, and where it is at time 1."""
    return lambda name, x: rates[name] * x, {n: x * np.exp(-rates[n]) for n, x in START.items()}


def quartic():
    """x' = -x**3/4, the flow of x**4/16: its gradient, and where it is at time 1."""
    return lambda name, x: x**3 / 4, at(1)


def at(time):
    """Where the flow of x**4/16 is at a time."""
    return {name: x / np.sqrt(1 + x**2 * time / 2) for name, x in START.items()}


def cosine():
    """x' = -sin(x), the flow of -cos(x): its gradient, and where it is at time 1."""
    return lambda name, x: np.sin(x), {n: 2 * np.arctan(np.tan(x / 2) / np.e) for n, x in START.items()}


FLOWS = {"quadratic": quadratic, "cosine": cosine}


def params(dtype="float64"):
    return {name: x.astype(dtype) for name, x in START.items()}


def evaluating(gradient, found):
    """What a step is given: the gradients at the parameters as they are then."""
    return lambda: (None, {name: gradient(name, x) for name, x in found.items()})


def stepped(cls, gradient, steps, backend, **settings):
    """The optimizer and its parameters after steps over a time of 1."""
    found = params()
    optimizer = cls(found, lr=1 / steps, backend=backend, **settings)
    for _ in range(steps):
        optimizer.step(evaluating(gradient, found))
    return optimizer, found


def distance(found, expected):
    return max(np.abs(found[name] - x).max() for name, x in expected.items())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize(("name", "order", "steps"), [("heun", 2, 64), ("rk23", 3, 32), ("rk45", 5, 8)])
def test_the_error_falls_with_the_order(name, order, steps, flow, backend):
    gradient, expected = FLOWS[flow]()
    coarse, fine = (
        distance(stepped(CLASSES[name], gradient, n, backend)[1], expected) for n in (steps, 2 * steps)
    )
    assert fine > 1e-13  # far from where rounding decides
    assert order - 0.35 < np.log2(coarse / fine) < order + 0.6


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("name", "order"), [("rk23", 2), ("rk45", 4)])
def test_the_estimate_is_of_the_method_of_lower_order(name, order, backend):
    """Of one step from the same point it falls as that method's error does, a power more than its order."""
    gradient, _ = quartic()
    errors = []
    for lr in (0.04, 0.02):
        found = params()
        optimizer = CLASSES[name](found, lr=lr, backend=backend)
        optimizer.step(evaluating(gradient, found))
        errors.append(float(optimizer.shared["error"]))
    assert errors[1] > 1e-13
    assert order + 0.7 < np.log2(errors[0] / errors[1]) < order + 1.5


@pytest.mark.parametrize("backend", HOST_BACKENDS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_heun_in_the_form_that_one_writes(dtype, backend):
    """p1 = p - lr*g(p), p' = p - lr/2*(g(p) + g(p1)), to the bit."""
    found, expected = params(dtype), params(dtype)
    optimizer = CLASSES["heun"](found, lr=0.3, backend=backend)
    lr, half = np.dtype(dtype).type(0.3), np.dtype(dtype).type(0.3 / 2)

    def gradient(x):
        return np.sin(x) * x

    for _ in range(5):
        optimizer.step(lambda: (None, {n: gradient(x) for n, x in found.items()}))
        for name, p in expected.items():
            p1 = p - lr * gradient(p)
            expected[name] = p - half * (gradient(p) + gradient(p1))
            assert found[name].tobytes() == expected[name].tobytes()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_step_that_is_not_taken_leaves_everything_as_it_was(backend):
    found = params()
    optimizer = CLASSES["rk45_adaptive"](found, lr=4.0, tolerance=1e-6, backend=backend)
    gradient, _ = quartic()
    taken = []
    for _ in range(40):
        before = {name: x.tobytes() for name, x in found.items()}
        scale = float(optimizer.shared["scale"])
        optimizer.step(evaluating(gradient, found))
        taken.append(float(optimizer.shared["error"]) <= 1e-6)
        same = {name: x.tobytes() for name, x in found.items()} == before
        assert same is not taken[-1]
        if not taken[-1]:
            assert optimizer.shared["scale"] < scale
    assert taken[0] is False
    assert sum(taken) > 20


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_length_of_steps_follows_the_tolerance(backend):
    """The flow of x**4/16 slows down, so that steps grow; the sum of the tolerances bounds the error."""
    found = params()
    optimizer = CLASSES["rk45_adaptive"](found, lr=0.01, tolerance=1e-7, backend=backend)
    gradient, _ = quartic()
    time, lengths, allowed = 0.0, [], 0.0
    while time < 20:
        h = 0.01 * float(optimizer.shared["scale"])
        optimizer.step(evaluating(gradient, found))
        if float(optimizer.shared["error"]) <= 1e-7:
            time, allowed = time + h, allowed + 1e-7
            lengths.append(h)
        assert distance(found, at(time)) <= allowed + 1e-15
    assert len(lengths) < 200
    assert max(lengths) > 20 * lengths[0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_slopes_that_are_no_numbers_are_not_followed(backend):
    found = params()
    optimizer = CLASSES["rk45_adaptive"](found, backend=backend)
    before = {name: x.copy() for name, x in found.items()}
    optimizer.step(lambda: (None, {n: x * np.nan for n, x in found.items()}))
    assert all((found[name] == x).all() for name, x in before.items())
    assert optimizer.shared["scale"] == 0.2
    optimizer.step(lambda: (None, {n: 0 * x for n, x in found.items()}))
    assert optimizer.shared["scale"] == 0.2 * 5


def of(text):
    return [Fraction(number) for number in text.split()]


SCIPY = {
    "rk23": {
        "C": of("0 1/2 3/4"),
        "A": [of(""), of("1/2"), of("0 3/4")],
        "B": of("2/9 1/3 4/9"),
        "E": of("5/72 -1/12 -1/9 1/8"),
    },
    "rk45": {
        "C": of("0 1/5 3/10 4/5 8/9 1"),
        "A": [
            of(""),
            of("1/5"),
            of("3/40 9/40"),
            of("44/45 -56/15 32/9"),
            of("19372/6561 -25360/2187 64448/6561 -212/729"),
            of("9017/3168 -355/33 46732/5247 49/176 -5103/18656"),
        ],
        "B": of("35/384 0 500/1113 125/192 -2187/6784 11/84"),
        "E": of("-71/57600 0 71/16695 -71/1920 17253/339200 -22/525 1/40"),
    },
}
"""As in scipy/integrate/_ivp/rk.py. The weights are also the row of one more stage, whose slope only the
estimate reads; E is the embedded method less the method."""


@pytest.mark.parametrize("name", [*SCIPY, "rk45_adaptive"])
def test_the_tableaus_are_scipy_s(name):
    path = FOLDER / f"{name}.yaml"
    source = Source.of(path.name, path.read_text(encoding="utf-8"))
    tree, _ = parse_tree(source)
    assert isinstance(tree, Mapping)
    node = tree.get("tableau")
    assert isinstance(node, Mapping)
    tableau, found = read_tableau(node, source)
    assert tableau is not None
    assert found == []
    theirs = SCIPY[name.removesuffix("_adaptive")]
    stages = len(theirs["C"])
    assert [sum(row) for row in tableau.matrix] == [*theirs["C"], 1]
    assert [list(row[:i]) for i, row in enumerate(tableau.matrix)] == [*theirs["A"], theirs["B"]]
    assert list(tableau.weights) == [*theirs["B"], 0]
    assert [-x for x in tableau.estimate] == theirs["E"]
    assert (tableau.order, tableau.order_of_estimate) == {3: (3, 2), 6: (5, 4)}[stages]
