"""Which launches a step needs, prepared once and kept.

Tensors with equal dtypes and options are updated by one launch. Which tensors have gradients, and of
which dtypes, seldom changes from step to step: the launches for each such pattern are kept, and a step
like the one before costs one quick check a launch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from solvergen.errors import ArrayError, CompilerBug
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.backends.base import Backend, Launcher, LaunchPlan
from solvergen.runtime.cohorts import Cohort, Cohorts
from solvergen.runtime.definition import Definition
from solvergen.runtime.dtypes import STORAGE_TYPES
from solvergen.runtime.layout import picker
from solvergen.runtime.spans import Spans
from solvergen.runtime.tables import table_width
from solvergen.runtime.tensors import Tensor

KEPT_PATTERNS = 32
"""Patterns of gradients (present or not, and of which dtypes) whose launches are kept; the least recently
used are dropped."""


class Launch:
    """A launcher, the positions of its tensors, and the tables that it reads.

    ``dtype`` is the table's. ``pick`` reads this launch's gradients out of all; None where they are all
    of them in order.
    """

    __slots__ = ("dtype", "launcher", "members", "pick", "rows", "table")

    def __init__(
        self,
        launcher: Launcher,
        members: list[int],
        dtype: str,
        pick: Callable[[Sequence[object]], Sequence[object]] | None,
    ) -> None:
        self.launcher = launcher
        self.members = members
        self.dtype = dtype
        self.pick = pick
        self.rows = np.zeros(0, np.int32)
        self.table = np.zeros((0, 0), dtype)


class LaunchSet:
    """The launches of one pattern. ``mask`` has a byte for each tensor, 1 where it has a gradient.

    ``width`` is the number of columns of the tables.
    """

    __slots__ = ("_version", "_width", "cohorts", "launches", "mask", "members")

    def __init__(self, launches: tuple[Launch, ...], mask: bytes, width: int) -> None:
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

    def fill(self, rows: Sequence[tuple[float, ...]]) -> None:
        """Write a row of scalars for each cohort, each value rounded once to the type of the tables."""
        if self._width:
            for table in {launch.dtype: launch.table for launch in self.launches}.values():
                table[...] = rows

    def launch(self) -> None:
        """Run the update of everything that is bound."""
        for launch in self.launches:
            launch.launcher.launch(launch.table, launch.rows)

    def finite(self) -> bool:
        """Whether all bound gradients are finite."""
        return all(launch.launcher.finite() for launch in self.launches)

    def release(self) -> None:
        """Let go of the gradients."""
        for launch in self.launches:
            launch.launcher.release()


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
    ) -> None:
        """``options`` has the options of each group."""
        self._definition = definition
        self._backend = backend
        self._tensors = tensors
        self._options = options
        self._current: LaunchSet | None = None
        self._known: dict[tuple[str | None, ...], LaunchSet] = {}  # by dtypes, most recently used last
        owned = [(a, t.plan.name) for t in tensors for a in (t.plan.param, *t.plan.states) if a is not None]
        self._owned = Spans.over([array for array, _ in owned], backend.span_of)
        self._owners = [name for _, name in owned]

    def bind(self, gradients: Sequence[object]) -> LaunchSet:
        """Bind gradients, one or None a tensor. Raises ArrayError that says which can't be used and why."""
        current = self._current
        if current is not None and current.members is None and current.bind(gradients):
            return current
        mask = bytes([gradient is not None for gradient in gradients])
        for dtypes, known in reversed(self._known.items()):
            if known.mask == mask and known.bind(gradients):
                return self._use(dtypes, known)
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

    def _use(self, dtypes: tuple[str | None, ...], launches: LaunchSet) -> LaunchSet:
        self._known.pop(dtypes, None)
        self._known[dtypes] = self._current = launches
        return launches

    def _check(self, gradients: Sequence[object]) -> None:
        for tensor, gradient in zip(self._tensors, gradients, strict=True):
            if gradient is None:
                continue
            name = tensor.plan.name
            self._backend.check_gradient(name, tensor.plan.param, gradient)
            met = self._owned.met_by(*self._backend.span_of(gradient))
            if met is not None:
                raise ArrayError(
                    f"the gradient of {name!r} shares memory with the parameter {self._owners[met]!r} "
                    "or its state, which the optimizer overwrites; pass a copy"
                )

    def _prepare(self, dtypes: tuple[str | None, ...], mask: bytes) -> LaunchSet:
        parts: dict[tuple[str, str, tuple[bool, ...]], list[int]] = {}
        for i, (tensor, grad_dtype) in enumerate(zip(self._tensors, dtypes, strict=True)):
            if grad_dtype is not None:
                options = tuple(self._options[tensor.group].values())
                parts.setdefault((tensor.dtype, grad_dtype, options), []).append(i)
        launches = []
        kernels = self._backend.table == "kernel"
        for (param_dtype, grad_dtype, _), members in parts.items():
            plan = LaunchPlan(
                definition=self._definition,
                options=dict(self._options[self._tensors[members[0]].group]),
                param_dtype=param_dtype,
                grad_dtype=grad_dtype,
                tensors=tuple(self._tensors[i].plan for i in members),
                owned=self._owned,
            )
            everything = len(members) == len(self._tensors)
            launches.append(
                Launch(
                    self._backend.prepare(plan),
                    members,
                    STORAGE_TYPES[param_dtype].compute if kernels else "float64",
                    None if everything else picker(members),
                )
            )
        return LaunchSet(tuple(launches), mask, table_width(self._definition, self._backend.table))
