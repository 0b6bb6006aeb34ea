"""Whole steps of rules with reductions on the NumPy backend, bit for bit against plain formulas."""

from __future__ import annotations

import math
import signal
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from solvergen.errors import CompilerBug, NonfiniteGradient, UnknownName
from tests.support.bits import assert_same_bits
from tests.support.handwritten.staged import ClippedSGD, DistanceSGD, Lamb, NovoGrad
from tests.support.reductions import reduction, reduction_over_all, total

BF16 = np.dtype(ml_dtypes.bfloat16)
F, D, H = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16)


def real_of(dtype):
    return np.float64 if dtype == D else np.float32


def numbers(rng, shape, dtype):
    return rng.normal(size=shape).astype(dtype)


def floats(array):
    """The elements as Python floats, which hold every type's exactly."""
    return array.astype(np.float64).reshape(-1).tolist()


def wide(array):
    """A copy in the compute type."""
    return array.astype(real_of(array.dtype))


class LambOracle:
    """One tensor. Scalars are Python floats, which NumPy rounds to the elements' type where they meet."""

    def __init__(self, param):
        self.dtype, self.param, self.t = param.dtype, wide(param), 0
        self.m, self.v = np.zeros_like(self.param), np.zeros_like(self.param)

    def step(self, grad, lr=0.01, beta1=0.9, beta2=0.99, eps=1e-6, weight_decay=0.1, trust=True):
        g = grad.astype(self.param.dtype)
        self.t += 1
        self.m = beta1 * self.m + (1 - beta1) * g
        self.v = beta2 * self.v + (1 - beta2) * (g * g)
        c1, c2 = 1 - power(beta1, self.t), 1 - power(beta2, self.t)
        d = self.m / c1 / (np.sqrt(self.v / c2) + eps) + weight_decay * self.param
        d = np.asarray(d, self.param.dtype)
        scale = lr
        if trust:
            w, n = reduction("norm2", floats(self.param)), reduction("norm2", floats(d))
            scale = lr * (w / n if w > 0 and n > 0 else 1.0)
        self.param = np.asarray(self.param - scale * d).astype(self.dtype).astype(self.param.dtype)


def power(x, n):
    result = x
    for bit in bin(n)[3:]:
        result = result * result * x if bit == "1" else result * result
    return result


@pytest.mark.parametrize("grad_dtype", [F, BF16])
def test_norms_of_tensors(rng, grad_dtype):
    shapes = {"a": (5000,), "b": (3, 7), "c": (), "d": (0, 2), "e": (4096,)}
    dtypes = {"a": F, "b": BF16, "c": F, "d": F, "e": D}
    params = {k: numbers(rng, s, dtypes[k]) for k, s in shapes.items()}
    params["z"] = np.zeros(3, F)
    oracles = {k: LambOracle(p) for k, p in params.items()}
    opt = Lamb(params, lr=0.02)
    for t in range(3):
        grads = {k: numbers(rng, p.shape, D if p.dtype == D else grad_dtype) for k, p in params.items()}
        if t == 1:
            grads["b"] = None
        opt.step(grads)
        for k, oracle in oracles.items():
            if grads[k] is not None:
                oracle.step(grads[k], lr=0.02)
            assert_same_bits(params[k], oracle.param.astype(params[k].dtype))
            assert_same_bits(opt.state["m"][k], oracle.m)
            assert_same_bits(opt.state["v"][k], oracle.v)
    assert dict(opt.steps) == {k: 2 if k == "b" else 3 for k in params}


def test_the_rule_is_lamb(rng):
    # Once without any of our own reductions: a rule whose norm were wrong by a factor would be found here.
    param, grad = rng.normal(size=1000), rng.normal(size=1000)
    d = grad / (np.abs(grad) + 1e-6) + 0.1 * param
    wanted = param - 0.01 * np.linalg.norm(param) / np.linalg.norm(d) * d
    Lamb([param]).step([grad])
    np.testing.assert_allclose(param, wanted, rtol=1e-12)


