"""Functions that the language defines itself, each once, as equations over simpler operations.

Every target prints them from here, so ``exp`` is the same sequence of exactly rounded operations in C,
CUDA and NumPy; no library's own ``exp`` is ever called. Names on the left are local. Besides the
language's operations the bodies use three that look at a number's bits:

    power_of_two(k)   2**k for a whole k from -1022 to 1023 (in float32 from -126 to 127)
    exponent(x)       the exponent e of a normal x, abs(x) = significand(x) * 2**e
    significand(x)    the significand of a normal x, from 1 up to below 2

``min max sign clip`` are evaluated in the type of their arguments. The bodies of the others are sequences
of float64 operations; ``exp log tanh cbrt`` have another one of float32 operations for float32 elements
(``narrow``), and of these ``pow`` is computed in float64 (they are widened, which is exact, and the result
rounded once). Accuracy in float64, as the tests measure it against mpmath: exp, log and cbrt within 1 ulp,
tanh within 3 ulp; pow(x, y) within 2 + 2*abs(y*log(x)) units of 2**-53, relative.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from solvergen.ir.narrow import NARROW, to_float32
from solvergen.ir.nodes import Binary, Call, Compare, Expression, Logic, Name, Number, Round, Unary
from solvergen.ir.types import ELEMENT_BOOL, ELEMENT_REAL, SCALAR_REAL, Type

BIT_FUNCTIONS = ("power_of_two", "exponent", "significand")


Body = tuple[tuple[str, Expression], ...]
"""Local names in order with what they are; the last is the result."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A function. ``wide``: ``body`` is of float64, whatever the arguments are.

    ``narrow`` is the body for float32 elements, None if they go through float64; its numbers are of float32.
    """

    name: str
    parameters: tuple[str, ...]
    body: Body
    wide: bool
    narrow: Body | None = None

    @property
    def result(self) -> str:
        """The local name that holds the result."""
        return self.body[-1][0]


def _series(variable: str, coefficients: list[float]) -> str:
    """Horner's form of sum(c[i] * variable**i)."""
    text = repr(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        text = f"({coefficient!r} + {variable}*{text})"
    return text


# ln 2 in two parts; the first has 32 trailing zero bits, so that whole multiples of it are exact.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_EXP_TERMS = [1 / math.factorial(n) for n in range(2, 14)]
_LOG_TERMS = [2 / (2 * n + 3) for n in range(11)]
_INVERSE_CBRT_TERMS = [1.5378, -0.8013, 0.3118, -0.0486]  # near the best cubic from 1 to 2

_SOURCES: tuple[tuple[str, tuple[str, ...], bool, str], ...] = (
    ("min", ("a", "b"), False, "result = where(a < b or a != a, a, b)"),
    ("max", ("a", "b"), False, "result = where(a > b or a != a, a, b)"),
    ("sign", ("x",), False, "result = where(x > 0, 1, where(x < 0, -1, x))"),
    # min(max(x, low), high), with what doesn't depend on x apart: else gcc 12 makes branches of it, and a
    # loop with branches is not vectorised.
    (
        "clip",
        ("x", "low", "high"),
        False,
        """
        inside = min(x, high)
        outside = min(low, high)
        result = where(x > low or x != x, inside, outside)
        """,
    ),
    (
        "exp",
        ("x",),
        True,
        f"""
        bounded = where(x > -750, where(x < 750, x, 750), -750)
        k = floor(bounded*{1 / math.log(2)!r} + 0.5)
        r = (bounded - k*{_LN2_HIGH!r}) - k*{_LN2_LOW!r}
        series = 1 + (r + r*r*{_series("r", _EXP_TERMS)})
        half_k = floor(k*0.5)
        scaled = series*power_of_two(half_k)*power_of_two(k - half_k)
        result = where(x == x, scaled, x)
        """,
    ),
    (
        "log",
        ("x",),
        True,
        f"""
        tiny = x < {2.0**-1022!r}
        y = where(tiny, x*{2.0**54!r}, x)
        s0 = significand(y)
        large = s0 > {math.sqrt(2)!r}
        e = exponent(y) - where(tiny, 54, 0) + where(large, 1, 0)
        f = where(large, 0.5*s0, s0) - 1
        half_square = 0.5*f*f
        s = f/(2 + f)
        z = s*s
        rest = z*{_series("z", _LOG_TERMS)}
        finite = e*{_LN2_HIGH!r} - ((half_square - (s*(half_square + rest) + e*{_LN2_LOW!r})) - f)
        invalid = (x - x)/(x - x)
        positive = where(x - x == 0, finite, x)
        result = where(x > 0, positive, where(x == 0, -1/(x*x), where(x < 0, invalid, x)))
        """,
    ),
    (
        "tanh",
        ("x",),
        True,
        f"""
        size = abs(x)
        y = 2*where(size < 22, size, 22)
        small = y + y*y*{_series("y", _EXP_TERMS)}
        exp_minus_one = where(y < {math.log(2) / 2!r}, small, exp(y) - 1)
        positive = exp_minus_one/(exp_minus_one + 2)
        result = where(x > 0, positive, where(x < 0, -positive, x))
        """,
    ),
    # Of m, the significand times 1, 2 or 4, so that the rest of the exponent is a multiple of 3, the root is
    # from 1 up to 2. A cubic gives its inverse to 3e-4, a step of third order to 1e-10. The root that follows
    # is rounded to 22 binary places, so that its square is exact, and corrected by what its cube leaves of m:
    # root = rough*(1 - left/m)**(-1/3). There is no division, and roots of cubes are exact.
    (
        "cbrt",
        ("x",),
        True,
        f"""
        size = abs(x)
        tiny = size < {2.0**-1022!r}
        y = where(tiny, size*{2.0**54!r}, size)
        e = exponent(y)
        third = floor((e + 0.5)*{1 / 3!r})
        rest = e - 3*third
        s = significand(y)
        m = s*where(rest == 0, 1, where(rest == 1, 2, 4))
        guess = {_series("s", _INVERSE_CBRT_TERMS)}*where(rest == 0, 1, where(rest == 1, 0.7937, 0.62996))
        wrong = 1 - m*(guess*guess*guess)
        inverse = guess + guess*wrong*({1 / 3!r} + wrong*{2 / 9!r})
        square = inverse*inverse
        rough = (m*square + {1.5 * 2.0**30!r}) - {1.5 * 2.0**30!r}
        left = m - rough*rough*rough
        part = left*(square*inverse)*{1 / 3!r}
        root = rough + rough*(part + 2*part*part)
        scaled = root*power_of_two(third - where(tiny, 18, 0))
        with_sign = where(x > 0, scaled, where(x < 0, -scaled, x))
        result = where(x - x == 0, with_sign, x)
        """,
    ),
    (
        "pow",
        ("x", "y"),
        True,
        """
        size = abs(x)
        whole = floor(y) == y
        odd = whole and floor(0.5*y) != 0.5*y
        negative = x < 0 or x == 0 and 1/x < 0
        magnitude = where(size == 1, 1, exp(y*log(size)))
        with_sign = where(negative and odd, -magnitude, magnitude)
        undefined = x < 0 and x - x == 0 and not whole
        invalid = (x - x)/(x - x)
        number = where(undefined, invalid, with_sign)
        known = where(x == x, where(y == y, number, y), x)
        result = where(y == 0 or x == 1, 1, known)
        """,
    ),
)


@cache
def library() -> MappingProxyType[str, Definition]:
    """The functions by name, each after those that it calls."""
    definitions = {}
    for name, parameters, wide, source in _SOURCES:
        narrow = NARROW.get(name)
        definitions[name] = Definition(
            name,
            parameters,
            _body(parameters, source, narrow=False),
            wide,
            None if narrow is None else _body(parameters, narrow, narrow=True),
        )
    return MappingProxyType(definitions)


def _body(parameters: tuple[str, ...], source: str, *, narrow: bool) -> Body:
    kinds = dict.fromkeys(parameters, ELEMENT_REAL)
    body = []
    for statement in ast.parse("\n".join(line.strip() for line in source.strip().splitlines())).body:
        assert isinstance(statement, ast.Assign)
        assert isinstance(statement.targets[0], ast.Name)
        value = _expression(statement.value, kinds)
        assert value.type is not None
        kinds[statement.targets[0].id] = value.type
        body.append((statement.targets[0].id, _narrowed(value) if narrow else value))
    return tuple(body)


def _narrowed(e: Expression) -> Expression:
    """``e`` with its numbers in float32."""
    if isinstance(e, Number):
        return Round(Number(to_float32(e.value), e.integral, type=SCALAR_REAL), type=ELEMENT_REAL)
    return e.with_operands(tuple(_narrowed(operand) for operand in e.operands))


def _expression(node: ast.expr, kinds: Mapping[str, Type]) -> Expression:
    """The IR of an expression of ours; the texts are trusted and need no diagnostics."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return Number(float(value), isinstance(value, int), type=SCALAR_REAL)
        case ast.Name():
            return Name(node.id, type=kinds[node.id])
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return Number(-float(value), isinstance(value, int), type=SCALAR_REAL)
        case ast.UnaryOp(op=ast.USub()):
            return Unary("-", _expression(node.operand, kinds), type=ELEMENT_REAL)
        case ast.UnaryOp(op=ast.Not()):
            return Unary("not", _expression(node.operand, kinds), type=ELEMENT_BOOL)
        case ast.BinOp():
            op = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}[type(node.op)]
            return Binary(
                op, _expression(node.left, kinds), _expression(node.right, kinds), type=ELEMENT_REAL
            )
        case ast.BoolOp():
            op = "and" if isinstance(node.op, ast.And) else "or"
            result = _expression(node.values[0], kinds)
            for operand in node.values[1:]:
                result = Logic(op, result, _expression(operand, kinds), type=ELEMENT_BOOL)
            return result
        case ast.Compare():
            names = {ast.Lt: "<", ast.Gt: ">", ast.Eq: "==", ast.NotEq: "!="}
            left, right = _expression(node.left, kinds), _expression(node.comparators[0], kinds)
            return Compare(names[type(node.ops[0])], left, right, type=ELEMENT_BOOL)
        case ast.Call(func=ast.Name(id=name)):
            return Call(name, tuple(_expression(a, kinds) for a in node.args), type=ELEMENT_REAL)
    raise TypeError(f"the library's text holds {ast.dump(node)}")
