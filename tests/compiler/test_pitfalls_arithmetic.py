"""What is computed is what is written, bit for bit, on NumPy and on the CPU (pitfalls 9, 11 and 12)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from solvergen.compiler import EMITTERS, check
from tests.compiler.stepping import agreed, rule, stepped
from tests.support.bits import assert_same_bits
from tests.support.rules import compiled, spec_text

F = np.float32
INF, NAN = math.inf, math.nan


def computed(folder, expression, param, grad, dtype=np.float32, **settings):
    """``expression`` of param and grad (and hyperparameters a, b), in state, with both backends agreeing."""
    cls = rule(
        folder,
        f"out = {expression}\nparam = param - 0*lr*(out + grad + a + b)",
        hyperparameters="lr: {default: 0}\na: {default: 1}\nb: {default: 1}",
        state="out: {init: 0}",
    )
    return agreed(cls, param, grad, dtype=dtype, **settings)[1]["out"]


X = np.array([1.0, -1.0, 0.0, -0.0, 3.0, 1e-7, -1e-7, 1e30, 3e38, INF, -INF, NAN, 1e-45, 7.7, -2.5, 0.1], F)
G = np.array([2.0, 3.0, 0.0, 1.0, -0.0, 5.0, 1e-3, 7.0, 3e38, INF, INF, 1.0, 1e-45, -7.7, 2.5, 0.3], F)


@pytest.mark.parametrize(
    ("expression", "written"),
    [
        ("0*param", lambda p, g: F(0) * p),
        ("param - param", lambda p, g: p - p),
        ("param/param", lambda p, g: p / p),
        ("param*grad/param", lambda p, g: p * g / p),
        ("where(param != param, 1, 2)", lambda p, g: np.where(p != p, F(1), F(2))),
        ("where(param == param, 1, 2)", lambda p, g: np.where(p == p, F(1), F(2))),
        ("param**0", lambda p, g: np.ones_like(p)),
        ("(param + 1e30) - 1e30", lambda p, g: (p + F(1e30)) - F(1e30)),
        ("sqrt(param)**2", lambda p, g: np.sqrt(p) * np.sqrt(p)),
        ("sqrt(param/0.7)", lambda p, g: np.sqrt(p / F(0.7))),
        ("grad/sqrt(grad**2)", lambda p, g: g / np.sqrt(g * g)),
        ("sqrt(param**2)", lambda p, g: np.sqrt(p * p)),
        ("0.5*(param + grad)", lambda p, g: F(0.5) * (p + g)),
        ("0.5*param + 0.5*grad", lambda p, g: F(0.5) * p + F(0.5) * g),
        ("a*(param/b)", lambda p, g: F(10) * (p / F(1e30))),
        ("a*param/b", lambda p, g: F(10) * p / F(1e30)),
        ("sqrt(1e-8*abs(param))", lambda p, g: np.sqrt(F(1e-8) * np.abs(p))),
        ("param*1e-30*1e-30", lambda p, g: p * F(1e-30) * F(1e-30)),
        ("1e-30*1e-30*param", lambda p, g: F(1e-30 * 1e-30) * p),
        ("param + 0", lambda p, g: p + F(0)),
        ("param*1", lambda p, g: p * F(1)),
        ("-(-param)", lambda p, g: p),
        ("param - grad + grad", lambda p, g: (p - g) + g),
        ("param + (grad - param)", lambda p, g: p + (g - p)),
        ("param*grad + param*grad", lambda p, g: p * g + p * g),
        ("param*(grad + grad)", lambda p, g: p * (g + g)),
        ("param/3 + 0.1*param", lambda p, g: p / F(3) + F(0.1) * p),
        ("1/49*49*param", lambda p, g: F(1 / 49 * 49) * p),
    ],
)  # fmt: skip
def test_as_written(expression, written, tmp_path):
    with np.errstate(all="ignore"):
        want = written(X, G)
    got = computed(tmp_path, expression, X, G, a=10.0, b=1e30)
    assert want.dtype == F
    assert_same_bits(got, want)


def test_where_grouping_decides_between_a_number_and_infinity(tmp_path):
    assert computed(tmp_path, "a*(param/b)", [1e38], [0.0], a=10.0, b=1e30)[0] == F(10) * (F(1e38) / F(1e30))
    assert computed(tmp_path, "a*param/b", [1e38], [0.0], a=10.0, b=1e30)[0] == INF
    assert computed(tmp_path, "0.5*(param + grad)", [3e38], [3e38])[0] == INF
    assert computed(tmp_path, "0.5*param + 0.5*grad", [3e38], [3e38])[0] == F(3e38)


def test_a_momentum_of_zero_still_poisons(tmp_path):
    got = computed(tmp_path, "(1 - a)*param + a*grad", [INF, NAN, 1.0], [1.0, 1.0, 1.0], a=1.0)
    assert math.isnan(got[0])
    assert math.isnan(got[1])
    assert got[2] == 1


def test_division_by_a_written_zero_is_refused(tmp_path):
    path = tmp_path / "rule.yaml"
    path.write_text(spec_text("param = param - lr*grad/0"), encoding="utf-8")
    assert [d.code for d in check([path]).diagnostics] == ["SG086"]


@pytest.mark.parametrize(
    ("expression", "written"),
    [
        ("1/2*grad", lambda p, g: F(0.5) * g),
        ("grad/2", lambda p, g: g / F(2)),
        ("grad*2**40", lambda p, g: g * F(2.0**40)),
        ("grad*10**20", lambda p, g: g * F(1e20)),
        ("grad*100000000000000000000", lambda p, g: g * F(1e20)),
        ("7//2*grad", lambda p, g: F(3) * g),
        ("-7//2*grad", lambda p, g: F(-4) * g),
        ("-7 % 3*grad", lambda p, g: F(2) * g),
        ("7 % -3*grad", lambda p, g: F(-2) * g),
        ("param//2", lambda p, g: np.floor(p / F(2))),
        ("param % 2", lambda p, g: p - np.floor(p / F(2)) * F(2)),
        ("param//grad", lambda p, g: np.floor(p / g)),
        ("param % grad", lambda p, g: p - np.floor(p / g) * g),
        ("floor(param)", lambda p, g: np.floor(p)),
    ],
)
def test_whole_numbers(expression, written, tmp_path):
    with np.errstate(all="ignore"):
        want = written(X, G)
    assert_same_bits(computed(tmp_path, expression, X, G), want)


@pytest.mark.parametrize("t", [1, 2, 999, 1000, 1001, 2**24 + 1, 2**31 + 7, 2**40 + 3, 2**53 - 1])
def test_the_count_of_updates_divides_as_a_whole_number(t, tmp_path):
    cls = rule(
        tmp_path,
        "q = t//1000\nr = t % 7\nback = (t - 2000)//3\nrest = (t - 2000) % 3\n"
        "param = param - lr*grad*(q + r + back + rest)",
        state="q: {init: 0, shape: scalar}\nr: {init: 0, shape: scalar}\n"
        "back: {init: 0, shape: scalar}\nrest: {init: 0, shape: scalar}",
    )
    _, state = cls.definition.scalars(lr=0.1, q=0.0, r=0.0, back=0.0, rest=0.0, t=float(t))
    assert state == {"q": t // 1000, "r": t % 7, "back": (t - 2000) // 3, "rest": (t - 2000) % 3}


@pytest.mark.parametrize("t", [1, 2, 3, 10, 1000, 2**24 + 1, 2**31 + 7])
def test_the_bias_correction_never_loses_the_count(t, tmp_path):
    cls = rule(
        tmp_path, "c = 1 - beta**t\nparam = param - lr*grad/c",
        hyperparameters="lr: {default: 0.1}\nbeta: {default: 0.999}", state="c: {init: 0, shape: scalar}",
    )  # fmt: skip
    want, factor, n = 1.0, 0.999, t
    while n:  # binary powering, from the lowest bit
        if n & 1:
            want = want * factor
        factor, n = factor * factor, n >> 1
    _, state = cls.definition.scalars(lr=0.1, beta=0.999, c=0.0, t=float(t))
    assert state["c"] == 1 - want


@pytest.mark.parametrize(
    ("expression", "written"),
    [
        ("grad**1", lambda p, g: g),
        ("grad**2", lambda p, g: g * g),
        ("grad**2.0", lambda p, g: g * g),
        ("grad**3", lambda p, g: g * (g * g)),
        ("grad**4", lambda p, g: (g * g) * (g * g)),
        ("grad**7", lambda p, g: g * (g * g) * ((g * g) * (g * g))),
        ("grad**-1", lambda p, g: F(1) / g),
        ("grad**-2", lambda p, g: F(1) / (g * g)),
        ("-grad**2", lambda p, g: -(g * g)),
        ("(-grad)**2", lambda p, g: (-g) * (-g)),
        ("1/sqrt(param)", lambda p, g: F(1) / np.sqrt(p)),
        ("2**3**2*grad", lambda p, g: F(512) * g),
    ],
)
def test_whole_powers_are_products(expression, written, tmp_path):
    with np.errstate(all="ignore"):
        want = written(X, G)
    assert_same_bits(computed(tmp_path, expression, X, G), want)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_general_powers_of_negative_numbers_are_nan(dtype, tmp_path):
    got = computed(tmp_path, "param**(1/3)", [8.0, -8.0, 0.0, INF, NAN], [0.0] * 5, dtype=dtype)
    assert abs(got[0] - 2) < 1e-6
    assert math.isnan(got[1])
    assert got[2] == 0
    assert got[3] == INF
    assert math.isnan(got[4])


def test_a_power_of_a_half_and_a_square_root_agree(tmp_path):
    values = np.abs(np.random.default_rng(1).standard_normal(500)).astype(F)
    got = computed(tmp_path, "param**0.5", values, values)
    assert np.max(np.abs(got.view(np.int32) - np.sqrt(values).view(np.int32))) <= 1


def test_a_square_is_one_multiply(tmp_path):
    unit = compiled(tmp_path, "v = 0.9*v + 0.1*grad**2\nparam = param - lr*v", state="v: {init: 0}")
    for kernel in ("kernel.c", "kernel.cu"):
        text = EMITTERS[kernel](unit)
        body = [line for line in text.splitlines() if "grad * grad" in line]
        assert len(body) == 1
        assert "sg_pow" not in text
        assert "powf" not in text


def test_adam_has_no_power_in_its_kernels(tmp_path):
    unit = compiled(
        tmp_path,
        "m = beta1*m + (1 - beta1)*grad\nv = beta2*v + (1 - beta2)*grad**2\n"
        "param = param - lr*(m/(1 - beta1**t))/(sqrt(v/(1 - beta2**t)) + eps)",
        hyperparameters="lr: {default: 0.1}\nbeta1: {default: 0.9}\n"
        "beta2: {default: 0.999}\neps: {default: 1e-8}",
        state="m: {init: 0}\nv: {init: 0}",
    )
    for kernel in ("kernel.c", "kernel.cu"):
        code = "\n".join(line.split("//")[0] for line in EMITTERS[kernel](unit).splitlines())
        assert "pow(" not in code
        assert "powf(" not in code
    assert "power(beta1, t)" in EMITTERS["scalars.py"](unit)


def test_sgd_reads_as_it_is_written(tmp_path):
    cls = rule(tmp_path, "param = param - lr*grad", hyperparameters="lr: {default: 0.1}")
    param, _ = stepped(cls, X, G, backend="numpy")
    with np.errstate(all="ignore"):
        assert_same_bits(param, X - F(0.1) * G)


@pytest.mark.parametrize(
    ("expression", "factor", "summand"),
    [
        ("tanh(2)*grad", math.tanh(2), 0.0),
        ("exp(-3)*grad", math.exp(-3), 0.0),
        ("cbrt(-27)*grad", -3.0, 0.0),
        ("log(660)*grad", math.log(660), 0.0),
        ("3**lr*grad + tanh(-14)", 3**0.5, math.tanh(-14)),
    ],
)
def test_functions_of_whole_literals(expression, factor, summand, tmp_path):
    cls = rule(
        tmp_path,
        f"out = {expression}\nparam = param - lr*out",
        hyperparameters="lr: {default: 0.5}",
        state="out: {init: 0}",
    )
    out = agreed(cls, X, G)[1]["out"]
    with np.errstate(all="ignore"):
        want = F(factor) * G + F(summand)
    ordinary = np.isfinite(want) & (np.abs(want) > 1e-30)
    assert np.allclose(out[ordinary], want[ordinary], rtol=1e-6)
