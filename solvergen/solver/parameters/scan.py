"""Where the fields of a prototxt stand: its top level, token by token.

protobuf's own parser decides what is right. This says at which line and column each field and value
is, which protobuf doesn't keep, and cuts out the nets inside, whose fields aren't ours to know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, cast

TokenKind = Literal["name", "number", "string", "sign"]

_TOKEN = re.compile(
    r"""(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>[-+]?\.?[0-9][0-9A-Za-z_.+-]*)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<comment>\#[^\n]*)
    |(?P<space>\s+)
    |(?P<sign>.)""",
    re.VERBOSE,
)
_CLOSING = {"{": "}", "<": ">"}


@dataclass(frozen=True)
class Token:
    """A token and its place in the text."""

    kind: TokenKind
    text: str
    start: int

    @property
    def end(self) -> int:
        """The place after it."""
        return self.start + len(self.text)


@dataclass(frozen=True)
class Entry:
    """A field as it is written: its name, the tokens of its values, or where the inside of its braces is."""

    name: Token
    values: tuple[tuple[Token, ...], ...] = ()
    listed: bool = False
    body: tuple[int, int] | None = None


@dataclass
class Scan:
    """The entries up to ``stopped``: the token that fits nowhere, None at the text's end."""

    entries: list[Entry] = field(default_factory=list)
    stopped: Token | None = None
    reached_end: bool = False


def without_comments(text: str) -> str:
    """The text with spaces where its comments are, so that all else keeps its place."""
    return "".join(
        " " * len(match[0]) if match.lastgroup == "comment" else match[0] for match in _TOKEN.finditer(text)
    )


def with_signs_joined(text: str) -> str:
    """The text with each minus right before its number, as Python's protobuf wants it and C++'s doesn't:
    ``- 1`` becomes `` -1``. All else keeps its place."""
    found = list(tokens(text))
    pieces: list[str] = []
    done = 0
    for sign, number in pairwise(found):
        gap = text[sign.end : number.start]
        if sign.kind == "sign" and sign.text == "-" and number.kind in ("name", "number") and gap.isspace():
            pieces += [text[done : sign.start], gap, sign.text]
            done = number.start
    return "".join([*pieces, text[done:]])


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a text, without spaces and comments."""
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind not in ("space", "comment"):
            yield Token(cast(TokenKind, kind), match[0], match.start())


def scan(text: str) -> Scan:
    """The entries of the top level, up to the first place that makes no sense."""
    result = Scan()
    reader = _Reader(list(tokens(text)))
    while reader.at is not None:
        before = reader.at
        entry = reader.entry()
        if entry is None:
            result.stopped = reader.at or before
            return result
        result.entries.append(entry)
    result.reached_end = True
    return result


class _Reader:
    """Goes over the tokens once."""

    def __init__(self, all_tokens: list[Token]) -> None:
        self._tokens = all_tokens
        self._next = 0

    @property
    def at(self) -> Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self, *texts: str) -> Token | None:
        token = self.at
        if token is None or token.kind == "string" or token.text not in texts:
            return None
        self._next += 1
        return token

    def entry(self) -> Entry | None:
        name = self.at
        if name is None or name.kind != "name":
            return None
        self._next += 1
        colon = self._take(":")
        opening = self._take("{", "<")
        if opening is not None:
            body = self._inside(opening)
            entry = None if body is None else Entry(name, body=body)
        elif colon is None:
            return None
        else:
            entry = self._of_values(name)
        self._take(";", ",")
        return entry

    def _of_values(self, name: Token) -> Entry | None:
        if self._take("["):
            values: list[tuple[Token, ...]] = []
            while not self._take("]"):
                value = self._value()
                if value is None:
                    return None
                values.append(value)
                self._take(",")
            return Entry(name, tuple(values), listed=True)
        value = self._value()
        return None if value is None else Entry(name, (value,))

    def _value(self) -> tuple[Token, ...] | None:
        """One value: a number, a name, either with a minus before it, or pieces of a string."""
        first = self.at
        if first is None or (first.kind == "sign" and first.text != "-"):
            return None
        self._next += 1
        found = [first]
        if first.kind == "sign":
            number = self.at
            if number is None or number.kind not in ("name", "number"):
                return None
            self._next += 1
            found.append(number)
        while first.kind == "string" and self.at is not None and self.at.kind == "string":
            found.append(self.at)
            self._next += 1
        return tuple(found)

    def _inside(self, opening: Token) -> tuple[int, int] | None:
        closing = [_CLOSING[opening.text]]
        while self.at is not None:
            token = self.at
            self._next += 1
            if token.kind != "sign":
                continue
            if token.text in _CLOSING:
                closing.append(_CLOSING[token.text])
            elif token.text in _CLOSING.values():
                if token.text != closing.pop():
                    return None
                if not closing:
                    return (opening.end, token.start)
        return None
