"""Identical bits on the card and in NumPy, for every optimizer, pair of types and setting of the options."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import generated
from solvergen.runtime.backends.cuda import CudaBackend
from solvergen.runtime.dtypes import numpy_dtype
from solvergen.verify import find_disagreement
from tests.gpu.conftest import Gpu
from tests.support.cuda_launch import MIXES, bits_of, ordinary_values, strange_values

SIZES = (0, 1, 2, 7, 8, 9, 255, 1024, 4097, 100_003)


def assert_same(
    gpu: Gpu, ours: Any, params: list[Any], reference: Any, wanted: list[np.ndarray], what: str
) -> None:
    """Every parameter and state of both optimizers, bit by bit."""
    for i, (param, want) in enumerate(zip(params, wanted, strict=True)):
        pairs = {"param": (gpu.host(param), want)}
        for name in ours.state:
            if str(i) in ours.state[name]:
                state = reference.state[name][str(i)]
                got = ours.state[name][str(i)]
                pairs[name] = (
                    (gpu.host(got), state)
                    if isinstance(state, np.ndarray)
                    else (np.array(got), np.array(state))
                )
        for name, (got, want_bits) in pairs.items():
            different = np.flatnonzero(bits_of(got.reshape(-1)) != bits_of(want_bits.reshape(-1)))
            assert not different.size, (
                f"{what}: tensor {i}, {name}[{different[0]}] is {got.reshape(-1)[different[0]]!r}, not "
                f"{want_bits.reshape(-1)[different[0]]!r}; {different.size} of {got.size} differ"
            )


def run(
    gpu: Gpu,
    name: str,
    options: dict[str, Any],
    mix: tuple[str, str],
    arrays: list[np.ndarray],
    steps: list[list[np.ndarray]],
    offsets: list[int],
) -> None:
    cls = getattr(generated, name)
    host = [a.copy() for a in arrays]
    params = [gpu.array(a, offset=o * a.itemsize % 16) for a, o in zip(arrays, offsets, strict=True)]
    ours = cls(params, backend=gpu.backend, **options)
    reference = cls(host, backend="numpy", **options)
    for gradients in steps:
        ours.step([gpu.array(g, offset=o * g.itemsize % 16) for g, o in zip(gradients, offsets, strict=True)])
        reference.step(gradients)
    assert_same(gpu, ours, params, reference, host, f"{name} {options} {mix}")


def constructible(name: str) -> list[dict[str, Any]]:
    """Every setting of the options, with hyperparameters under which it is allowed."""
    definition = getattr(generated, name).definition
    extra: dict[str, Any] = {}
    names = definition.hyperparameter_names
    if "weight_decay" in names:
        extra["weight_decay"] = 0.125
    if "momentum" in names:
        extra["momentum"] = 0.75
    found = []
    for values in itertools.product((False, True), repeat=len(definition.option_names)):
        options = dict(zip(definition.option_names, values, strict=True))
        defaults = {h.name: h.default for h in definition.hyperparameters} | extra
        if definition.constraints(**defaults, **options) is None:
            found.append(options | extra)
    return found


@pytest.mark.parametrize("mix", MIXES, ids="-".join)
@pytest.mark.parametrize("name", generated.__all__)
def test_every_optimizer(name: str, mix: tuple[str, str], gpu: Gpu) -> None:
    rng = np.random.default_rng(17)
    types = [numpy_dtype(dtype) for dtype in mix]
    for options in constructible(name):
        arrays = [ordinary_values(rng, size, types[0]) for size in SIZES] + [
            strange_values(rng, 5000, types[0])
        ]
        steps = [
            [ordinary_values(rng, size, types[1]) for size in SIZES] + [strange_values(rng, 5000, types[1])]
            for _ in range(3)
        ]
        offsets = [int(o) for o in rng.integers(0, 8, len(arrays))]
        run(gpu, name, options, mix, arrays, steps, offsets)


@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_a_user_does(gpu: Gpu, data: st.DataObject) -> None:
    """Drawn sizes, alignments of parameters and of gradients apart, hyperparameters and absent gradients."""
    name = data.draw(st.sampled_from(["Adam", "SGD", "Lion", "CaffeRMSProp"]))
    mix = data.draw(st.sampled_from([MIXES[0], MIXES[1], ("bfloat16", "bfloat16"), ("float16", "float32")]))
    sizes = data.draw(st.lists(st.integers(0, 3000), min_size=1, max_size=5))
    seed = data.draw(st.integers(0, 2**32))
    lr = data.draw(st.floats(1e-6, 1.0))
    rng = np.random.default_rng(seed)
    types = [numpy_dtype(dtype) for dtype in mix]
    make = data.draw(st.sampled_from([ordinary_values, strange_values]))
    host = [make(rng, size, types[0]) for size in sizes]
    params = [gpu.array(a, offset=int(rng.integers(0, 8)) * a.itemsize) for a in host]
    cls = getattr(generated, name)
    ours, reference = cls(params, lr=lr, backend=gpu.backend), cls(host, lr=lr, backend="numpy")
    for _ in range(data.draw(st.integers(1, 4))):
        gradients = [make(rng, size, types[1]) for size in sizes]
        absent = data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))
        moved = [gpu.array(g, offset=int(rng.integers(0, 8)) * g.itemsize) for g in gradients]
        ours.step([None if a else g for a, g in zip(absent, moved, strict=True)])
        reference.step([None if a else g for a, g in zip(absent, gradients, strict=True)])
        ours.lr = reference.lr = lr = lr / 2
    assert_same(gpu, ours, params, reference, host, f"{name} {mix}")


@pytest.mark.parametrize("name", generated.__all__)
def test_drawn_runs(name: str, backend: CudaBackend) -> None:
    """``verify``'s runs: several groups and types at once, absent gradients, states loaded beforehand."""
    disagreement = find_disagreement(getattr(generated, name), backend, examples=25)
    assert disagreement is None, str(disagreement)


