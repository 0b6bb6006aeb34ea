"""The scalar types of PTX (PTX ISA, "Fundamental Types")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Kind = Literal["signed", "unsigned", "bits", "float", "predicate"]


@dataclass(frozen=True, slots=True)
class Type:
    """A scalar type. ``bits`` is 1 for predicates."""

    name: str
    kind: Kind
    bits: int
    dtype: np.dtype[Any]
    """What its values are held in: untyped bits as unsigned integers, predicates as bool."""

    def __str__(self) -> str:
        return f".{self.name}"

    @property
    def nbytes(self) -> int:
        """Bytes of a value in memory."""
        return self.bits // 8


def _types() -> dict[str, Type]:
    types = {"pred": Type("pred", "predicate", 1, np.dtype(np.bool_))}
    for bits in (8, 16, 32, 64):
        types[f"s{bits}"] = Type(f"s{bits}", "signed", bits, np.dtype(f"i{bits // 8}"))
        types[f"u{bits}"] = Type(f"u{bits}", "unsigned", bits, np.dtype(f"u{bits // 8}"))
        types[f"b{bits}"] = Type(f"b{bits}", "bits", bits, np.dtype(f"u{bits // 8}"))
        if bits > 8:
            types[f"f{bits}"] = Type(f"f{bits}", "float", bits, np.dtype(f"f{bits // 8}"))
    return types


TYPES = _types()
"""Every type that the interpreter knows, by its name without the dot."""
