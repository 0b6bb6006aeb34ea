"""The kernel that reduces terms to totals, executed: its bits are those of a plain loop; faults are found."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import pytest

from solvergen.errors import KernelFault
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.backends.ptx import PtxStarter
from solvergen.runtime.cuda import nvrtc
from solvergen.runtime.cuda import reduction as reduction_module
from solvergen.runtime.cuda.device import Kernel
from solvergen.runtime.cuda.kernels import REDUCE, REDUCE_TEXT, Kernels
from solvergen.runtime.cuda.reduction import MANY, Column, Reduction
from solvergen.runtime.cuda.starting import Memory
from solvergen.runtime.ptx.compiler import ptx_compiler
from solvergen.runtime.ptx.device import PtxDevice
from tests.support.bits import same_bits
from tests.support.ptx import COMPILERS, needs_nvrtc
from tests.support.reductions import add, by_loops, larger

pytestmark = needs_nvrtc

TEXT = REDUCE_TEXT.read_text(encoding="utf-8")
SIZES = (0, 1, 255, 256, 257, 4095, 4096, 4097, 3 * 4096 + 5)
COLUMNS = (Column(2, 1, largest=True), Column(0, 4, largest=False), Column(1, 0, largest=False))
STRIDE = 5
WIDTH = 3


def kernel(device: PtxDevice, text: str = TEXT, compiler: nvrtc.Nvrtc | None = None) -> Kernel:
    if text == TEXT and compiler is None:
        return Kernels(ptx_compiler(COMPILERS[0])).reduce(device)
    found = (compiler or COMPILERS[0]).compile(
        text, f"compute_{device.capability}", extra_flags=("-lineinfo",)
    )
    return device.load(found.ptx.encode(), REDUCE)


def reduced(
    terms: HostArray,
    lengths: Sequence[int],
    places: Sequence[int],
    *,
    columns: Sequence[Column] = COLUMNS,
    text: str = TEXT,
    capability: int = 90,
    compiler: nvrtc.Nvrtc | None = None,
    blocks: int | None = None,
) -> HostArray:
    """What the kernel makes of rows of terms; NaN where it writes nothing."""
    device = PtxDevice(capability)
    starter = PtxStarter(device)
    memory = Memory(device, terms=terms, out=np.full((max(places) + 1, STRIDE), np.nan))
    reduction = Reduction(starter, kernel(device, text, compiler), lengths, places, columns)
    if blocks is not None:
        reduction = _with_blocks(reduction, starter, blocks)
    region = memory.region("out", "the results", writable=True)
    reduction.run(memory.region("terms", "the terms"), terms.shape[1], region, STRIDE)
    out = np.empty((max(places) + 1, STRIDE))
    device.download(out, region.address)
    return out


def _with_blocks(reduction: Reduction, starter: PtxStarter, blocks: int) -> Reduction:
    """As if a grid couldn't have more blocks than that."""
    start = starter.start
    starter.start = lambda kernel, text, count, arguments, bound=None: start(  # type: ignore[method-assign]
        kernel, text, min(count, blocks), arguments, bound
    )
    return reduction


def numbers(count: int, seed: int = 1) -> HostArray:
    """Of all magnitudes, so that another order gives other bits; the last column has magnitudes only."""
    rng = np.random.default_rng(seed)
    terms = rng.standard_normal((count, WIDTH)) * 10.0 ** rng.integers(-20, 20, (count, WIDTH))
    terms[:, 2] = np.abs(terms[:, 2])
    return terms


def expected(
    terms: HostArray, lengths: Sequence[int], places: Sequence[int], columns: Sequence[Column] = COLUMNS
) -> HostArray:
    out = np.full((max(places) + 1, STRIDE), np.nan)
    first = 0
    for length, place in zip(lengths, places, strict=True):
        for column in columns:
            part = terms[first : first + length, column.terms]
            out[place, column.result] = by_loops(part.tolist(), larger if column.largest else add)
        first += length
    return out


TARGETS = [
    pytest.param(compiler, n, id=f"{compiler.version[0]}-{n}")
    for compiler in COMPILERS
    for n in (75, 80, 90, 100, 120)
    if n in compiler.capabilities
]


@pytest.mark.parametrize(("compiler", "capability"), TARGETS)
def test_every_length(compiler: nvrtc.Nvrtc, capability: int) -> None:
    terms, places = numbers(sum(SIZES)), [3, 1, 10, 0, 4, 5, 8, 7, 6]
    out = reduced(terms, SIZES, places, capability=capability, compiler=compiler)
    assert same_bits(out, expected(terms, SIZES, places))


@pytest.mark.parametrize("blocks", [None, 1])
@pytest.mark.parametrize("longest", [0, 1, 2, 3, 8, 17, 32, 33])
def test_short_segments(longest: int, blocks: int | None) -> None:
    """Up to 32 terms a part of a warp takes a segment; of a single -0.0 nothing is added."""
    lengths = [longest, *(n for n in range(max(1, longest)) for _ in range(3))]
    terms, places = numbers(sum(lengths) or 1), list(reversed(range(len(lengths))))
    terms[::5, :2] = -0.0
    wanted = expected(terms, lengths, places)
    for length, first, place in zip(lengths, np.cumsum(lengths) - lengths, places, strict=True):
        if length == 1:
            for column in COLUMNS:
                wanted[place, column.result] = terms[first, column.terms]
    assert same_bits(reduced(terms, lengths, places, blocks=blocks), wanted)


