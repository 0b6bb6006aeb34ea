"""Reductions, bit for bit against loops over Python floats that follow the definition word for word."""

from __future__ import annotations

import math
import warnings

import ml_dtypes
import numpy as np
import pytest

from solvergen.runtime import reference_math
from solvergen.runtime.reductions import finished, total_of, total_of_terms
from tests.support.bits import assert_same_bits
from tests.support.reductions import KINDS, add, by_loops, larger, reduction, terms_of

SIZES = [0, 1, 2, 255, 256, 257, 4095, 4096, 4097, 3 * 4096 + 5]
FUNCTIONS = {kind: getattr(reference_math, "sum_of" if kind == "sum" else kind) for kind in KINDS}
LARGE = 4096 * 4096 + 1


def elements(size, dtype, seed=0):
    """Numbers of very different sizes, some zero, so that another order gives other bits."""
    random = np.random.default_rng([size, seed])
    x = random.normal(size=size) * 2.0 ** random.integers(-30, 30, size)
    x[random.random(size) < 0.1] = 0.0
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_order_is_the_defined_one(kind, size, dtype):
    x, y = elements(size, dtype), elements(size, dtype, seed=1)
    arguments = (x, y) if kind == "dot" else (x,)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = FUNCTIONS[kind](*arguments)
    assert type(found) is float
    assert_same_bits(np.float64(found), np.float64(reduction(kind, x.tolist(), y.tolist())))


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_close_to_the_exact_value(kind):
    x, y = elements(50_000, "float32"), elements(50_000, "float32", seed=1)
    terms = terms_of(kind, x.tolist(), y.tolist())
    exact = max(terms) if kind == "max_abs" else math.fsum(terms)
    found = total_of(kind, x, y) if kind == "dot" else total_of(kind, x)
    assert abs(found - exact) <= 1e-14 * math.fsum(map(abs, terms))


def test_another_order_would_be_noticed():
    x = elements(4096, "float64")
    assert reference_math.sum_of(x) not in (float(np.sum(x)), math.fsum(x), reference_math.sum_of(x[::-1]))


def test_a_large_tensor():
    # One element more than 4,096 chunks: totals of totals of totals. Checked by the same definition in NumPy,
    # chunk after chunk, with lists from the first totals on.
    x = np.random.default_rng(7).normal(size=LARGE).astype(np.float32)
    totals = []
    for start in range(0, LARGE, 4096):
        piece = x[start : start + 4096].astype(np.float64) ** 2
        lanes = np.add.accumulate(np.pad(piece, (0, 4096 - len(piece))).reshape(16, 256), axis=0)[-1]
        s = 128
        while s:
            lanes = lanes[:s] + lanes[s:]
            s //= 2
        totals.append(float(lanes[0]))
    assert len(totals) == 4097
    assert_same_bits(np.float64(total_of("norm2", x)), np.float64(by_loops(totals, add)))
    assert reference_math.norm2(x) == math.sqrt(by_loops(totals, add))


@pytest.mark.parametrize("kind", ["sum", "mean", "norm1", "norm2", "max_abs", "count_nonzero"])
@pytest.mark.parametrize("at", [0, 255, 4095, 4096, 5000])
@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf, -0.0, 5e-324])
def test_special_values(kind, at, special):
    x = elements(5001, "float64")
    x[at] = special
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = FUNCTIONS[kind](x)
    assert_same_bits(np.float64(found), np.float64(reduction(kind, x.tolist())))


def test_infinities_of_both_signs_and_overflow():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isnan(reference_math.sum_of(np.array([math.inf, -math.inf])))
        assert reference_math.norm2(np.array([1e200, 1.0])) == math.inf
        assert reference_math.norm2(np.array([3e38], np.float32)) == float(np.float32(3e38))
        assert reference_math.max_abs(np.array([1.0, math.nan, 2.0])) != 1.0
        assert reference_math.count_nonzero(np.array([math.nan, 0.0, -0.0, 5e-324])) == 2.0


@pytest.mark.parametrize("size", [300, 4096])
@pytest.mark.parametrize("kind", KINDS)
def test_negative_zeros_add_up_to_positive_zero(kind, size):
    x = np.full(size, -0.0, np.float32)
    arguments = (x, x) if kind == "dot" else (x,)
    assert math.copysign(1.0, FUNCTIONS[kind](*arguments)) == 1.0


def test_a_number_overflows_nowhere_before_it_is_wide():
    # 2**24 ones and one more: float32 would stop counting.
    assert reference_math.sum_of(np.ones(2**24 + 1, np.float32)) == 2**24 + 1


@pytest.mark.parametrize("shape", [(), (3, 5), (2, 0, 3)])
def test_any_shape_is_read_in_c_order(shape):
    x = elements(math.prod(shape), "float64").reshape(shape)
    assert reference_math.sum_of(x) == by_loops(x.reshape(-1).tolist(), add)
    assert reference_math.sum_of(x.T) == by_loops(x.T.reshape(-1).tolist(), add)


def test_one_over_all_is_a_total_and_a_size():
    x, y = elements(300, "float32"), elements(300, "float32", seed=1)
    asked = reference_math.over_all("dot", 3, x, y)
    assert (asked.kind, asked.index, asked.size) == ("dot", 3, 300)
    assert asked.total == reference_math.dot(x, y)
    assert reference_math.over_all("norm2", 0, x).total == total_of("norm2", x)  # no root yet


@pytest.mark.parametrize("count", [1, 2, 256, 257, 4096, 4097, 9000])
@pytest.mark.parametrize("kind", ["sum", "max_abs"])
def test_totals_of_tensors_are_terms(kind, count):
    terms = np.abs(elements(count, "float64"))
    combine = larger if kind == "max_abs" else add
    assert total_of_terms(kind, terms) == by_loops(terms.tolist(), combine)


def test_one_total_alone_is_itself():
    assert math.copysign(1.0, total_of_terms("sum", np.array([-0.0]))) == -1.0


def test_what_becomes_of_totals():
    assert finished("norm2", 9.0, 2.0) == 3.0
    assert finished("mean", 9.0, 2.0) == 4.5
    assert math.isnan(finished("mean", 0.0, 0.0))
    assert all(finished(kind, 9.0, 2.0) == 9.0 for kind in KINDS if kind not in ("norm2", "mean"))


def test_bfloat16_elements_are_widened_by_the_caller():
    x = elements(1000, ml_dtypes.bfloat16)
    assert reference_math.norm1(x.astype(np.float32)) == by_loops([abs(float(a)) for a in x], add)
