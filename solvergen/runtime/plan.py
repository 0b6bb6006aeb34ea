"""Which launches a step needs, prepared once and kept.

Tensors with equal dtypes and options are updated by one launch. Which tensors have gradients, and of
which dtypes, seldom changes from step to step: the launches for each such pattern are kept, and a step
like the one before costs one quick check a launch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar, cast

import numpy as np

from solvergen.errors import ArrayError, CompilerBug
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.backends.base import (
    Backend,
    BoundLauncher,
    Launcher,
    LaunchPlan,
    Skip,
    StagedLauncher,
    Step,
    Workspace,
)
from solvergen.runtime.cohorts import Cohort, Cohorts
from solvergen.runtime.definition import Definition
from solvergen.runtime.dtypes import STORAGE_TYPES
from solvergen.runtime.layout import picker
from solvergen.runtime.row_sparse import ByRows, has_rows
from solvergen.runtime.spans import Spans
from solvergen.runtime.tables import table_width
from solvergen.runtime.tensors import Tensor, check_written

KEPT_PATTERNS = 32
"""Patterns of gradients (present or not, and of which dtypes) whose launches are kept; the least recently
used are dropped."""

L = TypeVar("L", bound=BoundLauncher)


class Launch(Generic[L]):
    """A launcher, the positions of its tensors, and the tables that it reads.

    ``dtype`` is the table's, ``grad_dtype`` the gradients'. ``pick`` reads this launch's gradients
    out of all; None where they are all of them in order.
    """

    __slots__ = ("dtype", "grad_dtype", "launcher", "members", "pick", "rows", "table")

    def __init__(
        self,
        launcher: L,
        members: list[int],
        dtype: str,
        grad_dtype: str,
        pick: Callable[[Sequence[object]], Sequence[object]] | None,
    ) -> None:
        self.launcher = launcher
        self.members = members
        self.dtype = dtype
        self.grad_dtype = grad_dtype
        self.pick = pick
        self.rows = np.zeros(0, np.int32)
        self.table = np.zeros((0, 0), dtype)


class BoundSet(Generic[L]):
    """The launches of one pattern. ``mask`` has a byte for each tensor, 1 where it has a gradient.

    ``width`` is the number of columns of the tables.
    """

    __slots__ = ("_version", "_width", "cohorts", "launches", "mask", "members")

    def __init__(self, launches: tuple[Launch[L], ...], mask: bytes, width: int) -> None:
        self.launches = launches
        self._width = width
        self.mask = mask
        self.members = None if all(mask) else [i for i, present in enumerate(mask) if present]
        self.cohorts: tuple[Cohort, ...] = ()
        self._version = -1

    def bind(self, gradients: Sequence[object]) -> bool:
        """Bind all launches, or none and return False. Only for gradients with this set's mask."""
        for launch in self.launches:
            if not launch.launcher.bind(gradients if launch.pick is None else launch.pick(gradients)):
                self.release()
                return False
        return True

    def follow(self, cohorts: Cohorts) -> None:
        """Find this set's cohorts and the rows of its launches anew if tensors have changed cohorts."""
        if self._version == cohorts.version:
            return
        self.cohorts, places = cohorts.select(self.members)
        tables: dict[str, HostArray] = {}
        for launch in self.launches:
            launch.rows = places[launch.members]
            shape = (len(self.cohorts), max(1, self._width))
            launch.table = tables.setdefault(launch.dtype, np.zeros(shape, launch.dtype))
        self._version = cohorts.version

    def fill(self, rows: Sequence[tuple[float, ...]], wide: Sequence[tuple[float, ...]]) -> None:
        """Write a row of scalars for each cohort, each value rounded once to the type of the tables.

        ``wide`` has a row for each cohort if the rule is staged.
        """
        if self._width:
            for table in {launch.dtype: launch.table for launch in self.launches}.values():
                table[...] = rows

    def take_back(self) -> None:
        """The last launch has done nothing: forget what stands on the host for it."""

    def unless(self, skip: Skip) -> None:
        """What is launched until ``release`` does nothing if this is set."""
        for launch in self.launches:
            skip.guard(launch.launcher)

    def finite(self) -> bool:
        """Whether all bound gradients are finite."""
        return all(launch.launcher.finite() for launch in self.launches)

    def release(self) -> None:
        """Let go of the gradients."""
        for launch in self.launches:
            launch.launcher.release()