def test_an_option_without_reductions_between_groups(rng):
    params = [numbers(rng, 300, F), numbers(rng, 300, F)]
    oracles = [LambOracle(p) for p in params]
    opt = Lamb([{"params": [params[0]], "trust": False}, {"params": [params[1]], "lr": 0.5}])
    for _ in range(2):
        grads = [numbers(rng, 300, F), numbers(rng, 300, F)]
        opt.step([[grads[0]], [grads[1]]])
        oracles[0].step(grads[0], trust=False)
        oracles[1].step(grads[1], lr=0.5)
    for param, oracle in zip(params, oracles, strict=True):
        assert_same_bits(param, oracle.param)


def clipped_step(params, grads, settings):
    """A step of ClippedSGD over all tensors: ``settings`` are each tensor's own."""
    taking_part = [i for i, g in enumerate(grads) if g is not None]
    size = sum(grads[i].size for i in taking_part)
    g = {i: grads[i].astype(real_of(params[i].dtype)) for i in taking_part}
    totals = [0.0] * len(params)
    for i in taking_part:
        if settings[i].get("center", False):
            totals[i] = total("mean", floats(g[i]))
    mean = reduction_over_all("mean", totals, size)
    for i in taking_part:
        if settings[i].get("center", False):
            g[i] = g[i] - mean
    totals = [0.0] * len(params)
    for i in taking_part:
        if settings[i].get("clip", True):
            totals[i] = total("norm2", floats(g[i]))
    norm = reduction_over_all("norm2", totals, size)
    for i in taking_part:
        if settings[i].get("clip", True):
            g[i] = min(1.0, settings[i].get("max_norm", 1.0) / norm) * g[i]
        result = wide(params[i]) - settings[i].get("lr", 0.5) * g[i]
        params[i] = np.asarray(result).astype(params[i].dtype)


def test_a_norm_over_all_tensors_of_several_types(rng):
    params = [numbers(rng, 5000, F), numbers(rng, (3, 5), BF16), numbers(rng, 2, D), numbers(rng, 0, F),
              numbers(rng, (), H)]  # fmt: skip
    alone = [p.copy() for p in params]
    opt = ClippedSGD(params, max_norm=0.5, center=True)
    settings = [{"max_norm": 0.5, "center": True}] * len(params)
    for t in range(3):
        grads = [numbers(rng, p.shape, p.dtype) for p in params]
        if t:
            grads[t - 1] = None
        opt.step(grads)
        clipped_step(alone, grads, settings)
        for param, wanted in zip(params, alone, strict=True):
            assert_same_bits(param, wanted)


def test_the_norm_over_all_is_that_of_all_gradients_together(rng):
    params = [np.zeros(1000), np.zeros(500)]
    grads = [rng.normal(size=1000), rng.normal(size=500)]
    ClippedSGD(params, lr=1.0, max_norm=0.25).step(grads)
    together = np.concatenate(params)
    assert math.isclose(np.linalg.norm(together), 0.25, rel_tol=1e-12)
    np.testing.assert_allclose(
        together, -0.25 * np.concatenate(grads) / np.linalg.norm(np.concatenate(grads))
    )


def test_one_tensor_alone(rng):
    param, grad = numbers(rng, 300, F), numbers(rng, 300, F)
    alone = [param.copy()]
    ClippedSGD(param).step(grad)
    clipped_step(alone, [grad], [{}])
    assert_same_bits(param, alone[0])


