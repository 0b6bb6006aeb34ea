"""How large the work is: ``50x320k`` is 50 tensors of 320 * 1024 elements each."""

from __future__ import annotations

import re
from dataclasses import dataclass

from solvergen.errors import BenchmarkError

DEFAULT = "50x320k,300x3333"
"""16M elements in 50 tensors, beyond every cache; and many small tensors, which lie in one."""

_SIZE = re.compile(r"(?:(\d{1,9})x)?(\d{1,12})([kKM]?)", re.ASCII)
_FACTORS = {"": 1, "k": 1 << 10, "K": 1 << 10, "M": 1 << 20}
_LARGEST = 1 << 33


@dataclass(frozen=True, slots=True)
class Size:
    """``tensors`` arrays of ``elements`` elements each. ``text`` is how it was asked for."""

    tensors: int
    elements: int
    text: str

    @property
    def total(self) -> int:
        """Elements of all tensors together."""
        return self.tensors * self.elements


def parse_sizes(text: str) -> tuple[Size, ...]:
    """Sizes separated by commas: ``[TENSORSx]ELEMENTS``, where k is 1,024 and M is 1,048,576.

    Raises BenchmarkError for anything else, and for sizes that no machine has memory for.
    """
    sizes = [_size(part.strip()) for part in text.split(",") if part.strip()]
    if not sizes:
        raise BenchmarkError(f"no size was given; write for example {DEFAULT}")
    return tuple(dict.fromkeys(sizes))


def _size(text: str) -> Size:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise BenchmarkError(
            f"{text!r:.60} is no size; write [TENSORSx]ELEMENTS, where k is 1,024 and M is 1,048,576: 50x320k"
        )
    tensors, elements = int(match[1] or 1), int(match[2]) * _FACTORS[match[3]]
    if not tensors or not elements:
        raise BenchmarkError(f"{text} has no elements, so there is nothing to time")
    if tensors * elements > _LARGEST:
        raise BenchmarkError(f"{text} has {tensors * elements:,} elements; at most {_LARGEST:,} are timed")
    return Size(tensors, elements, text)
