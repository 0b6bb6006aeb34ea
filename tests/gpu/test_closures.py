"""Rules that evaluate the gradient within a step, on the card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solvergen.runtime.dtypes import numpy_dtype
from tests.gpu.conftest import Gpu
from tests.support.bits import assert_same_bits
from tests.support.handwritten import closures

RNG = np.random.default_rng(12)
DTYPES = ("float32", "float64", "bfloat16", "float16")


def slope(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64 if x.dtype == np.float64 else np.float32)
    return np.asarray(wide * wide - wide).astype(x.dtype)


def arrays() -> list[np.ndarray]:
    return [RNG.uniform(0.25, 2.0, n).astype(numpy_dtype(d)) for d in DTYPES for n in (3, 5000)]


@pytest.mark.parametrize("rule", closures.ALL, ids=lambda rule: rule.__name__)
def test_bits_of_numpy_also_after_a_step_that_failed(gpu: Gpu, tmp_path: Path, rule: Any) -> None:
    host = arrays()
    params = [gpu.array(a) for a in host]
    ours = closures.with_kernels(rule, tmp_path)(params, backend=gpu.backend)
    reference = rule(host, backend="numpy")
    evaluations = 1 + len(rule.definition.evaluations)
    calls: list[int] = []

    def closure() -> tuple[int, list[Any]]:
        calls.append(1)
        if len(calls) == 3 * evaluations:  # the last one of the third step
            raise LookupError
        return len(calls), [gpu.array(slope(gpu.host(p))) for p in params]

    for step in range(4):
        if step == 2:
            with pytest.raises(LookupError):
                ours.step(closure)
        else:
            ours.step(closure)
            reference.step(lambda: (0, [slope(p) for p in host]))
        for param, wanted in zip(params, host, strict=True):
            assert_same_bits(gpu.host(param), wanted)
    assert ours.t == 3
    for name in reference.state:
        for i in range(len(host)):
            got, wanted = ours.state[name][i], reference.state[name][i]
            if isinstance(wanted, np.ndarray):
                assert_same_bits(gpu.host(got), wanted)
            else:
                assert got == wanted
