"""The CUDA text behind an instruction: its line, its equation, and whether float64 belongs there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from solvergen.runtime.equations import equation_above
from solvergen.runtime.ptx.module import Place

_WIDE = re.compile(r"^\s*SG_FUNCTION (?:double \w+|sg_real sg_rounded)\(")
_TERM = re.compile(r"::sg_term\(|\] = sg_total;$")
"""Where a pass over tiles forms terms, or hands a row's total on: compilers that compute a term for several
reductions give the line of a use of it, and so they do for the last addition to a total."""
_TILES = "const sg_tile &sg_this"
_LINES = "struct sg_values_of_lines {"
_FLOAT64_ONLY = "#if SG_PARAM == 1"


@dataclass(frozen=True)
class Line:
    """A line of a kernel's text and, where one stands above it, the equation that it is part of."""

    file: str
    number: int
    text: str
    equation: str = ""

    def __str__(self) -> str:
        parts = [f"{self.file}:{self.number}: {self.text.strip()}"]
        return "\n".join([*parts, *([f"equation {self.equation}"] if self.equation else [])])


@dataclass(frozen=True)
class Source:
    """The text of a kernel: ``kernel.cu``, or ``kernel.c``."""

    text: str
    name: str = "kernel.cu"

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Its lines; the first is at index 0."""
        return tuple(self.text.split("\n"))

    def at(self, place: Place) -> Line | None:
        """The line of an instruction: of the call that stands under an equation, if one does.

        None where the compiler says of none.
        """
        for number in (place.source, *place.calls):
            if self._equation(number):
                return self.line(number)
        return self.line(place.source)

    def line(self, number: int) -> Line | None:
        """The line of that number, from 1; None if there is none."""
        if not 0 < number <= len(self.lines):
            return None
        return Line(self.name, number, self.lines[number - 1], self._equation(number))

    def has_float64(self, place: Place, *, movable: bool) -> bool:
        """Whether the language computes in float64 where an instruction comes from.

        Of elements of float32 that is within general powers and what they call, within the terms of
        reductions and what adds them, and where a stage's number is rounded. Where a power is called, or
        values of lines are read, what is ``movable`` (conversions to arguments and from values, comparisons)
        may stand anywhere; arithmetic between would be found. Where the compiler says of no line, only
        whether the text has such functions is known, beside those of one line that every kernel has. What is
        compiled for elements of float64 only, under ``#if SG_PARAM == 1``, doesn't count.
        """
        known = [n for n in (place.source, *place.calls) if 0 < n <= len(self.lines)]
        if not place.source:
            return any(not self.lines[number - 1].startswith("SG_FUNCTION") for number in self._wide)
        if any(number in self._wide for number in known):
            return True
        return movable and (self._calls_wide or _LINES in self.lines)

    @cached_property
    def _calls_wide(self) -> bool:
        return any(
            "(double)" in line and self._equation(number) for number, line in enumerate(self.lines, start=1)
        )

    @cached_property
    def _wide(self) -> frozenset[int]:
        """The lines of functions of float64 that kernels of other elements have."""
        found: set[int] = set()
        inside = False
        tiles = False
        conditions: list[str] = []  # of the directives around a line
        for number, line in enumerate(self.lines, start=1):
            if line.startswith("#if"):
                conditions.append(line.strip())
            elif line.startswith(("#else", "#elif")) and conditions:
                conditions[-1] = line.strip()
            elif line.startswith("#endif") and conditions:
                conditions.pop()
            if _FLOAT64_ONLY in conditions:
                continue
            one_line = _WIDE.match(line)
            inside = inside or one_line is not None
            tiles = tiles or _TILES in line
            if inside or (tiles and _TERM.search(line)):
                found.add(number)
            if line.startswith("}"):
                tiles = False
            if line.startswith("}") or (one_line and line.rstrip().endswith("}")):
                inside = False
        return frozenset(found)

    def _equation(self, number: int) -> str:
        return str(equation_above(self.lines, number) or "")