class LaunchSet(BoundSet[Launcher]):
    """The launches of a rule that is elementwise."""

    __slots__ = ()

    def launch(self, evaluate: Callable[[], None] | None = None) -> None:
        """Run the update of everything that is bound. Such a rule evaluates nothing."""
        for launch in self.launches:
            launch.launcher.launch(launch.table, launch.rows)


class StagedLaunchSet(BoundSet[StagedLauncher]):
    """The launches of a staged rule, which go through its passes together.

    ``total_size`` is the number of elements of all tensors with gradients.
    """

    __slots__ = ("_steps", "_total_size", "_wide", "_wide_width", "_workspace")

    def __init__(
        self,
        launches: tuple[Launch[StagedLauncher], ...],
        mask: bytes,
        width: int,
        wide_width: int,
        total_size: int,
        workspace: Workspace,
    ) -> None:
        super().__init__(launches, mask, width)
        self._wide_width = wide_width
        self._wide = np.zeros((0, 0))
        self._total_size = float(total_size)
        self._workspace = workspace
        self._steps: list[tuple[StagedLauncher, Step]] = []

    def follow(self, cohorts: Cohorts) -> None:
        """See ``BoundSet``."""
        if self._version == cohorts.version:
            return
        super().follow(cohorts)
        self._wide = np.zeros((len(self.cohorts), max(1, self._wide_width)))
        leader = self.mask.find(1)
        self._steps = [
            (launch.launcher, Step(launch.table, launch.rows, self._wide, self._total_size, leader))
            for launch in self.launches
        ]

    def fill(self, rows: Sequence[tuple[float, ...]], wide: Sequence[tuple[float, ...]]) -> None:
        """See ``BoundSet``."""
        super().fill(rows, wide)
        if self._wide_width and self.launches:
            self._wide[...] = wide

    def launch(self, evaluate: Callable[[], None] | None = None) -> None:
        """Run the update of everything that is bound. ``evaluate`` binds other gradients."""
        if self._steps:
            self._workspace.run(self._steps, evaluate)

    def take_back(self) -> None:
        """See ``BoundSet``."""
        if self._steps:
            self._workspace.take_back()


AnyLaunchSet = LaunchSet | StagedLaunchSet
"""The launches of one pattern, of whichever kind of rule."""


