"""Optimizers whose update is wrapped: clipping, accumulation, decay, bounds, averages.

What happens to elements is generated (``<name>/wrapped/``). Here is what happens around a step: which calls
only sum gradients up, and the swap of parameters and their average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from solvergen.errors import ArrayError, HyperparameterError, OptimizerError
from solvergen.runtime import shadows
from solvergen.runtime.arrays import Array
from solvergen.runtime.buffers import type_name, writable
from solvergen.runtime.closures import Closure
from solvergen.runtime.cohorts import Cohort
from solvergen.runtime.constraining import Constraints, Unchanged
from solvergen.runtime.definition import Definition, definition_of
from solvergen.runtime.dtypes import numpy_dtype
from solvergen.runtime.interrupts import NothingDone, uninterrupted
from solvergen.runtime.naming import as_name, listed
from solvergen.runtime.optimizer import Optimizer
from solvergen.runtime.parameters import ParameterGroup, Parameters
from solvergen.runtime.plan import Launches
from solvergen.runtime.row_sparse import check_rule, has_rows
from solvergen.runtime.spans import overlapping
from solvergen.runtime.sums import Sums
from solvergen.runtime.views import TensorView
from solvergen.runtime.wrappers import (
    PREFIX,
    SAID_BY,
    Wrappers,
    wrapper_hyperparameters,
    wrapper_options,
    wrappers_of,
)

if TYPE_CHECKING:
    from solvergen.runtime.backends.base import Skip
    from solvergen.runtime.plan import AnyLaunchSet
    from solvergen.runtime.state import SnapshotData

_AGREE = (
    ("accumulate", "wrap_every"),
    ("accumulation", "wrap_mean"),
    ("order", "wrap_clip_sum"),
    ("accumulate", "wrap_accumulate"),
    ("clip_grad_norm (or None)", "wrap_clip_global"),
    ("average (or None)", "wrap_keep_average"),
    ("write_update", "wrap_write_update"),
)
"""What is one matter of all groups: how it is called, and the hyperparameter or option that says it."""


class WrappedOptimizer(Optimizer):
    """An optimizer whose update is wrapped; ``Adam(params, wrappers=Wrappers(...))`` makes one.

    The ``wrap_`` hyperparameters are what wrappers are to the update; ``wrappers`` puts them into words.
    """

    _averaging = False
    _copying: Constraints | None = None
    """What makes copies anew, once somebody has asked for it."""

    @property
    def wrappers(self) -> Wrappers:
        """What wraps the update. What costs no memory and no pass can be assigned anew; for the rest, make a
        new optimizer. Raises OptimizerError where groups differ."""
        every = [wrappers_of(group.hyperparameters, group.options) for group in self._groups]
        if any(one != every[0] for one in every):
            raise OptimizerError("groups have different wrappers; read the wrap_ values of opt.groups[i]")
        return every[0]

    @wrappers.setter
    def wrappers(self, wrappers: Wrappers) -> None:
        checked = _checked(wrappers, "wrappers")
        wanted = _options(checked, self.definition)
        if checked.accumulate == 1 and self._sums is not None:
            wanted["wrap_accumulate"] = True  # a sum that is there may be left unused
        for group in self._groups:
            for name, value in wanted.items():
                if group.options[name] != value:
                    raise HyperparameterError(
                        f"these wrappers say {SAID_BY[name]} otherwise than those that are compiled in; make "
                        "a new optimizer with them"
                    )
        self.set(**wrapper_hyperparameters(checked, self.definition))

    @property
    def pending(self) -> int:
        """How many calls of ``step`` have been summed up since the last update."""
        if self._sums is None:
            return 0
        return int(max(cohort.scalars[self._column] for cohort in self._cohorts.all))

    def freeze(self, names: str | Iterable[str]) -> None:
        """See ``Optimizer``. Raises OptimizerError while calls are summed up that haven't updated yet."""
        if self.pending:
            raise OptimizerError("there are calls that were only summed up: flush() before freezing")
        super().freeze(names)

    def flush(self) -> bool:
        """Update with what was summed up, though fewer calls were made than make a step.

        Returns False, with nothing changed, if there is nothing.
        """
        self._check_idle("flush")
        calls = self.pending
        return bool(calls) and self._update([None] * len(self._names), calls)

    @property
    def clip_norm(self) -> float:
        """The norm of all gradients together that the last update held against ``clip_grad_norm``: before
        clipping, after unscaling; 0 before the first. Reading it waits for a GPU."""
        if not self._groups[0].options["wrap_clip_global"]:
            raise OptimizerError("this optimizer takes no norm; make one with Wrappers(clip_grad_norm=...)")
        return self.shared["wrap_norm"]

    @property
    def averages(self) -> TensorView[Any]:
        """The exponential averages of the parameters, by name: the live arrays."""
        column = self._average_column()
        if self._averaging:
            raise OptimizerError("in averaged() the parameters are the averages: read opt.params")
        return self._view("averages", self._positions, lambda i: self._tensors[i].plan.states[column])

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """A block in which the parameters are their averages, rounded to their type. Afterwards they are what
        they were, to the bit, whatever the block raises. The optimizer does nothing meanwhile."""
        self._check_idle("averaged")
        column = self._average_column()
        back: list[Callable[[], None]] = []

        def take() -> None:
            for tensor in self._tensors:
                writable(tensor.plan.param, f"parameter {tensor.plan.name!r}")
            with np.errstate(all="ignore"):
                for tensor in self._tensors:
                    average = tensor.plan.states[column]
                    assert average is not None
                    back.append(self._exchange(tensor.plan.param, average, tensor.dtype))
            self._averaging = True

        def put_back() -> None:
            while back:
                back.pop()()
            self._averaging = False

        try:
            uninterrupted(take)
            yield
        finally:
            uninterrupted(put_back)

    @property
    def shadows(self) -> TensorView[Any]:
        """The copies of the parameters in the type that ``Wrappers(shadow=...)`` names, by name: the live
        arrays. A step writes them with the parameters; what else writes parameters has ``refresh_shadows`` to
        call (``load`` does so itself).

        Assigning a mapping of names to arrays puts these in the place of those that there are: of the same
        type and shape, contiguous, on the parameters' device. Raises ArrayError for what can't be used."""
        if not self._shadows:
            raise OptimizerError("this optimizer keeps no copy; make one with Wrappers(shadow='bfloat16')")
        return self._view("shadows", {self._names[i]: i for i in self._shadows}, self._shadows.__getitem__)

    @shadows.setter
    def shadows(self, arrays: Mapping[str, Any]) -> None:
        self._check_idle("assigning shadows")
        if not self._shadows or not isinstance(arrays, Mapping):
            whose = "" if self._shadows else " of an optimizer with Wrappers(shadow=...)"
            raise OptimizerError(f"shadows{whose} is assigned a mapping of names to arrays")
        given = {as_name(key, self._by_position): array for key, array in arrays.items()}
        unknown = [name for name in given if self._positions.get(name) not in self._shadows]
        if unknown:
            copies = [self._names[i] for i in self._shadows]
            raise OptimizerError(f"there is no copy of {listed(unknown)}; copies are of {listed(copies)}")
        kept = dict(self._shadows)
        for name, array in given.items():
            i = self._positions[name]
            kept[i] = shadows.adopted(self._backend, name, self._shadows[i], array)
        tensors = shadows.in_place(self.definition, self._backend, self._tensors, kept)
        options = [group.options for group in self._groups]
        launches = Launches(self.definition, self._backend, tensors, options, self._workspace)
        go_over = self._constraint.moved(tensors, kept)

        def take() -> None:
            self._tensors, self._launches = tensors, launches
            go_over()
            self._prepare()
            self._refresh()

        uninterrupted(take)

    def refresh_shadows(self) -> None:
        """Make the copies anew from the parameters, as they are now."""
        self._check_idle("refresh_shadows")
        self._copy(None)

    def _copy(self, members: Sequence[int] | None) -> None:
        if not self._shadows:
            return
        if self._copying is None:
            chosen = dict.fromkeys(self._shadows, Unchanged())
            self._copying = Constraints(type(self), self._backend, self._tensors, chosen, self._shadows)
        work = self._copying.bound(members, None)
        try:
            if work is not None:
                uninterrupted(work)
        finally:
            self._copying.release()

    def _refresh(self) -> None:
        shadows.refresh(self._backend, self._tensors, self._shadows)

    def _exchange(self, param: Array, average: Array, dtype: str) -> Callable[[], None]:
        """Put ``average`` in the place of ``param``. Returns what puts everything back."""
        backend = self._backend
        if backend.dtype_of(average) == dtype:

            def swap() -> None:
                kept = param.copy()
                param[...] = average
                average[...] = kept

            swap()
            return swap
        kept = backend.to_host(param)
        backend.copy_in(param, backend.to_host(average).astype(numpy_dtype(dtype)))
        return lambda: backend.copy_in(param, kept)

    def _average_column(self) -> int:
        if not self._groups[0].options["wrap_keep_average"]:
            raise OptimizerError("this optimizer keeps no average; make one with Wrappers(average=...)")
        return self.definition.array_states.index("wrap_average")

    # What the base class asks for.

    def _with_wrappers(
        self,
        read: Parameters,
        hyperparameters: Mapping[str, Any],
        options: Mapping[str, Any],
        wrappers: Any,
    ) -> tuple[Parameters, Mapping[str, Any], Mapping[str, Any]]:
        definition = self.definition
        base = _checked(Wrappers() if wrappers is None else wrappers, "wrappers")
        groups = []
        for i, group in enumerate(read.groups):
            settings = dict(group.settings)
            own = base
            if "wrappers" in settings:
                own = _checked(settings.pop("wrappers"), f"'wrappers' in params[{i}]")
                settings = {
                    **wrapper_hyperparameters(own, definition),
                    **_options(own, definition),
                    **settings,
                }
            if own.maximize and settings.get("maximize", options.get("maximize")):
                raise HyperparameterError(
                    f"maximize is given twice, to {definition.class_name.removeprefix('Wrapped')} and to its "
                    "wrappers, which would descend"
                )
            groups.append(ParameterGroup(group.names, settings))
        return (
            Parameters(read.names, read.arrays, tuple(groups), read.layout),
            {**hyperparameters, **wrapper_hyperparameters(base, definition)},
            {**options, **_options(base, definition)},
        )

    def _check_groups(self) -> None:
        first = {**self._groups[0].hyperparameters, **self._groups[0].options}
        for i, group in enumerate(self._groups):
            own = {**group.hyperparameters, **group.options}
            for what, name in _AGREE:
                if own.get(name) != first.get(name):
                    raise OptimizerError(
                        f"params[0] and params[{i}] differ in their wrappers' {what}, which is one for all "
                        "groups: begin a group's wrappers with those of the optimizer, "
                        "dataclasses.replace(wrappers, l2=0)"
                    )

    def _prepare(self) -> None:
        self._writes = self._groups[0].options["wrap_write_update"]
        self._shadows = shadows.copies_in(self.definition, self._tensors)
        self._copying = None
        self._sums: Sums | None = None
        if not self._groups[0].options.get("wrap_accumulate"):
            return
        definition = self.definition
        self._column = definition.scalar_states.index("wrap_calls")
        self._calls = 0
        self._scalars_of = self._scalars_counted
        column = definition.array_states.index("wrap_sum")
        self._sums = Sums(
            _accumulation(type(self)),
            self._backend,
            self._tensors,
            [tensor.plan.states[column] for tensor in self._tensors],
        )

    def _check_idle(self, what: str) -> None:
        super()._check_idle(what)
        if self._averaging:
            raise OptimizerError(f"the parameters are their averages: {what} comes after averaged()")

    def _step(self, flat: Sequence[object], closure: Closure | None, skip: Skip | None = None) -> bool:
        self._check_idle("step")
        if (self._writes or self._sums is not None) and has_rows(flat):
            check_rule(self.definition.class_name, self.definition, dict(self._groups[0].options))
        if self._writes:
            self._launches.bind(flat).release()
            self._check_bound(flat)
        if self._sums is None:
            return super()._step(flat, closure, skip)
        if all(gradient is None for gradient in flat):
            return True  # no call: there is nothing to sum
        calls = self.pending + 1
        return (self._update if calls >= self.wrap_every else self._add)(flat, calls, skip)

    def _check_bound(self, flat: Sequence[object]) -> None:
        """Raises ArrayError for gradients that no update can be written to."""
        if not self._writes:
            return
        present = [(name, g) for name, g in zip(self._names, flat, strict=True) if g is not None]
        for name, gradient in present:
            writable(gradient, f"the gradient of {name!r}, which the update is to be written to,")
        found = overlapping((*self._backend.span_of(gradient), name) for name, gradient in present)
        if found is not None:
            raise ArrayError(
                f"the gradients of {found[0]!r} and {found[1]!r} share memory, and the update of each is to "
                "be written there; give each an array of its own"
            )

    def _update(self, flat: Sequence[object], calls: int, skip: Skip | None = None) -> bool:
        """Update all tensors that have a gradient in this call or in one that was summed up."""
        whole = [
            self._backend.allocate(self._tensors[i].plan.param, 0.0)
            if gradient is None and i not in self._frozen and self._takes_part(i)
            else gradient
            for i, gradient in enumerate(flat)
        ]
        self._calls = calls
        return super()._step(whole, None, skip)

    def _add(self, flat: Sequence[object], calls: int, skip: Skip | None) -> bool:
        """Sum these gradients up, and count the call for all tensors that take part."""
        assert self._sums is not None
        bound = self._sums.launches.bind(flat)
        try:
            if self._policy != "propagate" and skip is not None and skip.is_set():
                return False
            if not self._may_step(bound, flat):
                return False
            bound.follow(self._sums.cohorts)
            taking_part = (i for i in range(len(flat)) if i not in self._frozen and self._takes_part(i))
            members = sorted({*taking_part, *(i for i, g in enumerate(flat) if g is not None)})
            cohorts, _ = self._cohorts.select(None if len(members) == len(flat) else members)
            uninterrupted(lambda: self._launch_sum(bound, cohorts, calls, skip))
        finally:
            bound.release()
        return True

    def _launch_sum(
        self,
        bound: AnyLaunchSet,
        cohorts: Sequence[Cohort],
        calls: int,
        skip: Skip | None,
    ) -> None:
        before = [(cohort, cohort.scalars) for cohort in cohorts]

        def undo() -> None:
            for cohort, scalars in before:
                cohort.scalars = scalars

        try:
            if skip is not None:
                bound.unless(skip)
            for cohort in cohorts:
                cohort.scalars = self._counted(cohort.scalars, calls)
            bound.launch()
        except (Exception, SystemExit, NothingDone):  # as in a step
            undo()
            raise
        if skip is not None:
            self._unsettled.keep(skip, undo, bound)

    def _takes_part(self, tensor: int) -> bool:
        """Whether a call that was summed up had a gradient for this tensor."""
        return self._cohorts.of(tensor).scalars[self._column] != 0.0

    def _counted(self, scalars: tuple[float, ...], calls: int) -> tuple[float, ...]:
        return (*scalars[: self._column], float(calls), *scalars[self._column + 1 :])

    def _scalars_counted(self, cohort: Cohort) -> tuple[float, ...]:
        """The scalar states that an update begins with: all its tensors have as many calls."""
        return self._counted(cohort.scalars, self._calls)

    def _adapted(self, data: SnapshotData, source: str) -> SnapshotData:
        from solvergen.runtime.rewrapping import with_own_copies, with_wrappers

        found = with_wrappers(data, self.definition, unwrapped(type(self)).definition, self._snapshot)
        return with_own_copies(found, self._groups)

    def __repr__(self) -> str:
        return self._repr(
            unwrapped(type(self)).__name__,
            lambda name: not name.startswith(PREFIX),
            [{"wrappers": wrappers_of(g.hyperparameters, g.options)} for g in self._groups],
        )


