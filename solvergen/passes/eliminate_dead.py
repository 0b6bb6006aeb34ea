"""What no result needs, under the settings where it isn't needed, is not computed.

Also copies of a value that is the same under every setting are read through.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from solvergen.ir.guards import Guard
from solvergen.ir.nodes import Expression, GradientAt, Name, names_in
from solvergen.ir.program import Assign, Program, Role
from solvergen.passes.rewrite import rebuild


def eliminate_dead(program: Program) -> Program:
    """Drop statements, and settings of statements, whose value is never used."""
    program = _read_through_copies(program)
    never = Guard.never(program.options)
    needed: dict[str, Guard] = {}
    for result in program.results:
        needed[result.name] = needed.get(result.name, never) | result.guard
    kept: list[Assign] = []
    for statement in reversed(program.statements):
        live = needed.get(statement.target, never) & statement.guard
        if isinstance(statement.value, GradientAt):
            live = statement.guard  # a function of the caller's runs, whoever reads what it returns
        if (live if program.allowed is None else live & program.allowed).is_never:
            continue  # under forbidden settings it may read what isn't there
        for name in names_in(statement.value):
            needed[name] = needed.get(name, never) | live
        kept.append(replace(statement, guard=live))
    kept.reverse()
    targets = {s.target for s in kept}
    symbols = tuple(s for s in program.symbols if s.role is not Role.TEMPORARY or s.name in targets)
    return replace(program, statements=tuple(kept), symbols=symbols)


def _read_through_copies(program: Program) -> Program:
    """A target whose only definition is another name is that name."""
    targets = Counter(s.target for s in program.statements)
    wanted = {r.name for r in program.results}
    types = {s.name: s.type for s in program.symbols}
    same: dict[str, str] = {}
    statements: list[Assign] = []

    def through(e: Expression) -> Expression:
        return replace(e, name=same[e.name]) if isinstance(e, Name) and e.name in same else e

    for statement in program.statements:
        value = rebuild(statement.value, through)
        alone = targets[statement.target] == 1 and statement.target not in wanted
        if isinstance(value, Name) and alone and types[statement.target] == value.type:
            same[statement.target] = value.name
        else:
            statements.append(replace(statement, value=value))
    return replace(program, statements=tuple(statements))
