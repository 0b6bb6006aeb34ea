"""Faults inside expressions of a kernel's text: operators, constants, order, grouping, contraction."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np

from solvergen.verify.mutations.c_tokens import PRECEDENCE, Tokens
from solvergen.verify.mutations.mutant import Mutant, at

Edit = tuple[str, int, int, str]
"""Kind, first and last token, and the text that takes their place."""

_OTHER = {
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "%": "/",
    "<<": ">>",
    ">>": "<<",
    "&": "|",
    "|": "&",
    "&&": "||",
    "||": "&&",
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
}
_COMPOUND = {"+=": "-=", "-=": "+=", "|=": "&="}
_SUMS = ("+", "-")
_ARITHMETIC = ("+", "-", "*", "/")


def operators(tokens: Tokens, i: int) -> Iterator[Edit]:
    """Another operator in its place; a sign or a negation left out; a step of two instead of one."""
    text = tokens[i].text
    if tokens.is_binary(i):
        yield "operator", i, i, _OTHER[text]
    elif text in _COMPOUND:
        yield "operator", i, i, _COMPOUND[text]
    elif text == "++":
        name = tokens[i + 1].text
        yield "operator", i, i + 1, f"{name} += 2"
    elif text in ("-", "!"):
        yield "operator", i, i, ""


def numbers(tokens: Tokens, i: int) -> Iterator[Edit]:
    """Another number: one less, or twice as much."""
    if tokens[i].kind == "number":
        yield "constant", i, i, _another(tokens[i].text)


def neighbours(tokens: Tokens, i: int) -> Iterator[Edit]:
    """The float32 above, and the constant as it is if it is kept in float32."""
    text = tokens[i].text
    if tokens[i].kind != "number" or not _is_float(text):
        return
    number = float(text.rstrip("fFlL"))
    nearest = np.float32(number)
    if number != 0:
        yield "ulp", i, i, repr(float(np.nextafter(nearest, np.float32(math.inf))))
    if float(nearest) != number:
        yield "ulp", i, i, repr(float(nearest))


def operands(tokens: Tokens, i: int) -> Iterator[Edit]:
    """The operands of what doesn't commute, exchanged."""
    if tokens.is_binary(i) and tokens[i].text in ("-", "/", "<", ">", "<=", ">="):
        first, last = tokens.left(i), tokens.right(i)
        left, right = tokens.span(first, i - 1), tokens.span(i + 1, last)
        if tokens[i].text in ("-", "/"):
            left = f"({left})" if left != tokens[first].text else left
        yield "operands", first, last, f"{right} {tokens[i].text} {left}"


def grouping(tokens: Tokens, i: int) -> Iterator[Edit]:
    """``a + b + c`` added from the right; parentheses left out."""
    if tokens.is_binary(i) and tokens[i].text in _ARITHMETIC:
        before = _last(tokens, tokens.left(i), i - 1, PRECEDENCE[tokens[i].text])
        if before is not None:
            last = tokens.right(i)
            yield "grouping", before + 1, last, f"({tokens.span(before + 1, last)})"
    elif tokens[i].text == "(" and tokens[i - 1].kind != "name" and not tokens.is_cast(i):
        closing = tokens.partner[i]
        near = (i > 0 and tokens.is_binary(i - 1)) or tokens.is_binary(closing + 1)
        if near and any(_last(tokens, i + 1, closing - 1, level) is not None for level in (9, 10)):
            yield "grouping", i, closing, tokens.span(i + 1, closing - 1)


def contraction(tokens: Tokens, i: int) -> Iterator[Edit]:
    """A product and a sum in one operation, rounded once."""
    if not tokens.is_binary(i) or tokens[i].text not in _SUMS:
        return
    first, last = tokens.left(i), tokens.right(i)
    minus = "-" if tokens[i].text == "-" else ""
    star = _product(tokens, i + 1, last)
    if star is not None:
        a, b = tokens.span(i + 1, star - 1), tokens.span(star + 1, last)
        yield "contraction", first, last, _fused(f"{minus}({a})", b, tokens.span(first, i - 1))
    star = _product(tokens, first, i - 1)
    if star is not None:
        a, b = tokens.span(first, star - 1), tokens.span(star + 1, i - 1)
        yield "contraction", first, last, _fused(a, b, f"{minus}({tokens.span(i + 1, last)})")


