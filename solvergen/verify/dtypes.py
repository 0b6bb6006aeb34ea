"""The storage types that a parameter and its gradient may have, and their layout in bits."""

from __future__ import annotations

from dataclasses import dataclass

PAIRS: tuple[tuple[str, str], ...] = (
    ("float32", "float32"),
    ("float64", "float64"),
    ("bfloat16", "bfloat16"),
    ("float16", "float16"),
    ("float32", "bfloat16"),
    ("float32", "float16"),
    ("bfloat16", "float32"),
    ("float16", "float32"),
    ("bfloat16", "float16"),
    ("float16", "bfloat16"),
)
"""All mixes of parameter and gradient that there are, simplest first (Hypothesis shrinks towards it)."""


@dataclass(frozen=True)
class Layout:
    """Widths of a binary floating-point format: sign bit, then ``exponent`` bits, then ``mantissa``."""

    name: str
    exponent: int
    mantissa: int

    @property
    def bits(self) -> int:
        """Width of the whole."""
        return 1 + self.exponent + self.mantissa

    @property
    def bias(self) -> int:
        """The biased exponent of 1."""
        return (1 << (self.exponent - 1)) - 1

    @property
    def top(self) -> int:
        """The biased exponent of infinities and NaNs."""
        return (1 << self.exponent) - 1


LAYOUTS: dict[str, Layout] = {
    layout.name: layout
    for layout in (
        Layout("float16", 5, 10),
        Layout("bfloat16", 8, 7),
        Layout("float32", 8, 23),
        Layout("float64", 11, 52),
    )
}
