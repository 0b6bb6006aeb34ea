"""What a generated package says about its optimizer.

``solvergen build`` writes one ``Definition`` an optimizer (``<name>/schema.py``). It is all that the
runtime knows of a rule: names, ranges, the host program and the NumPy reference as plain functions,
and the folder in which the kernels' texts lie.

Its parts are named tuples: to define a dataclass takes Python ten times as long, and this module is a part of
every import of an optimizer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from solvergen.errors import OptimizerError

Initial = float | Literal["param"]
"""The initial value of a state: a number, or a copy of the parameter."""


class Hyperparameter(NamedTuple):
    """A hyperparameter and the values that it may take.

    ``min`` and ``max`` are allowed themselves, ``above`` and ``below`` are not; None is no limit.
    An ``integer`` hyperparameter must be a whole number; it is held as a float like any other.
    """

    name: str
    default: float
    min: float | None = None
    max: float | None = None
    above: float | None = None
    below: float | None = None
    integer: bool = False
    doc: str = ""


class Option(NamedTuple):
    """A compile-time option. A ``default`` of None means derived: ``Definition.options_of`` decides."""

    name: str
    default: bool | None
    doc: str = ""


Shape = Literal["param", "scalar", "shared", "rows", "columns", "matrices", "leading", "trailing", "blocks"]
"""How much of a state there is: see ``State``."""

Rank = Literal["rows", "columns", "matrices"]
"""Lines of a tensor: its rows, its columns, or its matrices as a whole. See ``solvergen.runtime.lines``."""

RANKS: tuple[Rank, ...] = ("matrices", "rows", "columns")
"""All of them, in the order in which a stage computes what belongs to them."""

RANK_OF_SHAPE: Mapping[str, Rank] = {
    "rows": "rows",
    "columns": "columns",
    "matrices": "matrices",
    "leading": "rows",
    "trailing": "columns",
    "blocks": "rows",
}
"""Of the shapes of states that belong to lines."""


class State(NamedTuple):
    """A state: an array shaped as its parameter (``"param"``), one float a tensor (``"scalar"``), one
    float for the whole optimizer (``"shared"``), or one float for each line of a tensor (its rows, columns or
    matrices; ``"leading"``, ``"trailing"`` and ``"blocks"`` are rows or columns of the views of these
    names).

    ``dtype``: of a copy of the parameter in another storage type, which is written and never read; it can be
    made anew from the parameter, so no snapshot has it. Arrays of other states have the compute type."""

    name: str
    shape: Shape = "param"
    doc: str = ""
    dtype: str = ""

    @property
    def rank(self) -> Rank | None:
        """The lines that have a number each; None of other states."""
        return RANK_OF_SHAPE.get(self.shape)


ReductionKind = Literal["sum", "mean", "dot", "norm1", "norm2", "max_abs", "count_nonzero"]
"""What a reduction makes of elements. The totals of ``norm2`` are sums of squares and those of ``mean`` sums:
whoever reads a total takes the root, or divides."""


View = Literal["", "matrices", "leading", "trailing", "blocks"]
"""How a rule reads tensors as matrices: see ``solvergen.runtime.lines``. Empty if it doesn't."""


class LineReduction(NamedTuple):
    """A reduction whose terms belong to lines, not to elements.

    The terms are column ``value`` of the table of values of ``source``, formed by a stage (squares for
    ``norm2``, and so on): of ``kind`` it only matters whether the larger of two is taken. Its totals are
    column ``target`` of the table of totals of tensors, or (``over`` says so) of that of matrices.
    ``of_matrices``: tensors of fewer than two axes have no use for it, so that it may be left out there.
    """

    source: Rank
    value: int
    kind: ReductionKind
    over: Literal["tensor", "matrices"]
    target: int
    of_matrices: bool = False


class Pass(NamedTuple):
    """A pass over the elements, and the reductions whose terms it forms.

    They are the columns ``first``, ``first + 1``, ... of the table of totals. ``kinds`` and ``over`` have an
    entry for each: what it makes of the terms, and whether it is over the tensor or over all tensors.

    A pass whose ``walk`` is "tiles" forms reductions of rows and columns instead: of ``row_kinds``, the
    columns from ``row_first`` on of the table of totals of rows, and of ``column_kinds`` likewise. After its
    elements, a pass of either walk makes its ``line_reductions``. If the walk is "none" that is all, and
    there is no kernel for it.
    """

    first: int = 0
    kinds: tuple[ReductionKind, ...] = ()
    over: tuple[Literal["tensor", "all"], ...] = ()
    walk: Literal["flat", "tiles", "none"] = "flat"
    row_first: int = 0
    row_kinds: tuple[ReductionKind, ...] = ()
    column_first: int = 0
    column_kinds: tuple[ReductionKind, ...] = ()
    line_reductions: tuple[LineReduction, ...] = ()


