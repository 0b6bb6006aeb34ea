"""Types of expressions: what kind of value, and whether there is one a tensor or one an element."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a value is. INT is a whole number held in a float64 (exact up to 2**53)."""

    BOOL = "bool"
    INT = "int"
    REAL = "real"


class Rank(Enum):
    """SCALAR values are float64, one for a tensor's step; ELEMENT values have the compute type."""

    SCALAR = "scalar"
    ELEMENT = "element"


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
