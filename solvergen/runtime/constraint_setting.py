"""What ``opt.constraint`` is set to: constraints by parameter, a function, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from solvergen.errors import OptimizerError
from solvergen.runtime.backends.base import Backend
from solvergen.runtime.constraining import ByPosition, Constraints
from solvergen.runtime.constraints import Constraint, as_data
from solvergen.runtime.given_constraints import chosen_by, constraints_in
from solvergen.runtime.state import SnapshotData
from solvergen.runtime.tensors import Tensor

ConstraintFunction = Callable[[str, Any], object]


class ConstraintSetting:
    """The ``constraints``, or the ``function``, of an optimizer of class ``cls`` with these ``tensors``.

    Never both; None is what there isn't.
    """

    def __init__(
        self, cls: type[Any], backend: Backend, tensors: Sequence[Tensor], chosen: ByPosition
    ) -> None:
        self._cls = cls
        self._backend = backend
        self._tensors = tensors
        self.constraints = self._holding(chosen)
        self.function: ConstraintFunction | None = None

    @property
    def by_name(self) -> dict[str, Constraint]:
        """The constraints that there are, by the names of their parameters."""
        if self.constraints is None:
            return {}
        return {self._tensors[i].plan.name: one for i, one in self.constraints.chosen.items()}

    @property
    def data(self) -> dict[str, Mapping[str, Any]]:
        """The constraints by name, as configurations and snapshots have them."""
        return {name: as_data(one) for name, one in self.by_name.items()}

    def assign(self, given: Constraint | Mapping[str, Constraint] | ConstraintFunction | None) -> None:
        """Replace what there is. Raises OptimizerError, with nothing changed, for what is no constraint."""
        if given is None or callable(given):
            self.function, self.constraints = given, None
        elif isinstance(given, (Constraint, Mapping)):
            positions = {tensor.plan.name: i for i, tensor in enumerate(self._tensors)}
            self.constraints = self._holding(chosen_by(positions, given, "constraint"))
            self.function = None
        else:
            raise OptimizerError(
                "constraint must be a function of a name and an array, one of solvergen.constraints, a "
                f"mapping of parameters' names to some, or None, not {given!r:.60}"
            )

    def prepared(self, data: SnapshotData, source: str) -> Callable[[], None]:
        """Check the constraints of a snapshot. Returns what puts them in the place of those that there are.
        Raises SnapshotMismatch, OptimizerError."""
        constraints = self._holding(constraints_in(data, self._tensors, self.function is not None, source))

        def take() -> None:
            self.constraints = constraints

        return take

    def call(self, members: Sequence[int] | None) -> None:
        """Hand the parameters that were updated (None: all) to the function, which there is."""
        assert self.function is not None
        function = self.function
        for i in range(len(self._tensors)) if members is None else members:
            plan = self._tensors[i].plan
            function(plan.name, plan.param)

    def _holding(self, chosen: ByPosition) -> Constraints | None:
        return Constraints(self._cls, self._backend, self._tensors, chosen) if chosen else None
