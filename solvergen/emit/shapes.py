"""Which values of the NumPy reference are whole arrays, and which stand for every element as one number.

An equation may assign a scalar to elements, ``m = sqrt(2)``. NumPy makes an array of it where it meets one;
but a reduction needs to know how many elements there are.
"""

from __future__ import annotations

from collections.abc import Iterable

from solvergen.ir.nodes import Call, Expression, Extent, GradientAt, Name, Reduce, Round
from solvergen.ir.program import Assign


class Shapes:
    """Follows the statements of a program. ``arrays``: the names that are arrays before the first."""

    def __init__(self, arrays: Iterable[str]) -> None:
        self._arrays = set(arrays)
        self._assigned: set[str] = set(self._arrays)

    def is_array(self, e: Expression) -> bool:
        """Is ``e`` an array for certain?"""
        if isinstance(e, Name):
            return e.name in self._arrays
        if isinstance(e, GradientAt):
            return True
        if isinstance(e, (Round, Reduce, Extent)):
            return False
        if isinstance(e, Call) and e.function == "where":
            condition, yes, no = map(self.is_array, e.args)
            return condition or (yes and no)
        return any(map(self.is_array, e.operands))

    def assign(self, statement: Assign) -> None:
        """Go on behind a statement."""
        name, whole = statement.target, self.is_array(statement.value)
        if not statement.guard.is_always and name in self._assigned:
            whole = whole and name in self._arrays
        self._assigned.add(name)
        (self._arrays.add if whole else self._arrays.discard)(name)
