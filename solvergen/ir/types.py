"""Types of expressions: what kind of value, and one of what: a tensor, a line of it, an element."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a value is. INT is a whole number held in a float64 (exact up to 2**53)."""

    BOOL = "bool"
    INT = "int"
    REAL = "real"


class Rank(Enum):
    """SCALAR values are float64, one for a tensor's step; ELEMENT values have the compute type.

    Between them are values of lines, float64 too: one for each matrix, row or column of a tensor.
    """

    SCALAR = "scalar"
    MATRICES = "matrices"
    ROWS = "rows"
    COLUMNS = "columns"
    ELEMENT = "element"

    @property
    def is_line(self) -> bool:
        """Is there one for each matrix, row or column?"""
        return self in LINE_RANKS


LINE_RANKS = (Rank.MATRICES, Rank.ROWS, Rank.COLUMNS)
"""In the order in which a stage computes what belongs to them."""

_HEIGHT = {Rank.SCALAR: 0, Rank.MATRICES: 1, Rank.ROWS: 2, Rank.COLUMNS: 2, Rank.ELEMENT: 3}


def highest(ranks: Iterable[Rank]) -> Rank:
    """The rank of what is made of values of these: an element of rows and columns."""
    result = Rank.SCALAR
    for rank in ranks:
        if {result, rank} == {Rank.ROWS, Rank.COLUMNS}:
            return Rank.ELEMENT
        result = max(result, rank, key=_HEIGHT.__getitem__)
    return result


def holds(rank: Rank, other: Rank) -> bool:
    """Can what has ``rank`` be given a value of rank ``other``?"""
    return highest((rank, other)) is rank


@dataclass(frozen=True, slots=True)
class Type:
    """A kind at a rank."""

    kind: Kind
    rank: Rank

    @property
    def is_element(self) -> bool:
        """Is there one for each element?"""
        return self.rank is Rank.ELEMENT

    @property
    def is_line(self) -> bool:
        """Is there one for each matrix, row or column?"""
        return self.rank.is_line

    @property
    def is_bool(self) -> bool:
        """Is it a condition?"""
        return self.kind is Kind.BOOL

    def __str__(self) -> str:
        return f"{self.rank.value} {self.kind.value}"


SCALAR_BOOL = Type(Kind.BOOL, Rank.SCALAR)
SCALAR_INT = Type(Kind.INT, Rank.SCALAR)
SCALAR_REAL = Type(Kind.REAL, Rank.SCALAR)
ELEMENT_BOOL = Type(Kind.BOOL, Rank.ELEMENT)
ELEMENT_REAL = Type(Kind.REAL, Rank.ELEMENT)
