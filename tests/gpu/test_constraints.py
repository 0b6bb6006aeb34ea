"""Constraints of parameters, on the card."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import generated
from solvergen import Wrappers
from solvergen.constraints import MaxNorm, MinMax, MinMaxNorm, UnitNorm
from solvergen.runtime.dtypes import numpy_dtype
from tests.gpu.conftest import Gpu
from tests.support.bits import assert_same_bits

RNG = np.random.default_rng(14)
HELD = {
    "dense": ((300, 520), MaxNorm(3.0)),
    "rows": ((70, 300), MinMaxNorm(0.5, 9.0, rate=0.25, axis=-1)),
    "kernel": ((3, 3, 16, 33), UnitNorm(axis=[0, 1, 2])),
    "whole": ((9000,), MaxNorm(1.0)),
    "bounded": ((5001,), MinMax(-0.5, None)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_bits_of_numpy(gpu: Gpu, dtype: str) -> None:
    host = {name: RNG.normal(size=shape).astype(numpy_dtype(dtype)) for name, (shape, _) in HELD.items()}
    params = {name: gpu.array(array) for name, array in host.items()}
    constraints = {name: constraint for name, (_, constraint) in HELD.items()}
    ours = generated.Adam(params, lr=0.1, backend=gpu.backend)
    reference = generated.Adam(host, lr=0.1, backend="numpy")
    ours.constraint = reference.constraint = constraints
    for _ in range(2):
        gradients = {n: RNG.normal(size=a.shape).astype(a.dtype) for n, a in host.items()}
        ours.step({name: gpu.array(gradient) for name, gradient in gradients.items()})
        reference.step(gradients)
    for name, wanted in host.items():
        assert_same_bits(gpu.host(params[name]), wanted)


def test_copies_have_what_was_constrained(gpu: Gpu) -> None:
    host = {name: RNG.normal(size=shape).astype(np.float32) for name, (shape, _) in HELD.items()}
    params = {name: gpu.array(array) for name, array in host.items()}
    wrappers = Wrappers(shadow="bfloat16")
    ours = generated.Adam(params, lr=0.1, backend=gpu.backend, wrappers=wrappers)
    reference = generated.Adam(host, lr=0.1, backend="numpy", wrappers=wrappers)

    def halved(name: str, array: Any) -> None:
        array *= 0.5

    for constraint in ({name: one for name, (_, one) in HELD.items()}, halved):
        ours.constraint = reference.constraint = constraint
        gradients = {n: RNG.normal(size=a.shape).astype(a.dtype) for n, a in host.items()}
        ours.step({name: gpu.array(gradient) for name, gradient in gradients.items()})
        reference.step(gradients)
        for name in host:
            assert_same_bits(gpu.host(ours.shadows[name]), reference.shadows[name])
