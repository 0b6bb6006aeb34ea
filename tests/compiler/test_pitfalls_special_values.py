"""Results for NaN, infinities and signed zeros: the docs' table, held on every backend (pitfall 10)."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from solvergen.compiler import check
from solvergen.frontend.parse import parse_condition
from solvergen.ir.evaluate import evaluate
from solvergen.spec.model import Text
from tests.compiler.stepping import agreed, rule
from tests.support.bits import assert_same_bits
from tests.support.rules import spec_text

LANGUAGE = Path(__file__).parents[2] / "docs" / "language.md"


def table(title: str) -> tuple[list[tuple[float, ...]], dict[str, list[float | None]]]:
    """The columns' values and, by expression, the results (None where a cell is empty)."""
    lines = LANGUAGE.read_text(encoding="utf-8").splitlines()
    start = lines.index(f"<!-- table: {title} -->") + 1
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
    columns = [tuple(float(v) for v in cell.strip("`").split(",")) for cell in rows[0][1:]]
    results = {row[0].strip("`"): [float(c) if c else None for c in row[1:]] for row in rows[2:]}
    return columns, results


ONE, TWO = table("one argument"), table("two arguments")


def compare(got: np.ndarray, want: list[float | None], expression: str) -> None:
    for g, w in zip(got.tolist(), want, strict=True):
        if w is not None:
            try:
                assert_same_bits(got.dtype.type(g), got.dtype.type(w))
            except AssertionError:
                raise AssertionError(f"{expression}: {g!r} where the table has {w!r}") from None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_elements(dtype, tmp_path):
    columns, results = ONE
    pairs, two = TWO
    one_names = {f"one{k}": e for k, e in enumerate(results)}
    two_names = {f"two{k}": e for k, e in enumerate(two)}
    for names, spelling in ((one_names, ("param", "")), (two_names, ("param", "grad"))):
        update = []
        for name, expression in names.items():
            words = {"x": spelling[0], "a": spelling[0], "b": spelling[1]}
            update.append(f"{name} = {_with_names(expression, words)}")
        total = " + ".join(names)
        cls = rule(
            tmp_path,
            "\n".join([*update, f"param = param - 0*lr*(grad + {total})"]),
            state="\n".join(f"{name}: {{init: 0}}" for name in names),
        )
        values = columns if names is one_names else pairs
        first = [v[0] for v in values]
        second = [v[-1] for v in values]
        _, states = agreed(cls, first, second, dtype=dtype)
        for name, expression in names.items():
            compare(states[name], (results if names is one_names else two)[expression], expression)


@pytest.mark.parametrize(("columns", "results"), [ONE, TWO], ids=["one argument", "two arguments"])
def test_scalars(columns, results, tmp_path):
    names = {f"out{k}": expression for k, expression in enumerate(results)}
    update = [f"{name} = {expression}" for name, expression in names.items()]
    cls = rule(
        tmp_path,
        "\n".join([*update, f"param = param - lr*grad*(x + a + b + {' + '.join(names)})"]),
        hyperparameters="lr: {default: 1}\nx: {default: 1}\na: {default: 1}\nb: {default: 1}",
        state="\n".join(f"{name}: {{init: 0, shape: scalar}}" for name in names),
    )
    for k, column in enumerate(columns):
        given = {"x": column[0], "a": column[0], "b": column[-1]}
        _, state = cls.definition.scalars(lr=1.0, t=1.0, **given, **dict.fromkeys(names, 0.0))
        for name, expression in names.items():
            compare(np.array([state[name]]), [results[expression][k]], expression)


@pytest.mark.parametrize(("columns", "results"), [ONE, TWO], ids=["one argument", "two arguments"])
def test_the_checks_of_the_compiler_know_them_too(columns, results):
    for expression, row in results.items():
        parsed = parse_condition(Text.of(expression))
        for column, want in zip(columns, row, strict=True):
            values = {"x": column[0], "a": column[0], "b": column[-1]}
            compare(np.array([evaluate(parsed, values)]), [want], expression)


def _with_names(expression: str, words: dict[str, str]) -> str:
    out, word = [], ""
    for character in expression + " ":
        if character.isalnum():
            word += character
        else:
            out.append(words.get(word, word))
            out.append(character)
            word = ""
    return "".join(out).strip()


def test_the_amsgrad_line_keeps_nan(tmp_path):
    cls = rule(tmp_path, "v_max = max(v_max, grad)\nparam = param - lr*v_max", state="v_max: {init: 0}")
    _, states = agreed(cls, [1.0, 1.0], [math.nan, 2.0], steps=2)
    assert math.isnan(states["v_max"][0])
    assert states["v_max"][1] == 2


def test_where_does_not_mix_in_the_side_that_is_not_taken(tmp_path):
    cls = rule(tmp_path, "s = where(param > 0, log(param), 0)\nparam = param - lr*s", state="s: {init: 0}")
    _, states = agreed(cls, [-1.0, 0.0, 1.0, math.nan], [0.0] * 4)
    assert_same_bits(states["s"], np.array([0.0, 0.0, 0.0, 0.0], np.float32))


@pytest.mark.parametrize(
    ("spelling", "meaning"),
    [
        ("param if param > 0 else 0", "where(param > 0, param, 0)"),
        ("where(0 < param < 1, 1, 2)", "where(0 < param and param < 1, 1, 2)"),
        ("where(param > 0 and grad > 0, 1, 2)", "where(not (not param > 0 or not grad > 0), 1, 2)"),
        ("max(0, param)", "where(0 > param, 0, param)"),
        ("max(param, max(grad, 0))", "max(param, where(grad > 0 or grad != grad, grad, 0))"),
    ],
)
def test_spellings_that_other_compilers_do_not_take(spelling, meaning, tmp_path):
    values = [1.0, -1.0, 0.5, 0.0, -0.0, math.nan, math.inf, -math.inf]
    cls = rule(
        tmp_path,
        f"p = {spelling}\nq = {meaning}\nparam = param - 0*lr*(p + q)",
        state="p: {init: 0}\nq: {init: 0}",
    )
    _, states = agreed(cls, values, values[::-1])
    assert_same_bits(states["p"], states["q"])


@pytest.mark.parametrize(
    ("expression", "codes"),
    [
        ("where(param > 0 & grad > 0, 1, 2)", ["SG044"]),
        ("(param > 0)*grad", ["SG080"]),
        ("where(param, 1, 2)", ["SG081"]),
        ("where(param > 0, 1)", ["SG055"]),
        ("max(param)", ["SG055"]),
        ("Max(param, 0)", ["SG054"]),
        ("Piecewise(param, 0)", ["SG054"]),
        ("Heaviside(param)", ["SG054"]),
        ("max(param, 0, grad)", ["SG055"]),
    ],
)
def test_spellings_that_mean_nothing_are_refused(expression, codes, tmp_path):
    path = tmp_path / "rule.yaml"
    path.write_text(spec_text(f"param = param - lr*({expression})"), encoding="utf-8")
    assert [d.code for d in check([path]).diagnostics] == codes
