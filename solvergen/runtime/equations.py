"""Which equation of the spec stands behind a line of a kernel, or behind a buffer's value.

Generated texts say so themselves. A kernel has each equation in a comment above the lines that compute it.
The reference, ``reference.py``, has a line for every equation, each with its place in the spec behind it, and
the equations themselves in its docstring, in the same order. It is parsed, not run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from solvergen.runtime.definition import Definition

_QUOTED = re.compile(r"^\s*// (.+?) {2,}(\S+:\d+)\s*$")
_PLACE = re.compile(r"  # (\S.*:\d+)$")
_WHEN = re.compile(r"^when [^:]*: ")


@dataclass(frozen=True)
class Equation:
    """An equation as it was written, and where: ``specs/adam.yaml:47``."""

    text: str
    place: str

    def __str__(self) -> str:
        return f"{self.text}  ({self.place})" if self.place else self.text


@dataclass(frozen=True)
class _Assignment:
    """One line of the reference; ``guards`` are the conditions around it and whether they must hold."""

    target: str
    guards: tuple[tuple[ast.expr, bool], ...]
    equation: Equation


def equation_above(lines: Sequence[str], number: int) -> Equation | None:
    """The equation that line ``number`` (from 1) of a kernel is part of: the nearest that is quoted above it.

    None if nothing but other code of its function is, or a blank line, with which equations end.
    """
    if not 0 < number <= len(lines):
        return None
    for line in reversed(lines[:number]):
        match = _QUOTED.match(line)
        if match:
            return Equation(match[1], match[2])
        if not line.strip() or line.startswith(("}", "SG_FUNCTION", "template")):
            return None
    return None


def equation_of(definition: Definition, buffer: str, options: Mapping[str, bool]) -> Equation | None:
    """The last equation that assigns ``buffer`` ("param" or a state) under ``options``.

    None if there is none, or if the package has no reference that can be read.
    """
    for assignment in reversed(_assignments(definition)):
        held = [_holds(test, options) for test, _ in assignment.guards]
        wanted = [must for _, must in assignment.guards]
        if assignment.target == buffer and all(h in (None, w) for h, w in zip(held, wanted, strict=True)):
            return assignment.equation
    return None


def program_order(definition: Definition) -> dict[str, int]:
    """The place in the program of the last equation of each name that is assigned, whatever the options.

    Empty if the package has no reference that can be read.
    """
    return {assignment.target: place for place, assignment in enumerate(_assignments(definition))}


@lru_cache(maxsize=64)
def _assignments(definition: Definition) -> tuple[_Assignment, ...]:
    """All lines of the reference that assign something, in order."""
    try:
        text = Path(definition.folder, "reference.py").read_text(encoding="utf-8")
        module = ast.parse(text)
    except (OSError, ValueError, SyntaxError):
        return ()
    update = next((n for n in module.body if isinstance(n, ast.FunctionDef) and n.name == "update"), None)
    if update is None:
        return ()
    found = list(_walk(update.body, ()))
    lines = text.splitlines()
    written = [line[4:] for line in (ast.get_docstring(module) or "").splitlines() if line.startswith("    ")]
    written = [line for line in written if line != "gradient"]  # a statement, but no assignment
    assignments = []
    for number, (node, target, guards) in enumerate(found):
        code = lines[(node.end_lineno or node.lineno) - 1]
        place = _PLACE.search(code)
        if len(written) == len(found):
            equation = _WHEN.sub("", written[number]) if guards else written[number]
        else:  # another reference than the compiler's: its own code is the next best thing
            equation = _PLACE.sub("", code).strip()
        assignments.append(_Assignment(target, guards, Equation(equation, place[1] if place else "")))
    return tuple(assignments)


def _walk(
    body: Sequence[ast.stmt], guards: tuple[tuple[ast.expr, bool], ...]
) -> Iterator[tuple[ast.stmt, str, tuple[tuple[ast.expr, bool], ...]]]:
    for node in body:
        if isinstance(node, ast.If):
            yield from _walk(node.body, (*guards, (node.test, True)))
            yield from _walk(node.orelse, (*guards, (node.test, False)))
        elif (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            # Reductions over all tensors are yielded on lines of their own, before their equation.
            and not isinstance(node.value, ast.Yield)
        ):
            yield node, node.targets[0].id, guards


def _holds(test: ast.expr, options: Mapping[str, bool]) -> bool | None:
    """Whether a condition on options holds; None if it asks for something else."""
    if isinstance(test, ast.Name):
        return options.get(test.id)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        held = _holds(test.operand, options)
        return None if held is None else not held
    if isinstance(test, ast.BoolOp):
        parts = [_holds(value, options) for value in test.values]
        deciding = isinstance(test.op, ast.Or)
        if deciding in parts:
            return deciding
        return None if None in parts else not deciding
    return None
