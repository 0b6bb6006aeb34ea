"""Optimizers whose update is wrapped: clipping, accumulation, decay, bounds, averages.

What happens to elements is generated (``<name>/wrapped/``). Here is what users call, and the order of what
happens around a step; wrappers as they are given, sums, averages, copies and written updates have modules of
their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from solvergen.errors import ArrayError, OptimizerError
from solvergen.runtime import shadows as copies
from solvergen.runtime.averages import Exchange, average_column
from solvergen.runtime.closures import Closure
from solvergen.runtime.given_wrappers import (
    assigned_hyperparameters,
    check_agreement,
    common_wrappers,
    read_wrappers,
)
from solvergen.runtime.interrupts import uninterrupted
from solvergen.runtime.optimizer import Optimizer
from solvergen.runtime.parameters import Parameters
from solvergen.runtime.plan import Launches
from solvergen.runtime.row_sparse import check_rule, has_rows
from solvergen.runtime.sums import Sums
from solvergen.runtime.tensors import check_states
from solvergen.runtime.views import TensorView
from solvergen.runtime.wrapped_classes import accumulation_of, unwrapped
from solvergen.runtime.wrappers import PREFIX, Wrappers, wrappers_of
from solvergen.runtime.written_updates import check_gradients

if TYPE_CHECKING:
    from solvergen.runtime.backends.base import Skip
    from solvergen.runtime.state import SnapshotData


class WrappedOptimizer(Optimizer):
    """An optimizer whose update is wrapped; ``Adam(params, wrappers=Wrappers(...))`` makes one.

    The ``wrap_`` hyperparameters are what wrappers are to the update; ``wrappers`` puts them into words.
    """

    _averaging = False

    @property
    def wrappers(self) -> Wrappers:
        """What wraps the update. What costs no memory and no pass can be assigned anew; for the rest, make a
        new optimizer. Raises OptimizerError where groups differ."""
        return common_wrappers(self._groups)

    @wrappers.setter
    def wrappers(self, wrappers: Wrappers) -> None:
        accumulates = self._sums is not None
        self.set(**assigned_hyperparameters(self.definition, self._groups, wrappers, accumulates))

    @property
    def pending(self) -> int:
        """How many calls of ``step`` have been summed up since the last update."""
        if self._sums is None:
            return 0
        return self._sums.pending(self._cohorts.all)

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
        column = average_column(self.definition, self._groups)
        if self._averaging:
            raise OptimizerError("in averaged() the parameters are the averages: read opt.params")
        return self._view("averages", self._positions, lambda i: self._tensors[i].plan.states[column])

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """A block in which the parameters are their averages, rounded to the parameters' types. Afterwards
        they are what they were, to the bit, whatever the block raises. The optimizer does nothing meanwhile.
        Raises ArrayError, with nothing changed, for a parameter or an average that can't be written."""
        self._check_idle("averaged")
        column = average_column(self.definition, self._groups)
        exchange = Exchange(self._backend, self._tensors, column)

        def take() -> None:
            exchange.make()
            self._averaging = True

        def put_back() -> None:
            exchange.undo()
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
        kept = copies.read_arrays(self._backend, self._names, self._shadows, arrays, self._by_position)
        tensors = copies.in_place(self.definition, self._backend, self._tensors, kept)
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
        copies.check_copies(self._names, self._shadows)
        self._copy(None)

    def _step(self, flat: Sequence[object], closure: Closure | None, skip: Skip | None = None) -> bool:
        self._check_idle("step")
        if (self._writes or self._sums is not None) and has_rows(flat):
            check_rule(self.definition.class_name, self.definition, dict(self._groups[0].options))
        if self._writes:
            self._launches.bind(flat).release()
            check_gradients(self._backend, self._names, flat)
        if self._sums is None:
            return super()._step(flat, closure, skip)
        if all(gradient is None for gradient in flat):
            return True  # no call: there is nothing to sum
        calls = self.pending + 1
        return (self._update if calls >= self.wrap_every else self._add)(flat, calls, skip)

    def _update(self, flat: Sequence[object], calls: int, skip: Skip | None = None) -> bool:
        """Update all tensors that have a gradient in this call or in one that was summed up."""
        whole = [
            self._backend.allocate(self._tensors[i].plan.param, 0.0)
            if gradient is None and i not in self._frozen and self._takes_part(i)
            else gradient
            for i, gradient in enumerate(flat)
        ]
        assert self._sums is not None
        self._sums.calls = calls
        return super()._step(whole, None, skip)

    def _add(self, flat: Sequence[object], calls: int, skip: Skip | None) -> bool:
        """Sum these gradients up, and count the call for all tensors that take part."""
        assert self._sums is not None
        try:
            bound = self._sums.launches.bind(flat)
        except ArrayError:
            for tensor, gradient in zip(self._tensors, flat, strict=True):
                if gradient is not None:  # there the sums are parameters; here they are states
                    check_states(self.definition, tensor.plan)
            raise
        try:
            if self._policy != "propagate" and skip is not None and skip.is_set():
                return False
            if not self._may_step(bound, flat):
                return False
            bound.follow(self._sums.cohorts)
            taking_part = (i for i in range(len(flat)) if i not in self._frozen and self._takes_part(i))
            members = sorted({*taking_part, *(i for i, g in enumerate(flat) if g is not None)})
            cohorts, _ = self._cohorts.select(None if len(members) == len(flat) else members)
            add = partial(self._sums.launch, bound, cohorts, calls, skip, self._unsettled)
            uninterrupted(add)
        finally:
            bound.release()
        return True

    def _takes_part(self, tensor: int) -> bool:
        """Whether a call that was summed up had a gradient for this tensor."""
        return self._sums is not None and self._sums.take_part(self._cohorts.of(tensor))

    def __repr__(self) -> str:
        return self._repr(
            unwrapped(type(self)).__name__,
            lambda name: not name.startswith(PREFIX),
            [{"wrappers": wrappers_of(g.hyperparameters, g.options)} for g in self._groups],
        )

    # What stands in the base class under "What wrapped optimizers do otherwise".

    def _with_wrappers(
        self,
        read: Parameters,
        hyperparameters: Mapping[str, Any],
        options: Mapping[str, Any],
        wrappers: Any,
    ) -> tuple[Parameters, Mapping[str, Any], Mapping[str, Any]]:
        return read_wrappers(self.definition, read, hyperparameters, options, wrappers)

    def _check_groups(self) -> None:
        check_agreement(self._groups)

    def _check_bound(self, flat: Sequence[object]) -> None:
        """Raises ArrayError for gradients that no update can be written to."""
        if self._writes:
            check_gradients(self._backend, self._names, flat)

    def _prepare(self) -> None:
        self._writes = self._groups[0].options["wrap_write_update"]
        self._shadows = copies.copies_in(self.definition, self._tensors)
        self._copier = copies.Copier(type(self), self._backend, self._tensors, self._shadows)
        self._sums: Sums | None = None
        if not self._groups[0].options.get("wrap_accumulate"):
            return
        column = self.definition.array_states.index("wrap_sum")
        self._sums = Sums(
            accumulation_of(type(self)),
            self._backend,
            self._tensors,
            [tensor.plan.states[column] for tensor in self._tensors],
            self.definition.scalar_states.index("wrap_calls"),
        )
        self._scalars_of = self._sums.scalars_of

    def _copy(self, members: Sequence[int] | None) -> None:
        self._copier.copy(members)

    def _refresh(self) -> None:
        copies.refresh(self._backend, self._tensors, self._shadows)

    def _check_idle(self, what: str) -> None:
        super()._check_idle(what)
        if self._averaging:
            raise OptimizerError(f"the parameters are their averages: {what} comes after averaged()")

    def _adapted(self, data: SnapshotData, source: str) -> SnapshotData:
        from solvergen.runtime.rewrapping import with_own_copies, with_wrappers

        found = with_wrappers(data, self.definition, unwrapped(type(self)).definition, self._snapshot)
        return with_own_copies(found, self._groups)
