"""Staged rules on the cpu backend: a handwritten LAMB against its formulas, to the bit."""

from __future__ import annotations

import ctypes
import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from solvergen.errors import CompilerBug
from solvergen.runtime.backends import cpu, cpu_reductions, cpu_staged
from solvergen.runtime.backends.base import Step
from solvergen.runtime.backends.cpu import CpuBackend
from solvergen.runtime.native.build import load
from solvergen.runtime.native.library import library
from solvergen.runtime.scalars import power
from tests.support.bits import assert_same_bits
from tests.support.handwritten.lamb import Lamb
from tests.support.reductions import by_loops, larger, reduction_over_all
from tests.unit.native.support import DTYPES, values
from tests.unit.native.test_pool import CONTROL, FLUSH, TOWARDS_ZERO

MIXES = [("float64", "float64"), *itertools.product(("float32", "bfloat16", "float16"), repeat=2)]
SHAPES = [(), (0,), (1,), (255,), (256,), (257,), (2, 0, 3), (63, 65), (4096,), (4097,), (90, 91)]
SETTINGS = {"lr": 0.03, "beta1": 0.85, "beta2": 0.97, "eps": 1e-7, "weight_decay": 0.02, "max_norm": 2.5}


class ByHand:
    """The rule once more: elements by NumPy's arithmetic, reductions by loops over floats."""

    def __init__(self, params: list[Any], *, clip: bool) -> None:
        self.clip = clip
        self.params = [p.copy() for p in params]
        real = [np.float64 if p.dtype == np.float64 else np.float32 for p in params]
        self.m = [np.zeros(p.shape, r) for p, r in zip(params, real, strict=True)]
        self.v = [np.zeros(p.shape, r) for p, r in zip(params, real, strict=True)]
        self.trust = [1.0] * len(params)
        self.highest = [0.0] * len(params)
        self.usual = 0.0
        self.t = [0] * len(params)

    def step(self, gradients: list[Any]) -> None:
        with np.errstate(all="ignore"):
            self._step(gradients)

    def _step(self, gradients: list[Any]) -> None:
        beta2, max_norm = SETTINGS["beta2"], SETTINGS["max_norm"]
        scale = 1.0
        if self.clip:
            totals = [0.0 if g is None else _squares(g) for g in gradients]
            norm = reduction_over_all("norm2", totals, 0)
            scale = max_norm / norm if norm > max_norm else 1.0
            self.usual = beta2 * self.usual + (1.0 - beta2) * norm
        for i, g in enumerate(gradients):
            if g is not None:
                self.t[i] += 1
                self._update(i, g, scale)

    def _update(self, i: int, gradient: Any, scale: float) -> None:
        real = self.m[i].dtype.type
        beta1, beta2 = SETTINGS["beta1"], SETTINGS["beta2"]
        old = self.params[i].astype(real)
        g = gradient.astype(real)
        if self.clip:
            g = real(scale) * g
        self.m[i] = real(beta1) * self.m[i] + real(1.0 - beta1) * g
        self.v[i] = real(beta2) * self.v[i] + real(1.0 - beta2) * (g * g)
        root = np.sqrt(self.v[i] / real(1.0 - power(beta2, float(self.t[i])))) + real(SETTINGS["eps"])
        update = self.m[i] / real(1.0 - power(beta1, float(self.t[i]))) / root
        update = np.asarray(update + real(SETTINGS["weight_decay"]) * old)
        param_norm, update_norm = math.sqrt(_squares(old)), math.sqrt(_squares(update))
        self.trust[i] = param_norm / update_norm if param_norm > 0.0 and update_norm > 0.0 else 1.0
        self.highest[i] = larger(
            self.highest[i], by_loops(np.abs(update.astype(np.float64)).reshape(-1).tolist(), larger)
        )
        new = old - real(SETTINGS["lr"] * self.trust[i]) * update
        self.params[i] = np.asarray(new).astype(self.params[i].dtype)


def _squares(x: Any) -> float:
    wide = x.astype(np.float64).reshape(-1)
    return by_loops((wide * wide).tolist())