class Launches:
    """The launches of an optimizer, by pattern of gradients.

    A gradient may overlap nothing that the optimizer owns, no parameter and no state, whether or not this
    step writes it: so what is allowed doesn't depend on which gradients are None.
    """

    def __init__(
        self,
        definition: Definition,
        backend: Backend,
        tensors: Sequence[Tensor],
        options: Sequence[Mapping[str, bool]],
        workspace: Workspace | None = None,
        owners: Sequence[Tensor] | None = None,
    ) -> None:
        """``options`` has the options of each group. Staged rules have a ``workspace``. What the optimizer
        owns are the arrays of ``owners``, if ``tensors`` aren't all."""
        self._definition = definition
        self._workspace = workspace
        self._backend = backend
        self._tensors = tensors
        self._options = options
        self._current: AnyLaunchSet | None = None
        self._known: dict[tuple[str | None, ...], AnyLaunchSet] = {}  # by dtypes, most recently used last
        owned = [
            (array, tensor.plan.name)
            for tensor in (tensors if owners is None else owners)
            for array in (tensor.plan.param, *tensor.plan.states, *tensor.plan.carried)
            if array is not None
        ]
        self._owned = Spans.over([array for array, _ in owned], backend.span_of)
        self._owners = [name for _, name in owned]

    def bind(self, gradients: Sequence[object]) -> AnyLaunchSet:
        """Bind gradients, one or None a tensor. Raises ArrayError that says which can't be used and why, and
        ByRows if some are given by rows."""
        current = self._current
        if current is not None and current.members is None and current.bind(gradients):
            return current
        mask = bytes([gradient is not None for gradient in gradients])
        for dtypes, known in reversed(self._known.items()):
            if known.mask == mask and known.bind(gradients):
                return self._use(dtypes, known)
        if has_rows(gradients):
            raise ByRows
        self._check(gradients)
        dtypes = tuple(None if g is None else self._backend.dtype_of(g) for g in gradients)
        found = self._known.get(dtypes)
        if found is None:
            found = self._prepare(dtypes, mask)
            if len(self._known) >= KEPT_PATTERNS:
                del self._known[next(iter(self._known))]
        if not found.bind(gradients):
            raise CompilerBug("a launcher refuses gradients that were checked")
        return self._use(dtypes, found)

    def bind_again(self, bound: AnyLaunchSet, gradients: Sequence[object]) -> None:
        """Bind other gradients in the middle of a step, of the same tensors and dtypes.

        Raises ArrayError that says which differ or can't be used.
        """
        for tensor, present, gradient in zip(self._tensors, bound.mask, gradients, strict=True):
            if bool(present) is (gradient is None):
                here, there = ("a", "none") if gradient is not None else ("no", "one")
                raise ArrayError(
                    f"{tensor.plan.name!r} has {here} gradient, but had {there} in the first evaluation, "
                    "which decides which tensors take part in the step"
                )
        if bound.bind(gradients):
            return
        self._check(gradients)
        for launch in bound.launches:
            for i in launch.members:
                dtype, first = self._backend.dtype_of(gradients[i]), launch.grad_dtype
                if dtype != first:
                    raise ArrayError(
                        f"the gradient of {self._tensors[i].plan.name!r} has dtype {dtype}, but had {first} "
                        "in the first evaluation; all those of a step must have the same"
                    )
        raise CompilerBug("a launcher refuses gradients that were checked")

    def _use(self, dtypes: tuple[str | None, ...], launches: AnyLaunchSet) -> AnyLaunchSet:
        self._known.pop(dtypes, None)
        self._known[dtypes] = self._current = launches
        return launches

    def _check(self, gradients: Sequence[object]) -> None:
        for tensor, gradient in zip(self._tensors, gradients, strict=True):
            if gradient is None:
                continue
            name = tensor.plan.name
            check_written(self._definition, tensor.plan)
            self._backend.check_gradient(name, tensor.plan.param, gradient)
            met = self._owned.met_by(*self._backend.span_of(gradient))
            if met is not None:
                raise ArrayError(
                    f"the gradient of {name!r} shares memory with the parameter {self._owners[met]!r} "
                    "or its state, which the optimizer overwrites; pass a copy"
                )

    def _prepare(self, dtypes: tuple[str | None, ...], mask: bytes) -> AnyLaunchSet:
        parts: dict[tuple[str, str, tuple[bool, ...]], list[int]] = {}
        for i, (tensor, grad_dtype) in enumerate(zip(self._tensors, dtypes, strict=True)):
            if grad_dtype is not None:
                options = tuple(self._options[tensor.group].values())
                parts.setdefault((tensor.dtype, grad_dtype, options), []).append(i)
        launches: list[Launch[Launcher | StagedLauncher]] = []
        kernels = self._backend.table == "kernel"
        for (param_dtype, grad_dtype, _), members in parts.items():
            plan = LaunchPlan(
                definition=self._definition,
                options=dict(self._options[self._tensors[members[0]].group]),
                param_dtype=param_dtype,
                grad_dtype=grad_dtype,
                tensors=tuple(self._tensors[i].plan for i in members),
                owned=self._owned,
                positions=tuple(members),
                workspace=self._workspace,
            )
            everything = len(members) == len(self._tensors)
            launches.append(
                Launch(
                    self._backend.prepare(plan),
                    members,
                    STORAGE_TYPES[param_dtype].compute if kernels else "float64",
                    grad_dtype,
                    None if everything else picker(members),
                )
            )
        width = table_width(self._definition, self._backend.table)
        if self._workspace is None:
            return LaunchSet(cast("tuple[Launch[Launcher], ...]", tuple(launches)), mask, width)
        return StagedLaunchSet(
            cast("tuple[Launch[StagedLauncher], ...]", tuple(launches)),
            mask,
            width,
            len(self._definition.wide),
            sum(math.prod(t.plan.shape) for t, present in zip(self._tensors, mask, strict=True) if present),
            self._workspace,
        )
