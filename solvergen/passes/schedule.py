"""The last pass: scalars to the host or into stages, elements into the fewest sweeps over memory."""

from __future__ import annotations

from dataclasses import replace

from solvergen.ir.guards import Guard
from solvergen.ir.nodes import Reduce, names_in
from solvergen.ir.program import Assign, Program, Result, Role
from solvergen.ir.schedule import Column, LineStage, Schedule, Stage
from solvergen.ir.types import LINE_RANKS, Rank
from solvergen.ir.verify import verify_schedule
from solvergen.passes.axes import only_of_matrices
from solvergen.passes.fusion import Rule
from solvergen.passes.segments import plan_segments
from solvergen.passes.split import Split, split

_GIVEN = (Role.HYPERPARAMETER, Role.T, Role.SCALAR_STATE, Role.OPTION)


def schedule(program: Program) -> Schedule:
    """Split ``program`` into the host's part, its passes over memory, and the stages between them."""
    parts = split(program)
    buffers = tuple(s.name for s in program.with_role(Role.PARAM, Role.GRAD, Role.STATE))
    shared = tuple(s.name for s in program.with_role(Role.SHARED_STATE))
    line_states = {
        rank: tuple(s.name for s in program.with_role(Role.LINE_STATE) if parts.rank(s.name) is rank)
        for rank in LINE_RANKS
    }
    on_device = {*parts.device_states, *shared}
    rule = Rule(
        program.options,
        buffers,
        frozenset(parts.elements),
        tuple(parts.rest),
        tuple(r for r in program.results if r.buffer in buffers),
        Guard.always(program.options) if program.allowed is None else program.allowed,
        parts.lines,
        bool(program.view),
    )
    of_host = (*(s.name for s in program.symbols), *(s.target for s in parts.host))
    segmented = plan_segments(rule, of_host)
    planned = segmented.plan
    kept = {*on_device, *(name for names in line_states.values() for name in names)}
    results = tuple(r for r in program.results if r.buffer in kept)
    # What a stage writes to a state can't be undone: not before the gradient has been evaluated for good.
    earliest = max((number + 1 for number in segmented.evaluations), default=0)
    stages = _stages(rule, parts, results, planned.levels, earliest)
    scalar_states = {s.name for s in program.with_role(Role.SCALAR_STATE)} - on_device
    made = verify_schedule(
        Schedule(
            program.name,
            program.options,
            (*buffers, *segmented.carried),
            tuple((s.name, s.guard) for s in program.with_role(*_GIVEN) if s.name not in on_device),
            tuple(parts.host),
            tuple(r for r in program.results if r.buffer in scalar_states),
            tuple(Column(name, guard) for name, guard in parts.columns.items()),
            planned.passes,
            program.allowed,
            tuple(Column(name, guard) for name, guard in parts.wide.items()),
            tuple(Column(name, guard) for name, guard in parts.values.items()),
            stages,
            parts.device_states,
            shared,
            segmented.carried,
            segmented.evaluations,
            program.view,
            {
                rank: tuple(Column(name, guard) for name, guard in found.items())
                for rank, found in parts.line_values.items()
            },
            line_states,
        )
    )
    return replace(made, of_matrices=only_of_matrices(made))


def _stages(
    rule: Rule, parts: Split, results: tuple[Result, ...], known: dict[str, int], earliest: int
) -> tuple[Stage, ...]:
    """The device's scalars and values of lines by the passes that they wait for.

    ``parts`` gets what crosses stages. No stage before ``earliest`` writes a state.
    """
    work = {rank: _work(rule, parts, results, known, rank, earliest) for rank in (Rank.SCALAR, *LINE_RANKS)}
    numbers = sorted({number for found in work.values() for number in found})
    nothing: _Work = ((), ())
    return tuple(
        Stage(
            number,
            *work[Rank.SCALAR].get(number, nothing),
            tuple(LineStage(rank, *work[rank][number]) for rank in LINE_RANKS if number in work[rank]),
        )
        for number in numbers
    )


_Work = tuple[tuple[Assign, ...], tuple[Result, ...]]


def _work(
    rule: Rule,
    parts: Split,
    all_results: tuple[Result, ...],
    known: dict[str, int],
    rank: Rank,
    earliest: int,
) -> dict[int, _Work]:
    """Statements and results of ``rank`` by their stages; ``parts`` gets what they read of others.

    States are written in the last stage that has anything to do with them, so that every stage reads what
    they were before the update.
    """
    results = tuple(r for r in all_results if parts.rank(r.buffer) is rank)
    of_device = [s for s in rule.statements if s.target not in rule.elements]
    scalars = [s for s in of_device if parts.rank(s.target) is rank]
    states = {r.buffer for r in results}
    ends = [known.get(r.name, 0) for r in results]
    ends += [known[s.target] for s in scalars if states.intersection(names_in(s.value))]
    last = max([earliest, *ends])
    guards: dict[str, Guard] = {}
    for statement in of_device:
        guards[statement.target] = guards.get(statement.target, Guard.never(rule.options)) | statement.guard

    def crosses(name: str, stage: int, guard: Guard) -> None:
        if name in guards and (known[name] < stage or parts.rank(name) is not rank):
            guard = guard & guards[name]
            handed = parts.handed(parts.rank(name))
            handed[name] = handed[name] | guard if name in handed else guard

    bodies: dict[int, list[Assign]] = {}
    for statement in scalars:
        stage = known[statement.target]
        bodies.setdefault(stage, []).append(statement)
        if not isinstance(statement.value, Reduce):
            for name in names_in(statement.value):
                crosses(name, stage, statement.guard)
    for result in results:
        bodies.setdefault(last, [])
        crosses(result.name, last, result.guard)
    return {number: (tuple(body), results if number == last else ()) for number, body in bodies.items()}
