"""What the drawn arrays hold.

An array is filled from two drawn numbers, a kind and a seed: drawing thousands of floats one by one would
take longer than everything else. A fill works on bit patterns, so that every category of numbers exists
in every storage type.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.dtypes import numpy_dtype
from solvergen.verify.dtypes import LAYOUTS, Layout

CATEGORIES = (
    "zero",
    "exact",
    "ordinary",
    "special",
    "tie",
    "subnormal",
    "tiny",
    "root",
    "low",
    "huge",
    "infinite",
    "nan",
    "any",
)
"""Kinds of numbers. ``exact``: few significant bits, so that sums are exact, equal, or ties in rounding.
``low``: far below 1, none of them small.
``special``: ``special_values``. ``tie``: halfway between two numbers of a narrower type, or next to that.
``root``: their squares are subnormal. ``any``: every bit pattern with equal chance. Signs are random."""

FILLS: dict[str, tuple[str, ...]] = {
    "zeros": ("zero",),
    "exact": ("exact", "exact", "exact", "zero"),
    "ordinary": ("ordinary",),
    "finite": ("ordinary", "ordinary", "exact", "subnormal", "tiny", "huge", "zero"),
    "special": ("special", "special", "ordinary"),
    "ties": ("tie", "tie", "ordinary"),
    "everything": ("ordinary", "ordinary", *(c for c in CATEGORIES if c not in ("root", "low"))),
    "roots": ("root", "root", "root", "zero"),
    "small": ("tiny", "subnormal"),
    "subnormals": ("subnormal", "subnormal", "subnormal", "zero"),
    "peak": ("low",),
}
"""Fills by name, simplest first: the categories that they mix, one chosen at each element. One of the first
elements of a ``peak`` is far larger than all others."""

KINDS = st.sampled_from(
    ("zeros", "exact", "exact", "ordinary", "ordinary", "finite", "finite", "special", "ties", "everything")
)
"""Kinds of arrays whose elements don't meet each other."""

CALM = st.sampled_from(("zeros", "exact", "exact", "ordinary", "ordinary", "ordinary", "ties"))
"""Kinds of arrays that leave the sum of all their squares finite. One element that doesn't leaves nothing to
compare but infinities and NaNs, in all tensors."""
SMALL = (st.just("small"), st.just("small"), st.just("roots"))
"""Kinds of arrays all of whose elements are small, or have small squares: their sums are no larger, so that
subnormal ones show in them."""
SUBNORMALS = st.sampled_from(("subnormals", "subnormals", "small"))
"""Kinds of arrays in whose sums nothing is left where subnormal numbers are lost."""
PEAKED = st.sampled_from(("peak", "peak", "peak", "ordinary"))
"""Kinds of arrays whose sums depend on their order in the last bit: what is added to one large number is
rounded each time, and less often if others meet first."""
SEEDS = st.integers(0, 2**32 - 1)
"""Seeds of arrays."""

_NARROWER = {"float64": ("float32",), "float32": ("bfloat16", "float16")}
"""The types that numbers of a type may be rounded to, in the right program or in a wrong one."""


def special_values(dtype: str) -> tuple[float, ...]:
    """Numbers of ``dtype`` that rounding and comparisons are likeliest to get wrong."""
    layout = LAYOUTS[dtype]
    least = 2.0 ** (1 - layout.bias - layout.mantissa)
    normal = 2.0 ** (1 - layout.bias)
    largest = (2.0 - 2.0**-layout.mantissa) * 2.0**layout.bias
    step = 2.0**-layout.mantissa
    finite = (0.0, 1.0, 1.0 + step, 1.0 - step / 2, 3.0, least, normal - least, normal, largest, 1 / normal)
    # Where a narrower type rounds to 0 instead of its least number, and to infinity instead of its largest.
    edges = [
        edge
        for narrow in map(LAYOUTS.__getitem__, _NARROWER.get(dtype, ()))
        for edge in (
            2.0 ** (-narrow.bias - narrow.mantissa),
            (2.0 - 2.0 ** (-1 - narrow.mantissa)) * 2.0**narrow.bias,
        )
    ]
    positive = (*finite, float("inf"), *edges)
    return (*positive, *(-value for value in positive), float("nan"))


def _bits_of(numbers: HostArray, dtype: str) -> HostArray:
    """Float64 numbers rounded to ``dtype``, as bit patterns."""
    layout = LAYOUTS[dtype]
    with np.errstate(all="ignore"):
        return numbers.astype(numpy_dtype(dtype)).view(f"u{layout.bits // 8}").astype(np.uint64)


