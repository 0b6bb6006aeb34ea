"""PTX text cut into statements: labels, instructions, directives and braces, each with its line.

PTX ends its statements with semicolons and some of its directives with the line; inline assembly may put
several on a line or one over several (PTX ISA, "Source Format", "Statements").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from solvergen.errors import PtxError

NAME = r"[A-Za-z_$%][\w$]*"
"""An identifier, or a register with its percent sign (PTX ISA, "Identifiers")."""

_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/', re.DOTALL)

_STATEMENT = re.compile(
    rf"""\s*(?:
      (?P<label>(?P<label_name>{NAME})\s*:(?!:))
    | (?P<instruction>(?:@\s*(?P<negated>!?)\s*(?P<predicate>{NAME})\s+)?
        (?P<opcode>[a-z]\w*(?:\.[\w:]+)*) (?:\s(?P<operands>[^;]*))? ;)
    | (?P<loc>\.loc\s(?P<position>[^\n]*))
    | (?P<open>\{{)
    | (?P<close>\}})
    | (?P<directive>\.(?P<directive_name>\w+)\s*(?P<arguments>(?:[^;"]|"[^"\n]*")*) ;)
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Source:
    """A PTX text as it was given, and the same without comments: equally long, with the same lines."""

    original: str
    text: str

    @classmethod
    def of(cls, original: str) -> Source:
        """Comments become spaces. Strings stay: paths may have two slashes."""
        return cls(original, _COMMENT.sub(_blank, original) if "/" in original else original)

    def line_at(self, position: int) -> int:
        """The line of a position, from 1."""
        return self.text.count("\n", 0, position) + 1

    def refuse(self, position: int, message: str) -> NoReturn:
        """Raise PtxError about what stands at ``position``."""
        line = self.line_at(position)
        lines = self.original.split("\n")
        raise PtxError(message, line=line, text=lines[line - 1])


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a kernel's body. ``kind``: label, instruction, loc, open, close or directive."""

    kind: str
    match: re.Match[str]
    line: int

    @property
    def text(self) -> str:
        """The statement on one line."""
        return " ".join(self.match[0].split())

    def refuse(self, message: str) -> NoReturn:
        """Raise PtxError about this statement."""
        raise PtxError(message, line=self.line, text=self.text)


def body_statements(source: Source, start: int) -> tuple[list[Statement], int]:
    """The statements from ``start``, behind a kernel's opening brace, to the brace that closes it.

    The closing brace is not among them. Returns the position behind it, too.

    Raises:
        PtxError: what stands there is no statement, or the brace is missing.
    """
    found: list[Statement] = []
    depth = 1
    for statement in _statements(source, start):
        if statement.kind == "open":
            depth += 1
        elif statement.kind == "close":
            depth -= 1
            if depth == 0:
                return found, statement.match.end()
        found.append(statement)
    source.refuse(start, "the kernel that begins here has no closing brace")


def _statements(source: Source, start: int) -> Iterator[Statement]:
    text, match_at = source.text, _STATEMENT.match
    position, line = start, source.line_at(start)
    while True:
        match = match_at(text, position)
        if match is None:
            rest = text[position:]
            position += len(rest) - len(rest.lstrip())
            source.refuse(position, "this is no statement of PTX that solvergen can read")
        kind = match.lastgroup or ""
        if kind == "end":
            return
        begin = match.start(kind)
        line += text.count("\n", position, begin)
        yield Statement(kind, match, line)
        position = match.end()
        line += text.count("\n", begin, position)


def _blank(match: re.Match[str]) -> str:
    found = match[0]
    if found[0] == '"':
        return found
    return re.sub(r"[^\n]", " ", found)
