"""Which lines of a kernel's text are compiled under given macros."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping

_DIRECTIVE = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)")
_TOKEN = re.compile(r"\s*(defined|\w+|==|!=|<=|>=|&&|\|\||[<>!()])")
_LEVELS: tuple[Mapping[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: int(bool(a or b))},
    {"&&": lambda a, b: int(bool(a and b))},
    {"==": operator.eq, "!=": operator.ne},
    {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
)


def active_lines(text: str, defines: Mapping[str, int]) -> frozenset[int]:
    """Numbers of the lines that take part, from 1. A conditional directive does if what is around it does."""
    active, found = [True], set()
    taken = [True]
    for number, line in enumerate(text.splitlines(), start=1):
        match = _DIRECTIVE.match(line)
        if match is None:
            if active[-1]:
                found.add(number)
            continue
        word, condition = match.group(1), match.group(2).partition("/*")[0].strip()
        if word in ("if", "ifdef", "ifndef"):
            if active[-1]:
                found.add(number)
            holds = _holds(word, condition, defines)
            active.append(active[-1] and holds)
            taken.append(holds)
            continue
        if active[-2]:
            found.add(number)
        if word == "endif":
            active.pop()
            taken.pop()
        else:
            holds = not taken[-1] and (word == "else" or _holds("if", condition, defines))
            active[-1] = active[-2] and holds
            taken[-1] = taken[-1] or holds
    return frozenset(found)


def is_condition(line: str) -> bool:
    """Is it a directive that says which lines take part?"""
    return _DIRECTIVE.match(line) is not None


def _holds(word: str, condition: str, defines: Mapping[str, int]) -> bool:
    if word != "if":
        return (condition in defines) == (word == "ifdef")
    return bool(_Reader(condition, defines).whole())


class _Reader:
    """Reads a condition from left to right."""

    def __init__(self, condition: str, defines: Mapping[str, int]) -> None:
        self._tokens: list[str] = _TOKEN.findall(condition)
        assert "".join(self._tokens) == re.sub(r"\s", "", condition), f"can't read {condition!r}"
        self._defines = defines

    def whole(self) -> int:
        value = self._binary(0)
        assert not self._tokens
        return value

    def _binary(self, level: int) -> int:
        if level == len(_LEVELS):
            return self._operand()
        value = self._binary(level + 1)
        while self._tokens and self._tokens[0] in _LEVELS[level]:
            apply = _LEVELS[level][self._tokens.pop(0)]
            value = int(apply(value, self._binary(level + 1)))
        return value

    def _operand(self) -> int:
        token = self._tokens.pop(0)
        if token == "!":
            return int(not self._operand())
        if token == "(":
            value = self._binary(0)
            assert self._tokens.pop(0) == ")"
            return value
        if token == "defined":
            name = self._tokens.pop(0)
            if name == "(":
                name = self._tokens.pop(0)
                assert self._tokens.pop(0) == ")"
            return int(name in self._defines)
        return int(token) if token.isdigit() else self._defines.get(token, 0)