def flush(tokens: Tokens, i: int) -> Iterator[Edit]:
    """A result of arithmetic made zero where it is subnormal, in the element's type."""
    if not tokens.is_binary(i) or tokens[i].text not in _ARITHMETIC:
        return
    first, last = tokens.left(i), tokens.right(i)
    if tokens.is_binary(first - 1) or tokens.is_binary(last + 1):
        return  # part of a larger expression
    result = tokens.span(first, last)
    least = "(sizeof(sg_real) == 8 ? 2.2250738585072014e-308 : 1.1754943508222875e-38)"
    near = f"({result}) < {least} && ({result}) > -{least}"
    yield "flush", first, last, f"({near} ? ({result}) * (sg_real)0.0 : ({result}))"


def branches(tokens: Tokens, i: int) -> Iterator[Edit]:
    """Both branches exchanged."""
    if tokens[i].text != "?":
        return
    colon = i + 1
    while tokens[colon].text != ":":
        colon = tokens.partner.get(colon, colon) + 1
    last = colon
    while tokens[last + 1].text not in (",", ";", ")", "]", "}", ":"):
        last = tokens.partner.get(last + 1, last + 1)
    yes, no = tokens.span(i + 1, colon - 1), tokens.span(colon + 1, last)
    yield "branch", i + 1, last, f"{no} : ({yes})"


def calls(tokens: Tokens, i: int) -> Iterator[Edit]:
    """A function of the language left out, or its arguments exchanged."""
    name = tokens[i].text
    if not name.startswith("sg_") or tokens[i + 1].text != "(" or "load" in name or "store" in name:
        return
    closing = tokens.partner[i + 1]
    arguments = [tokens.span(first, last) for first, last in tokens.arguments(i + 1)]
    if len(arguments) == 1:
        yield "call", i, closing, f"({arguments[0]})"
    elif len(arguments) > 1:
        *others, a, b = arguments
        yield "call", i, closing, f"{name}({', '.join([*others, b, a])})"


def mutant(tokens: Tokens, file: str, kind: str, edit: Edit) -> Mutant:
    """The edit as a mutant of ``file``, called ``kind``."""
    _, first, last, after = edit
    return at(tokens.text, file, kind, tokens[first].start, tokens[last].end, after)


def _last(tokens: Tokens, first: int, last: int, level: int) -> int | None:
    """The last operator of a precedence between two tokens, outside of brackets."""
    found, i = None, first
    while i <= last:
        if tokens.is_binary(i) and PRECEDENCE[tokens[i].text] == level:
            found = i
        i = tokens.partner.get(i, i) + 1
    return found


def _product(tokens: Tokens, first: int, last: int) -> int | None:
    """The ``*`` that makes all between two tokens one product; None if it is something else."""
    while tokens[first].text == "(" and tokens.partner[first] == last:
        first, last = first + 1, last - 1
    if _last(tokens, first, last, PRECEDENCE["+"]) is not None:
        return None
    found = _last(tokens, first, last, PRECEDENCE["*"])
    return found if found is not None and tokens[found].text == "*" else None


def _fused(a: str, b: str, c: str) -> str:
    """``a*b + c`` rounded once, in the element's type. ``fma`` is C's and CUDA's."""
    wide = f"__builtin_fma({a}, {b}, {c})"
    return f"(sg_real)(sizeof(sg_real) == 8 ? {wide} : {wide.replace('fma', 'fmaf', 1)})"


def _is_float(text: str) -> bool:
    return not text.startswith("0x") and re.search(r"[.eE]", text) is not None


def _another(text: str) -> str:
    """A number that isn't the one in ``text``."""
    power = re.fullmatch(r"(0x1p)(-?\d+)(f?)", text)
    if power is not None:
        return f"{power.group(1)}{int(power.group(2)) + 1}{power.group(3)}"
    if _is_float(text):
        digits = text.rstrip("f")
        return repr(2 * float(digits) or 1.0) + text[len(digits) :]
    digits = text.rstrip("uUlL")
    number, suffix = int(digits, 0), text[len(digits) :]
    other = number - 1 if number else 1
    return (hex(other) if digits.startswith("0x") else str(other)) + suffix
