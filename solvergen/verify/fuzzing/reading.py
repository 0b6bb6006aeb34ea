"""Text of the language as terms, by a reader of the fuzzer's own: precedence climbing, over the table in
docs/language.md. What the compile half takes from Python's grammar is written out here.
"""

from __future__ import annotations

import re

from solvergen.verify.fuzzing.terms import (
    AXES,
    COMPARISONS,
    FUNCTIONS,
    LINES,
    OVER_ALL,
    REDUCTIONS,
    Term,
    call,
    name,
)

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z]\w*)"
    r"|(?P<operator>\*\*|//|<=|>=|==|!=|[-+*/%<>(),=]))",
    re.ASCII,
)
_WORDS = ("and", "or", "not", "if", "else")
_SUMS, _PRODUCTS = ("+", "-"), ("*", "/", "//", "%")


def read(text: str) -> Term:
    """The expression in ``text``. Raises ValueError where it isn't one."""
    return _Reader(text).whole()


def read_equation(text: str) -> tuple[str, Term]:
    """``target = expression``. Raises ValueError where it isn't that."""
    target, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"no equation: {text}")
    return target.strip(), read(value)


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        position = 0
        text = text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                raise ValueError(f"no token at {text[position : position + 20]!r}")
            self.tokens.append((match.lastgroup, match[match.lastgroup]))
            position = match.end()
        self.tokens.append(("end", ""))
        self.at = 0

    @property
    def next(self) -> str:
        return self.tokens[self.at][1]

    def take(self, expected: str | None = None) -> str:
        text = self.next
        if expected is not None and text != expected:
            raise ValueError(f"{expected!r} expected, not {text!r}")
        self.at += 1
        return text

    def whole(self) -> Term:
        term = self.choice()
        if self.tokens[self.at][0] != "end":
            raise ValueError(f"{self.next!r} after the expression")
        return term

    def choice(self) -> Term:
        first = self.any_of()
        if self.next != "if":
            return first
        self.take("if")
        condition = self.any_of()
        self.take("else")
        return call("where", condition, first, self.choice())

    def any_of(self) -> Term:
        term = self.all_of()
        while self.next == "or":
            self.take()
            term = call("or", term, self.all_of())
        return term

    def all_of(self) -> Term:
        term = self.negation()
        while self.next == "and":
            self.take()
            term = call("and", term, self.negation())
        return term

    def negation(self) -> Term:
        if self.next == "not":
            self.take()
            return call("not", self.negation())
        return self.comparison()

    def comparison(self) -> Term:
        left = self.binary(_SUMS)
        result: Term | None = None
        while self.next in COMPARISONS:
            op = self.take()
            right = self.binary(_SUMS)
            link = call(op, left, right)
            result = link if result is None else call("and", result, link)
            left = right
        return left if result is None else result

    def binary(self, operators: tuple[str, ...]) -> Term:
        def operand() -> Term:
            return self.binary(_PRODUCTS) if operators is _SUMS else self.sign()

        term = operand()
        while self.next in operators:
            op = self.take()
            term = call(op, term, operand())
        return term

    def sign(self) -> Term:
        if self.next == "-":
            self.take()
            return call("neg", self.sign())
        if self.next == "+":
            self.take()
            return self.sign()
        return self.power()

    def power(self) -> Term:
        base = self.atom()
        if self.next != "**":
            return base
        self.take()
        return call("**", base, self.sign())

    def atom(self) -> Term:
        kind, text = self.tokens[self.at]
        self.at += 1
        if text == "(":
            term = self.choice()
            self.take(")")
            return term
        if kind == "number":
            return Term("number", text=text)
        if kind != "name" or text in _WORDS:
            raise ValueError(f"an operand expected, not {text!r}")
        if self.next != "(":
            return Term("name", text=text)
        self.take("(")
        args = [self.choice()]
        while self.next == ",":
            self.take()
            args.append(self.choice())
        self.take(")")
        if text == "ndim" and args == [name("param")]:
            return name(AXES)
        over = ""
        if text in REDUCTIONS and args[-1].op == "name" and args[-1].text in (OVER_ALL, *LINES):
            over = args[-1].text
            args = args[:-1]
        if {**FUNCTIONS, **REDUCTIONS}.get(text) != len(args):
            raise ValueError(f"{text} doesn't take {len(args)} arguments")
        return Term(text, tuple(args), over)
