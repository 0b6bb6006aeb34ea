"""The evaluation that the compiler is held to: its arithmetic is right, and it notices what is planted."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvergen.compiler import build
from solvergen.errors import AgreementError, VerificationError
from solvergen.ir import functions, reductions
from solvergen.spec.names import LINES
from solvergen.spec.reader import read_spec
from solvergen.verify import order
from solvergen.verify.collect import imported
from solvergen.verify.direct import run_directly
from solvergen.verify.drawing import each_example
from solvergen.verify.example import Example
from solvergen.verify.fuzzing import check_meaning, expressions, meaning, real_functions, spans, terms
from solvergen.verify.fuzzing.holding import Departure, Tally, first_departure
from solvergen.verify.fuzzing.rounding import DOUBLE, FORMATS, nearest, rounded, square_root
from solvergen.verify.fuzzing.rule import rule_of
from solvergen.verify.fuzzing.spans import NAN, Span, between, contains, exactly
from solvergen.verify.fuzzing.spec import DrawnSpec
from solvergen.verify.fuzzing.strategies import specs
from solvergen.verify.limits import Limits
from solvergen.verify.settings import space_of
from tests.fuzz.built import SMALL
from tests.fuzz.running import fuzz
from tests.support.line_rule import SPEC as LINER

ROOT = Path(__file__).parents[2]
SPECS = sorted([*(ROOT / "specs").glob("*.yaml"), *(ROOT / "tests/support/specs").glob("*.yaml")])
DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float64": np.float64}

doubles = st.one_of(
    st.floats(),
    st.floats(width=32),
    st.sampled_from((0.0, -0.0, 1.0, -1.0, 2.0**-1074, 2.0**-1022, 2.0**1023, math.inf, -math.inf, math.nan)),
    st.builds(math.ldexp, st.integers(-64, 64).map(float), st.integers(-160, 140)),
)
floats = st.floats(width=32)


@given(doubles, st.sampled_from(sorted(DTYPES)))
def test_rounding_to_a_format(x: float, name: str) -> None:
    with np.errstate(all="ignore"):
        expected = float(np.float64(x).astype(DTYPES[name]))
    assert _same(rounded(x, FORMATS[name]), expected)


@given(st.fractions(), st.integers(-1200, 1200))
def test_rounding_a_fraction_takes_the_nearest(x: Fraction, exponent: int) -> None:
    x *= Fraction(2) ** exponent
    found = nearest(x.numerator, x.denominator, DOUBLE)
    if math.isfinite(found):
        near = [
            Fraction(y)
            for y in (math.nextafter(found, -math.inf), math.nextafter(found, math.inf))
            if math.isfinite(y)
        ]
        assert all(abs(x - Fraction(found)) <= abs(x - y) for y in near)
    else:
        assert abs(x) >= Fraction(2) ** 1024 - Fraction(2) ** 970


@given(doubles, doubles)
def test_arithmetic_on_known_values_is_ieees(x: float, y: float) -> None:
    _holds_for(np.float64, x, y)


@given(floats, floats)
def test_arithmetic_in_float32_is_ieees(x: float, y: float) -> None:
    _holds_for(np.float32, x, y)


def _holds_for(dtype: type[np.floating], x: float, y: float) -> None:
    form = FORMATS[np.dtype(dtype).name]
    a, b = dtype(x), dtype(y)
    with np.errstate(all="ignore"):
        pairs = [
            (spans.add(exactly(x), exactly(y), form), a + b),
            (spans.subtract(exactly(x), exactly(y), form), a - b),
            (spans.multiply(exactly(x), exactly(y), form), a * b),
            (spans.divide(exactly(x), exactly(y), form), a / b),
            (spans.root(exactly(x), form), np.sqrt(a)),
            (spans.floor(exactly(x)), np.floor(a)),
            (spans.absolute(exactly(x)), np.abs(a)),
            (spans.negative(exactly(x)), -a),
        ]
    for found, expected in pairs:
        assert found is not None
        assert found.is_exact
        assert _same(found.low, float(expected))


BINARY = ("add", "divide", "floored_quotient", "multiply", "remainder", "subtract")
UNARY = ("absolute", "floor", "negative", "sign")
ends = doubles | st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1.0, -1.0])


@given(ends, ends, ends, ends, st.sampled_from([*BINARY, "least", "largest"]))
def test_a_span_holds_what_comes_of_what_it_holds(x: float, y: float, u: float, v: float, op: str) -> None:
    """Any two members of two spans give a member of the result, or nothing is claimed."""
    a, b = _span(x, y), _span(u, v)
    more = (DOUBLE,) if op in BINARY else ()
    found = getattr(spans, op)(a, b, *more)
    for one in (a.low, a.high, 0.0, -0.0, 1.0, -1.0):
        for other in (b.low, b.high, 0.0, -0.0, 1.0, -1.0):
            if found is not None and contains(a, one) and contains(b, other):
                part = getattr(spans, op)(exactly(one), exactly(other), *more)
                assert contains(found, part.low)


@given(ends, ends, st.sampled_from([*UNARY, "root", "to_format"]))
def test_a_span_holds_what_comes_of_one_that_it_holds(x: float, y: float, op: str) -> None:
    a = _span(x, y)
    more = (DOUBLE,) if op == "root" else (FORMATS["float32"],) if op == "to_format" else ()
    found = getattr(spans, op)(a, *more)
    for one in (a.low, a.high, 0.0, -0.0, 1.0, -1.0):
        if found is not None and contains(a, one):
            assert contains(found, getattr(spans, op)(exactly(one), *more).low)


def test_either_of_two_zeros_may_have_either_sign() -> None:
    found = spans.either(exactly(0.0), exactly(-0.0))
    assert found is not None
    assert contains(found, 0.0)
    assert contains(found, -0.0)
    assert spans.either(exactly(-0.0), exactly(-0.0)) == exactly(-0.0)
    assert not contains(spans.either(exactly(-0.0), exactly(-0.0)), 0.0)


def test_either_of_two_values_is_unknown_unless_they_are_the_same() -> None:
    one, other = between(1.0, 2.0), exactly(2.0)
    assert spans.either(one, other) is None
    assert spans.either(one, None) is None
    assert spans.either(one, NAN) is None
    assert spans.either(one, between(1.0, 2.0)) == one
    assert spans.either(NAN, Span(math.nan, math.nan)) is NAN


def _span(x: float, y: float) -> Span:
    return NAN if x != x or y != y else between(*sorted((x, y), key=lambda z: (z, math.copysign(1, z))))


@given(st.floats(0, exclude_min=True, allow_infinity=False))
def test_square_roots(x: float) -> None:
    assert square_root(x, DOUBLE) == math.sqrt(x)


@given(st.floats(-745, 709.7))
def test_exponentials_lie_about_the_true_value(x: float) -> None:
    found = real_functions.exponential(exactly(x))
    assert found is not None
    assert contains(found, float(mpmath.exp(x)))
    assert found.high <= math.nextafter(
        math.nextafter(math.nextafter(found.low, math.inf), math.inf), math.inf
    )


@given(st.floats(allow_nan=False))
def test_cube_roots_lie_about_the_true_value(x: float) -> None:
    found = real_functions.cube_root(exactly(x))
    assert found is not None
    root = math.copysign(float(mpmath.cbrt(abs(x))), x)
    assert contains(found, root)
    assert found.high - found.low <= 4 * math.ulp(root) or math.isinf(x)


@pytest.mark.parametrize("function", [real_functions.hyperbolic_tangent, real_functions.cube_root])
def test_a_zero_keeps_its_sign_if_that_is_known(function: Callable[[Span], Span]) -> None:
    for zero in (exactly(0.0), exactly(-0.0), between(-0.0, 0.0)):
        assert [contains(function(zero), x) for x in (0.0, -0.0)] == [contains(zero, x) for x in (0.0, -0.0)]


def test_the_fuzzer_knows_the_functions_of_the_language() -> None:
    """It has a table of its own: a function that is missing there is drawn and checked nowhere."""
    assert {name: len(f.parameters) for name, f in functions.FUNCTIONS.items()} == terms.FUNCTIONS
    assert set(terms.FUNCTIONS) <= {*expressions._NUMBERS}
    assert {name: kind.arity for name, kind in reductions.REDUCTIONS.items()} == terms.REDUCTIONS
    assert set(terms.REDUCTIONS) == {*expressions._REDUCTIONS}
    assert {word for words in terms.VIEWS for word in words} == set(terms.LINES) == set(LINES)


def test_the_fuzzer_draws_lines_and_evaluations() -> None:
    seen: set[str] = set()

    def look(spec: DrawnSpec, data: object) -> None:
        seen.update(state.shape for state in spec.rule.states)
        for statement in spec.rule.update:
            for term in terms.walk(statement.value):
                seen.update({term.op, term.text} if term.op in terms.REDUCTIONS else {term.op})
                seen.update({term.text} if term.text == terms.AXES else ())

    fuzz(look, specs(), examples=300)
    assert seen >= {*terms.LINES, terms.OVER_ALL, terms.AXES, terms.GRADIENT}


@pytest.mark.parametrize("power", ["64", "65", "-64", "t"])
def test_powers_of_values_of_lines_are_those_of_elements(power: str, tmp_path: Path) -> None:
    path = tmp_path / "powers.yaml"
    path.write_text(
        "name: powers\nsummary: Powers of rows.\nhyperparameters:\n  lr: {default: 0.1}\n"
        f"update:\n  - param = param - lr*max_abs(grad, rows)**{power}\n",
        encoding="utf-8",
    )
    tally = check_meaning(path, examples=20)
    assert tally.bounded == 0 or power in ("65", "t")  # a general power


@given(st.floats(-1e3, 1e3, width=32))
def test_a_unit_of_float32_is_left_about_what_elements_of_it_become(x: float) -> None:
    form = FORMATS["float32"]
    for function, exact, units in (
        (real_functions.exponential, mpmath.exp, 1),
        (real_functions.hyperbolic_tangent, mpmath.tanh, 2),
        (real_functions.cube_root, lambda v: mpmath.sign(v) * mpmath.cbrt(abs(v)), 2),
    ):
        found = function(exactly(x), form)
        assert found is not None
        with np.errstate(over="ignore"):
            value = float(exact(mpmath.mpf(x)))
            true = np.float32(value or math.copysign(value, x))  # mpmath's zeros have no sign
            assert contains(found, float(true))
            above = np.float32(found.low)
            for _ in range(3 * units + 1):  # steps below a power of two are half as long
                above = np.nextafter(above, np.float32(math.inf))
        assert found.high <= above


@pytest.mark.parametrize("x", [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 2.0**53, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("y", [0.0, 1.0, -1.0, 2.0, 3.0, -3.0, 0.5, -0.5, math.inf, -math.inf, math.nan])
def test_special_powers_are_ieees(x: float, y: float) -> None:
    try:
        expected = math.pow(x, y)
    except ValueError:
        expected = math.inf if x == 0 else math.nan
        if x == 0 and y % 2 == 1:
            expected = math.copysign(math.inf, x)
    except OverflowError:
        expected = math.inf
    found = real_functions.power(exactly(x), exactly(y))
    assert found is not None
    assert contains(found, expected)


def _same(x: float, y: float) -> bool:
    return (x != x and y != y) or (x == y and math.copysign(1, x) == math.copysign(1, y))


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_every_committed_spec_means_what_its_reference_computes(path: Path) -> None:
    tally = check_meaning(path, examples=30)
    assert tally.exact > 0.5 * tally.total
    assert tally.open < 0.1 * tally.total, tally


PLANTED = {
    "operator": ("beta1 * exp_avg + (1", "beta1 * exp_avg - (1"),
    "grouping": ("beta1 * exp_avg + (1 - beta1) * g", "beta1 * exp_avg + (g - beta1 * g)"),
    "constant": ("(1 - beta2) * power(g, 2)", "(1.0000001 - beta2) * power(g, 2)"),
    "float32 scalar": ("(1 - beta1) * g", "(real(1) - real(beta1)) * g"),
    "count": ("1 - power(beta2, t)", "1 - power(beta2, t - 1)"),
    "branch": ("g = -grad if maximize", "g = -grad if not maximize"),
    "selection": ("maximum(max_exp_avg_sq, exp_avg_sq)", "minimum(max_exp_avg_sq, exp_avg_sq)"),
    "contraction": ("(exp_avg / denom))", "(exp_avg * (1 / denom)))"),
    "buffer": ("exp_avg_sq = beta2 * exp_avg_sq", "exp_avg_sq = beta2 * exp_avg"),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_planted_faults_are_noticed(fault: str) -> None:
    before, after = PLANTED[fault]

    def change(text: str) -> str:
        assert before in text
        text = text.replace("import divide, maximum", "import divide, maximum, minimum")
        return text.replace(before, after)

    found = _departures(ROOT / "specs/adam.yaml", change)
    assert found, f"{fault}: {before} became {after}, and nothing was noticed"


def _departures(path: Path, change: Callable[[str], str], limits: Limits = SMALL) -> list[Departure]:
    """Where the reference of a spec, changed, first leaves what its equations mean."""
    artifacts = dict(build([path], wrap=False).artifacts)
    file = f"{path.stem}/reference.py"
    artifacts[file] = change(artifacts[file])
    rule, tally = rule_of(read_spec(path)), Tally()
    with imported(artifacts) as optimizers:
        definition = optimizers[path.stem].definition
        found: list[Departure] = []

        def take(example: Example) -> bool:
            departure = first_departure(rule, definition, example, run_directly(definition, example), tally)
            found.extend([departure] if departure is not None else [])
            return bool(found)

        each_example(space_of(definition), take, examples=200, limits=limits)
    return found


PLANTED_IN_REDUCTIONS = {
    "another kind": ("(norm1(m) if", "(max_abs(m) if"),
    "the value of before": ("divide(count_nonzero(m)", "divide(count_nonzero(grad)"),
    "the mean of all": ('over_all("mean"', 'over_all("sum"'),
    "float32": ("(norm1(m) if", "(float(real(norm1(m))) if"),
}


@pytest.mark.parametrize("fault", PLANTED_IN_REDUCTIONS)
def test_planted_faults_of_reductions_are_noticed(fault: str) -> None:
    before, after = PLANTED_IN_REDUCTIONS[fault]

    def change(text: str) -> str:
        assert before in text, text
        return text.replace(before, after)

    found = _departures(ROOT / "tests/support/specs/reductions.yaml", change)
    assert found, f"{fault}: {before} became {after}, and nothing was noticed"


PLANTED_IN_LINES = {
    "other lines": ('max_abs(grad, "rows")', 'max_abs(grad, "matrices")'),
    "another kind": ('sum_of(above, "matrices"', 'max_abs(above, "matrices"'),
    "of the tensor": ('max_abs(across, "matrices", "columns")', 'max_abs(across, "tensor", "columns")'),
    "not rounded": ("real(above) * real(across)", "real(above * across)"),
    "axes": ("if ndim > 1", "if ndim > 0"),
}


@pytest.mark.parametrize("fault", PLANTED_IN_LINES)
def test_planted_faults_of_lines_are_noticed(fault: str, tmp_path: Path) -> None:
    before, after = PLANTED_IN_LINES[fault]

    def change(text: str) -> str:
        assert before in text, text
        return text.replace(before, after)

    limits = Limits(tensors=3, steps=3, elements=40)  # so that there are lines enough
    assert _departures(_liner(tmp_path), change, limits), f"{fault}: {before} became {after}"


PLANTED_IN_EVALUATIONS = {
    "another place": ("yield gradient(0, param)", "yield gradient(0, before)"),
    "the gradient of before": ("grad = yield", "_ = yield"),
}


@pytest.mark.parametrize("fault", PLANTED_IN_EVALUATIONS)
def test_planted_faults_of_evaluations_are_noticed(fault: str) -> None:
    before, after = PLANTED_IN_EVALUATIONS[fault]

    def change(text: str) -> str:
        assert before in text, text
        return text.replace(before, after)

    found = _departures(ROOT / "specs/extragradient.yaml", change)
    assert found, f"{fault}: {before} became {after}, and nothing was noticed"


def test_other_tiles_are_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(order, "TILE_ROWS", 32)
    limits = Limits(tensors=1, steps=1, elements=900)
    assert _departures(_liner(tmp_path), lambda text: text, limits)


def test_lines_are_known_to_the_bit(tmp_path: Path) -> None:
    tally = check_meaning(_liner(tmp_path), examples=6, limits=Limits(tensors=2, steps=1, elements=900))
    assert tally.total > 100
    assert tally.exact == tally.total


def _liner(folder: Path) -> Path:
    path = folder / "liner.yaml"
    path.write_text(LINER, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["LANES", "CHUNK"])
def test_another_order_is_noticed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Of sums that are long enough for it to show."""
    monkeypatch.setattr(order, name, 128 if name == "LANES" else 2048)
    path, limits = ROOT / "tests/support/specs/reductions.yaml", Limits(tensors=2, steps=1, elements=4500)
    assert _departures(path, lambda text: text, limits)


def test_long_sums_are_known_to_the_bit() -> None:
    path, limits = ROOT / "tests/support/specs/reductions.yaml", Limits(tensors=2, steps=1, elements=4500)
    tally = check_meaning(path, examples=8, limits=limits)
    assert tally.total > 1000
    assert tally.exact == tally.total


def test_a_departure_is_an_agreement_error_that_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(meaning._BINARY, "+", spans.subtract)
    with pytest.raises(AgreementError, match=r"step 1, w0, \w+.*isn't in") as caught:
        check_meaning(ROOT / "specs/adam.yaml", examples=20)
    assert caught.value.disagreement is not None


def test_a_rule_of_which_little_can_be_said_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "open.yaml"
    path.write_text(
        "name: open\nsummary: It hangs on the last bits.\nhyperparameters:\n  lr: {default: 0.1}\n"
        "update:\n  - param = where(exp(lr*t) > exp(t*lr), grad, 2)*lr\n",
        encoding="utf-8",
    )
    with pytest.raises(VerificationError, match="too close to call"):
        check_meaning(path, examples=30)
