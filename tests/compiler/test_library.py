"""exp, log, tanh, cbrt and powers in float64: accurate, right at special values, the same bits everywhere.

For float32 elements: test_library_float32.py.
"""

from __future__ import annotations

import ctypes
import importlib.util
import math
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import mpmath
import numpy as np
import pytest

from solvergen.emit.library import c_functions, numpy_functions
from solvergen.ir.evaluate import constant
from solvergen.ir.nodes import Call, Number

NAMES = ("exp", "log", "tanh", "cbrt", "pow")
UNARY = NAMES[:-1]
PRECISION = 160
SPECIAL = np.array(
    [
        0.0,
        -0.0,
        1,
        -1,
        2,
        -2,
        0.5,
        -0.5,
        3,
        -3,
        1e-3,
        math.inf,
        -math.inf,
        math.nan,
        1e308,
        -1e308,
        5e-324,
        2.0**53 + 2,
        -(2.0**31),
    ]
)
C_PREAMBLE = """
#include <stdint.h>
#define SG_PARAM 1
typedef uint64_t sg_u64; typedef int64_t sg_i64; typedef double sg_real;
#define SG_FUNCTION static inline
#define sg_floor64 __builtin_floor
#define sg_abs64 __builtin_fabs
static inline sg_u64 sg_bits(double x) { sg_u64 u; __builtin_memcpy(&u, &x, 8); return u; }
static inline double sg_from_bits(sg_u64 u) { double x; __builtin_memcpy(&x, &u, 8); return x; }
"""


def compiled(folder: Path, lines: list[str]) -> ctypes.CDLL:
    """The C text as a library that is loaded."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler on this machine")
    source = folder / "library.c"
    source.write_text("\n".join(lines), encoding="utf-8")
    library = folder / "library.so"
    flags = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", str(library), str(source), "-lm"], check=True)
    return ctypes.CDLL(str(library))


@pytest.fixture(scope="module")
def functions(tmp_path_factory) -> dict[str, Callable[..., np.ndarray]]:
    """The functions as a package's ``functions.py`` has them."""
    path = tmp_path_factory.mktemp("library") / "functions.py"
    path.write_text(numpy_functions(NAMES), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("library_functions", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["library_functions"] = module
    spec.loader.exec_module(module)
    return {name: getattr(module, name) for name in UNARY} | {"pow": module.general_power}


@pytest.fixture(scope="module")
def in_c(tmp_path_factory) -> dict[str, Callable[..., np.ndarray]]:
    """The functions as a kernel has them, compiled by the system's compiler."""
    loops = [
        f"void {n}_of(const double *x, double *r, long n)"
        f" {{ for (long i = 0; i < n; i++) r[i] = sg_{n}64(x[i]); }}"
        for n in UNARY
    ]
    loops.append(
        "void pow_of(const double *x, const double *y, double *r, long n)"
        " { for (long i = 0; i < n; i++) r[i] = sg_pow64(x[i], y[i]); }"
    )
    loaded = compiled(tmp_path_factory.mktemp("library_c"), [C_PREAMBLE, *c_functions(NAMES), *loops])

    def call(name: str, *arrays: np.ndarray) -> np.ndarray:
        arrays = tuple(np.ascontiguousarray(a, dtype=np.float64) for a in arrays)
        result = np.empty_like(arrays[0])
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*arrays, result)]
        getattr(loaded, f"{name}_of")(*pointers, ctypes.c_long(result.size))
        return result

    return {name: lambda *arrays, name=name: call(name, *arrays) for name in NAMES}


def samples(name: str) -> np.ndarray:
    rng = np.random.default_rng(20261129)
    near_one = rng.uniform(-1, 1, 1500)
    if name == "exp":
        return np.concatenate([rng.uniform(-745, 709.7, 1500), near_one, rng.uniform(-745.1, -708, 300)])
    if name == "log":
        subnormal = 5e-324 * np.arange(1, 40)
        return np.concatenate(
            [np.exp(rng.uniform(-740, 709, 1500)), 1 + near_one / 2, 1 + near_one / 100, subnormal]
        )
    if name == "cbrt":
        every_scale = np.ldexp(rng.uniform(1, 2, 4000), rng.integers(-1074, 1024, 4000))
        subnormal = 5e-324 * np.arange(1, 40)
        return np.concatenate([every_scale * np.sign(rng.uniform(-1, 1, 4000)), near_one, subnormal])
    return np.concatenate([rng.uniform(-25, 25, 800), near_one, near_one * 1e-5])


def ulps(found: float, exact: mpmath.mpf) -> float:
    """The distance in units of the last place that a float64 of this size has."""
    if exact == 0:
        return 0.0 if found == 0 else math.inf
    exponent = max(int(mpmath.floor(mpmath.log(abs(exact), 2))) - 52, -1074)
    return float(abs(mpmath.mpf(found) - exact) / mpmath.mpf(2) ** exponent)


