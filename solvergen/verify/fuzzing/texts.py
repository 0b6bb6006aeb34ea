"""Drawn expressions as text of the language, in many spellings that mean the same."""

from __future__ import annotations

from solvergen.verify.fuzzing.style import PLAIN, Style
from solvergen.verify.fuzzing.terms import ARITHMETIC, AXES, COMPARISONS, FUNCTIONS, REDUCTIONS, Term

_CHOICE, _OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(10)
_LEVELS = {"or": _OR, "and": _AND, "+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT}
_LEVELS |= {"//": _PRODUCT, "%": _PRODUCT}


def written(term: Term, style: Style = PLAIN, *, spelling: bool = True) -> str:
    """``term`` as text. ``spelling``: may the style choose other words, and parentheses that aren't needed,
    or blanks alone?"""
    return _Writer(style, style if spelling else PLAIN).text(term)[0]


class _Writer:
    def __init__(self, blanks: Style, style: Style) -> None:
        self.blanks = blanks
        self.style = style

    def text(self, term: Term) -> tuple[str, int]:
        """The text, and how tightly its outermost operation binds."""
        text, level = self.bare(term)
        if self.style.one_in(15):
            return f"({self.blank()}{text}{self.blank()})", _ATOM
        arithmetic = term.op in ("number", "neg", *ARITHMETIC, *FUNCTIONS, *REDUCTIONS)
        if level >= _SIGN and arithmetic and self.style.one_in(40):
            return f"+{self.blank()}{text}", _SIGN
        return text, level

    def bare(self, term: Term) -> tuple[str, int]:
        op, args = term.op, term.args
        if op == "name" and term.text == AXES:
            return f"ndim({self.blank()}param{self.blank()})", _ATOM
        if op in ("number", "name"):
            return term.text, _ATOM
        if op == "neg":
            return f"-{self.blank()}{self.at_least(args[0], _SIGN)}", _SIGN
        if op == "not":
            return f"not {self.at_least(args[0], _NOT)}", _NOT
        if op == "**":
            left, right = self.at_least(args[0], _ATOM), self.at_least(args[1], _SIGN)
            return f"{left}{self.blank()}**{self.blank()}{right}", _POWER
        if op in COMPARISONS:
            left, right = self.at_least(args[0], _SUM), self.at_least(args[1], _SUM)
            return f"{left}{self.spaced(op)}{right}", _COMPARE
        if op == "and" and self.style.one_in(2):
            chained = self.chain(args[0], args[1])
            if chained is not None:
                return chained, _COMPARE
        if op in ("and", "or"):
            left, right = self.at_least(args[0], _LEVELS[op]), self.at_least(args[1], _LEVELS[op] + 1)
            return f"{left} {op} {right}", _LEVELS[op]
        if op == "where" and self.style.one_in(3):
            condition, first, second = args
            first_text, condition_text = self.at_least(first, _OR), self.at_least(condition, _OR)
            return f"{first_text} if {condition_text} else {self.at_least(second, _CHOICE)}", _CHOICE
        if op in FUNCTIONS or op in REDUCTIONS:
            comma = self.blanks.choose((", ", ",", " , ", ",  "))
            inside = comma.join([*(self.text(arg)[0] for arg in args), *([term.text] if term.text else [])])
            return f"{op}{self.blanks.choose(('', '', '', ' '))}({inside})", _ATOM
        left, right = self.at_least(args[0], _LEVELS[op]), self.at_least(args[1], _LEVELS[op] + 1)
        return f"{left}{self.spaced(op)}{right}", _LEVELS[op]

    def chain(self, first: Term, second: Term) -> str | None:
        """``a < b and b < c`` as ``a < b < c``; None where these aren't of that form."""
        if first.op in COMPARISONS and second.op in COMPARISONS and first.args[1] == second.args[0]:
            parts = [self.at_least(part, _SUM) for part in (*first.args, second.args[1])]
            return f"{parts[0]}{self.spaced(first.op)}{parts[1]}{self.spaced(second.op)}{parts[2]}"
        return None

    def at_least(self, term: Term, level: int) -> str:
        text, own = self.text(term)
        return text if own >= level else f"({text})"

    def blank(self) -> str:
        return self.blanks.choose(("", "", "", " ", "  "))

    def spaced(self, op: str) -> str:
        return f"{self.blanks.choose((' ', ' ', '', '  '))}{op}{self.blanks.choose((' ', ' ', '', '  '))}"
