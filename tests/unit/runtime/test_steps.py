"""Whole steps of handwritten optimizers on the NumPy backend, bit for bit against plain formulas."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from solvergen.runtime.backends import numpy as numpy_backend
from tests.support.bits import assert_same_bits
from tests.support.handwritten import Adam, WarmSGD
from tests.unit.runtime import formulas

BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = {"float32": np.dtype(np.float32), "float64": np.dtype(np.float64), "bfloat16": BF16,
          "float16": np.dtype(np.float16)}  # fmt: skip
MIXES = [("float64", "float64"), *itertools.product(["float32", "bfloat16", "float16"], repeat=2)]


def to_bfloat16(x):
    """Nearest even by integers, apart from ml_dtypes."""
    bits = int(np.float32(x).view(np.uint32))
    if np.isnan(x):
        return np.float32(np.nan)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16
    return np.uint32(bits & 0xFFFFFFFF).view(np.float32)


STORE = {"float32": np.float32, "float64": np.float64, "float16": np.float16, "bfloat16": to_bfloat16}


class Oracle:
    """One tensor, element by element."""

    def __init__(self, param, formula, names, **settings):
        self.store = STORE[param.dtype.name]
        self.real = np.float64 if param.dtype == np.float64 else np.float32
        self.formula, self.settings, self.t = formula, settings, 0
        self.shape, self.dtype = param.shape, param.dtype
        self.param = [self.real(x) for x in param.reshape(-1)]
        initial = {"start": lambda x: x, "mu_product": lambda x: 1.0}
        self.state = [{n: initial.get(n, lambda x: self.real(0))(x) for n in names} for x in self.param]

    def step(self, grad):
        self.t += 1
        for i, g in enumerate(grad.reshape(-1)):
            self.param[i] = self.formula(
                self.param[i], self.real(g), self.state[i], self.t, store=self.store, **self.settings
            )

    def check(self, param, state, name):
        with np.errstate(all="ignore"):
            assert_same_bits(param, np.array(self.param, self.real).astype(self.dtype).reshape(self.shape))
            for key, view in state.items():
                if name not in view:
                    continue
                if key == "mu_product":
                    assert all(view[name] == s[key] for s in self.state)
                else:
                    assert_same_bits(
                        view[name], np.array([s[key] for s in self.state], self.real).reshape(self.shape)
                    )


def draw(rng, shape, dtype):
    return rng.standard_normal(shape).astype(DTYPES[dtype])


ADAM_SETTINGS = [
    {},
    {"amsgrad": True},
    {"weight_decay": 0.1, "maximize": True},
    {"lr": 0.3, "beta1": 0.5, "beta2": 0.7, "eps": 1e-3, "weight_decay": 0.01, "amsgrad": True},
    {"beta1": 0.0, "beta2": 0.0, "eps": 0.0},
]


@pytest.mark.parametrize(("param_dtype", "grad_dtype"), MIXES)
@pytest.mark.parametrize("settings", ADAM_SETTINGS, ids=str)
def test_adam_in_every_dtype(rng, param_dtype, grad_dtype, settings):
    shapes = {"matrix": (3, 4), "scalar": (), "empty": (0, 2), "one": (1,), "vector": (17,)}
    params = {name: draw(rng, shape, param_dtype) for name, shape in shapes.items()}
    states = ("m", "v", "v_max") if settings.get("amsgrad") else ("m", "v")
    oracles = {name: Oracle(p, formulas.adam, states, **settings) for name, p in params.items()}
    opt = Adam(params, backend="numpy", **settings)
    for _ in range(5):
        grads = {name: draw(rng, p.shape, grad_dtype) for name, p in params.items()}
        kept = {name: g.copy() for name, g in grads.items()}
        assert opt.step(grads) is True
        for name, oracle in oracles.items():
            oracle.step(grads[name])
            oracle.check(params[name], opt.state, name)
            assert_same_bits(grads[name], kept[name])  # gradients are only read
    assert set(opt.state) == set(states)
    assert opt.t == 5


WARM_SETTINGS = [
    {},
    {"nesterov": True, "pull": -0.5},
    {"momentum": 0.0, "weight_decay": 0.1},
    {"warmup": 1, "pull": 3.0},
]


@pytest.mark.parametrize("settings", WARM_SETTINGS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_warm_sgd_with_its_scalar_state(rng, dtype, settings):
    params = [draw(rng, (5,), dtype), draw(rng, (2, 2), dtype)]
    states = ("start", "mu_product") if settings.get("momentum") == 0 else ("buf", "start", "mu_product")
    oracles = [Oracle(p, formulas.warm_sgd, states, **settings) for p in params]
    opt = WarmSGD(params, backend="numpy", **settings)
    for _ in range(6):
        grads = [draw(rng, p.shape, dtype) for p in params]
        opt.step(grads)
        for i, oracle in enumerate(oracles):
            oracle.step(grads[i])
            oracle.check(params[i], opt.state, str(i))
    assert set(opt.state) == set(states)


def test_special_values_go_through(rng):
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38, -3e38, 1e-38], np.float32)
    params, grads = (a.reshape(-1).copy() for a in np.meshgrid(values, values))
    oracle = Oracle(params, formulas.adam, ("m", "v", "v_max"), weight_decay=0.5, amsgrad=True)
    opt = Adam(params, backend="numpy", weight_decay=0.5, amsgrad=True)
    for _ in range(3):
        opt.step(grads)
        oracle.step(grads)
        oracle.check(params, opt.state, "0")


def test_large_tensors_are_updated_in_blocks_with_the_same_bits(rng, monkeypatch):
    start, gradient = (
        rng.standard_normal(1000).astype(np.float32),
        rng.standard_normal(1000).astype(np.float32),
    )
    results = []
    for block in (1, 7, 1000, 1 << 14):
        monkeypatch.setattr(numpy_backend, "BLOCK", block)
        param = start.copy()
        opt = Adam(param, backend="numpy", amsgrad=True)
        for _ in range(3):
            opt.step(gradient)
        results.append(np.concatenate([param, *(opt.state[s][0] for s in opt.state)]))
    for result in results[1:]:
        assert_same_bits(result, results[0])


def test_a_gradient_of_none_leaves_its_tensor_alone(rng):
    params = {name: draw(rng, (4,), "float32") for name in "abc"}
    oracles = {name: Oracle(p, formulas.adam, ("m", "v")) for name, p in params.items()}
    opt = Adam(params, backend="numpy")
    patterns = ["abc", "a", "bc", "", "ab", "abc", "c", "abc", "a", "abc"]
    for step, present in enumerate(patterns):
        before = {name: p.copy() for name, p in params.items()}
        grads = {name: draw(rng, (4,), "float32") if name in present else None for name in "abc"}
        assert opt.step(grads) is True
        for name in "abc":
            if name in present:
                oracles[name].step(grads[name])
            else:
                assert_same_bits(params[name], before[name])
            oracles[name].check(params[name], opt.state, name)
            assert opt.steps[name] == oracles[name].t == sum(name in p for p in patterns[: step + 1])
    assert opt.t == max(opt.steps.values())


def test_bias_correction_counts_each_tensor(rng):
    # A tensor that gets a gradient every second step has t = 1, 2 in four steps (B15).
    params = [np.zeros(1, np.float32), np.zeros(1, np.float32)]
    opt = Adam(params, backend="numpy", lr=1e-3, eps=0.0)
    g = np.ones(1, np.float32)
    for i in range(4):
        before = params[1].copy()
        opt.step([g, g if i % 2 else None])
        if i % 2:
            assert abs(before[0] - params[1][0] - 1e-3) < 1e-9  # a constant gradient moves by lr each time
    assert list(opt.steps.values()) == [4, 2]


def test_every_tensor_moves_alike_in_the_first_step():
    params = [np.zeros(1, np.float32) for _ in range(3)]  # B13
    Adam(params, backend="numpy", lr=1e-3).step([np.ones(1, np.float32)] * 3)
    assert_same_bits(params[0], params[1])
    assert_same_bits(params[0], params[2])
    assert abs(params[0][0] + 1e-3) < 1e-9


def test_an_empty_tensor_at_the_end_hides_no_other():
    params = [np.zeros(4, np.float32), np.zeros(0, np.float32)]  # B43
    Adam(params, backend="numpy").step([np.ones(4, np.float32), np.ones(0, np.float32)])
    assert (params[0] != 0).all()


def test_counts_never_saturate(rng):
    # A count past 2**24 (float32) and 2**53 (float64) still advances by one.
    for t in (2**24, 2**31, 2**53):
        param = draw(rng, (2,), "float32")
        opt = Adam(param, backend="numpy")
        state = opt.state_dict()
        state["tensors"]["0"]["t"] = t
        opt.load_state_dict(state)
        opt.step(np.ones(2, np.float32))
        opt.step(np.ones(2, np.float32))
        assert opt.t == t + 2


def test_learning_rate_of_zero_changes_nothing(rng):
    param = draw(rng, (100,), "float32")  # B41
    before = param.copy()
    opt = Adam(param, backend="numpy", lr=0.0)
    opt.step(draw(rng, (100,), "float32"))
    assert_same_bits(param, before)


def test_hyperparameters_change_between_steps(rng):
    param = draw(rng, (6,), "float32")
    oracle = Oracle(param, formulas.adam, ("m", "v"))
    opt = Adam(param, backend="numpy")
    for i in range(6):
        oracle.settings = {"lr": 0.1 / (1 + i), "beta1": 0.9 - 0.1 * i, "weight_decay": 0.1 * (i % 2)}
        for name, value in oracle.settings.items():
            setattr(opt, name, value)
        gradient = draw(rng, (6,), "float32")
        opt.step(gradient)
        oracle.step(gradient)
        oracle.check(param, opt.state, "0")


def test_changing_hyperparameters_prepares_nothing_anew(rng):
    class Counting(numpy_backend.NumpyBackend):
        prepared = 0

        def prepare(self, plan):
            Counting.prepared += 1
            return super().prepare(plan)

    params = [draw(rng, (3,), "float32"), draw(rng, (3,), "float64")]
    opt = Adam(params, backend=Counting())
    for i in range(5):
        opt.lr = 0.1 / (i + 1)
        opt.step([draw(rng, (3,), "float32"), draw(rng, (3,), "float64")])
    assert Counting.prepared == 2  # one launch a dtype
    for i in range(6):
        opt.step([None, draw(rng, (3,), "float64")] if i % 2 else [draw(rng, (3,), "float32"), None])
    assert Counting.prepared == 4  # patterns are kept
    opt.step([draw(rng, (3,), "float16"), draw(rng, (3,), "float64")])
    assert Counting.prepared == 6


def test_many_patterns_of_gradients_stay_right(rng):
    # More patterns than are kept.
    params = [draw(rng, (2,), "float32") for _ in range(7)]
    oracles = [Oracle(p, formulas.adam, ("m", "v")) for p in params]
    opt = Adam(params, backend="numpy")
    for bits in itertools.chain(range(128), range(128)):
        grads = [draw(rng, (2,), "float32") if bits >> i & 1 else None for i in range(7)]
        opt.step(grads)
        for oracle, gradient in zip(oracles, grads, strict=True):
            if gradient is not None:
                oracle.step(gradient)
    for i, oracle in enumerate(oracles):
        oracle.check(params[i], opt.state, str(i))
        assert opt.steps[i] == 128


def test_dtypes_of_gradients_may_change_between_steps(rng):
    params = [draw(rng, (3,), "float32"), draw(rng, (3,), "bfloat16"), draw(rng, (2,), "float64")]
    oracles = [Oracle(p, formulas.adam, ("m", "v")) for p in params]
    opt = Adam(params, backend="numpy")
    for dtypes in [
        ("float32", "bfloat16"),
        ("float16", "float32"),
        ("float32", "bfloat16"),
        ("bfloat16", "float16"),
    ]:
        grads = [draw(rng, p.shape, d) for p, d in zip(params, [*dtypes, "float64"], strict=True)]
        opt.step(grads)
        for i, oracle in enumerate(oracles):
            oracle.step(grads[i])
            oracle.check(params[i], opt.state, str(i))


def test_one_gradient_may_serve_two_parameters(rng):
    gradient = draw(rng, (4,), "float32")
    params = [np.zeros(4, np.float32), np.zeros(4, np.float32)]
    Adam(params, backend="numpy").step([gradient, gradient])
    assert_same_bits(params[0], params[1])


def test_gradients_are_not_kept(rng):
    import gc
    import weakref

    param, gradient = draw(rng, (4,), "float32"), draw(rng, (4,), "float32")
    opt = Adam(param, backend="numpy")
    gone = []
    weakref.finalize(gradient, gone.append, True)
    opt.step(gradient)
    del gradient
    gc.collect()
    assert gone == [True]


def test_memory_mapped_parameters_and_gradients(rng, tmp_path):
    start, g = draw(rng, (8,), "float32"), draw(rng, (8,), "float32")
    start.tofile(tmp_path / "p")
    g.tofile(tmp_path / "g")
    param = np.memmap(tmp_path / "p", np.float32, "r+", shape=(8,))
    opt = Adam(param, backend="numpy")
    opt.step(np.memmap(tmp_path / "g", np.float32, "r", shape=(8,)))
    param.flush()
    oracle = Oracle(start, formulas.adam, ("m", "v"))
    oracle.step(g)
    oracle.check(np.fromfile(tmp_path / "p", np.float32), opt.state, "0")


def test_warnings_of_numpy_stay_silent():
    param = np.array([3e38, 0.0], np.float32)
    Adam(param, backend="numpy", lr=1e300, eps=0.0).step(
        np.array([np.inf, 0.0], np.float32)
    )  # warnings are errors
    assert np.isnan(param).all()


def test_a_step_on_no_tensors_is_a_step():
    opt = Adam([{"params": []}], backend="numpy")  # B59
    assert opt.step([]) is True
    assert opt.t == 0
    assert len(opt.params) == 0


def test_results_that_are_other_buffers_are_not_overwritten_too_early(rng):
    # A rule that swaps two buffers hands each array on as the other's new value.
    from dataclasses import replace

    definition = Adam.definition

    def swap(param, grad, m, v, v_max, *rest):
        return grad, v, m, v_max

    class Swap(Adam):
        pass

    Swap.definition = replace(definition, update=swap)
    param = draw(rng, (5,), "float32")
    opt = Swap(param, backend="numpy")
    m, v = opt.state["m"][0], opt.state["v"][0]
    m[...], v[...] = 1.0, 2.0
    gradient = draw(rng, (5,), "float32")
    opt.step(gradient)
    assert_same_bits(param, gradient)
    assert (m == 2.0).all()
    assert (v == 1.0).all()
