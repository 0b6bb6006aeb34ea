"""What ``opt.constraint`` is set to: constraints by parameter, a function, or nothing.

Most optimizers have none, so what reads and holds constraints is imported where there are some.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from solvergen.errors import OptimizerError
from solvergen.runtime.arrays import Array
from solvergen.runtime.backends.base import Backend
from solvergen.runtime.parameters import Parameters
from solvergen.runtime.tensors import Tensor

if TYPE_CHECKING:
    from solvergen.runtime.constraining import ByPosition, Constraints
    from solvergen.runtime.constraints import Constraint
    from solvergen.runtime.state import SnapshotData

CONSTRAINT = "constraint"
"""The key of a group: a constraint for all of its tensors, or a mapping of names to constraints."""

ConstraintFunction = Callable[[str, Any], object]


def constraints_of(read: Parameters) -> tuple[Parameters, ByPosition]:
    """What was handed in without the groups' own ``constraint``, and the constraints by position.

    Raises OptimizerError for what is no constraint and for names that the group doesn't have.
    """
    if not any(CONSTRAINT in group.settings for group in read.groups):
        return read, {}
    from solvergen.runtime.given_constraints import read_constraints

    return read_constraints(read)


class ConstraintSetting:
    """The ``constraints``, or the ``function``, of an optimizer of class ``cls`` with these ``tensors``.

    Never both; None is what there isn't.
    """

    def __init__(
        self,
        cls: type[Any],
        backend: Backend,
        tensors: Sequence[Tensor],
        chosen: ByPosition,
        *,
        by_position: bool,
        copies: Mapping[int, Array],
    ) -> None:
        """``by_position``: parameters have no names of the user's. ``copies`` are of parameters in another
        type, by position."""
        self._cls = cls
        self._backend = backend
        self._tensors = tensors
        self._by_position = by_position
        self._copies = copies
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
        if self.constraints is None:
            return {}
        from solvergen.runtime.constraints import as_data

        return {name: as_data(one) for name, one in self.by_name.items()}

    def assign(self, given: Constraint | Mapping[str, Constraint] | ConstraintFunction | None) -> None:
        """Replace what there is. Raises OptimizerError, with nothing changed, for what is no constraint."""
        from solvergen.runtime.constraints import Constraint
        from solvergen.runtime.given_constraints import chosen_by, is_class_of_constraints

        if isinstance(given, (Constraint, Mapping)) or is_class_of_constraints(given):
            positions = {tensor.plan.name: i for i, tensor in enumerate(self._tensors)}
            chosen = chosen_by(positions, given, "constraint", self._by_position)
            self.constraints = self._holding(chosen)
            self.function = None
        elif given is None or callable(given):
            self.function, self.constraints = given, None
        else:
            raise OptimizerError(
                "constraint must be a function of a name and an array, one of solvergen.constraints, a "
                f"mapping of parameters' names to some, or None, not {given!r:.60}"
            )

    def prepared(self, data: SnapshotData, source: str) -> Callable[[], None]:
        """Check the constraints of a snapshot. Returns what puts them in the place of those that there are.
        Raises SnapshotMismatch, OptimizerError."""
        from solvergen.runtime.given_constraints import constraints_in

        constraints = self._holding(constraints_in(data, self._tensors, self.function is not None, source))

        def take() -> None:
            self.constraints = constraints

        return take

    def moved(self, tensors: Sequence[Tensor], copies: Mapping[int, Array]) -> Callable[[], None]:
        """Prepare for the same parameters with other copies. Returns what goes over to them."""
        chosen = {} if self.constraints is None else self.constraints.chosen
        constraints = self._held(chosen, tensors, copies)

        def take() -> None:
            self._tensors, self._copies, self.constraints = tensors, copies, constraints

        return take

    def call(self, members: Sequence[int] | None) -> None:
        """Hand the parameters that were updated (None: all) to the function, which there is."""
        assert self.function is not None
        function = self.function
        for i in range(len(self._tensors)) if members is None else members:
            plan = self._tensors[i].plan
            function(plan.name, plan.param)

    def _holding(self, chosen: ByPosition) -> Constraints | None:
        return self._held(chosen, self._tensors, self._copies)

    def _held(
        self, chosen: ByPosition, tensors: Sequence[Tensor], copies: Mapping[int, Array]
    ) -> Constraints | None:
        if not chosen:
            return None
        from solvergen.runtime.constraining import Constraints

        return Constraints(self._cls, self._backend, tensors, chosen, copies)