def check(optimizer: Lamb, by_hand: ByHand, *, clip: bool) -> None:
    for name, expected in (
        ("m", by_hand.m),
        ("v", by_hand.v),
        ("trust", by_hand.trust),
        ("highest", by_hand.highest),
    ):
        for actual, value in zip(optimizer.state[name].values(), expected, strict=True):
            assert_same_bits(actual, value)
    for param, value in zip(optimizer.params.values(), by_hand.params, strict=True):
        assert_same_bits(param, value)
    if clip:
        assert_same_bits(optimizer.shared["usual"], by_hand.usual)


def made(params: list[Any], *, clip: bool, **settings: Any) -> Lamb:
    return Lamb([p.copy() for p in params], clip=clip, **{"backend": "cpu", **SETTINGS, **settings})


@pytest.mark.parametrize(("param", "grad"), MIXES)
@pytest.mark.parametrize("clip", [False, True])
def test_every_mix_of_dtypes_has_the_bits_of_the_formulas(param: str, grad: str, clip: bool) -> None:
    params = [values(shape, param, i) for i, shape in enumerate(SHAPES)]
    optimizer, by_hand = made(params, clip=clip), ByHand(params, clip=clip)
    for t in range(3):
        gradients = [values(shape, grad, 100 * t + i) for i, shape in enumerate(SHAPES)]
        assert optimizer.step(gradients)
        by_hand.step(gradients)
        check(optimizer, by_hand, clip=clip)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("place", [0, 4100])
def test_what_is_not_finite(dtype: str, bad: float, place: int) -> None:
    params = [values((5000,), dtype, 0), values((40,), dtype, 1)]
    optimizer, by_hand = made(params, clip=True), ByHand(params, clip=True)
    gradients = [values((5000,), dtype, 2), values((40,), dtype, 3)]
    for _ in range(2):
        optimizer.step(gradients)
        by_hand.step(gradients)
        check(optimizer, by_hand, clip=True)
        gradients[0][place] = bad


