"""Traps into which compilers of equations fell, asked of the code that comes out."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

from solvergen.compiler import build, check
from solvergen.errors import SpecError
from solvergen.runtime import native
from tests.support.packages import built_package
from tests.support.rules import spec_text

BACKENDS = ("numpy", "cpu")
AWKWARD = """
x i n idx tid blockIdx j1 y0 gamma half float double_ __restrict__ weight-decay m_1 ünicode lambda if in
FLT_MAX M_PI SG_PARAM unix linux NULL int64_t sg_row I S N O Q pi re im abs sum on yes null y
"""


@pytest.fixture(params=BACKENDS)
def backend(request):
    if request.param == "cpu" and native.available():
        pytest.skip(native.available())
    return request.param


@pytest.fixture
def rule(tmp_path, backend):
    """Builds a rule, and steps it once (or with several gradients) on the backend."""

    def step(update, *, param, grads, dtype=np.float32, hyperparameters="lr: {default: 1}", t=1, **parts):
        specs = tmp_path / "specs"
        specs.mkdir()
        (specs / "rule.yaml").write_text(
            spec_text(update, hyperparameters=hyperparameters, **parts), encoding="utf-8"
        )
        package = built_package([specs], tmp_path / f"rule_{backend}_{abs(hash(tmp_path))}")
        value = np.atleast_1d(np.asarray(param, dtype=dtype)).copy()
        made = package.Rule(value, backend=backend)
        if t != 1:
            saved = made.state_dict()
            saved["tensors"]["0"]["t"] = t - 1
            made.load_state_dict(saved)
            assert made.t == t - 1
        for grad in grads:
            made.step(np.full_like(value, grad))
        return value

    return step


class TestNames:
    def test_E_is_the_hyperparameter(self, rule):
        assert rule("param = param - E*grad", hyperparameters="E: {default: 1}", param=0, grads=[2]) == -2

    @pytest.mark.parametrize("name", AWKWARD.split())
    def test_a_name_works_or_is_refused(self, tmp_path, backend, name):
        specs = tmp_path / "specs"
        specs.mkdir()
        text = spec_text(
            f"{name} = {name}*0.5 + grad\nparam = param - lr*{name}", state=f"{name}: {{init: 1}}"
        )
        (specs / "rule.yaml").write_text(text, encoding="utf-8")
        found = check([specs])
        if found.failed:
            assert any(name in d.message or name in (d.source or "") for d in found.diagnostics)
            return
        package = built_package([specs], tmp_path / f"names_{backend}_{abs(hash(tmp_path))}")
        param = np.ones(3, np.float32)
        package.Rule(param, backend=backend).step(np.full(3, 2, np.float32))
        assert param.tolist() == [1 - np.float32(0.1) * np.float32(2.5)] * 3

    @pytest.mark.parametrize(
        ("one", "other"), [("double", "double_"), ("m", "M"), ("FLT_MAX", "value_FLT_MAX")]
    )
    def test_names_that_an_escape_could_confuse(self, tmp_path, backend, one, other):
        specs = tmp_path / "specs"
        specs.mkdir()
        update = f"{one} = {one} + grad\n{other} = {other} - grad\nparam = param - lr*({one} + 2*{other})"
        (specs / "rule.yaml").write_text(
            spec_text(
                update, state=f"{one}: {{init: 1}}\n{other}: {{init: 2}}", hyperparameters="lr: {default: 1}"
            ),
            encoding="utf-8",
        )
        found = check([specs])
        if found.failed:
            assert any(one in d.message or other in d.message for d in found.diagnostics)
            return
        package = built_package([specs], tmp_path / f"pair_{backend}_{abs(hash(tmp_path))}")
        param = np.zeros(2, np.float32)
        package.Rule(param, backend=backend).step(np.ones(2, np.float32))
        assert param.tolist() == [-4.0, -4.0]


class TestNothingIsSimplified:
    """What SymPy would have folded, flattened or distributed is computed as written."""

    @pytest.mark.parametrize(
        ("expression", "param", "grad", "expected"),
        [
            ("0*param", math.inf, 1, math.nan),
            ("param - param", math.inf, 1, math.nan),
            ("param/param", 0, 1, math.nan),
            ("param*grad/param", 0, 1, math.nan),
            ("where(param != param, 1, 2)", math.nan, 1, 1),
            ("where(param == param, 1, 2)", math.nan, 1, 2),
            ("(param + 1e30) - 1e30", 1, 1, 0),
            ("sqrt(param)**2", -1e-7, 1, math.nan),
            ("param/sqrt(param**2)", 0, 1, math.nan),
            ("0.5*(param + grad)", 3e38, 3e38, math.inf),
            ("10*(param/grad)", 1e38, 1e30, float(np.float32(10) * (np.float32(1e38) / np.float32(1e30)))),
            ("param/0", 1, 1, math.inf),
            ("max(param, 0)", math.nan, 1, math.nan),
            ("min(param, 1)", math.nan, 1, math.nan),
            ("max(0, param)", math.nan, 1, math.nan),
            ("sign(param)", math.nan, 1, math.nan),
            ("clip(param, 0, 1)", math.nan, 1, math.nan),
        ],
    )
    def test_elements(self, rule, expression, param, grad, expected):
        update = f"e = {expression}\nparam = e + 0*(lr*t)"
        found = check_refused(rule, update, param, grad)
        if found is not None:
            assert np.array_equal(found, np.full(1, expected, np.float32), equal_nan=True)

    def test_beta_of_zero_still_carries_a_nan(self, rule):
        found = rule(
            "m = lr*m + (1 - lr)*grad\nparam = m", param=0, grads=[math.inf, 1.0], state="m: {init: 0}",
            hyperparameters="lr: {default: 0}",
        )  # fmt: skip
        assert math.isnan(found[0])  # 0*inf

    def test_tiny_factors_are_not_gathered(self, rule):
        assert rule("param = param*1e-300*1e-300*lr", param=1.0, grads=[0], dtype=np.float64) == 0
        # a product of constants alone is one constant, in float64

    def test_a_sum_of_constants_is_in_written_order(self, rule):
        found = rule("param = param*lr + (0.1 + 0.2)*grad", param=0, grads=[1], dtype=np.float64)
        assert found[0] == 0.1 + 0.2


def check_refused(rule, update, param, grad):
    """The new parameter; None where the compiler says that the expression can't be meant."""
    try:
        return rule(update, param=param, grads=[grad])
    except SpecError:
        return None


