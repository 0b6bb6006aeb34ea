"""The base class of every generated optimizer.

It puts the parts together: parameters are named and checked, groups hold hyperparameters, cohorts hold
counts and scalar states, launches run the update on a backend. Each has a module of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

import numpy as np

from solvergen.errors import (
    ArrayError,
    CompilerBug,
    OptimizerError,
)
from solvergen.runtime import backends
from solvergen.runtime.arrays import Array, HostArray
from solvergen.runtime.attributes import Attributes
from solvergen.runtime.backends.base import Backend, Flags, Skip, Workspace
from solvergen.runtime.blocks import BLOCKS, block_counts, read_blocks
from solvergen.runtime.closures import Closure, LeftOut, asks_for_closure, evaluated, is_closure
from solvergen.runtime.cohorts import Cohort, Cohorts
from solvergen.runtime.constraint_setting import ConstraintFunction, ConstraintSetting, constraints_of
from solvergen.runtime.definition import definition_of
from solvergen.runtime.freezing import FrozenLayout, positions_of, read_frozen
from solvergen.runtime.grouping import first_cohorts, make_groups
from solvergen.runtime.groups import Group
from solvergen.runtime.interrupts import interruptible, uninterrupted
from solvergen.runtime.launching import launch, launch_evaluating, launch_unless
from solvergen.runtime.lines import LineStates
from solvergen.runtime.parameters import Parameters, has_wrappers, read_parameters
from solvergen.runtime.plan import AnyLaunchSet, Launches
from solvergen.runtime.policies import checked_policy, raise_nonfinite
from solvergen.runtime.row_sparse import ByRows, gathered
from solvergen.runtime.settling import Unsettled
from solvergen.runtime.tables import Settings, host_step
from solvergen.runtime.tensors import adopt_all, line_states_of, make_tensors, make_workspace
from solvergen.runtime.views import SharedView, StateView, TensorView

if TYPE_CHECKING:
    from solvergen.runtime.constraints import Constraint
    from solvergen.runtime.state import SnapshotData
    from solvergen.runtime.wrappers import Wrappers

Self = TypeVar("Self", bound="Optimizer")
Loss = TypeVar("Loss")


class Optimizer(Attributes):
    """Updates parameters in place by a generated rule. Subclasses give ``definition``.

    Hyperparameters are attributes: ``opt.lr`` reads the value that all groups share, ``opt.lr = x`` sets
    it in all groups; ``opt.groups[i].lr`` is one group's own. They may change between any two steps.

    One thread at a time may use an optimizer; the parameters must not be written while it steps.
    """

    _calling = ""
    _shadows: Mapping[int, Array] = MappingProxyType({})
    """The copies of parameters in another type, by position. Wrapped optimizers may have some."""

    def __new__(cls, params: Any = None, *args: Any, wrappers: Any = None, **kwargs: Any) -> Any:
        """An instance of ``cls``; of the wrapped class beside it if there are wrappers."""
        if wrappers is None and not has_wrappers(params):
            return object.__new__(cls)
        from solvergen.runtime.wrapped_classes import wrapped_class
        from solvergen.runtime.wrapping import WrappedOptimizer

        return object.__new__(cls if issubclass(cls, WrappedOptimizer) else wrapped_class(cls))

    def __init__(
        self,
        params: Any,
        *,
        hyperparameters: Mapping[str, Any],
        options: Mapping[str, Any],
        backend: str | Backend = "auto",
        nonfinite: str = "propagate",
        wrappers: Wrappers | None = None,
        blocks: Any = None,
    ) -> None:
        """Check everything, then allocate the states.

        ``params``: an array, a list or tuple or mapping of arrays, or a list of groups
        ``{"params": ..., "lr": ..., "lr_mult": ...}``. Raises ArrayError for parameters that can't be
        updated in place, HyperparameterError for settings, BackendUnavailable for backends.

        ``blocks`` is for rules that know some: into how many equal blocks parameters fall, a mapping of
        names to whole numbers or to ``"rows"`` (one for each index of the first axis), or one of these for
        all; a group may have its own. What isn't named is one block. Raises OptimizerError for counts that
        don't divide.
        """
        definition = definition_of(type(self))
        read, frozen = read_frozen(read_parameters(params))
        read, self._given_blocks = read_blocks(definition, read, blocks)
        read, constraints = constraints_of(read)
        read, hyperparameters, options = self._with_wrappers(read, hyperparameters, options, wrappers)
        self._policy = checked_policy(nonfinite)
        self._groups = make_groups(definition, read, hyperparameters, options, self._changed)
        self._check_groups()
        self._settings = Settings(self._groups)
        self._backend = backends.chosen(backend, read.arrays)
        self._given_backend = backend if isinstance(backend, str) else backend.name
        self._by_position = read.layout.by_position
        self._whole_layout = read.layout
        self._freeze(frozen)
        self._names = read.names
        self._positions = {name: i for i, name in enumerate(read.names)}
        arrays = adopt_all(self._backend, read.names, read.arrays)
        counts = block_counts(read.names, [array.shape for array in arrays], self._given_blocks)
        self._tensors = make_tensors(definition, self._backend, read.names, arrays, self._groups, counts)
        self._all_cohorts = Cohorts(
            first_cohorts(definition, self._groups, self._positions), len(self._names)
        )
        self._workspace = make_workspace(definition, self._backend, self._tensors, self._groups)
        self._launches = Launches(
            definition, self._backend, self._tensors, [g.options for g in self._groups], self._workspace
        )
        self._flags: Flags | None = None
        self._unsettled = Unsettled()
        self._scalars_of: Callable[[Cohort], tuple[float, ...]] = attrgetter("scalars")
        self._prepare()
        self._constraint = ConstraintSetting(
            type(self),
            self._backend,
            self._tensors,
            constraints,
            by_position=self._by_position,
            copies=self._shadows,
        )

    @overload
    def step(self, gradients: Callable[[], tuple[Loss, Any]]) -> Loss: ...

    @overload
    def step(self, gradients: Any, *, found_inf: Any = None) -> bool: ...

    def step(self, gradients: Any, *, found_inf: Any = None) -> Any:
        """Update every parameter that has a gradient, in place.

        ``gradients``: laid out as the parameters were; None leaves a tensor alone, its state and its count
        too; a ``RowSparse`` speaks of some rows alone. float64 parameters take float64 gradients, others
        float32, bfloat16 or float16 ones. Or a function without arguments that evaluates at the parameters as
        they are and returns ``(loss, gradients)``; a rule that evaluates the gradient several times in a step
        takes nothing else, and calls it each time.

        ``found_inf``: a number, or an array of one element on the parameters' device (float32 as torch's
        GradScaler has it, bool or whole); if it isn't 0 nothing changes, and no call is counted. A GPU looks
        at it by itself: the host goes on, and finds out when ``t``, ``steps``, scalar states or a snapshot
        are asked for, or at the next step.

        Returns True, or False if ``nonfinite="skip"`` or ``found_inf`` left the step out (True if only a GPU
        knows the latter); given a function, the loss of its first evaluation. Raises ArrayError for gradients
        that can't be used and for a parameter that has been made read-only, NonfiniteGradient under
        ``nonfinite="raise"``, OptimizerError where a function is missing or returns something else, and what
        the function raises; nothing has changed then.
        Should the launch itself fail, as when a GPU does, counts, shared states and the scalar states on
        the host are as before, but some tensors may have been updated, and what lives beside them. Signals
        (Ctrl-C) that arrive during a launch are handled when the step is done; those that arrive while the
        function runs, or before it runs again, at once, and if they raise, nothing has changed.
        """
        if found_inf is not None:
            return self._step_unless(found_inf, gradients)
        if callable(gradients) or self._calling or self.definition.evaluations:
            return self._step_by(gradients)
        return self._step(self._layout.flatten(gradients), None)

    def _step_by(self, given: Any) -> Any:
        """``step`` where it isn't plain that it is given gradients, and that they will do."""
        self._check_idle("step")
        several = bool(self.definition.evaluations)
        if not is_closure(given):
            if several:
                raise asks_for_closure(self._name, given)
            return self._step(self._layout.flatten(given), None)
        loss, found = self._evaluate(given)
        self._step(self._layout.flatten(found), given if several else None)
        return loss

    @property
    def _name(self) -> str:
        """How errors call it: as the user made it, whether there are wrappers or not."""
        return type(self).__name__.removeprefix("Wrapped")

    def _step_unless(self, found_inf: object, gradients: Any) -> bool:
        """A step that a flag may leave out."""
        self._check_idle("step")
        several = bool(self.definition.evaluations)
        if several or is_closure(gradients):
            raise OptimizerError(
                "found_inf speaks of gradients that are there already, not of those that a function"
                + (f" evaluates, as {self._name} asks for in a step" if several else " evaluates")
                + ": leave it out, and make the optimizer with nonfinite='skip' instead"
            )
        flat = self._layout.flatten(gradients)
        if self._flags is None:
            self._flags = self._backend.flags([tensor.plan.param for tensor in self._tensors])
        skip = self._flags.read(found_inf)
        if isinstance(skip, bool):
            return not skip and self._step(flat, None)
        return self._step(flat, None, skip)

    def _step(self, flat: Sequence[object], closure: Closure | None, skip: Skip | None = None) -> bool:
        """A step by these gradients, and by those of the closure for a rule that evaluates some anew.
        ``skip`` may leave it out."""
        try:
            bound = self._launches.bind(flat)
        except ByRows:
            return self._step_by_rows(flat, skip)
        return self._step_bound(bound, flat, closure, skip=skip)

    def _step_by_rows(self, flat: Sequence[object], skip: Skip | None) -> bool:
        """A step in which some gradients are given by rows."""
        tensors, gradients, scatter = gathered(
            self._backend, self.definition, self._groups, self._tensors, flat
        )
        options = [group.options for group in self._groups]
        launches = Launches(
            self.definition, self._backend, tensors, options, self._workspace, owners=self._tensors
        )
        return self._step_bound(launches.bind(gradients), gradients, None, scatter, skip)

    def _step_bound(
        self,
        bound: AnyLaunchSet,
        flat: Sequence[object],
        closure: Closure | None,
        finish: Callable[[], None] | None = None,
        skip: Skip | None = None,
    ) -> bool:
        """A step by the gradients that are bound. ``finish`` is what comes behind the launches."""
        # A function that evaluates may assign others, which hold from the next step on.
        constraints = self._constraint.constraints
        try:
            if self._policy != "propagate":
                if skip is not None and skip.is_set():  # the policy waits for the GPU anyhow
                    return False
                if not self._may_step(bound, flat):
                    return False
            if self._unsettled.last is not None:
                self._unsettled.settle()
            bound.follow(self._all_cohorts)
            self._settings.refresh()
            with np.errstate(all="ignore"):
                rows, wide, scalars = host_step(
                    self.definition, self._settings, bound.cohorts, self._backend.table, self._scalars_of
                )
                bound.fill(rows, wide)
            if constraints is not None:
                finish = constraints.bound(bound.members, finish, skip)
            how = launch if closure is None and skip is None else self._other_launch(closure, skip)
            uninterrupted(partial(how, finish, bound, scalars))
        except LeftOut:
            return False
        finally:
            bound.release()
            if constraints is not None:
                constraints.release()
        if self._constraint.function is not None:
            if skip is not None and skip.is_set():
                self._unsettled.settle()
                return False
            self._constrain(bound.members)
        return True

    def _other_launch(self, closure: Closure | None, skip: Skip | None) -> Callable[..., object]:
        """What launches a step with evaluations in it, or one that ``skip`` may leave out."""
        if closure is not None:
            return partial(launch_evaluating, partial(self._evaluate_again, closure))
        assert skip is not None
        return partial(launch_unless, skip, self._unsettled)

    @property
    def _cohorts(self) -> Cohorts:
        """The counts and the scalar states on the host, as they are after the last step."""
        self._unsettled.settle()
        return self._all_cohorts

    def _constrain(self, members: Sequence[int] | None) -> None:
        """Hand the parameters that were updated to the function that constrains them."""

        def constrain() -> None:
            self._calling = "the function that constrains its parameters"
            try:
                interruptible(partial(self._constraint.call, members))
            finally:
                self._calling = ""
                self._copy(members)

        uninterrupted(constrain)

    def _may_step(self, bound: AnyLaunchSet, flat: Sequence[object]) -> bool:
        """Whether the policy lets the gradients that are bound pass. Raises NonfiniteGradient."""
        if self._policy == "propagate" or bound.finite():
            return True
        if self._policy == "skip":
            return False
        raise_nonfinite(self._backend, self._names, flat)

    def _evaluate(self, closure: Closure) -> tuple[Any, Any]:
        self._calling = "the function that it evaluates the gradient with"
        try:
            return evaluated(closure)
        finally:
            self._calling = ""

    def _evaluate_again(self, closure: Closure, bound: AnyLaunchSet, number: int) -> None:
        """Bind the gradients at the parameters as they are in the middle of a step."""
        _, found = interruptible(lambda: self._evaluate(closure))
        try:
            flat = self._layout.flatten(found)
            self._launches.bind_again(bound, flat)
            self._check_bound(flat)
        except ArrayError as problem:
            raise ArrayError(
                f"evaluation {number} of the step: {problem}; everything is as before the step"
            ) from problem
        if not self._may_step(bound, flat):
            raise LeftOut

    @property
    def constraint(self) -> Mapping[str, Constraint] | ConstraintFunction | None:
        """What becomes of every parameter that was updated, after each step: constraints of
        ``solvergen.constraints`` by the names of their parameters (one alone is for all), or a function that
        is called with the name and the array, to change it in place. A pass of its own either way. None:
        nothing. Constraints are in configurations and snapshots; a function isn't, and what it raises goes
        through, with the step done."""
        function = self._constraint.function
        return (self._constraint.by_name or None) if function is None else function

    @constraint.setter
    def constraint(self, given: Constraint | Mapping[str, Constraint] | ConstraintFunction | None) -> None:
        self._constraint.assign(given)

    def freeze(self, names: str | Iterable[str]) -> None:
        """Leave these parameters as they are from now on, with their states and counts: they take no part in
        steps and in norms, whatever gradients are given for them. Raises OptimizerError for unknown names."""
        self._check_idle("freeze")
        self._freeze(self._frozen | positions_of(self._positions, names, "freeze", self._by_position))

    def unfreeze(self, names: str | Iterable[str] | None = None) -> None:
        """Update these parameters again; all by default."""
        self._check_idle("unfreeze")
        all_names = self._names if names is None else names
        thawed = positions_of(self._positions, all_names, "unfreeze", self._by_position)
        self._freeze(self._frozen - thawed)

    @property
    def frozen(self) -> tuple[str, ...]:
        """The names of the parameters that are frozen."""
        return tuple(self._names[i] for i in sorted(self._frozen))

    def _freeze(self, positions: frozenset[int]) -> None:
        self._frozen = positions
        self._layout = FrozenLayout(self._whole_layout, positions) if positions else self._whole_layout

    def set(self, **changes: Any) -> None:
        """Change several hyperparameters (or multipliers) of all groups: all of them, or none.

        Raises HyperparameterError where a value isn't allowed.
        """
        commits = [group.check(changes) for group in self._groups]

        def commit_all() -> None:
            for commit in commits:
                commit()

        uninterrupted(commit_all)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of parameters, with their own hyperparameters."""
        return self._groups

    @property
    def params(self) -> TensorView[Any]:
        """The parameters by name: the very arrays that were handed in; on a GPU ``cupy.ndarray``, those of
        other libraries as one over the same memory."""
        return self._view("params", self._positions, lambda i: self._tensors[i].plan.param)

    @property
    def state(self) -> StateView:
        """The states: ``opt.state["m"]["layer1.weight"]``. Arrays are the live ones, on the backend's
        device; scalar states are floats. States of rows, columns or blocks are copies as ``numpy.ndarray``,
        float64. Reading a scalar or such a copy that lives on a GPU waits for it. ``shared`` has those that
        are one number for all tensors."""
        definition = self.definition
        active = self._active()
        views = {}
        for state in definition.state:
            if state.shape == "shared":
                continue
            having = {
                name: i for name, i in self._positions.items() if state.name in active[self._tensors[i].group]
            }
            if having or any(state.name in names for names in active):
                views[state.name] = self._view(f"state[{state.name!r}]", having, self._reader(state.name))
        absent = [s.name for s in definition.state if s.name not in views]
        return StateView(views, absent, definition.shared_states)

    @property
    def shared(self) -> SharedView:
        """The states that are one number for the whole optimizer: ``opt.shared["d"]``, a float. Reading one
        that lives on a GPU waits for it."""
        active = self._active()
        places = {}
        for i, name in enumerate(self.definition.shared_states):
            if any(name in names for names in active):
                places[name] = i
        absent = [name for name in self.definition.shared_states if name not in places]
        return SharedView(places, lambda i: float(self._read_workspace()[1][i]), absent)

    @property
    def blocks(self) -> TensorView[int]:
        """Into how many blocks each tensor falls, by name; empty for a rule that knows no blocks."""
        positions = self._positions if self.definition.view == BLOCKS else {}
        return self._view("blocks", positions, lambda i: self._tensors[i].plan.blocks)

    @property
    def steps(self) -> TensorView[int]:
        """How often each tensor was updated, by name."""
        return self._view("steps", self._positions, lambda i: self._cohorts.of(i).t)

    @property
    def t(self) -> int:
        """How often the tensor that was updated most was updated."""
        return self._cohorts.largest_t

    @property
    def options(self) -> Mapping[str, bool]:
        """The options, derived ones resolved. Raises OptimizerError where groups differ."""
        first = self._groups[0].options
        if any(group.options != first for group in self._groups):
            raise OptimizerError("groups have different options; read opt.groups[i].options")
        return first

    @property
    def backend(self) -> str:
        """Name of the backend in use."""
        return self._backend.name

    @property
    def nonfinite(self) -> str:
        """What happens when a gradient isn't finite: ``"propagate"``, ``"skip"`` or ``"raise"``."""
        return self._policy

    @nonfinite.setter
    def nonfinite(self, policy: str) -> None:
        self._policy = checked_policy(policy)

    def get_config(self) -> dict[str, Any]:
        """Everything but parameters and state, as data that JSON can hold."""
        from solvergen.runtime.config import describe

        return describe(
            self.definition,
            self._groups,
            self._given_backend,
            self._policy,
            self.frozen,
            self._given_blocks,
            self._constraint.data,
        )

    @classmethod
    def from_config(cls: type[Self], params: Any, config: Mapping[str, Any]) -> Self:
        """A new optimizer over ``params`` as ``get_config`` described it.

        Raises OptimizerError if the configuration is another optimizer's or its groups name other tensors.
        """
        from solvergen.runtime.config import rebuild

        return rebuild(cls, params, config)

    def state_dict(self) -> dict[str, Any]:
        """Hyperparameters, counts and states (not the parameters) as plain dicts of numbers and copies of
        arrays on the host."""
        from solvergen.runtime.restoring import as_dict

        return as_dict(self._snapshot(params=False))

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` returned, hyperparameters included.

        Checked wholly before anything changes. Raises SnapshotMismatch that names all that doesn't fit.
        """
        from solvergen.runtime.restoring import from_dict

        self._restore(from_dict(state_dict), "the state_dict", params=False, hyperparameters=True)

    def save(self, path: str | os.PathLike[str], *, params: bool = True) -> None:
        """Write a snapshot, whole or not at all; the suffix of ``path`` chooses the format.

        ``params=False`` leaves the parameters out. Raises SnapshotError.
        """
        from solvergen.runtime import snapshots

        snapshots.save(path, self._snapshot(params=params))

    def load(
        self, path: str | os.PathLike[str], *, params: bool = True, hyperparameters: bool = True
    ) -> None:
        """Resume from a snapshot; parameters in it are restored in place.

        ``params=False`` leaves the parameters as they are, ``hyperparameters=False`` the hyperparameters
        and multipliers. Checked wholly before anything changes. Raises SnapshotError, SnapshotMismatch.
        """
        from solvergen.runtime import snapshots

        self._restore(snapshots.load(path), os.fspath(path), params=params, hyperparameters=hyperparameters)

    def _snapshot(self, *, params: bool) -> SnapshotData:
        from solvergen.runtime.restoring import snapshot

        self._check_idle("save and state_dict")
        return snapshot(
            self.definition,
            self._backend,
            self._groups,
            self._tensors,
            self._cohorts,
            self._workspace,
            params=params,
            frozen=self.frozen,
            constraints=self._constraint.data,
        )

    def _restore(self, data: SnapshotData, source: str, *, params: bool, hyperparameters: bool) -> None:
        from solvergen.runtime.restoring import restore

        self._check_idle("load and load_state_dict")
        data = self._adapted(data, source)
        take_constraints = self._constraint.prepared(data, source) if hyperparameters else None
        frozen = self._frozen
        if hyperparameters:
            frozen = positions_of(self._positions, data.frozen, f"'frozen' in {source}")

        def behind() -> None:
            self._freeze(frozen)
            if take_constraints is not None:
                take_constraints()
            self._refresh()

        restore(
            data,
            self.definition,
            self._backend,
            self._groups,
            self._tensors,
            self._cohorts,
            self._workspace,
            source=source,
            params=params,
            hyperparameters=hyperparameters,
            behind=behind,
        )

    def _changed(self) -> None:
        self._settings.mark_stale()

    def _view(self, what: str, positions: Mapping[str, int], get: Any) -> TensorView[Any]:
        return TensorView(what, positions, get, self._by_position)

    def _active(self) -> list[tuple[str, ...]]:
        """The names of the states that exist in each group."""
        return [self.definition.active_state(**group.options) for group in self._groups]

    def _existing_workspace(self) -> Workspace:
        if self._workspace is None:
            raise CompilerBug(f"{self.definition.name} has states on the device, but isn't staged")
        self._unsettled.settle()
        return self._workspace

    def _read_workspace(self) -> tuple[HostArray, HostArray]:
        return self._existing_workspace().read()

    @cached_property
    def _line_states(self) -> LineStates:
        return line_states_of(self.definition, self._tensors)

    def _reader(self, state: str) -> Any:
        if state in self.definition.scalar_states:
            column = self.definition.scalar_states.index(state)
            return lambda i: self._cohorts.of(i).scalars[column]
        if state in self.definition.device_states:
            column = self.definition.device_states.index(state)
            return lambda i: float(self._read_workspace()[0][i, column])
        if state in self._line_states:
            lines = self._line_states
            return lambda i: lines.read(self._existing_workspace().read_line_state, state, i)
        column = self.definition.array_states.index(state)
        return lambda i: self._tensors[i].plan.states[column]

    def __reduce__(self) -> NoReturn:
        raise OptimizerError(
            f"{type(self).__name__} can't be pickled or copied: it shares its parameters with you; use save "
            "and load, or state_dict and from_config"
        )

    def __repr__(self) -> str:
        return self._repr(type(self).__name__, lambda name: True, [{} for _ in self._groups])

    def _repr(self, title: str, is_shown: Callable[[str], bool], more: Sequence[Mapping[str, object]]) -> str:
        """``more``: what each group has to show besides hyperparameters and options."""
        elements = sum(int(np.prod(tensor.plan.shape)) for tensor in self._tensors)
        names = [*self.definition.hyperparameter_names, *self.definition.option_names]
        shown = [
            {**group.hyperparameters, **group.options, **own}
            for group, own in zip(self._groups, more, strict=True)
        ]
        values = [
            f"{name}={shown[0][name]!r}"
            if all(s[name] == shown[0][name] for s in shown)
            else f"{name}=<by group>"
            for name in [*filter(is_shown, names), *more[0]]
        ]
        return (
            f"{title}({', '.join(values)}, backend={self.backend!r}, "
            f"tensors={len(self._tensors)}, elements={elements}, t={self.t})"
        )

    # What wrapped optimizers do otherwise, besides _step, freeze and __repr__.

    def _with_wrappers(
        self,
        read: Parameters,
        hyperparameters: Mapping[str, Any],
        options: Mapping[str, Any],
        wrappers: Any,
    ) -> tuple[Parameters, Mapping[str, Any], Mapping[str, Any]]:
        """What the constructor was given, with wrappers as hyperparameters and options."""
        if wrappers is not None:
            raise CompilerBug(f"{type(self).__name__} was made with wrappers, but isn't wrapped")
        return read, hyperparameters, options

    def _check_groups(self) -> None:
        """Raises OptimizerError where groups don't go together."""

    def _check_bound(self, flat: Sequence[object]) -> None:
        """Raises ArrayError for gradients, found in the middle of a step, that can't be used."""

    def _prepare(self) -> None:
        """The last of what is done when an optimizer is made."""

    def _copy(self, members: Sequence[int] | None) -> None:
        """Make the copies of these parameters anew: wrapped optimizers may have some."""

    def _refresh(self) -> None:
        """Make all copies anew from parameters that come from the host."""

    def _check_idle(self, what: str) -> None:
        """Raises OptimizerError if ``what`` can't be done now."""
        if self._calling:
            raise OptimizerError(f"a step is under way: {what} can't be called by {self._calling}")
        self._unsettled.settle()

    def _adapted(self, data: SnapshotData, source: str) -> SnapshotData:
        """A snapshot of the wrapped optimizer without what wraps it; others as they are."""
        if not data.spec.startswith("wrapped_"):
            return data
        from solvergen.runtime.rewrapping import without_wrappers

        return without_wrappers(data, self.definition, source)
