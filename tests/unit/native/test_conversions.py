"""bfloat16 and float16 in kernels: every value read, every kind of rounding, beside NumPy and ml_dtypes."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from solvergen.runtime.native.build import load
from tests.unit.native.kernels import buffer, kernel, run
from tests.unit.native.support import assert_same_bits

HALVES: dict[str, tuple[int, Any]] = {"bfloat16": (2, ml_dtypes.bfloat16), "float16": (3, np.float16)}
# param is read into `wide`, `source` is rounded into param; likewise the gradient into `wide_grad`.
TEXT = kernel(
    [
        "        const sg_real read = param;",
        "        const sg_real read_grad = grad;",
        "        const sg_real stored = sg_round_param(source);",
    ],
    [
        buffer("param", "sg_param", result="stored"),
        buffer("grad", "sg_grad"),
        buffer("source", "sg_state"),
        buffer("wide", "sg_state", loaded=False, result="read"),
        buffer("wide_grad", "sg_state", loaded=False, result="read_grad"),
        buffer("rounded", "sg_state", loaded=False, result="stored"),
    ],
)


def compiled(code: int) -> ctypes.CDLL:
    return load({"kernel.c": TEXT}, [f"SG_PARAM={code}", f"SG_GRAD={code}"])


def convert(code: int, storage: Any, source: Any, start: Any | None = None) -> tuple[Any, Any, Any, Any]:
    """Run the kernel: what was read from param and grad, what param holds then, the rounded floats."""
    n = len(source)
    param = np.zeros(n, storage) if start is None else start.copy()
    grad = param.copy()
    wide, wide_grad, rounded = (np.full(n, 7.0, np.float32) for _ in range(3))
    run(compiled(code), [param, grad, source, wide, wide_grad, rounded], np.zeros((1, 1), np.float32))
    return wide, wide_grad, param, rounded


@pytest.mark.parametrize("name", HALVES)
def test_every_half_is_read_exactly(name: str) -> None:
    code, storage = HALVES[name]
    halves = np.arange(1 << 16, dtype=np.uint16).view(storage)
    for values in (halves, halves[:65531][::-1].copy(), halves[::7].copy()):
        with np.errstate(invalid="ignore"):  # signalling NaNs
            expected = values.astype(np.float32)
        wide, wide_grad, param, _ = convert(code, storage, expected, values)
        assert_same_bits(wide, expected)
        assert_same_bits(wide_grad, expected)
        # And what was read rounds to itself.
        assert_same_bits(param, values)


@pytest.mark.parametrize("name", HALVES)
def test_rounding_between_neighbours(name: str) -> None:
    """Around every half: the middle to the next one (a tie), and the floats beside middle and ends."""
    code, storage = HALVES[name]
    halves = np.arange(1 << 16, dtype=np.uint16).view(storage)
    with np.errstate(all="ignore"):
        ends = halves.astype(np.float64)
        following = np.roll(ends, -1)
        middles = ((ends + following) / 2).astype(np.float32)
        around = [ends.astype(np.float32), middles]
        for direction in (-np.inf, np.inf):
            for x in (ends.astype(np.float32), middles):
                around.append(np.nextafter(x, np.float32(direction)))
        source = np.concatenate(around)
        expected = source.astype(storage)
    _, _, param, rounded = convert(code, storage, source)
    assert_same_bits(param, expected)
    assert_same_bits(rounded, expected.astype(np.float32))


@pytest.mark.parametrize("name", HALVES)
def test_rounding_of_any_float(name: str) -> None:
    code, storage = HALVES[name]
    random = np.random.default_rng(5)
    source = random.integers(0, 1 << 32, 1 << 20, np.uint32).view(np.float32)
    limits = [0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519.996, 65520, -65520, 65536, 3.4e38]
    small = [2.0**-24, 2.0**-25, 2.0**-25 * (1 + 2.0**-20), 2.0**-149, -(2.0**-149), 2.0**-126]
    special = np.array([*limits, *small, 3.3895314e38, 3.3961776e38], np.float32)
    nans = np.array([0x7F800001, 0xFF800001, 0x7FC00000, 0x7FFFFFFF, 0xFFFFFFFF, 0x7F80FFFF], np.uint32)
    source = np.concatenate([source, special, nans.view(np.float32)])
    with np.errstate(all="ignore"):
        expected = source.astype(storage)
    _, _, param, _ = convert(code, storage, source)
    assert_same_bits(param, expected)
    assert np.isnan(param[-len(nans) :].astype(np.float32)).all()


def test_float64_gradients_only_with_float64_parameters() -> None:
    from solvergen.errors import NativeBuildError

    with pytest.raises(NativeBuildError, match="float64 parameters need float64 gradients"):
        load({"kernel.c": TEXT}, ["SG_PARAM=0", "SG_GRAD=1"])