def _only_pass(**options: bool) -> tuple[int, ...]:
    return (0,)


def _no_stage(**options: bool) -> tuple[int, ...]:
    return ()


@dataclass(frozen=True, eq=False)
class Definition:
    """An optimizer as the runtime sees it. Compared by identity: there is one a generated package.

    ``spec`` is the path of the spec as it was given to the compiler (for messages only), ``digest``
    the sha256 of its semantic content, ``folder`` the directory that holds ``kernel.c`` and
    ``kernel.cu``. ``table`` names the columns of the kernels' table of scalars.

    The functions, all of plain floats and bools given by keyword unless said otherwise:

    ``options_of(**hyperparameters)``: the derived options, {} if there are none.
    ``constraints(**hyperparameters, **options)``: None, or what is wrong.
    ``active_state(**options)``: names of the states that exist, in the order of ``state``.
    ``buffers_read(**options)``, ``buffers_written(**options)``: names of the buffers (``param``, ``grad``,
    array states, ``carried``) that an update reads and writes, once for each pass over the elements.
    ``initial_state(**hyperparameters, **options)``: name to number or ``"param"``, for all states.
    ``scalars(**hyperparameters, **options, t=, **scalar_states)``: a row of the table in float64, and
    the new values of the scalar states.
    ``update(param, grad, *array_states, *scalar_states, *hyperparameters, t, *options, real, rounded)``,
    all by position: the new parameter, array states and scalar states, in this order. Elements are
    arrays of the compute type ``real``; ``rounded`` rounds to the parameter's storage type and back.
    States that don't exist under the options are None, as argument and as result. Where ``grad`` is among the
    buffers written under some options, what it becomes is the last result under all of them.

    The fields from ``device_states`` on are of *staged* rules: those that have reductions, or state that
    depends on some. An update of these is several passes over the elements, pass 0, 1, ..., and scalar work
    between: stage k before pass k, and one more after the last. ``device_states`` are the scalar states that
    stages compute; like shared states they live beside the tensors, and the host never waits for them.
    ``wide`` names the columns of the table of float64 scalars that stages read, ``n_values`` counts the
    scalars that they compute for passes and later stages, ``stages`` has the numbers of those that exist.
    ``active_passes(**options)`` and ``active_stages(**options)`` say which are run. Of staged rules

    ``scalars`` returns a row of ``table``, a row of ``wide``, and the new scalar states (those on the host).
    ``update`` gets whole tensors, flat. Scalar states come and go in the order of the spec, wherever they
    live, and shared states after them. If ``yields``, it is a generator: it yields each reduction over all
    tensors (``reference_math.over_all``), is sent its value, and returns what others return.

    ``evaluations`` has the numbers of the passes before which (and after whose stage) the gradient is
    evaluated anew, at the parameters as the passes so far have left them; a number once for each evaluation.
    Rules that have any are staged, and their references generators, which yield ``reference_math.gradient``
    for it. Before the last evaluation nothing is stored but parameters and what is ``carried``: arrays of a
    tensor, of its compute type, that the kernels have for the length of a step. The first is
    ``param_before``: the pass that ``keeping_pass(**options)`` names before
    which no parameter changes, keeps in it the parameter as it was, so that a step can be undone.

    A rule with a ``view`` knows the lines of its tensors (``solvergen.runtime.lines``), and is staged. Totals
    and values of lines have tables of their own, and so have the states of lines, in the order of ``state``.
    ``line_stages`` has the number and the rank of each stage of lines: stage k is scalar work (if k is among
    ``stages``), then what it has for matrices, rows and columns, in this order. ``active_stages`` names all
    numbers of which anything is run. Of such a rule ``update`` gets elements as arrays [matrices, rows,
    columns], states of lines among the array states, in the order of ``state``, in float64 as [matrices,
    rows, 1], [matrices, 1, columns] or [matrices, 1, 1], and behind ``rounded`` the number of axes of the
    tensor, a float.
    """

    name: str
    class_name: str
    spec: str
    digest: str
    folder: str
    hyperparameters: tuple[Hyperparameter, ...]
    options: tuple[Option, ...]
    state: tuple[State, ...]
    table: tuple[str, ...]
    update: Callable[..., Any]
    scalars: Callable[..., tuple[Any, ...]]
    options_of: Callable[..., dict[str, bool]]
    constraints: Callable[..., str | None]
    active_state: Callable[..., tuple[str, ...]]
    buffers_read: Callable[..., tuple[str, ...]]
    buffers_written: Callable[..., tuple[str, ...]]
    initial_state: Callable[..., dict[str, Initial]]
    device_states: tuple[str, ...] = ()
    wide: tuple[str, ...] = ()
    n_values: int = 0
    passes: tuple[Pass, ...] = (Pass(),)
    stages: tuple[int, ...] = ()
    active_passes: Callable[..., tuple[int, ...]] = _only_pass
    keeping_pass: Callable[..., tuple[int, ...]] = _only_pass
    active_stages: Callable[..., tuple[int, ...]] = _no_stage
    yields: bool = False
    evaluations: tuple[int, ...] = ()
    carried: tuple[str, ...] = ()
    view: View = ""
    line_stages: tuple[tuple[int, Rank], ...] = ()
    n_row_values: int = 0
    n_column_values: int = 0
    n_matrix_values: int = 0

    @cached_property
    def array_states(self) -> tuple[str, ...]:
        """Names of the states shaped as the parameter: the kernels' buffers after ``param, grad``, before
        ``carried``."""
        return tuple(s.name for s in self.state if s.shape == "param")

    @cached_property
    def copies(self) -> dict[str, str]:
        """The array states that are copies of the parameter in another storage type, and that type."""
        return {s.name: s.dtype for s in self.state if s.dtype}

    @cached_property
    def scalar_states(self) -> tuple[str, ...]:
        """Names of the states that are one float a tensor and that the host program computes."""
        return tuple(s.name for s in self.state if s.shape == "scalar" and s.name not in self.device_states)

    @cached_property
    def shared_states(self) -> tuple[str, ...]:
        """Names of the states that are one float for the whole optimizer."""
        return tuple(s.name for s in self.state if s.shape == "shared")

    @cached_property
    def all_scalar_states(self) -> tuple[str, ...]:
        """Names of the states that are one float a tensor, on the host or not: the reference's order."""
        return tuple(s.name for s in self.state if s.shape == "scalar")

    @cached_property
    def reference_arrays(self) -> tuple[State, ...]:
        """The states that the reference is given as arrays: shaped as the parameter, or of lines."""
        return tuple(s for s in self.state if s.shape == "param" or s.rank is not None)

    @cached_property
    def line_states(self) -> dict[Rank, tuple[str, ...]]:
        """Names of the states of lines, by rank: the columns of their tables."""
        return {rank: tuple(s.name for s in self.state if s.rank == rank) for rank in RANKS}

    @cached_property
    def has_lines(self) -> bool:
        """Whether it reads tensors as matrices."""
        return self.view != ""

    @cached_property
    def n_reductions(self) -> int:
        """How many reductions to tensors all passes have: the columns of the table of totals."""
        of_lines = [line for one in self.passes for line in one.line_reductions if line.over == "tensor"]
        return sum(len(one.kinds) for one in self.passes) + len(of_lines)

    @cached_property
    def n_row_totals(self) -> int:
        """How many reductions there are along rows, in all passes together."""
        return sum(len(one.row_kinds) for one in self.passes)

    @cached_property
    def n_column_totals(self) -> int:
        """How many there are along columns."""
        return sum(len(one.column_kinds) for one in self.passes)

    @cached_property
    def n_matrix_totals(self) -> int:
        """How many there are of lines to their matrices."""
        return sum(line.over == "matrices" for one in self.passes for line in one.line_reductions)

    @cached_property
    def reduces_over_all(self) -> bool:
        """Whether there are reductions over all tensors."""
        return any("all" in one.over for one in self.passes)

    @cached_property
    def is_staged(self) -> bool:
        """Whether an update is more than one pass that needs nothing but its elements and a row."""
        return (
            bool(self.stages)
            or self.n_reductions > 0
            or len(self.passes) > 1
            or bool(self.evaluations)
            or self.has_lines
        )

    @cached_property
    def hyperparameter_names(self) -> tuple[str, ...]:
        """Names of the hyperparameters, in the order of the spec."""
        return tuple(h.name for h in self.hyperparameters)

    @cached_property
    def option_names(self) -> tuple[str, ...]:
        """Names of the options, in the order of the spec."""
        return tuple(o.name for o in self.options)


def definition_of(cls: type[Any]) -> Definition:
    """The definition of an optimizer's class. Raises OptimizerError for one that has none."""
    definition: Definition | None = getattr(cls, "definition", None)
    if definition is None:
        raise OptimizerError(
            f"{cls.__name__} has no rule of its own; use a generated optimizer, as solvergen.optimizers.Adam"
        )
    return definition