def test_zeros_of_both_signs() -> None:
    params = [np.zeros(300, np.float32), np.full(300, -0.0, np.float32)]
    optimizer, by_hand = made(params, clip=True), ByHand(params, clip=True)
    for sign in (0.0, -0.0):
        gradients = [np.full(300, sign, np.float32)] * 2
        optimizer.step(gradients)
        by_hand.step(gradients)
        check(optimizer, by_hand, clip=True)
    assert list(optimizer.state["trust"].values()) == [1.0, 1.0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("first", [1, 3, 16, 31])
def test_views_that_begin_anywhere_in_a_line(dtype: str, first: int) -> None:
    """Lanes are numbered from a cache line in the kernel; the bits don't show it."""
    for n in (1, 20, 260, 4095, 4096, 9000):
        memory = values((2, n + first + 5), dtype, n)
        before = memory.copy()
        params = [memory[i, first : first + n] for i in range(2)]
        by_hand = ByHand(params, clip=True)
        optimizer = Lamb(params, backend="cpu", clip=True, **SETTINGS)
        gradient_memory = values((2, n + first + 7), dtype, n + 1)
        gradients = [gradient_memory[i, first + 2 : first + 2 + n] for i in range(2)]
        optimizer.step(gradients)
        by_hand.step(gradients)
        check(optimizer, by_hand, clip=True)
        assert_same_bits(memory[:, :first], before[:, :first])
        assert_same_bits(memory[:, first + n :], before[:, first + n :])


@pytest.mark.parametrize("shapes", [[(0,)], [(4,), (0,)], [(0,), (4,)], [(0, 3), (0,), (5,), (0,)]])
def test_empty_tensors(shapes: list[tuple[int, ...]]) -> None:
    params = [values(shape, "float32", i) for i, shape in enumerate(shapes)]
    optimizer, by_hand = made(params, clip=True), ByHand(params, clip=True)
    for t in range(2):
        gradients = [values(shape, "float32", 10 + t) for shape in shapes]
        optimizer.step(gradients)
        by_hand.step(gradients)
        check(optimizer, by_hand, clip=True)


def test_tensors_that_sit_out_and_dtypes_side_by_side() -> None:
    """Several launches of one step; the leader is sometimes in the second."""
    dtypes = ["float32", "float64", "bfloat16", "float32", "float64"]
    params = [values((500 * i + 1,), dtype, i) for i, dtype in enumerate(dtypes)]
    optimizer, by_hand = made(params, clip=True), ByHand(params, clip=True)
    for t, missing in enumerate([(), (0,), (0, 1), (0, 1, 2, 3), (4,)]):
        gradients: list[Any] = [
            None if i in missing else values(p.shape, p.dtype.name, 10 * t + i) for i, p in enumerate(params)
        ]
        optimizer.step(gradients)
        by_hand.step(gradients)
        check(optimizer, by_hand, clip=True)
    assert list(optimizer.steps.values()) == by_hand.t


def both(params: list[Any], groups: Any = None, **settings: Any) -> tuple[Lamb, Lamb]:
    """The same on both backends; ``groups`` makes groups of the parameters."""
    groups = groups or (lambda arrays: arrays)
    return (
        Lamb(groups([p.copy() for p in params]), backend="cpu", **settings),
        Lamb(groups([p.copy() for p in params]), backend="numpy", **settings),
    )


def check_same(a: Lamb, b: Lamb) -> None:
    for one, other in zip(a.params.values(), b.params.values(), strict=True):
        assert_same_bits(one, other)
    for name in ("m", "v", "trust", "highest"):
        for one, other in zip(a.state[name].values(), b.state[name].values(), strict=True):
            assert_same_bits(one, other)
    if any(group.options["clip"] for group in a.groups):
        assert_same_bits(a.shared["usual"], b.shared["usual"])


def test_groups_with_different_options_and_hyperparameters() -> None:
    params = [values((700 + 5000 * (i % 2),), "float32", i) for i in range(6)]

    def groups(arrays: list[Any]) -> list[dict[str, Any]]:
        return [
            {"params": arrays[:2], "lr": 0.5, "clip": False},
            {"params": arrays[2:5], "max_norm": 3.0},
            {"params": arrays[5:], "lr_mult": 0.25},
        ]

    ours, reference = both(params, groups, clip=True, **SETTINGS)
    for t in range(3):
        gradients: list[Any] = [values(p.shape, "float32", 60 + 10 * t + i) for i, p in enumerate(params)]
        gradients[t] = None
        for optimizer in (ours, reference):
            optimizer.step(gradients)
        check_same(ours, reference)
        for optimizer in (ours, reference):
            optimizer.groups[1].lr *= 0.5


def test_many_tensors() -> None:
    random = np.random.default_rng(1)
    params = [values((int(n),), "float32", i) for i, n in enumerate(random.integers(0, 6000, 300))]
    ours, reference = both(params, clip=True)
    for t in range(2):
        gradients = [values(p.shape, "float32", 1000 * t + i) for i, p in enumerate(params)]
        for optimizer in (ours, reference):
            optimizer.step(gradients)
        check_same(ours, reference)


@pytest.mark.parametrize("clip", [False, True])
def test_the_number_of_calls_does_not_grow_with_the_tensors(
    clip: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    native, tables = library(), []
    right, calls = native.run, []
    monkeypatch.setattr(native, "run", lambda *arguments: (calls.append(arguments), right(*arguments))[1])
    chunk_table = cpu.chunk_table
    for module in (cpu, cpu_staged):
        monkeypatch.setattr(
            module, "chunk_table", lambda *arguments: (tables.append(1), chunk_table(*arguments))[1]
        )
    counts = []
    for n in (3, 300):
        params = [values((3333,), "float32", i) for i in range(n)]
        optimizer = made(params, clip=clip)
        for t in range(3):
            calls.clear()
            optimizer.step([values((3333,), "float32", t + i) for i in range(n)])
            counts.append(len(calls))
    # Passes and stages, a reduction for each pass that has any; with clip one more over all tensors.
    assert counts == [8 if clip else 4] * 6
    assert len(tables) == 2 * 2  # made once for each optimizer


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_number_of_threads_has_the_same_bits(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "CHUNK_SIZE", 1 << 12)
    monkeypatch.setattr(cpu_reductions, "MANY_TERMS", 4)
    params = [values((n,), dtype, n) for n in (100_001, 1, 0, 4096, 33, 70_000)]
    gradients = [[values(p.shape, dtype, 9 * t + i) for i, p in enumerate(params)] for t in range(4)]
    results = []
    for helpers in (0, 1, 3):
        monkeypatch.setattr(library(), "helpers", lambda helpers=helpers: helpers)
        optimizer = made(params, clip=True)
        for of_step in gradients:
            optimizer.step(of_step)
        results.append(optimizer)
    for optimizer in results[1:]:
        check_same(results[0], optimizer)
    by_hand = ByHand(params, clip=True)
    by_hand.step(gradients[0])
    for of_step in gradients[1:]:
        by_hand.step(of_step)
    check(results[0], by_hand, clip=True)


@pytest.mark.parametrize("mode", [FLUSH, FLUSH | TOWARDS_ZERO])
def test_floating_point_control_of_the_caller(mode: int) -> None:
    """Passes, reductions and stages compute as the language says, whatever the program chose."""
    control = load({"control.c": CONTROL})
    control.get_control.restype = ctypes.c_uint64
    control.set_control.argtypes = (ctypes.c_uint64,)
    params = [np.full(5000, 3e-160), np.full(7, 1e-200), np.full(5000, 1e-310)]
    gradients = [np.full(5000, 1e-158), np.full(7, 1e-150), np.full(5000, 1e-155)]
    optimizer, by_hand = made(params, clip=True), ByHand(params, clip=True)
    before = control.get_control()
    try:
        control.set_control(before | mode)
        for _ in range(2):
            optimizer.step(gradients)
    finally:
        control.set_control(before)
    for _ in range(2):
        by_hand.step(gradients)
    check(optimizer, by_hand, clip=True)


def staged_launcher() -> tuple[Any, Any, Step]:
    """A launcher of one tensor, bound, with what a step needs."""
    optimizer = made([values((10,), "float32")], clip=True)
    gradients = [values((10,), "float32", 1)]
    optimizer.step(gradients)
    (known,) = optimizer._launches._known.values()
    (launch,) = known.launches
    launcher = launch.launcher
    assert launcher.bind(gradients)
    step = Step(np.zeros((1, 8), np.float32), np.zeros(1, np.int32), np.zeros((1, 4)), 10.0, 0)
    return optimizer, launcher, step


@pytest.mark.parametrize(
    "change",
    [
        {"wide": np.zeros((1, 3))},
        {"wide": np.zeros((2, 4))},
        {"wide": np.zeros((1, 4), np.float32)},
        {"wide": np.zeros((1, 8))[:, ::2]},
        {"table": np.zeros((1, 7), np.float32)},
        {"table": np.zeros((1, 8))},
        {"rows": np.zeros(2, np.int32)},
        {"rows": np.zeros(1, np.int64)},
    ],
)
def test_tables_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    """Kernels index without checks."""
    _, launcher, step = staged_launcher()
    launcher.begin(step)
    with pytest.raises(CompilerBug):
        launcher.begin(replace(step, **change))


def test_nothing_runs_without_gradients() -> None:
    _, launcher, step = staged_launcher()
    launcher.release()
    with pytest.raises(CompilerBug):
        launcher.begin(step)
    with pytest.raises(CompilerBug):
        launcher.run_pass(1)


def test_a_plan_needs_its_workspace() -> None:
    _, launcher, _ = staged_launcher()
    for plan in (replace(launcher.plan, workspace=None), replace(launcher.plan, positions=())):
        with pytest.raises(CompilerBug):
            CpuBackend().prepare(plan)
