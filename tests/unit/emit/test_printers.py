"""Printed expressions: exactly the tree's grouping, in each target's spelling."""

from __future__ import annotations

import pytest

from solvergen.emit.c_printer import CPrinter
from solvergen.emit.identifiers import aliases, c_identifiers, is_reserved_in_c
from solvergen.emit.number import c_number, python_number
from solvergen.emit.python_printer import PythonPrinter
from solvergen.ir.nodes import Number
from tests.support.rules import typed


def value(tmp_path, expression: str, **parts: str):
    """The typed right-hand side of ``param = expression``."""
    return (
        typed(tmp_path, f"param = {expression} + 0*lr*grad + 0*b", **HYPERPARAMETERS, **parts)
        .statements[0]
        .value.left.left
    )


HYPERPARAMETERS = {"hyperparameters": "lr: {default: 1}\nb: {default: 1}"}


@pytest.mark.parametrize(
    ("written", "c", "python"),
    [
        ("param + grad + param", "param + grad + param", "param + grad + param"),
        ("param + (grad + param)", "param + (grad + param)", "param + (grad + param)"),
        ("param - (grad - param)", "param - (grad - param)", "param - (grad - param)"),
        ("param*(grad/param)", "param * (grad / param)", "param * (grad / param)"),
        ("param/grad/param", "param / grad / param", "param / grad / param"),
        ("-param*grad", "-param * grad", "-param * grad"),
        ("-(param*grad)", "-(param * grad)", "-(param * grad)"),
        ("param - -grad", "param - -grad", "param - -grad"),
        ("--param", "-(-param)", "--param"),
        ("0.1*param", "(sg_real)0.1 * param", "0.1 * param"),
        ("-2*param", "(sg_real)-2.0 * param", "-2 * param"),
        ("b*param", "b * param", "b * param"),
        ("abs(param)", "sg_abs(param)", "absolute(param)"),
        ("max(param, b)", "sg_max(param, b)", "maximum(param, b)"),
        (
            "where(grad > 0, param, -param)",
            "grad > (sg_real)0.0 ? param : -param",
            "where(grad > 0, param, -param)",
        ),
        (
            "where(grad > 0 and not param < 1, 1, 0)",
            "(grad > (sg_real)0.0 && !(param < (sg_real)1.0)) ? (sg_real)1.0 : (sg_real)0.0",
            "where((grad > 0) & ~(param < 1), real(1), real(0))",
        ),
        (
            "where(0 < grad < 1 or param != param, grad, 1)",
            "(((sg_real)0.0 < grad && grad < (sg_real)1.0) || param != param) ? grad : (sg_real)1.0",
            "where((0 < grad) & (grad < 1) | (param != param), grad, 1)",
        ),
        ("exp(param)", "sg_exp(param)", "exp(param)"),
        ("param**b", "(sg_real)sg_pow64((double)param, (double)b)", "general_power(param, real(b))"),
        ("2*(where(grad > 0, 1, 2)*param)",
         "(sg_real)2.0 * ((grad > (sg_real)0.0 ? (sg_real)1.0 : (sg_real)2.0) * param)",
         "2 * (where(grad > 0, real(1), real(2)) * param)"),
    ],
)  # fmt: skip
def test_elements(tmp_path, written, c, python):
    expression = value(tmp_path, written)
    assert CPrinter({}).text(expression) == c
    assert PythonPrinter({}).text(expression) == python


@pytest.mark.parametrize(
    ("written", "python"),
    [
        ("1 - b**t", "1 - power(b, t)"),
        ("lr/b", "divide(lr, b)"),
        ("lr/2", "lr / 2"),
        ("1/3", "1.0 / 3.0"),
        ("t // 2", "floor_divide(t, 2.0)"),
        ("t % 2 - 1", "remainder(t, 2.0) - 1"),
        ("exp(-2)*lr", "exp(-2.0) * lr"),
        ("where(t == 1, 2, 3)*lr", "(2.0 if t == 1 else 3.0) * lr"),
        ("min(t, 3)*lr", "minimum(t, 3.0) * lr"),
        ("where(t == 1, lr, b)", "lr if t == 1 else b"),
        ("1 + where(t == 1 and not lr > 2, lr, b)", "1 + (lr if t == 1 and not lr > 2 else b)"),
        ("where(not (t == 1), lr, b)", "lr if t != 1 else b"),
        ("where(not t != 1 and not not t < 2, lr, b)", "lr if t == 1 and not not t < 2 else b"),
        ("10**20*lr", "power(10.0, 20) * lr"),
        ("9007199254740993*lr", "9007199254740992.0 * lr"),
    ],
)
def test_scalars(tmp_path, written, python):
    program = typed(tmp_path, f"s = {written}\nparam = param - s*(lr*b*grad)", **HYPERPARAMETERS)
    assert PythonPrinter({}).text(program.statements[0].value) == python


def test_numbers_read_back():
    for x in (0.1, 1e-46, 1e300, 5e-324, 123456789.123456789, 1e22, 0.5, 3.0):
        assert float(c_number(x)) == x
        assert float(python_number(Number(x))) == x
    assert c_number(3.0) == "3.0"
    assert python_number(Number(3.0, True)) == "3"
    assert python_number(Number(3.0, True), as_float=True) == "3.0"


@pytest.mark.parametrize(
    "name",
    [
        "int",
        "float",
        "half",
        "double",
        "threadIdx",
        "blockIdx",
        "float4",
        "uint32_t",
        "NULL",
        "class",
        "template",
        "restrict",
        "dim3",
    ],
)
def test_what_c_claims_gets_an_underscore(name):
    assert c_identifiers([name]) == {name: f"{name}_"}


@pytest.mark.parametrize("name", ["FLT_MAX", "INT32_MAX", "M_PI", "SG_PARAM", "CHAR_BIT"])
def test_what_looks_like_a_macro_begins_otherwise(name):
    assert c_identifiers([name]) == {name: f"value_{name}"}
    assert not is_reserved_in_c(f"value_{name}")


def test_identifiers_stay_distinct():
    found = c_identifiers(["double", "double_", "double__", "x"])
    assert found["x"] == "x"
    assert found["double_"] == "double_"
    assert len(set(found.values())) == 4


def test_helpers_step_aside_for_names_of_the_spec():
    assert aliases(["power", "divide"], ["power", "power_"]) == {"power": "power__", "divide": "divide"}


@pytest.mark.parametrize(
    "form", ["exp({})", "tanh({})", "abs({})**0.5", "max({}, grad)", "where({} > 0, 1, grad)"]
)
def test_time_and_text_grow_with_the_depth_and_no_faster(tmp_path, form):
    """Printing an argument twice would take 2**40 times as long."""
    lengths = []
    for depth in (10, 20, 40):
        text = "grad"
        for _ in range(depth):
            text = form.format(text)
        nested = value(tmp_path, text)
        lengths.append((len(CPrinter({}).text(nested)), len(PythonPrinter({}).text(nested))))
    for first, second, third in zip(*lengths, strict=True):
        assert third - second < 2.1 * (second - first)