def _patterns(category: str, dtype: str, size: int, rng: np.random.Generator) -> HostArray:
    """Random bit patterns of a category, without their signs."""
    layout = LAYOUTS[dtype]
    if category == "exact":
        return _bits_of(rng.integers(1, 33, size) * 2.0 ** -rng.integers(0, 9, size), dtype)
    if category == "special":
        chosen = rng.choice(np.array(special_values(dtype)), size)
        # NaN in both its forms: the usual payload, and the one that is next to infinity.
        least = np.isnan(chosen) & (rng.integers(0, 2, size) == 1)
        return np.where(least, np.uint64((layout.top << layout.mantissa) | 1), _bits_of(chosen, dtype))
    if category == "tie" and dtype in _NARROWER:
        return _ties(dtype, size, rng)
    low, high = _exponents(category, layout)
    exponent = rng.integers(low, high, size=size, endpoint=True, dtype=np.uint64)
    mantissa = rng.integers(0, 1 << layout.mantissa, size=size, dtype=np.uint64)
    if category in ("zero", "infinite"):
        mantissa[:] = 0
    elif category == "nan":
        # Some with the least payload, which is the first that is lost where bits are cut off.
        mantissa = np.where(mantissa % np.uint64(3) == 0, np.uint64(1), mantissa | np.uint64(1))
    patterns: HostArray = (exponent << np.uint64(layout.mantissa)) | mantissa
    return patterns


def _ties(dtype: str, size: int, rng: np.random.Generator) -> HostArray:
    """Numbers halfway between two of a narrower type, and their neighbours, as bit patterns."""
    names = _NARROWER[dtype]
    choice = rng.integers(0, len(names), size=size)
    found = np.zeros(size, np.uint64)
    for index, name in enumerate(names):
        here = np.flatnonzero(choice == index)
        narrow = LAYOUTS[name]
        patterns = rng.integers(0, narrow.top << narrow.mantissa, here.size)  # every finite number
        exponent, mantissa = patterns >> narrow.mantissa, patterns & ((1 << narrow.mantissa) - 1)
        significand = mantissa + np.where(exponent > 0, 1 << narrow.mantissa, 0) + 0.5
        middle = np.ldexp(significand, np.maximum(exponent, 1) - narrow.bias - narrow.mantissa)
        found[here] = _bits_of(middle, dtype).astype(np.int64) + rng.integers(-1, 2, here.size)
    return found


def _exponents(category: str, layout: Layout) -> tuple[int, int]:
    """The least and the largest biased exponent of a category."""
    near_one, near_end = min(8, layout.bias // 2 - 1), min(8, layout.bias // 4)
    return {
        "zero": (0, 0),
        "subnormal": (0, 0),
        "tiny": (1, 1 + near_end),
        "root": (layout.bias - (layout.bias + layout.mantissa) // 2, layout.bias - (layout.bias + 1) // 2),
        "ordinary": (layout.bias - near_one, layout.bias + near_one),
        "low": (layout.bias - min(20, layout.bias - 2), layout.bias - 8),
        "tie": (layout.bias - near_one, layout.bias + near_one),  # where there is no narrower type
        "huge": (layout.top - 1 - near_end, layout.top - 1),
        "infinite": (layout.top, layout.top),
        "nan": (layout.top, layout.top),
        "any": (0, layout.top),
    }[category]


def fill(kind: str, seed: int, dtype: str, shape: tuple[int, ...]) -> HostArray:
    """An array of ``dtype`` and ``shape`` filled from a seed; ``kind`` is a key of ``FILLS``."""
    layout = LAYOUTS[dtype]
    size = int(np.prod(shape, dtype=np.int64))
    if kind == "zeros" and seed % 2 == 0:
        return np.zeros(shape, numpy_dtype(dtype))
    rng = np.random.default_rng(seed)
    names = FILLS[kind]
    choice = rng.integers(0, len(names), size=size)
    bits = np.zeros(size, np.uint64)
    for index, category in enumerate(names):
        here = np.flatnonzero(choice == index)
        bits[here] = _patterns(category, dtype, here.size, rng)
    if kind == "peak" and size:
        peak = rng.integers(0, min(size, 4))
        bits[peak] = (layout.bias << layout.mantissa) | rng.integers(0, 1 << layout.mantissa)
    bits ^= rng.integers(0, 2, size=size, dtype=np.uint64) << np.uint64(layout.bits - 1)
    return bits.astype(f"u{layout.bits // 8}").view(numpy_dtype(dtype)).reshape(shape)


def categories_in(array: HostArray, dtype: str) -> frozenset[str]:
    """The categories that the elements of ``array`` belong to, of those that bits alone tell apart."""
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


@st.composite
def arrays(
    draw: st.DrawFn, dtype: str, shape: tuple[int, ...], kinds: st.SearchStrategy[str] = KINDS
) -> HostArray:
    """Arrays of one storage type and shape, C-contiguous, holding whatever a training run may produce."""
    return fill(draw(kinds), draw(SEEDS), dtype, shape)
