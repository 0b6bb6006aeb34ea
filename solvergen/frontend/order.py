"""Whether tokens follow one another as in an expression, looked at before Python's parser sees the text.

Operands and operators must alternate, parentheses match and not nest too deep, every ``if`` have its
``else``. What passes is short, shallow and of Python's grammar, so that the parser's own limits, and its
messages, which change from version to version, never come into play.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from solvergen.frontend.findings import Findings
from solvergen.frontend.tokens import Token

if TYPE_CHECKING:
    from solvergen.spec.model import Text

MAX_PARENTHESES = 50
"""How deep parentheses may nest."""
MAX_SIGNS = 8
"""Prefix operators (``-``, ``+``, ``not``) in a row."""

_PREFIX = frozenset({"-", "+", "not"})
_TIGHT = frozenset({"+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!="})
"""Operators that bind more tightly than ``not``."""
_BINARY = _TIGHT | {"and", "or"}

_SIMPLER = "name parts of it and compute them first"
_CONDITIONAL = "write `a if condition else b`"


def check_order(text: Text, tokens: tuple[Token, ...], findings: Findings) -> bool:
    """Whether ``tokens`` (at least one) make an expression; the first offence goes to ``findings``."""
    try:
        _Walk().over(tokens)
    except _Offence as offence:
        token = offence.token
        findings.add(offence.code, offence.message, text, token.start, token.end, hint=offence.hint)
        return False
    return True


class _Offence(Exception):
    def __init__(self, code: str, message: str, token: Token, hint: str) -> None:
        self.code, self.message, self.token, self.hint = code, message, token, hint


@dataclass
class _Frame:
    """An open parenthesis (None: the whole expression), and the ``if`` in it that waits for its ``else``."""

    opening: Token | None
    call: bool = False
    conditional: Token | None = None


class _Walk:
    """Goes over the tokens from left to right, in one of two moods: an operand must come, or has come."""

    def __init__(self) -> None:
        self.frames = [_Frame(None)]
        self.before: Token | None = None
        self.wants_operand = True
        self.signs = 0

    def over(self, tokens: tuple[Token, ...]) -> None:
        """Raise _Offence at the first token that can't stand where it does."""
        for index, token in enumerate(tokens):
            after = tokens[index + 1].text if index + 1 < len(tokens) else ""
            if token.text == "=":
                self._equals(token)
            elif self.wants_operand:
                self._operand(token, after)
            else:
                self._operator(token, after)
            self.before = token
        assert self.before is not None
        if self.wants_operand:
            raise _Offence(
                "SG052", f"something is missing after `{self.before.text}`", self.before, "complete it"
            )
        frame = self.frames[-1]
        self._no_open_conditional(frame)
        if frame.opening is not None:
            raise _Offence("SG051", "this `(` is never closed", frame.opening, "add its `)`")

    def _equals(self, token: Token) -> None:
        if self.frames[-1].call:
            raise _Offence(
                "SG055", "arguments go by position, not by name", token, "leave out the name and `=`"
            )
        raise _Offence("SG053", "an `=` inside an expression", token, "equal is written `==`")

    def _operand(self, token: Token, after: str) -> None:
        if token.kind in ("number", "name"):
            self.wants_operand, self.signs = False, 0
        elif token.text == "(":
            if after == ")":
                raise _Offence("SG052", "nothing between the parentheses", token, "write an expression there")
            self._open(token, call=False)
        elif token.text in _PREFIX:
            self._prefix(token)
        else:
            self._missing(token)

    def _prefix(self, token: Token) -> None:
        if token.text == "not" and self.before is not None and self.before.text in _TIGHT:
            message = f"`not` right after `{self.before.text}`"
            raise _Offence("SG052", message, token, "put it in parentheses: (not ...)")
        self.signs += 1
        if self.signs > MAX_SIGNS:
            raise _Offence("SG042", f"more than {MAX_SIGNS} signs in a row", token, "one is enough")

    def _open(self, token: Token, *, call: bool) -> None:
        self.frames.append(_Frame(token, call))
        self.wants_operand, self.signs = True, 0
        if len(self.frames) - 1 > MAX_PARENTHESES:
            raise _Offence("SG042", f"parentheses nest more than {MAX_PARENTHESES} deep", token, _SIMPLER)

    def _missing(self, token: Token) -> None:
        before, frame = self.before, self.frames[-1]
        if frame.call and token.text in ("*", "**") and before is not None and before.text in ("(", ","):
            message = f"`{token.text}` before an argument"
            raise _Offence("SG055", message, token, "write the arguments one by one")
        if token.text == ")" and frame.opening is None:
            raise _Offence("SG051", "this `)` closes nothing", token, "leave it out, or add its `(`")
        if before is None or before.text in ("(", ","):
            raise _Offence("SG052", f"something is missing before `{token.text}`", token, "complete it")
        message = f"something is missing between `{before.text}` and `{token.text}`"
        raise _Offence("SG052", message, token, "complete it")

    def _operator(self, token: Token, after: str) -> None:
        frame, before = self.frames[-1], self.before
        assert before is not None
        if token.text in _BINARY:
            self.wants_operand = True
        elif token.text == "if":
            if frame.conditional is not None:
                message, hint = "an `if` inside the condition of another", "put the inner one in parentheses"
                raise _Offence("SG052", message, token, hint)
            frame.conditional, self.wants_operand = token, True
        elif token.text == "else":
            if frame.conditional is None:
                raise _Offence("SG052", "an `else` without its `if`", token, _CONDITIONAL)
            frame.conditional, self.wants_operand = None, True
        elif token.text in (",", ")"):
            self._no_open_conditional(frame)
            self._separator(token, frame)
        elif token.text == "(" and before.kind == "name":
            if after == ")":
                message = f"`{before.text}` is called without arguments"
                raise _Offence("SG055", message, before, "write the arguments between the parentheses")
            self._open(token, call=True)
        else:
            message = f"an operator is missing between `{before.text}` and `{token.text}`"
            raise _Offence("SG047", message, token, "a product is written with `*`")

    def _separator(self, token: Token, frame: _Frame) -> None:
        if token.text == ",":
            if not frame.call:
                hint = "an equation has one value; numbers have a point: 0.5"
                raise _Offence("SG057", "a comma outside a function's arguments", token, hint)
            self.wants_operand = True
        elif frame.opening is None:
            raise _Offence("SG051", "this `)` closes nothing", token, "leave it out, or add its `(`")
        else:
            self.frames.pop()

    def _no_open_conditional(self, frame: _Frame) -> None:
        if frame.conditional is not None:
            raise _Offence("SG052", "an `if` without its `else`", frame.conditional, _CONDITIONAL)