def test_groups_with_different_options_and_hyperparameters(rng):
    settings = [
        {"center": True},
        {"clip": False, "lr": 0.1},
        {"max_norm": 0.01},
        {"center": True, "clip": False},
    ]
    params = [numbers(rng, 10 + i, F) for i in range(8)]
    alone = [p.copy() for p in params]
    opt = ClippedSGD([{"params": params[2 * i : 2 * i + 2], **s} for i, s in enumerate(settings)])
    for missing in (None, 0, 5):
        grads = [None if i == missing else numbers(rng, p.shape, F) for i, p in enumerate(params)]
        opt.step(grads)
        clipped_step(alone, grads, [settings[i // 2] for i in range(8)])
        for param, wanted in zip(params, alone, strict=True):
            assert_same_bits(param, wanted)


def test_a_mean_over_all_counts_whoever_takes_part(rng):
    # The second group has no such mean, but its elements count.
    params = [np.zeros(2), np.zeros(6)]
    opt = ClippedSGD([{"params": [params[0]], "center": True}, {"params": [params[1]]}], clip=False, lr=1.0)
    opt.step([np.array([8.0, 24.0]), np.ones(6)])
    assert params[0].tolist() == [-4.0, -20.0]
    opt.step([[np.array([8.0, 24.0])], None])
    assert params[0].tolist() == [4.0, -28.0]


def test_a_scalar_state_of_a_reduction(rng):
    params = {"a": numbers(rng, 700, F), "b": numbers(rng, (2, 2), BF16), "c": numbers(rng, 3, D)}
    alone = {k: wide(p) for k, p in params.items()}
    m = {k: np.zeros_like(p) for k, p in alone.items()}
    v, product = dict.fromkeys(params, 0.0), dict.fromkeys(params, 1.0)
    opt = NovoGrad(params)
    assert dict(opt.state["v"]) == v
    assert dict(opt.state["last"]) == dict.fromkeys(params, -1.0)
    for t in range(3):
        grads = {k: numbers(rng, p.shape, p.dtype) for k, p in params.items()}
        if t == 1:
            grads["a"] = None
        opt.step(grads)
        for k, g in grads.items():
            if g is None:
                continue
            square = total("dot", floats(g), floats(g))
            v[k] = square if opt.steps[k] == 1 else 0.75 * v[k] + (1 - 0.75) * square
            product[k] *= 0.9
            m[k] = 0.9 * m[k] + wide(g) / (math.sqrt(v[k]) + 1e-8)
            alone[k] = (
                (alone[k] - 0.1 / (1 - product[k]) * m[k]).astype(params[k].dtype).astype(alone[k].dtype)
            )
        for k in params:
            assert type(opt.state["v"][k]) is float
            assert opt.state["v"][k] == opt.state["last"][k] == v[k]
            assert opt.state["mu_product"][k] == product[k]
            assert_same_bits(opt.state["m"][k], m[k])
            assert_same_bits(params[k], alone[k].astype(params[k].dtype))
    assert list(opt.state) == ["m", "v", "mu_product", "last"]


def distance_step(params, starts, grads, settings, shared):
    """A step of DistanceSGD; returns the new shared states."""
    taking_part = [i for i, g in enumerate(grads) if g is not None]
    adapting = [i for i in taking_part if settings[i].get("adapt", True)]
    along, length = [0.0] * len(params), [0.0] * len(params)
    for i in adapting:
        along[i] = total("dot", floats(grads[i]), floats(starts[i] - params[i]))
        length[i] = total("norm1", floats(grads[i]))
    quotient = {
        i: settings[i].get("lr", 1.0)
        * reduction_over_all("dot", along, 0)
        / reduction_over_all("norm1", length, 0)
        for i in adapting
    }
    new = {
        i: max(shared["d"], min(settings[i].get("growth", 2.0) * shared["d"], quotient[i])) for i in adapting
    }
    for i in taking_part:
        scale = settings[i].get("lr", 1.0)
        params[i] = params[i] - (scale * new[i] if i in new else scale) * grads[i]
    leader = taking_part[0]
    if leader in new:
        return {"d": new[leader], "steps": shared["steps"] + 1.0}
    return shared


def test_a_shared_state_is_the_leaders(rng):
    settings = [{"adapt": False, "lr": 0.25}, {"lr": 3.0, "growth": 4.0}, {"lr": 0.5}]
    params = [numbers(rng, 5, F), numbers(rng, 40, F), numbers(rng, 300, F)]
    starts, alone = [p.copy() for p in params], [p.copy() for p in params]
    opt = DistanceSGD([{"params": [p], **s} for p, s in zip(params, settings, strict=True)], d0=0.5)
    shared = {"d": 0.5, "steps": 0.0}
    assert dict(opt.shared) == shared
    seen = []
    for missing in ((0,), (), (0,), (0, 1), (1,), (0,)):
        # Gradients that lead away from the start, so that d grows.
        grads = [
            None if i in missing else (p - s + F.type(0.1))
            for i, (p, s) in enumerate(zip(params, starts, strict=True))
        ]
        grads = [g if g is None else -abs(g) for g in grads]
        opt.step(grads)
        shared = distance_step(alone, starts, grads, settings, shared)
        assert dict(opt.shared) == shared
        assert type(opt.shared["d"]) is float
        seen.append(shared["d"])
        for param, wanted in zip(params, alone, strict=True):
            assert_same_bits(param, wanted)
    assert shared["steps"] == 4.0  # the first group took part in two of six, and has no such state
    assert len(set(seen)) >= 3


def test_a_shared_state_begins_as_its_first_tensor_says():
    params = [np.ones(2), np.ones(2), np.ones(2)]
    groups = [
        {"params": [], "d0": 7.0},
        {"params": [params[0]], "adapt": False, "d0": 3.0},
        {"params": [params[1]], "d0": 0.25},
        {"params": [params[2]], "d0": 5.0},
    ]
    assert DistanceSGD(groups).shared["d"] == 0.25


def test_views_of_shared_states():
    opt = DistanceSGD({"w": np.ones(2)})
    assert list(opt.shared) == ["d", "steps"]
    assert len(opt.shared) == 2
    assert list(opt.state) == ["start"]
    assert "d" in opt.shared
    assert "w" not in opt.shared
    assert repr(opt.shared) == "<shared state: d, steps>"
    with pytest.raises(UnknownName, match=r"'d' is one number for the whole optimizer.*opt\.shared\['d'\]"):
        opt.state["d"]
    with pytest.raises(UnknownName, match=r"no shared state 'step'.*did you mean 'steps'"):
        opt.shared["step"]
    without = DistanceSGD({"w": np.ones(2)}, adapt=False)
    assert dict(without.shared) == {}
    with pytest.raises(UnknownName, match="shared state 'd' doesn't exist under this optimizer's options"):
        without.shared["d"]
    assert dict(Lamb(np.ones(2)).shared) == {}


def raising_in(optimizer, when):
    """The optimizer, whose reference raises in the call for which ``when`` (given its number) says so."""
    calls = []
    update = optimizer.definition.update

    def broken(*arguments):
        calls.append(None)
        if when(len(calls)):
            raise ArithmeticError("broken")
        return update(*arguments)

    class Broken(optimizer):
        definition = replace(optimizer.definition, update=broken)

    return Broken


def everything(opt):
    data = opt.state_dict()
    return [
        *(p.tobytes() for p in opt.params.values()),
        *(a.tobytes() for t in data["tensors"].values() for a in t["arrays"].values()),
        *((t["t"], dict(t["scalars"])) for t in data["tensors"].values()),
        dict(opt.shared),
    ]


@pytest.mark.parametrize("optimizer", [Lamb, ClippedSGD, NovoGrad, DistanceSGD])
def test_an_error_in_the_last_tensor_leaves_all_as_it_was(optimizer, rng):
    params = [numbers(rng, 5, F), numbers(rng, 5, BF16), numbers(rng, 5, D)]
    opt = raising_in(optimizer, lambda call: call == 6)(params)
    opt.step([numbers(rng, 5, p.dtype) for p in params])
    before = everything(opt)
    grads = [numbers(rng, 5, p.dtype) for p in params]
    with pytest.raises(ArithmeticError):
        opt.step(grads)
    assert everything(opt) == before
    opt.step(grads)
    assert everything(opt) != before
    assert opt.t == 2


def test_an_error_behind_a_yield_leaves_all_as_it_was(rng):
    def broken(*arguments):
        yield from DistanceSGD.definition.update(*arguments)
        raise ArithmeticError("broken")

    class Broken(DistanceSGD):
        definition = replace(DistanceSGD.definition, update=broken)

    params = [np.ones(3, F), np.ones(4)]
    opt = Broken(params)
    before = everything(opt)
    with pytest.raises(ArithmeticError):
        opt.step([np.ones(3, F), np.ones(4)])
    assert everything(opt) == before


def test_an_interrupt_finds_the_step_done(rng):
    update = ClippedSGD.definition.update

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        return update(*arguments)

    class Interrupted(ClippedSGD):
        definition = replace(ClippedSGD.definition, update=interrupted)

    params, alone = [np.ones(3, F), np.ones(4)], [np.ones(3, F), np.ones(4)]
    opt = Interrupted(params)
    with pytest.raises(KeyboardInterrupt):
        opt.step([np.ones(3, F), np.ones(4)])
    ClippedSGD(alone).step([np.ones(3, F), np.ones(4)])
    assert opt.t == 1
    for param, wanted in zip(params, alone, strict=True):
        assert_same_bits(param, wanted)


def test_skipped_steps_and_steps_without_gradients():
    params = [np.ones(3, F), np.ones(2, F)]
    opt = DistanceSGD(params, nonfinite="skip")
    opt.step([np.ones(3, F), np.ones(2, F)])
    before = everything(opt)
    assert opt.step([np.full(3, np.nan, F), np.ones(2, F)]) is False
    assert everything(opt) == before
    assert opt.step([None, None]) is True
    assert everything(opt) == before
    opt.nonfinite = "raise"
    with pytest.raises(NonfiniteGradient):
        opt.step([np.ones(3, F), np.full(2, np.inf, F)])
    assert everything(opt) == before


def test_what_is_not_finite_goes_through_without_a_warning(recwarn):
    params = [np.ones(3, F), np.ones(2)]
    ClippedSGD(params).step([np.full(3, np.inf, F), np.zeros(2)])
    assert np.isnan(params[0]).all()
    assert params[1].tolist() == [1.0, 1.0]
    Lamb([np.full(2, 3e38, F)]).step([np.full(2, 3e38, F)])
    assert not recwarn.list


def test_hyperparameters_may_change(rng):
    params = [numbers(rng, 50, F)]
    alone = [p.copy() for p in params]
    opt = ClippedSGD(params)
    for max_norm in (0.5, 2.0):
        opt.max_norm = max_norm
        grads = [numbers(rng, 50, F)]
        opt.step(grads)
        clipped_step(alone, grads, [{"max_norm": max_norm}])
        assert_same_bits(params[0], alone[0])


def test_references_that_are_not_what_was_agreed():
    def returning(*results):
        class Wrong(NovoGrad):
            definition = replace(
                NovoGrad.definition, update=lambda param, grad, m, *rest: (param, m, *results)
            )

        return Wrong

    for results in ((1.0, 1.0, None), (np.ones(2), 1.0, 1.0), ("x", 1.0, 1.0)):
        param = np.ones(2)
        with pytest.raises(CompilerBug, match="for the scalar"):
            returning(*results)(param).step(np.ones(2))
        assert param.tolist() == [1.0, 1.0]


def test_states_that_do_not_exist_are_none():
    given = []

    def noting(*arguments):
        given.append(arguments[3:5])
        return DistanceSGD.definition.update(*arguments)

    class Noting(DistanceSGD):
        definition = replace(DistanceSGD.definition, update=noting)

    groups = [{"params": [np.ones(2)], "adapt": False}, {"params": [np.ones(2)]}]
    Noting(groups, d0=0.5).step([np.ones(2), np.ones(2)])
    assert given == [(None, None), (0.5, 0.0)]


@pytest.mark.parametrize("count", [300, 4100])
def test_many_tensors_over_all(rng, count):
    # Added up in another order, some of these norms have other bits. From 4,097 tensors on, their totals are
    # reduced twice.
    params = [np.zeros(1) for _ in range(count)]
    opt = ClippedSGD(params, lr=1.0)
    for _ in range(3):
        grads = [numbers(rng, 1, D) * 2.0 ** rng.integers(-4, 4) for _ in params]
        for i in range(int(rng.integers(3)), count, 3):
            grads[i] = None
        alone = [p.copy() for p in params]
        opt.step(grads)
        clipped_step(alone, grads, [{"lr": 1.0}] * count)
        for param, wanted in zip(params, alone, strict=True):
            assert_same_bits(param, wanted)