class TestNumbers:
    def test_one_minus_beta_is_taken_in_float64(self, rule):
        found = rule("m = b*m + (1 - b)*grad\nparam = m + 0*lr", param=0, grads=[1], state="m: {init: 0}",
                     hyperparameters="lr: {default: 1}\nb: {default: 0.999}")  # fmt: skip
        assert found[0] == np.float32(1 - 0.999)
        assert found[0] != np.float32(1) - np.float32(0.999)

    def test_literals_do_not_promote(self, rule):
        found = rule("param = 0.1*param*lr", param=1.1, grads=[0])
        assert found[0] == np.float32(0.1) * np.float32(1.1)

    def test_whole_numbers_divide_as_real_ones(self, rule):
        assert rule("param = param - 1/2*grad*lr", param=0, grads=[4]) == -2

    @pytest.mark.parametrize("constant", ["2**40", "10**20"])
    def test_large_constants(self, rule, constant):
        assert rule(f"param = param + {constant}*grad*lr", param=0, grads=[1]) == np.float32(eval(constant))  # noqa: S307

    @pytest.mark.parametrize("t", [1, 999, 1000, 2**24 + 1, 2**31 + 1001, 2**40 + 3])
    def test_floor_division_and_remainder_of_t(self, rule, t):
        found = rule("param = lr*(t // 1000) + (t % 7)*1e-3", param=0, grads=[0], dtype=np.float64, t=t)
        assert found[0] == (t // 1000) + (t % 7) * 1e-3

    def test_floor_division_and_remainder_of_elements_below_zero(self, rule):
        assert rule("param = param // 2 + 0*lr", param=-7, grads=[0]) == -4
        # the sign of the divisor, as in Python

    def test_remainder_has_the_sign_of_the_divisor(self, rule):
        assert rule("param = param % 2 + 0*lr", param=-7, grads=[0]) == 1

    @pytest.mark.parametrize("t", [2**24 + 1, 2**31 + 1, 2**53 - 1])
    def test_t_never_loses_count(self, rule, t):
        assert rule("param = lr*t + 0*grad", param=0, grads=[0], dtype=np.float64, t=t) == t


class TestPowers:
    def test_a_square_is_one_multiplication(self):
        kernel = build(["specs/adam.yaml"]).artifacts["adam/kernel.cu"]
        assert "g_next * g_next" in kernel
        assert "pow(" not in kernel.replace("pow_t", "")

    @pytest.mark.parametrize("n", [2, 3, 5, 7, -2, 0])
    def test_whole_powers_are_products(self, rule, n):
        x = np.float32(1.1)
        products = {
            0: np.float32(1),
            2: x * x,
            3: x * (x * x),
            5: x * ((x * x) * (x * x)),
            -2: np.float32(1) / (x * x),
        }
        products[7] = (x * (x * x)) * ((x * x) * (x * x))
        assert rule(f"param = param**{n} + 0*lr", param=x, grads=[0])[0] == products[n]

    def test_a_broken_power_of_a_negative_number_is_nan(self, rule):
        assert math.isnan(rule("param = param**(1/3) + 0*lr", param=-8, grads=[0])[0])


class TestSize:
    def test_a_long_chain_grows_by_its_links(self, tmp_path):
        """Each link adds its own text, and no link adds what came before it once more."""

        def longest(links: int) -> int:
            lines = ["e0 = grad"]
            lines += [f"e{i + 1} = tanh(e{i})*e{i} + e{i}*e{i} - max(e{i}, param)**3" for i in range(links)]
            (tmp_path / "rule.yaml").write_text(
                spec_text("\n".join([*lines, f"param = param - lr*e{links}"])), encoding="utf-8"
            )
            return len(build([tmp_path]).artifacts["rule/kernel.c"])

        ten, twenty, thirty = longest(10), longest(20), longest(30)
        assert thirty - twenty < 1.05 * (twenty - ten)
        assert thirty < 2 * ten

    def test_nested_calls_do_not_double(self, tmp_path):
        nested = "grad"
        for _ in range(20):
            nested = f"max({nested}, param)"
        (tmp_path / "rule.yaml").write_text(spec_text(f"param = param - lr*{nested}"), encoding="utf-8")
        assert max(len(text) for text in build([tmp_path], wrap=False).artifacts.values()) < 20_000

    def test_temporaries_named_as_sympy_names_its_own(self, rule):
        assert rule("x0 = grad*2\nx1 = x0 + 1\nparam = param - lr*x1*x0", param=0, grads=[1]) == -6


def test_generated_text_stays_inside_its_comments(tmp_path):
    folder = tmp_path / "a*" / "*b"
    folder.mkdir(parents=True)
    (folder / "rule.yaml").write_text(
        spec_text("param = param - lr*grad").replace(
            "A rule for a test.", '\'""" + 1/0 + """ \\\\ */ trap\''
        ),
        encoding="utf-8",
    )
    package = built_package([Path(folder)], tmp_path / "commented")
    param = np.ones(2, np.float32)
    package.Rule(param, backend="numpy").step(np.ones(2, np.float32))
    assert "trap" in package.Rule.__doc__


@pytest.mark.parametrize("name", ["functions", "solvergen", "reference", "schema", "typing", "numpy"])
def test_a_spec_may_be_called_like_a_module(tmp_path, name):
    text = spec_text("param = param - lr*exp(grad)").replace("name: rule", f"name: {name}\nclass_name: Rule")
    (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    package = built_package([tmp_path], tmp_path / f"package_{name}")
    param = np.ones(2, np.float32)
    package.Rule(param, backend="numpy").step(np.zeros(2, np.float32))
    assert param.tolist() == [np.float32(1) - np.float32(0.1)] * 2


LOCALS = """
row tuple list dict float str bool super_ row_ divide power real rounded Initial update scalars np os
"""


@pytest.mark.parametrize("name", LOCALS.split())
def test_generated_python_keeps_its_own_variables_apart(tmp_path, name):
    """Options, hyperparameters and states may be called like what the generated functions use themselves."""
    text = f"""
name: rule
summary: A rule for a test.
hyperparameters:
  lr: {{default: 0.5}}
options:
  {name}: {{default: false}}
state:
  s: {{shape: scalar, init: 3, when: not {name}}}
  m: {{init: 1, when: {name}}}
update:
  - {{when: not {name}, do: s = s + lr}}
  - {{when: {name}, do: m = m + grad}}
  - param = param - where({name}, m, s)*grad
"""
    (tmp_path / "rule.yaml").write_text(text, encoding="utf-8")
    package = built_package([tmp_path], tmp_path / f"locals_{name}")
    for setting, expected in ((False, [-3.5, -7.5]), (True, [-2.0, -5.0])):
        param = np.zeros(1, np.float32)
        made = package.Rule(param, backend="numpy", **{name: setting})
        found = []
        for _ in range(2):
            made.step(np.ones(1, np.float32))
            found.append(float(param[0]))
        assert found == expected


@pytest.mark.parametrize(
    "name", ["getattr", "globals", "sorted", "set", "attribute_error", "typing", "builtins"]
)
def test_a_package_survives_optimizers_called_like_builtins(tmp_path, name):
    for spec in (name, "zz"):
        text = spec_text("param = param - lr*grad").replace("name: rule", f"name: {spec}")
        (tmp_path / f"{spec}.yaml").write_text(text, encoding="utf-8")
    package = built_package([tmp_path], tmp_path / f"builtins_{name}")
    first = next(n for n in package.__all__ if n != "Zz")
    assert getattr(package, first).definition.name == name
    assert package.Zz.definition.name == "zz"
    assert {first, "Zz"} <= set(dir(package))
    assert not hasattr(package, "Nope")


@pytest.mark.parametrize(
    "folder", ["sp\\x", 'a"""b', "two\nlines", "carriage\rreturn", "spécs", "bidi\u202e", "*"]
)
def test_the_folder_of_the_specs_cannot_break_out_of_comments(tmp_path, folder):
    specs = tmp_path / folder
    specs.mkdir()
    (specs / "rule.yaml").write_text(spec_text("param = param - lr*grad"), encoding="utf-8")
    artifacts = build([specs]).artifacts
    named = {line for text in artifacts.values() for line in text.splitlines() if "rule.yaml" in line}
    assert named
    assert all(c.isprintable() and c != "\\" for line in named for c in line)
    package = built_package([specs], tmp_path / "odd_folder")
    param = np.ones(2, np.float32)
    package.Rule(param, backend="numpy").step(np.ones(2, np.float32))


def test_a_folder_whose_name_is_no_text(tmp_path):
    specs = Path(os.fsdecode(os.fsencode(tmp_path) + b"/sp\xff"))
    specs.mkdir()
    (specs / "rule.yaml").write_text(spec_text("param = param - lr*grad"), encoding="utf-8")
    for text in build([specs]).artifacts.values():
        text.encode("utf-8")