def unwrapped(cls: type[Any]) -> type[Optimizer]:
    """The class that ``cls``, a wrapped one, wraps."""
    owners = [one for one in cls.__mro__ if "definition" in one.__dict__]
    return owners[1]


def wrapped_class(cls: type[Optimizer]) -> type[Optimizer]:
    """The wrapped class beside ``cls``, a generated one. Raises OptimizerError where there is none."""
    definition = definition_of(cls)
    if "definition" not in cls.__dict__:
        raise OptimizerError(
            f"{cls.__name__} is no generated class, but derived from one: make the wrapped optimizer of "
            f"{definition.class_name}"
        )
    name = f"{cls.__module__}.wrapped"
    try:
        module = import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != name:
            raise
        raise OptimizerError(
            f"{definition.class_name} was built without wrappers: run solvergen build again"
        ) from None
    found: type[Optimizer] = getattr(module, f"Wrapped{definition.class_name}")
    return found


def _accumulation(cls: type[Optimizer]) -> Definition:
    """The rule that sums gradients up, of the package that ``cls`` is in."""
    package = unwrapped(cls).__module__.rpartition(".")[0]
    found: Definition = import_module(f"{package}._accumulate.schema").DEFINITION
    return found


def _options(wrappers: Wrappers, definition: Definition) -> dict[str, bool]:
    """The options that say what costs memory or a pass. Raises OptimizerError if the rule can't have it."""
    options = wrapper_options(wrappers)
    if definition.evaluations and options.pop("wrap_accumulate"):
        raise OptimizerError(
            f"{definition.class_name.removeprefix('Wrapped')} evaluates the gradient several times in a "
            f"step, so accumulate={wrappers.accumulate} has no gradients to sum up; have the function that "
            f"it calls evaluate {wrappers.accumulate} batches and return the mean of their gradients"
        )
    return options


def _checked(wrappers: Any, what: str) -> Wrappers:
    if not isinstance(wrappers, Wrappers):
        raise HyperparameterError(f"{what} must be solvergen.Wrappers(...), not a {type_name(wrappers)}")
    return wrappers
