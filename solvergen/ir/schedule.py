"""The scheduled form: what the host computes, what enters the kernels, the passes over memory, and the
stages of scalar work between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from solvergen.ir.guards import Guard
from solvergen.ir.nodes import Name
from solvergen.ir.program import Assign, Result
from solvergen.ir.types import Rank


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table of scalars: the definition ``name``. The kernels' own is rounded once."""

    name: str
    guard: Guard


@dataclass(frozen=True, slots=True)
class Load:
    """Reads an element of ``buffer``; its value goes by the buffer's name."""

    buffer: str
    guard: Guard


@dataclass(frozen=True, slots=True)
class Reduction:
    """Terms that a pass forms of its elements ``args``; the scalar ``name`` is known after it.

    ``along``: it is a value for each line of that rank. ``source``: the rank of the arguments, where they are
    values of lines, not elements.
    """

    name: str
    kind: str
    args: tuple[Name, ...]
    over_all: bool
    guard: Guard
    along: Rank = Rank.SCALAR
    source: Rank = Rank.ELEMENT


@dataclass(frozen=True, slots=True)
class Pass:
    """One sweep over memory: each load once, then the body, then each store once.

    ``reason`` says why a new sweep had to begin here. ``reductions`` are formed of what the body defines, and
    after all of them ``of_lines``, of what stages have computed for lines.
    """

    loads: tuple[Load, ...]
    body: tuple[Assign, ...]
    stores: tuple[Result, ...]
    reason: str
    reductions: tuple[Reduction, ...] = ()
    of_lines: tuple[Reduction, ...] = ()

    @property
    def walk(self) -> str:
        """How it goes through a tensor: "flat", by "tiles" for lines of elements, or not at all ("none")."""
        if any(r.along.is_line for r in self.reductions):
            return "tiles"
        return "flat" if self.stores or self.reductions or not self.of_lines else "none"

    def activity(self, options: tuple[str, ...]) -> Guard:
        """The settings of ``options`` under which it has anything to do."""
        return _union(
            options, [s.guard for s in self.stores] + [r.guard for r in (*self.reductions, *self.of_lines)]
        )


@dataclass(frozen=True, slots=True)
class LineStage:
    """Work in float64 on the device for each line of ``rank``, of which it may read totals and states; and
    what the tensor has, and the matrix that the line is of."""

    rank: Rank
    body: tuple[Assign, ...]
    results: tuple[Result, ...] = ()

    def activity(self, options: tuple[str, ...]) -> Guard:
        """The settings of ``options`` under which it has anything to do."""
        return _union(options, [s.guard for s in self.body] + [r.guard for r in self.results])


@dataclass(frozen=True, slots=True)
class Stage:
    """Scalar work in float64 on the device, for each tensor. Stage ``number`` runs before the pass of that
    number (the last one after all passes).

    ``body`` may read columns of the wide table, columns of ``Schedule.values`` that earlier stages have
    computed, reductions of earlier passes, and states of the device as they were before the update.
    ``results`` are written to such states. After it comes the work for ``lines``, matrices first.
    """

    number: int
    body: tuple[Assign, ...]
    results: tuple[Result, ...] = ()
    lines: tuple[LineStage, ...] = ()

    def activity(self, options: tuple[str, ...]) -> Guard:
        """The settings of ``options`` under which there is anything to do for the tensor itself."""
        return _union(options, [s.guard for s in self.body] + [r.guard for r in self.results])

    def any_activity(self, options: tuple[str, ...]) -> Guard:
        """The settings of ``options`` under which there is anything to do for the tensor or its lines."""
        return _union(options, [self.activity(options), *(one.activity(options) for one in self.lines)])


@dataclass(frozen=True, slots=True)
class Schedule:
    """A program ready for printing.

    ``given`` names the scalars that the host begins with (hyperparameters, ``t``, its scalar state,
    options) and where they exist; ``host`` runs in float64 once for each distinct set of their values;
    ``scalar_results`` are the new values of its scalar state; ``table`` lists what the kernels read;
    ``allowed`` is the program's.

    Rules with reductions or shared state have ``stages`` too: ``wide`` are the host's definitions that
    stages read, ``values`` what stages compute for later stages and for passes, where each is rounded as
    it is read; ``device_states`` are the scalar states that stages keep, ``shared_states`` those of the
    whole optimizer.

    ``evaluations``: numbers of the passes before which the gradient is evaluated anew (after the stage of
    that number). ``carried`` are scratch buffers, last among ``buffers``: the parameter as it was, and
    what passes after an evaluation read of those before it.

    ``view``: how tensors are read as matrices, if anything is made of lines. ``line_values`` and
    ``line_states`` are then what ``values`` and ``device_states`` are, for each rank of lines.
    ``of_matrices``: names that nothing hangs on where a tensor has fewer than two axes; kernels may leave
    them out there.
    """

    name: str
    options: tuple[str, ...]
    buffers: tuple[str, ...]
    given: tuple[tuple[str, Guard], ...]
    host: tuple[Assign, ...]
    scalar_results: tuple[Result, ...]
    table: tuple[Column, ...]
    passes: tuple[Pass, ...]
    allowed: Guard | None = None
    wide: tuple[Column, ...] = ()
    values: tuple[Column, ...] = ()
    stages: tuple[Stage, ...] = ()
    device_states: tuple[str, ...] = ()
    shared_states: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    evaluations: tuple[int, ...] = ()
    view: str = ""
    line_values: Mapping[Rank, tuple[Column, ...]] = field(default_factory=dict)
    line_states: Mapping[Rank, tuple[str, ...]] = field(default_factory=dict)
    of_matrices: frozenset[str] = frozenset()

    @property
    def reductions(self) -> tuple[Reduction, ...]:
        """Those of all passes to tensors: the columns of the table of totals. Those of lines come last."""
        return self.totals(Rank.SCALAR)

    def totals(self, rank: Rank) -> tuple[Reduction, ...]:
        """Reductions to ``rank``: the columns of its table of totals."""
        of_elements = [r for sweep in self.passes for r in sweep.reductions if r.along is rank]
        return (*of_elements, *(r for sweep in self.passes for r in sweep.of_lines if r.along is rank))

    @property
    def yields(self) -> bool:
        """Does the reference wait for other tensors, or for the gradient, on its way?"""
        return bool(self.evaluations) or any(r.over_all for r in self.reductions)

    @property
    def is_staged(self) -> bool:
        """Is there more to it than one sweep over memory?"""
        return bool(self.stages) or len(self.passes) > 1 or bool(self.reductions) or bool(self.view)


def _union(options: tuple[str, ...], guards: Iterable[Guard]) -> Guard:
    result = Guard.never(options)
    for guard in guards:
        result = result | guard
    return result
