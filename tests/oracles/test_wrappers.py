"""What wraps updates against Caffe's order of things, and what torch, Keras and optax do under these names.

Formulas by hand hold everywhere; where the packages are installed, they are asked as well.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from solvergen.runtime.wrappers import Wrappers
from tests.golden.data import gradients, parameters
from tests.golden.peers import keras_module
from tests.oracles.caffe_rules import RULES, Weights
from tests.oracles.comparing import assert_near
from tests.support.bits import assert_same_bits
from tests.support.shipped import CLASSES, HOST_BACKENDS

Arrays = dict[str, np.ndarray[Any, Any]]

STEPS = 9
ITER_SIZE = 3


def dense(step: int) -> Arrays:
    return {name: np.array(g) for name, g in gradients(step, dense=True).items() if g is not None}


def norm(arrays: Arrays) -> float:
    return float(np.sqrt(sum((a * a).sum() for a in arrays.values())))


@pytest.mark.parametrize("backend", HOST_BACKENDS)
@pytest.mark.parametrize("penalty", ["none", "L2", "L1"])
@pytest.mark.parametrize("name", RULES)
def test_caffe_clips_the_sum_then_normalises_then_regularises(name: str, penalty: str, backend: str) -> None:
    rule = RULES[name]
    settings = rule.settings[1]
    decay = 0.0 if penalty == "none" else 0.3
    start = parameters()
    norms = [
        norm({n: sum(dense(ITER_SIZE * i + j)[n] for j in range(ITER_SIZE)) for n in start}) for i in range(3)
    ]
    clip = sorted(norms)[1]  # the largest is clipped, the others aren't
    expected = {
        n: Weights(rule, w.copy(), *((2.0, 0.0) if n == "b" else (1.0, 1.0))) for n, w in start.items()
    }
    ours = {n: np.array(w) for n, w in start.items()}
    optimizer = CLASSES[name](
        [
            {"params": {"w": ours["w"], "u": ours["u"]}},
            {"params": {"b": ours["b"]}, "lr_mult": 2.0, "decay_mult": 0.0},
        ],
        lr=0.05,
        backend=backend,
        wrappers=Wrappers(
            accumulate=ITER_SIZE,
            order="caffe",
            clip_grad_norm=clip,
            l2=decay if penalty == "L2" else 0.0,
            l1=decay if penalty == "L1" else 0.0,
        ),
        **settings,
    )
    for i in range(3):
        total = {n: np.zeros_like(w) for n, w in start.items()}
        for j in range(ITER_SIZE):
            g = dense(ITER_SIZE * i + j)
            total = {n: total[n] + g[n] for n in total}
            optimizer.step([g["w"], g["u"], g["b"]])
        scale = clip / norm(total) if norm(total) > clip else 1.0
        for tensor, weights in expected.items():
            weights.step(total[tensor] * scale / ITER_SIZE, 0.05, settings, decay, penalty)
            assert_near(ours[tensor], weights.w, f"{name} {tensor} {i}")


@pytest.mark.parametrize("backend", HOST_BACKENDS)
def test_the_other_order_clips_the_mean(backend: str) -> None:
    start = parameters()
    ours = {n: np.array(w) for n, w in start.items()}
    optimizer = CLASSES["sgd"](
        ours, lr=0.5, backend=backend,
        wrappers=Wrappers(
            accumulate=2, unscale=8, clip_value=1.25, clip_tensor_norm=2, clip_grad_norm=2.5, l2=0.1
        ),
    )  # fmt: skip
    for i in range(4):
        pair = [dense(2 * i), dense(2 * i + 1)]
        for g in pair:
            optimizer.step({n: np.array(8 * a) for n, a in g.items()})
        mean = {n: np.clip((pair[0][n] + pair[1][n]) / 2, -1.25, 1.25) for n in start}
        mean = {n: g * min(1.0, 2 / np.linalg.norm(g.ravel())) for n, g in mean.items()}
        factor = min(1.0, 2.5 / norm(mean))
        for n, g in mean.items():
            start[n] = start[n] - 0.5 * (factor * g + 0.1 * start[n])
            assert_near(ours[n], start[n], f"{n} {i}")


@pytest.mark.parametrize("backend", HOST_BACKENDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_decoupled_decay_makes_adam_adamw(dtype: str, backend: str) -> None:
    a = {n: w.astype(dtype) for n, w in parameters().items()}
    b = {n: w.copy() for n, w in a.items()}
    adam = CLASSES["adam"](a, lr=0.02, backend=backend, wrappers=Wrappers(weight_decay=0.3))
    adamw = CLASSES["adamw"](b, lr=0.02, weight_decay=0.3, backend=backend)
    for step in range(STEPS):
        g = {n: np.array(array, dtype) for n, array in dense(step).items()}
        adam.step(g)
        adamw.step(g)
        for n, w in a.items():
            assert_near(w, b[n], n, tolerance=1e-6 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("backend", HOST_BACKENDS)
def test_maximising_and_bounds(backend: str) -> None:
    start = parameters()
    ours = {n: np.array(w) for n, w in start.items()}
    optimizer = CLASSES["sgd"](
        ours, lr=0.5, backend=backend, wrappers=Wrappers(maximize=True, bounds=(-0.75, None))
    )
    lower = 0
    for step in range(STEPS):
        optimizer.step(dense(step))
        for n, g in dense(step).items():
            stepped = start[n] + 0.5 * g
            start[n] = np.maximum(stepped, -0.75)
            lower += int((stepped < -0.75).sum())
            assert_same_bits(ours[n], start[n])
    assert lower


def _torch(optimizer: Any, clip: Any, **settings: float) -> list[Arrays]:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    tensors = {n: torch.nn.Parameter(torch.tensor(w)) for n, w in parameters().items()}
    theirs = optimizer(torch)(list(tensors.values()), **settings)
    found = []
    for step in range(STEPS):
        for n, g in dense(step).items():
            tensors[n].grad = torch.tensor(g)
        clip(torch, list(tensors.values()))
        theirs.step()
        found.append({n: t.detach().numpy().copy() for n, t in tensors.items()})
    return found


def _ours(name: str, wrappers: Wrappers, **settings: float) -> list[Arrays]:
    ours = parameters()
    optimizer = CLASSES[name](ours, backend="numpy", wrappers=wrappers, **settings)
    found = []
    for step in range(STEPS):
        optimizer.step(dense(step))
        found.append({n: w.copy() for n, w in ours.items()})
    return found


def _assert_alike(ours: list[Arrays], theirs: list[Arrays]) -> None:
    for step, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        for n in b:
            assert_near(a[n], b[n], f"{n} after step {step}")


def test_torch_clip_grad_norm() -> None:
    theirs = _torch(
        lambda torch: torch.optim.Adam,
        lambda torch, of: torch.nn.utils.clip_grad_norm_(of, 0.7),
        lr=0.1,
    )
    _assert_alike(_ours("adam", Wrappers(clip_grad_norm=0.7, clip_eps=1e-6), lr=0.1), theirs)


def test_torch_clip_grad_value_and_adamw() -> None:
    theirs = _torch(
        lambda torch: torch.optim.AdamW,
        lambda torch, of: torch.nn.utils.clip_grad_value_(of, 0.4),
        lr=0.1,
        weight_decay=0.2,
    )
    _assert_alike(_ours("adam", Wrappers(clip_value=0.4, weight_decay=0.2), lr=0.1), theirs)


def _keras(**settings: Any) -> list[Arrays]:
    if not all(map(find_spec, ("keras", "jax"))):  # Keras isn't to be imported before it has its backend
        pytest.skip("keras or jax isn't installed")
    keras = keras_module()
    variables = {n: keras.Variable(w, dtype="float64", name=n) for n, w in parameters().items()}
    theirs = keras.optimizers.SGD(learning_rate=0.5, momentum=0.5, **settings)
    theirs.build(list(variables.values()))
    found = []
    for step in range(STEPS):
        g = dense(step)
        theirs.apply([keras.ops.convert_to_tensor(g[n], dtype="float64") for n in variables])
        found.append({n: np.array(v.value) for n, v in variables.items()})
    return found


@pytest.mark.parametrize(
    ("theirs", "wrappers"),
    [
        ({"clipnorm": 0.6}, Wrappers(clip_tensor_norm=0.6)),
        ({"global_clipnorm": 0.6}, Wrappers(clip_grad_norm=0.6)),
        ({"clipvalue": 0.3}, Wrappers(clip_value=0.3)),
        ({"weight_decay": 0.1}, Wrappers(weight_decay=0.1)),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_keras(theirs: dict[str, float], wrappers: Wrappers) -> None:
    settings = {"momentum": 0.5}
    ours = _ours("caffe_sgd", wrappers, lr=0.5, **settings)
    _assert_alike(ours, _keras(**theirs))


def test_optax_chain() -> None:
    optax = pytest.importorskip("optax", reason="optax isn't installed")
    import jax

    jax.config.update("jax_enable_x64", True)
    chain = optax.chain(
        optax.clip(0.9), optax.clip_by_global_norm(0.8), optax.add_decayed_weights(0.1), optax.adam(0.1)
    )
    params = parameters()
    state = chain.init(params)
    found = []
    for step in range(STEPS):
        updates, state = chain.update(dense(step), state, params)
        params = {n: np.array(w) for n, w in optax.apply_updates(params, updates).items()}
        found.append(params)
    _assert_alike(_ours("adam", Wrappers(clip_value=0.9, clip_grad_norm=0.8, l2=0.1), lr=0.1), found)


def test_torch_averages() -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    ours = parameters()
    optimizer = CLASSES["sgd"](ours, lr=0.1, backend="numpy", wrappers=Wrappers(average=0.8))
    averages = {n: torch.tensor(w) for n, w in ours.items()}
    for step in range(STEPS):
        optimizer.step(dense(step))
        # What torch's and timm's averages do, from the second update of theirs on.
        torch._foreach_lerp_(list(averages.values()), [torch.tensor(ours[n]) for n in averages], 1 - 0.8)
    for n, average in averages.items():
        assert_near(optimizer.averages[n], average.numpy(), n)
