"""The tokens of a kernel's text, and which of them are operators between two operands.

Enough of C and CUDA for what the templates print, no more: declarations, expressions, function-like
macros and conditional directives.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<string>"[^"\n]*")
    | (?P<number>(?:0[xX][0-9a-fA-F]+(?:[pP][-+]?\d+)?|\d+\.?\d*(?:[eE][-+]?\d+)?)[uUlLfF]*)
    | (?P<name>[A-Za-z_]\w*)
    | (?P<sign><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\+=|-=|\|=|\*=|/=|[-+*/%<>=!&|^~?:;,.(){}\[\]\#])
    """,
    re.VERBOSE | re.DOTALL,
)

PRECEDENCE = {
    "||": 1,
    "&&": 2,
    "|": 3,
    "^": 4,
    "&": 5,
    "==": 6,
    "!=": 6,
    "<": 7,
    "<=": 7,
    ">": 7,
    ">=": 7,
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "%": 10,
}
"""Operators between two operands; those with larger numbers bind closer. All group from the left."""

TYPES = frozenset(
    (
        *("void", "auto", "char", "short", "int", "long", "unsigned", "float", "double", "const", "restrict"),
        *("struct", "template", "class", "float4", "double2", "uint4"),
        *("int32_t", "uint16_t", "uint32_t", "int64_t", "uint64_t", "sg_u32", "sg_u64", "sg_i64"),
        *("sg_real", "sg_state", "sg_param", "sg_grad", "sg_half", "sg_type", "sg_bf16", "sg_f16"),
        *("sg_chunk", "sg_job", "sg_chunk_buffers", "sg_scalars"),
    )
)
_WORDS = frozenset(("return", "else", "if", "for", "while", "constexpr", "typedef", "sizeof"))
_TEMPLATES = re.compile(
    r"template|reinterpret_cast|const_cast|sg_global|sg_taken|sg_halve|sg_row_total|"
    r"sg_(?:update|operands|walk)(?:_\d+)?"
)
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_ENDS = frozenset((",", ";", "=", "?", ":", "return", "+=", "-=", "|="))


@dataclass(frozen=True, slots=True)
class Token:
    """``kind``: number, name, sign or string. ``function``: the one in whose body it stands, empty outside.
    ``guarded``: inside an ``#if SG_OPTION_...``."""

    kind: str
    text: str
    start: int
    end: int
    function: str
    guarded: bool


class Tokens(Sequence[Token]):
    """All tokens of a text but comments and directives, with their brackets matched."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = _placed(text)
        self.partner = self._brackets()
        self._binary = frozenset(i for i in range(len(self)) if self._is_binary(i))

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._tokens[index]

    def is_binary(self, index: int) -> bool:
        """Whether the token is an operator between two operands."""
        return index in self._binary

    def left(self, index: int) -> int:
        """The first token of the operand on the left of a binary operator."""
        level = PRECEDENCE[self[index].text]
        at = index
        while at and self[at - 1].text not in _PAIRS and not self._ends(at - 1, level - 1):
            at = self.partner.get(at - 1, at - 1)
        return at

    def right(self, index: int) -> int:
        """The last token of the operand on the right of a binary operator."""
        level = PRECEDENCE[self[index].text]
        at = index
        while self[at + 1].text not in _PAIRS.values() and not self._ends(at + 1, level):
            at = self.partner.get(at + 1, at + 1)
        return at

    def arguments(self, opening: int) -> list[tuple[int, int]]:
        """First and last token of each argument between an opening bracket and its partner."""
        found, first, at = [], opening + 1, opening + 1
        closing = self.partner[opening]
        while at < closing:
            if self[at].text == ",":
                found.append((first, at - 1))
                first = at + 1
            at = self.partner.get(at, at) + 1
        return [*found, (first, closing - 1)] if first < closing else found

    def span(self, first: int, last: int) -> str:
        """The text from one token to another."""
        return self.text[self[first].start : self[last].end]

    def is_cast(self, opening: int) -> bool:
        """Whether a parenthesis holds a type and nothing else."""
        inside = self._tokens[opening + 1 : self.partner[opening]]
        return bool(inside) and all(t.text in TYPES or t.text == "*" for t in inside)

    def _ends(self, index: int, level: int) -> bool:
        """Whether an operand ends before this token: anything that binds no closer than ``level``."""
        text = self[index].text
        return text in _ENDS or (index in self._binary and PRECEDENCE[text] <= level)

    def _is_binary(self, index: int) -> bool:
        token = self[index]
        if token.text not in PRECEDENCE or index in self._angles:
            return False
        before, after = self[index - 1], self[index + 1]
        operand = before.kind == "number" or before.text == "]" or before.kind == "name"
        if before.text == ")":
            operand = not self.is_cast(self.partner[index - 1])
        return (
            operand
            and before.text not in TYPES | _WORDS
            and after.text not in (")", ",", "const", "restrict")
        )

    def _brackets(self) -> dict[int, int]:
        partner: dict[int, int] = {}
        open_: list[int] = []
        self._angles: set[int] = set()
        for i, token in enumerate(self._tokens):
            if token.text in _PAIRS:
                open_.append(i)
            elif open_ and token.text == _PAIRS.get(self._tokens[open_[-1]].text):
                first = open_.pop()
                partner[first], partner[i] = i, first
            elif token.text == "<" and i and _TEMPLATES.fullmatch(self._tokens[i - 1].text):
                closing = next(k for k in range(i, len(self._tokens)) if self._tokens[k].text == ">")
                self._angles |= {i, closing}
        return partner


_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(\w+)((?:\\\n|[^\n])*)")


def _placed(text: str) -> list[Token]:
    """The tokens, each with the function and the guard that it stands in."""
    found: list[Token] = []
    position, braces, parentheses, function, candidate = 0, 0, 0, "", ""
    guards: list[bool] = []
    while position < len(text):
        at_line_start = position == 0 or text[position - 1] == "\n"
        directive = _DIRECTIVE.match(text, position) if at_line_start else None
        if directive is not None:
            _track(directive.group(1), directive.group(2), guards)
            position = directive.end()
            continue
        match = _TOKEN.match(text, position)
        assert match is not None, f"no token at {text[position : position + 40]!r}"
        kind, piece = str(match.lastgroup), match.group()
        position = match.end()
        if kind in ("space", "comment"):
            continue
        if piece == "(" and braces == parentheses == 0 and found and found[-1].text != "__attribute__":
            candidate = found[-1].text
        elif piece == "{" and braces == 0:
            function = candidate
        elif piece == ";" and braces == 0:
            candidate = ""
        found.append(Token(kind, piece, match.start(), match.end(), function, any(guards)))
        parentheses += (piece == "(") - (piece == ")")
        braces += (piece == "{") - (piece == "}")
        if piece == "}" and braces == 0:
            function = candidate = ""
    return found


def _track(word: str, condition: str, guards: list[bool]) -> None:
    """Keep account of the conditional directives that are open."""
    if word in ("if", "ifdef", "ifndef"):
        guards.append("SG_OPTION_" in condition)
    elif word == "endif":
        guards.pop()
