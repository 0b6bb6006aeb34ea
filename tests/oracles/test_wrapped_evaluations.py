"""Wrapped rules that evaluate the gradient again, against plain ones with functions that do it by hand."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from solvergen.runtime.wrappers import Wrappers
from tests.oracles.comparing import assert_near
from tests.support.bits import assert_same_bits
from tests.support.shipped import CLASSES, HOST_BACKENDS

Arrays = dict[str, np.ndarray[Any, Any]]

RULES = sorted(name for name, cls in CLASSES.items() if cls.definition.evaluations)
LR = 0.125

CHOICES = {
    "everything": Wrappers(
        unscale=4,
        normalize=0.5,
        clip_value=3,
        clip_tensor_norm=2.5,
        clip_grad_norm=1.5,
        clip_eps=1e-6,
        l1=0.02,
        l2=0.05,
        weight_decay=0.25,
        bounds=(-0.8, 1.9),
        average=0.75,
    ),
    "caffe": Wrappers(order="caffe", normalize=0.25, clip_grad_norm=3, l2=0.1),
    "ascent": Wrappers(maximize=True, clip_grad_norm=0.5, non_negative=True),
    "decay alone": Wrappers(weight_decay=0.5, average=0.5),
}


def start() -> Arrays:
    rng = np.random.default_rng(11)
    return {"a": rng.uniform(-1, 2, (3, 5)), "b": rng.uniform(-1, 2, 7), "c": np.array([1.5])}


def slopes(params: Arrays) -> Arrays:
    """The gradients at the parameters. Not linear, so that it matters where they are taken."""
    return {name: 2 * np.sin(3 * x) for name, x in params.items()}


def norm(arrays: Arrays) -> float:
    return float(np.sqrt(sum((a * a).sum() for a in arrays.values())))


def said_of(gradients: Arrays, params: Arrays, w: Wrappers) -> Arrays:
    """What wrappers make of one evaluation's gradients."""
    caffe = w.order == "caffe"
    scale = (-1 if w.maximize else 1) / w.unscale * (1 if caffe else w.normalize)
    g = {name: scale * one for name, one in gradients.items()}
    if w.clip_value is not None:
        g = {name: one.clip(-w.clip_value, w.clip_value) for name, one in g.items()}
    if w.clip_tensor_norm is not None:
        g = {n: one * min(1, w.clip_tensor_norm / (norm({n: one}) + w.clip_eps)) for n, one in g.items()}
    if w.clip_grad_norm is not None:
        factor = min(1, w.clip_grad_norm / (norm(g) + w.clip_eps))
        g = {name: factor * one for name, one in g.items()}
    if caffe:
        g = {name: w.normalize * one for name, one in g.items()}
    return {n: one + w.l2 * params[n] + w.l1 * np.sign(params[n]) for n, one in g.items()}


class ByHand:
    """The function for the plain rule's steps: what is said of gradients in each call, decay in the first."""

    def __init__(self, params: Arrays, wrappers: Wrappers) -> None:
        self.params = params
        self.wrappers = wrappers
        self.calls = 0

    def __call__(self) -> tuple[float, Arrays]:
        gradients = said_of(slopes(self.params), self.params, self.wrappers)
        if not self.calls:
            for param in self.params.values():
                param[...] = (1 - LR * self.wrappers.weight_decay) * param
        self.calls += 1
        return 0.0, gradients


@pytest.mark.parametrize("backend", HOST_BACKENDS[:2])
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("rule", RULES)
def test_each_gradient_gets_all_of_it(rule: str, choice: str, backend: str) -> None:
    expect_as_by_hand(rule, CHOICES[choice], backend, steps=4)


@pytest.mark.parametrize("backend", HOST_BACKENDS[2:])
def test_on_ptx(backend: str) -> None:
    expect_as_by_hand("sam", CHOICES["everything"], backend, steps=2)


def expect_as_by_hand(rule: str, wrappers: Wrappers, backend: str, steps: int) -> None:
    ours, theirs = start(), start()
    averages = start()
    opt = CLASSES[rule](ours, lr=LR, backend=backend, wrappers=wrappers)
    plain = CLASSES[rule](theirs, lr=LR, backend="numpy")
    low, high = wrappers.bounds
    low = 0.0 if wrappers.non_negative else low
    for step in range(steps):
        opt.step(lambda: (0.0, slopes(ours)))
        plain.step(ByHand(theirs, wrappers))
        for name, param in theirs.items():
            param[...] = param.clip(low, high) if low is not None or high is not None else param
            assert_near(ours[name], param, f"{name} after {step}", tolerance=1e-11)
            if wrappers.average is not None:
                averages[name] = wrappers.average * averages[name] + (1 - wrappers.average) * param
                assert_near(opt.averages[name], averages[name], f"average of {name}", tolerance=1e-11)
    assert opt.t == plain.t


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_wrappers_that_say_nothing_change_no_bit(rule: str, dtype: Any) -> None:
    of = {name: param.astype(dtype) for name, param in start().items()}
    others = {name: param.copy() for name, param in of.items()}
    opt = CLASSES[rule](of, lr=LR, backend="numpy", wrappers=Wrappers())
    plain = CLASSES[rule](others, lr=LR, backend="numpy")
    for _ in range(3):
        opt.step(lambda: (0.0, slopes(of)))
        plain.step(lambda: (0.0, slopes(others)))
    for name, param in others.items():
        assert_same_bits(of[name], param)


def torch_clips(params: Arrays, largest: float) -> Callable[[], tuple[float, Arrays]]:
    import torch

    def closure() -> tuple[float, Arrays]:
        tensors = [torch.nn.Parameter(torch.from_numpy(param)) for param in params.values()]
        for tensor, slope in zip(tensors, slopes(params).values(), strict=True):
            tensor.grad = torch.from_numpy(np.asarray(slope))
        torch.nn.utils.clip_grad_norm_(tensors, largest)
        return 0.0, {n: np.asarray(t.grad) for n, t in zip(params, tensors, strict=True)}

    return closure


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("rule", RULES)
def test_where_torch_clips_within_the_function(rule: str) -> None:
    ours, theirs = start(), start()
    wrappers = Wrappers(clip_grad_norm=2.0, clip_eps=1e-6)
    opt = CLASSES[rule](ours, lr=LR, backend="numpy", wrappers=wrappers)
    plain = CLASSES[rule](theirs, lr=LR, backend="numpy")
    for _ in range(3):
        opt.step(lambda: (0.0, slopes(ours)))
        plain.step(torch_clips(theirs, 2.0))
        assert opt.clip_norm > 2
    for name, param in theirs.items():
        assert_near(ours[name], param, name, tolerance=1e-11)