def real_cube_root(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.sign(x) * mpmath.cbrt(abs(x))


@pytest.mark.parametrize(("name", "bound"), [("exp", 1.0), ("log", 1.0), ("tanh", 3.0), ("cbrt", 0.9)])
def test_accuracy(functions, name, bound):
    x = samples(name)
    with mpmath.workprec(PRECISION):
        exact = real_cube_root if name == "cbrt" else getattr(mpmath, name)
        errors = [
            ulps(float(r), exact(mpmath.mpf(float(v)))) for v, r in zip(x, functions[name](x), strict=True)
        ]
    assert max(errors) <= bound


def test_accuracy_of_powers(functions):
    rng = np.random.default_rng(7)
    x, y = np.exp(rng.uniform(-5, 5, 2000)), rng.uniform(-60, 60, 2000)
    found = functions["pow"](x, y)
    with mpmath.workprec(PRECISION):
        for a, b, r in zip(x.tolist(), y.tolist(), found.tolist(), strict=True):
            relative = abs(mpmath.mpf(r) / mpmath.mpf(a) ** mpmath.mpf(b) - 1) * 2**53
            assert relative <= 2 + 2 * abs(b * math.log(a)), (a, b)


def test_powers_of_special_values_are_those_of_ieee(functions):
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    found = functions["pow"](x, y)
    for a, b, r in zip(x.tolist(), y.tolist(), found.tolist(), strict=True):
        try:
            expected = math.pow(a, b)
        except OverflowError:
            negative = a < 0 and b.is_integer() and math.fmod(b, 2) != 0
            expected = -math.inf if negative else math.inf
        except ValueError:  # a zero to a negative power, or a negative number to a broken one
            odd = b.is_integer() and math.fmod(b, 2) != 0
            expected = math.copysign(math.inf, a) if a == 0 and odd else math.inf if a == 0 else math.nan
        if math.isnan(expected):
            assert math.isnan(r), (a, b)
        else:
            assert math.copysign(1, r) == math.copysign(1, expected), (a, b)
            assert r == pytest.approx(expected, rel=1e-12), (a, b)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "exp",
            [
                (0.0, 1.0),
                (-0.0, 1.0),
                (math.inf, math.inf),
                (-math.inf, 0.0),
                (1e308, math.inf),
                (-1e308, 0.0),
            ],
        ),
        ("log", [(0.0, -math.inf), (-0.0, -math.inf), (math.inf, math.inf), (1.0, 0.0)]),
        ("tanh", [(0.0, 0.0), (-0.0, -0.0), (math.inf, 1.0), (-math.inf, -1.0), (5e-324, 5e-324)]),
        ("cbrt", [(0.0, 0.0), (-0.0, -0.0), (math.inf, math.inf), (-math.inf, -math.inf), (-8.0, -2.0)]),
    ],
)
def test_special_values(functions, name, expected):
    for x, value in expected:
        found = functions[name](x)
        assert (found, math.copysign(1, found)) == (value, math.copysign(1, value)), x
    assert math.isnan(functions[name](math.nan))


def test_cube_roots_of_cubes_are_exact(functions):
    roots = np.concatenate([np.arange(-4097.0, 4098.0), np.arange(2.0**17 - 300, 2.0**17), [2.0**-358, 3e5]])
    assert np.array_equal(functions["cbrt"](roots**3), roots)


def test_log_of_negative_numbers_is_nan(functions):
    assert np.isnan(functions["log"](np.array([-1.0, -math.inf, -5e-324]))).all()


@pytest.mark.parametrize("name", UNARY)
def test_numpy_and_c_agree_to_the_bit(functions, in_c, name):
    x = np.concatenate([samples(name), SPECIAL])
    found, expected = functions[name](x), in_c[name](x)
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    kept = ~np.isnan(found)
    assert found[kept].tobytes() == expected[kept].tobytes()


def test_powers_in_numpy_and_c_agree_to_the_bit(functions, in_c):
    rng = np.random.default_rng(3)
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    x = np.concatenate([x, rng.standard_normal(3000) * 10])
    y = np.concatenate(
        [y, np.where(rng.random(3000) < 0.5, rng.integers(-9, 9, 3000), rng.uniform(-9, 9, 3000))]
    )
    found, expected = functions["pow"](x, y), in_c["pow"](x, y)
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    kept = ~np.isnan(found)
    assert found[kept].tobytes() == expected[kept].tobytes()


def test_powers_of_float32_go_through_float64_and_are_rounded_once(functions):
    x = np.random.default_rng(5).uniform(0.01, 80, 500).astype(np.float32)
    found = functions["pow"](x, np.float32(0.7))
    assert found.dtype == np.float32
    wide = functions["pow"](x.astype(np.float64), float(np.float32(0.7)))
    assert np.array_equal(found, wide.astype(np.float32))


def test_python_floats_stay_python_floats(functions):
    assert type(functions["exp"](0.5)) is float
    assert type(functions["pow"](2.0, 0.5)) is float


def test_a_python_float_beside_a_float32_is_rounded_to_it(functions):
    x = np.array([3.0], dtype=np.float32)
    assert np.array_equal(functions["pow"](x, 0.1), functions["pow"](x, np.float32(0.1)))


def test_arrays_of_no_dimension_and_of_no_element(functions):
    assert functions["tanh"](np.float32(0.5)).shape == ()
    assert functions["exp"](np.zeros(0, np.float32)).shape == (0,)


@pytest.mark.parametrize("name", NAMES)
def test_the_compiler_decides_by_the_same_bits(functions, name):
    """Whether a constant exponent is whole must not hang on the libm of the machine that compiles."""
    x = np.concatenate([samples(name)[::20], SPECIAL])
    y = x[::-1].copy()
    found = functions[name](x, y) if name == "pow" else functions[name](x)
    for a, b, expected in zip(x.tolist(), y.tolist(), found.tolist(), strict=True):
        args = tuple(Number(v) for v in ((a, b) if name == "pow" else (a,)))
        value = constant(Call(name, args))
        assert (value != value and expected != expected) or value.hex() == expected.hex(), (a, b)
