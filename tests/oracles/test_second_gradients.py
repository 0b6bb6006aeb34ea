"""Rules that step with the gradient of another point, against their papers' formulas, on two losses."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracles.comparing import assert_near
from tests.support.shipped import CLASSES, HOST_BACKENDS

START = {"a": np.array([1.0, -2.0, 0.5]), "b": np.array([[0.25, -1.5]])}


def params():
    return {name: np.array(x) for name, x in START.items()}


def coupled(x):
    """The gradient of sum(x**4)/4 + (the sum of all x)**2/2: every element has a part in each."""
    total = sum(v.sum() for v in x.values())
    return {name: v**3 + total for name, v in x.items()}


def game(x):
    """Two players, ``a`` against the first of itself by ``b``: min over a, max over b of b*(a0 + a1 + a2)."""
    a, b = x["a"], x["b"]
    return {"a": np.full(3, b.sum()), "b": np.full((1, 2), -a.sum())}


def moved(x, change, by):
    return {name: v + by * change[name] for name, v in x.items()}


def norm(x):
    return np.sqrt(sum((v**2).sum() for v in x.values()))


def sam(gradient, x, state, lr, momentum, weight_decay, rho):
    """Foret et al., algorithm 1, with p = 2 and the step of SGD with momentum."""
    g = gradient(x)
    uphill = {name: rho * v / norm(g) for name, v in g.items()}
    g = gradient(moved(x, uphill, 1))
    for name, v in g.items():
        state[name] = momentum * state.get(name, 0) + v + weight_decay * x[name]
    return moved(x, state, -lr)


def extragradient(gradient, x, state, lr):
    """Korpelevich: x' = x - lr*F(x - lr*F(x))."""
    return moved(x, gradient(moved(x, gradient(x), -lr)), -lr)


SAM = {"lr": 0.02, "momentum": 0.8, "weight_decay": 0.0, "rho": 0.3}
CASES = [
    ("sam", sam, SAM),
    ("sam", sam, {**SAM, "weight_decay": 0.1, "momentum": 0.0}),
    ("sam", sam, {**SAM, "rho": 0.0}),
    ("extragradient", extragradient, {"lr": 0.05}),
]


@pytest.mark.parametrize("backend", HOST_BACKENDS)
@pytest.mark.parametrize("gradient", [coupled, game])
@pytest.mark.parametrize(("name", "rule", "settings"), CASES)
def test_follows_the_paper(name, rule, settings, gradient, backend):
    found, expected, state = params(), params(), {}
    optimizer = CLASSES[name](found, backend=backend, **settings)
    for step in range(8):
        optimizer.step(lambda: (None, gradient(found)))
        expected = rule(gradient, expected, state, **settings)
        for tensor, value in expected.items():
            assert_near(found[tensor], value, f"{tensor} after step {step + 1}", tolerance=1e-13)


@pytest.mark.parametrize("backend", HOST_BACKENDS)
def test_where_the_gradient_is_zero_sam_stays(backend):
    found = params()
    optimizer = CLASSES["sam"](found, backend=backend)
    optimizer.step(lambda: (None, {name: 0 * x for name, x in found.items()}))
    assert all((found[name] == x).all() for name, x in START.items())


def test_extragradient_comes_to_the_equilibrium_that_descent_leaves():
    ends = {}
    for name in ("extragradient", "sgd"):
        found = params()
        optimizer = CLASSES[name](found, lr=0.2, backend="numpy")
        for _ in range(300):
            optimizer.step(lambda found=found: (None, game(found)))
        ends[name] = norm({"a": found["a"].sum(), "b": found["b"].sum()})
    assert ends["extragradient"] < 1e-3
    assert ends["sgd"] > 100


def test_sam_is_that_of_pytorch_optimizer():
    """But for the 1e-12 that it adds to the norm."""
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("pytorch_optimizer")
    found = params()
    optimizer = CLASSES["sam"](found, backend="numpy", **{**SAM, "weight_decay": 0.1})
    tensors = {n: torch.from_numpy(x).requires_grad_() for n, x in params().items()}
    settings = {"lr": 0.02, "momentum": 0.8, "weight_decay": 0.1}
    other = theirs.SAM([*tensors.values()], torch.optim.SGD, rho=0.3, **settings)

    def backward():
        with torch.enable_grad():
            other.zero_grad()
            loss = sum((v**4).sum() for v in tensors.values()) / 4
            loss = loss + sum(v.sum() for v in tensors.values()) ** 2 / 2
            loss.backward()
        return loss

    for step in range(8):
        optimizer.step(lambda: (None, coupled(found)))
        backward()
        other.step(backward)
        for name, tensor in tensors.items():
            assert_near(
                found[name], tensor.detach().numpy(), f"{name} after step {step + 1}", tolerance=1e-11
            )
