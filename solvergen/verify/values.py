"""What the drawn arrays hold.

Small arrays are drawn element by element, so that a failure shrinks to few and simple numbers. Larger
ones are filled from a seed, with some positions drawn on top; they shrink to zeros and the positions
that matter. A fill works on bit patterns, so that every category exists in every storage type.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from solvergen.runtime.dtypes import numpy_dtype
from solvergen.verify.dtypes import LAYOUTS, Layout

Array = np.ndarray[Any, np.dtype[Any]]

ELEMENTWISE = 8
"""Arrays up to this size are drawn element by element."""

SPECIAL_POSITIONS = 6
"""At most so many elements of a larger array are drawn one by one."""

CATEGORIES = ("ordinary", "subnormal", "tiny", "huge", "zero", "infinite", "nan", "any")
"""Kinds of bit patterns. ``any`` is every pattern with equal chance."""

FILLS: dict[str, tuple[str, ...]] = {
    "zeros": ("zero",),
    "ordinary": ("ordinary",),
    "finite": ("ordinary", "ordinary", "subnormal", "tiny", "huge", "zero"),
    "everything": ("ordinary", "ordinary", "ordinary", *CATEGORIES[1:]),
}
"""Fills by name, simplest first: the categories that they mix, one chosen at each element."""


_FILLS_DRAWN = ("zeros", "ordinary", "ordinary", "ordinary", "finite", "finite", "everything")
"""Not evenly: zeros and NaNs everywhere tell little."""


def special_values(dtype: str) -> tuple[float, ...]:
    """Numbers of ``dtype`` that rounding, tails and comparisons are likeliest to get wrong."""
    layout = LAYOUTS[dtype]
    least = 2.0 ** (1 - layout.bias - layout.mantissa)
    normal = 2.0 ** (1 - layout.bias)
    largest = (2.0 - 2.0**-layout.mantissa) * 2.0**layout.bias
    step = 2.0**-layout.mantissa
    finite = (0.0, 1.0, 1.0 + step, 1.0 - step / 2, 3.0, least, normal - least, normal, largest, 1 / normal)
    positive = (*finite, float("inf"))
    return (*positive, *(-value for value in positive), float("nan"))


def _fields(category: str, layout: Layout, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Random biased exponents and mantissas of a category; its signs are random, whatever it is."""
    near_one, near_end = min(8, layout.bias // 2 - 1), min(8, layout.bias // 4)
    ranges = {
        "ordinary": (layout.bias - near_one, layout.bias + near_one),
        "subnormal": (0, 0),
        "tiny": (1, 1 + near_end),
        "huge": (layout.top - 1 - near_end, layout.top - 1),
        "zero": (0, 0),
        "infinite": (layout.top, layout.top),
        "nan": (layout.top, layout.top),
        "any": (0, layout.top),
    }
    low, high = ranges[category]
    exponent = rng.integers(low, high, size=size, endpoint=True, dtype=np.uint64)
    mantissa = rng.integers(0, 1 << layout.mantissa, size=size, dtype=np.uint64)
    if category in ("zero", "infinite"):
        mantissa[:] = 0
    elif category == "nan":
        mantissa |= np.uint64(1)
    return exponent, mantissa


def fill(kind: str, seed: int, dtype: str, shape: tuple[int, ...]) -> Array:
    """An array of ``dtype`` and ``shape`` filled from a seed; ``kind`` is a key of ``FILLS``."""
    layout = LAYOUTS[dtype]
    size = int(np.prod(shape, dtype=np.int64))
    if kind == "zeros":
        return np.zeros(shape, numpy_dtype(dtype))
    rng = np.random.default_rng(seed)
    names = FILLS[kind]
    choice = rng.integers(0, len(names), size=size)
    bits = np.zeros(size, np.uint64)
    for index, category in enumerate(names):
        here = np.flatnonzero(choice == index)
        exponent, mantissa = _fields(category, layout, here.size, rng)
        bits[here] = (exponent << np.uint64(layout.mantissa)) | mantissa
    signs = rng.integers(0, 2, size=size, dtype=np.uint64)
    bits |= signs << np.uint64(layout.bits - 1)
    return bits.astype(f"u{layout.bits // 8}").view(numpy_dtype(dtype)).reshape(shape)


def categories_in(array: Array, dtype: str) -> frozenset[str]:
    """The categories that the elements of ``array`` belong to (``any`` left out): for tests and reports."""
    layout = LAYOUTS[dtype]
    bits = np.ascontiguousarray(array).reshape(-1).view(f"u{layout.bits // 8}").astype(np.uint64)
    exponent = (bits >> np.uint64(layout.mantissa)) & np.uint64(layout.top)
    mantissa = bits & np.uint64((1 << layout.mantissa) - 1)
    negative = (bits >> np.uint64(layout.bits - 1)) == 1
    finite = exponent < layout.top
    found = {
        "zero": (exponent == 0) & (mantissa == 0),
        "negative zero": (exponent == 0) & (mantissa == 0) & negative,
        "subnormal": (exponent == 0) & (mantissa != 0),
        "ordinary": finite & (exponent > layout.bias // 2) & (exponent < layout.bias + layout.bias // 2),
        "huge": finite & (exponent >= layout.bias + layout.bias // 2),
        "infinite": ~finite & (mantissa == 0),
        "nan": ~finite & (mantissa != 0),
    }
    return frozenset(name for name, mask in found.items() if mask.any())


def _numbers(dtype: str) -> st.SearchStrategy[float]:
    """Single elements; shrinks towards 0."""
    width = {"float16": 16, "bfloat16": 32, "float32": 32, "float64": 64}[dtype]
    return st.one_of(
        st.sampled_from((0.0, 1.0, -1.0, 0.5, -2.0)),
        st.floats(-4.0, 4.0, width=width),  # type: ignore[arg-type]
        st.sampled_from(special_values(dtype)),
        st.floats(width=width),  # type: ignore[arg-type]
    )


@st.composite
def arrays(draw: st.DrawFn, dtype: str, shape: tuple[int, ...]) -> Array:
    """Arrays of one storage type and shape, C-contiguous, holding whatever a training run may produce."""
    size = int(np.prod(shape, dtype=np.int64))
    if size <= ELEMENTWISE:
        elements = draw(st.lists(_numbers(dtype), min_size=size, max_size=size))
        few: Array = _converted(elements, dtype).reshape(shape)
        return few
    array = fill(draw(st.sampled_from(_FILLS_DRAWN)), draw(st.integers(0, 2**32 - 1)), dtype, shape).copy()
    positions = st.one_of(st.integers(0, size - 1), st.integers(max(0, size - 20), size - 1))
    special = draw(st.dictionaries(positions, _numbers(dtype), max_size=SPECIAL_POSITIONS))
    for position, element in special.items():
        array.reshape(-1)[position] = _converted([element], dtype)[0]
    return array


def _converted(elements: list[float], dtype: str) -> Array:
    """Python floats rounded to a storage type (overflow to infinity is meant)."""
    with np.errstate(all="ignore"):
        array: Array = np.array(elements, np.float64).astype(numpy_dtype(dtype))
    return array