def test_many_short_segments_beside_long_ones() -> None:
    """Two launches, and the chunks' values of each long one have a place of their own."""
    lengths = [1, 2] * MANY + [5000, 40, 4097]
    order = np.random.default_rng(2).permutation(len(lengths))
    lengths = [lengths[i] for i in order]
    terms, places = numbers(sum(lengths)), np.random.default_rng(3).permutation(len(lengths)).tolist()
    assert same_bits(reduced(terms, lengths, places), expected(terms, lengths, places))


def test_the_order_is_not_any_order() -> None:
    """The numbers above tell it from NumPy's."""
    terms = numbers(5000)[:, 0]
    assert by_loops(terms.tolist()) != terms.sum() != sum(terms)


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_fewer_blocks_than_segments(blocks: int) -> None:
    lengths, places = (5, 4097, 0, 300), (0, 1, 2, 3)
    terms = numbers(sum(lengths))
    out = reduced(terms, lengths, places, blocks=blocks)
    assert same_bits(out, expected(terms, lengths, places))


@pytest.mark.parametrize("count", [256**2, 256**2 + 1])
def test_three_levels(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of chunks of 256 terms, since three levels of 4,096 would take 16 million."""
    monkeypatch.setattr(reduction_module, "CHUNK_TERMS", 256)
    text = TEXT.replace("#define SG_CHUNK 4096", "#define SG_CHUNK 256")
    assert text != TEXT
    lengths, places = (300, count), (1, 0)
    terms = numbers(sum(lengths))
    out = reduced(terms, lengths, places, text=text, columns=COLUMNS[:2])
    first = 0
    for length, place in zip(lengths, places, strict=True):
        part = terms[first : first + length]
        assert out[place, 1] == _of_small_chunks(part[:, 2], largest=True)
        assert out[place, 4] == _of_small_chunks(part[:, 0], largest=False)
        first += length


def _of_small_chunks(values: HostArray, *, largest: bool) -> float:
    """Chunks of 256: a lane has one term, and what is left is halving."""
    while True:
        lanes = np.zeros((-(-len(values) // 256), 256))
        lanes.reshape(-1)[: len(values)] = values
        half = 128
        while half:
            low, high = lanes[:, :half], lanes[:, half : 2 * half]
            lanes = np.maximum(low, high) if largest else 0.0 + low + high
            half //= 2
        values = lanes[:, 0]
        if len(values) == 1:
            return float(values[0])


@pytest.mark.parametrize("place", [0, 255, 256, 4095, 4096, 5000])
@pytest.mark.parametrize("value", [np.nan, np.inf, -0.0])
def test_special_values(value: float, place: int) -> None:
    terms = np.abs(numbers(5001))
    terms[place] = value
    out = reduced(terms, [5001], [0])
    assert same_bits(out, expected(terms, [5001], [0]))
    if np.isnan(value):
        assert np.isnan(out[0, [0, 1, 4]]).all()


def test_zeros_are_positive() -> None:
    terms = np.full((300, WIDTH), -0.0)
    out = reduced(terms, [300, 0], [0, 1])
    assert not np.signbit(out[:, [0, 1, 4]]).any()
    assert (out[:, [0, 1, 4]] == 0).all()


def test_opposite_infinities() -> None:
    terms = numbers(5001)
    terms[7], terms[4100] = np.inf, -np.inf
    out = reduced(terms, [5001], [0], columns=COLUMNS[1:])
    assert np.isnan(out[0, [0, 4]]).all()


BARRIERS = [i for i in range(len(TEXT)) if TEXT.startswith("__syncthreads();", i)]


@pytest.mark.parametrize("barrier", range(len(BARRIERS)))
def test_a_missing_barrier(barrier: int) -> None:
    """None is there for nothing: without any of them, two threads meet."""
    at = BARRIERS[barrier]
    text = TEXT[:at] + TEXT[at:].replace("__syncthreads();", "", 1)
    terms = numbers(9000)
    with pytest.raises(KernelFault, match="with no barrier between them"):
        reduced(terms, [9000], [0], text=text)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("const int i = j * SG_THREADS + (int)threadIdx.x;", "const int i = (int)threadIdx.x * 16 + j;"),
        ("half = SG_THREADS / 2; half > 0; half /= 2", "half = 1; half < SG_THREADS; half *= 2"),
        ("half > 0; half /= 2", "half > 1; half /= 2"),  # the last lane is dropped
        ("c < chunks; ++c", "c < chunks - (chunks > 1); ++c"),  # the last chunk is dropped
        ("i < count ?", "i < count - 1 ?"),  # a term is dropped
        ("a > b || a != a ? a : b", "a > b ? a : b"),  # a NaN goes
    ],
)
def test_another_order_or_something_dropped(right: str, wrong: str) -> None:
    text = TEXT.replace(right, wrong)
    assert text != TEXT
    terms = numbers(9000)
    terms[5, 2] = np.nan
    out = None
    with suppress(KernelFault):  # some wrong orders are races, too
        out = reduced(terms, [9000], [0], text=text)
    assert out is None or not same_bits(out, expected(terms, [9000], [0]))


def test_terms_that_nothing_has_written() -> None:
    device = PtxDevice(90)
    starter = PtxStarter(device)
    memory = Memory(device, terms=300, out=1)
    reduction = Reduction(starter, kernel(device), [300], [0], [Column(0, 0, largest=False)])
    results = memory.region("out", "the results", writable=True)
    with pytest.raises(KernelFault, match="which nothing has written") as caught:
        reduction.run(memory.region("terms", "the chunks' totals"), 1, results, 1)
    assert caught.value.buffer == "the chunks' totals"
