r"""LaTeX: names, grouping, and the environment around a program."""

from __future__ import annotations

import pytest

from solvergen.frontend.latex import expression_latex, name_latex, names_latex, program_latex
from solvergen.frontend.resolve import analyse
from tests.unit.frontend.support import spec, value


@pytest.mark.parametrize(
    ("name", "latex"),
    [
        ("beta1", r"\beta_{1}"),
        ("beta_1", r"\beta_{1}"),
        ("eps", r"\epsilon"),
        ("lam", r"\lambda"),
        ("m", "m"),
        ("m_hat", r"\hat{m}"),
        ("v_max", r"v_{\mathrm{max}}"),
        ("v_hat_2", r"v_{\mathrm{hat}, 2}"),
        ("mu_product", r"\mu_{\mathrm{product}}"),
        ("x_i", "x_{i}"),
        ("lr", r"\mathrm{lr}"),
        ("weight_decay", r"\mathrm{weight\_decay}"),
        ("exp_avg_sq", r"\mathrm{exp\_avg\_sq}"),
        ("history2", r"\mathrm{history2}"),
        ("Delta", r"\Delta"),
        ("E", "E"),
        ("a1b", r"\mathrm{a1b}"),
    ],
)
def test_names(name, latex):
    assert name_latex(name) == latex


def test_param_and_grad_have_letters_where_these_are_free():
    assert names_latex(["param", "grad", "m"]) == {"param": r"\theta", "grad": "g", "m": "m"}
    assert names_latex(["param", "grad", "g"]) == {"param": r"\theta", "grad": r"\mathrm{grad}", "g": "g"}
    assert names_latex(["param", "theta"]) == {"param": r"\mathrm{param}", "theta": r"\theta"}


def test_names_that_would_look_alike_are_written_out():
    assert names_latex(["beta1", "beta_1"]) == {"beta1": r"\mathrm{beta1}", "beta_1": r"\mathrm{beta\_1}"}


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("a*b*c", r"a \, b \, c"),
        ("a*(b*c)", r"a \, \left(b \, c\right)"),
        ("a - (b - c)", r"a - \left(b - c\right)"),
        ("(a + b)*c", r"\left(a + b\right) \, c"),
        ("a/b", r"\frac{a}{b}"),
        ("a*(b/c)", r"a \, \frac{b}{c}"),
        ("a*b/c", r"\frac{a \, b}{c}"),
        ("a*2", r"a \cdot 2"),
        ("2*a", r"2 \, a"),
        ("a*-b", r"a \, \left(-b\right)"),
        ("a - -b", r"a - \left(-b\right)"),
        ("-(a + b)", r"-\left(a + b\right)"),
        ("a**2", "a^{2}"),
        ("beta1**t", r"\beta_{1}^{t}"),
        ("(a + b)**2", r"\left(a + b\right)^{2}"),
        ("(a/b)**2", r"\left(\frac{a}{b}\right)^{2}"),
        ("(a**b)**c", r"\left(a^{b}\right)^{c}"),
        ("sqrt(a)**2", r"\left(\sqrt{a}\right)^{2}"),
        ("1e-8", "10^{-8}"),
        ("2.5e-8", r"2.5 \cdot 10^{-8}"),
        ("a**1e-8", "a^{10^{-8}}"),
        ("sqrt(a + b)", r"\sqrt{a + b}"),
        ("abs(a)", r"\left|a\right|"),
        ("sign(a)", r"\operatorname{sign}\left(a\right)"),
        ("max(a, b)", r"\max\left(a, b\right)"),
        ("clip(a, -1, 1)", r"\operatorname{clip}\left(a, -1, 1\right)"),
        ("floor(a)", r"\left\lfloor a \right\rfloor"),
        ("a//b", r"\left\lfloor \frac{a}{b} \right\rfloor"),
        ("a % b", r"a \bmod b"),
        ("where(a < b, a, b)", r"\begin{cases} a & \text{if } a < b \\ b & \text{otherwise} \end{cases}"),
        ("a <= b and not c != d", r"a \le b \land \lnot \left(c \ne d\right)"),
        ("a or b", r"a \lor b"),
    ],
)
def test_expressions(text, latex):
    assert expression_latex(value(text)) == latex


def test_a_program():
    rule = spec(
        ("a and not b", "g = -grad"), ("not (a and not b)", "g = grad"), "param = param - lr*g", options="a b"
    )
    assert program_latex(analyse(rule).typed).splitlines() == [
        r"\begin{aligned}",
        r"g &\leftarrow -\mathrm{grad} && \text{if } \mathrm{a} \land \lnot \mathrm{b} \\",
        r"g &\leftarrow \mathrm{grad} && \text{if } \mathrm{b} \lor \lnot \mathrm{a} \\",
        r"\theta &\leftarrow \theta - \mathrm{lr} \, g",
        r"\end{aligned}",
    ]


def test_typed_programs_read_like_parsed_ones():
    rule = spec("param = param - lr*grad**2")
    found = analyse(rule)
    assert program_latex(found.parsed) == program_latex(found.typed)