def test_three_hundred_tensors(gpu: Gpu) -> None:
    rng = np.random.default_rng(2)
    sizes = rng.integers(0, 5000, 300)
    arrays = [ordinary_values(rng, int(size), np.dtype(np.float32)) for size in sizes]
    steps = [[ordinary_values(rng, int(size), np.dtype(np.float32)) for size in sizes] for _ in range(5)]
    run(gpu, "Adam", {"amsgrad": True}, MIXES[0], arrays, steps, [0] * 300)


def test_elements_past_32_bits(gpu: Gpu, backend: CudaBackend) -> None:
    """2**31 + some elements in one tensor; looked at around its begin, the limits and its end."""
    import cupy

    size = 2**31 + 12_345
    free = cupy.cuda.runtime.memGetInfo()[0]
    if free < 5 * size:
        pytest.skip(f"needs 11 GB of device memory, {free / 1e9:.1f} are free")
    half = numpy_dtype("bfloat16")
    pool = [cupy.cuda.alloc(2 * size) for _ in range(2)]
    param, gradient = (cupy.ndarray((size,), half, memptr=memory) for memory in pool)
    for array in (param, gradient):
        cupy.cuda.runtime.memset(array.data.ptr, 0, array.nbytes)
    rng = np.random.default_rng(4)
    windows = [0, 2**30 - 500, 2**31 - 500, size - 1000]
    wanted = []
    for start in windows:
        p, g = ordinary_values(rng, 1000, half), ordinary_values(rng, 1000, half)
        backend.copy_in(param[start : start + 1000], p)
        backend.copy_in(gradient[start : start + 1000], g)
        generated.SGD([p], lr=0.1, backend="numpy").step([g])
        wanted.append(p)
    generated.SGD([param], lr=0.1, backend=backend).step([gradient])
    for start, want in zip(windows, wanted, strict=True):
        assert (bits_of(gpu.host(param[start : start + 1000])) == bits_of(want)).all(), start
    outside = gpu.host(param[2**31 + 600 : 2**31 + 5000])
    assert (bits_of(outside) == 0).all()
