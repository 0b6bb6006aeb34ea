"""The CUDA text executed on the host: every element updated once, whatever sizes, alignments and grids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import generated
from solvergen.runtime.definition import Definition
from solvergen.runtime.dtypes import STORAGE_TYPES, numpy_dtype
from tests.support import cuda_host
from tests.support.cuda_launch import (
    MIXES,
    bits_of,
    check,
    chunked,
    defaults,
    lanes,
    launch,
    ordinary_values,
    strange_values,
    tensor,
)
from tests.support.shipped import ELEMENTWISE

pytestmark = pytest.mark.skipif(cuda_host.missing() is not None, reason=str(cuda_host.missing()))

ADAM: Definition = generated.Adam.definition
OPTIONS = {"amsgrad": True, "maximize": False}
H = [defaults(ADAM, weight_decay=0.1)]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20260101)


@pytest.mark.parametrize("at", ["end", "start"])
@pytest.mark.parametrize("mix", MIXES, ids="-".join)
def test_heads_words_and_tails(mix: tuple[str, str], at: str, rng: np.random.Generator) -> None:
    """Sizes around the vector width at every alignment, against a guard page at the end or the start."""
    wide = lanes(mix)
    tensors = [
        tensor(ADAM, OPTIONS, mix, size, rng, phase=phase, at=at)  # type: ignore[arg-type]
        for size in (0, 1, 2, 3, wide - 1, wide, wide + 1, 2 * wide - 1, 3 * wide + 1)
        for phase in range(wide)
    ]
    chunks = chunked(tensors, 1024)
    words = launch(tensors, chunks, H, [0] * len(tensors))
    check(tensors, H, [0] * len(tensors))
    # Each buffer that is stored is stored by words wherever a whole one fits.
    whole = sum(
        max(0, t.size - (-phase % wide)) // wide
        for t, phase in zip(tensors, 9 * list(range(wide)), strict=True)
    )
    stored_bytes = STORAGE_TYPES[mix[0]].itemsize + 3 * STORAGE_TYPES[STORAGE_TYPES[mix[0]].compute].itemsize
    assert words == whole * wide * stored_bytes // 16


@pytest.mark.parametrize("mix", MIXES, ids="-".join)
def test_buffers_that_are_misaligned_differently(mix: tuple[str, str], rng: np.random.Generator) -> None:
    """Element by element, right all the same; a vector access would end the process."""
    wide = lanes(mix)
    state_wide = 16 // STORAGE_TYPES[STORAGE_TYPES[mix[0]].compute].itemsize
    tensors = []
    for _ in range(40):
        phases = rng.integers(0, wide, 5).tolist()
        # Make sure of one difference that no head can make up for.
        phases[1] = (phases[0] + 1 + int(rng.integers(0, wide - 1))) % wide if wide > 1 else 0
        if STORAGE_TYPES[mix[0]].itemsize != STORAGE_TYPES[mix[1]].itemsize:
            phases[2:] = [(phases[0] + 1) % state_wide] * 3
            phases[3] = (phases[0] + 2) % state_wide
        tensors.append(tensor(ADAM, OPTIONS, mix, int(rng.integers(0, 70)), rng, phase=phases))
    words = launch(tensors, chunked(tensors, 1024), H, [0] * len(tensors))
    check(tensors, H, [0] * len(tensors))
    assert words == 0


@pytest.mark.parametrize("mix", MIXES, ids="-".join)
def test_any_bits(mix: tuple[str, str], rng: np.random.Generator) -> None:
    tensors = [tensor(ADAM, OPTIONS, mix, 5000, rng, values=strange_values)]
    launch(tensors, chunked(tensors, 2048), H, [0])
    check(tensors, H, [0])


@pytest.mark.parametrize("start", [2**31 - 8, 2**31, 2**32 + 8, 2**40])
@pytest.mark.parametrize(
    "mix", [("float32", "float32"), ("float64", "float64"), ("bfloat16", "float32")], ids="-".join
)
def test_offsets_beyond_32_bits(mix: tuple[str, str], start: int, rng: np.random.Generator) -> None:
    """The memory is the small piece at ``start`` of a tensor that would not fit anywhere."""
    tensors = [
        tensor(ADAM, OPTIONS, mix, 333, rng, start=start, phase=1),
        tensor(ADAM, OPTIONS, mix, 40, rng, start=start + 16, at="start"),
    ]
    launch(tensors, chunked(tensors, 256), H, [0, 0])
    check(tensors, H, [0, 0])


@pytest.mark.parametrize(("blocks", "threads"), [(1, 256), (3, 256), (1000, 256), (2, 32), (1, 1)])
def test_any_grid(blocks: int, threads: int, rng: np.random.Generator) -> None:
    """Fewer blocks than chunks take several each; blocks without a chunk do nothing."""
    mix = ("float32", "bfloat16")
    tensors = [tensor(ADAM, OPTIONS, mix, size, rng, phase=size % 8) for size in (700, 0, 1, 5000, 129)]
    launch(tensors, chunked(tensors, 64), H, [0] * 5, blocks=blocks, threads=threads)
    check(tensors, H, [0] * 5)


def test_each_tensor_reads_its_own_row(rng: np.random.Generator) -> None:
    rows = [
        defaults(ADAM, lr=lr, weight_decay=wd, beta1=b)
        for lr, wd, b in ((0.1, 0, 0.9), (0.2, 0.3, 0.5), (1, 2, 0))
    ]
    tensors = [tensor(ADAM, OPTIONS, ("float32", "float32"), size, rng) for size in (9, 100, 3, 4097)]
    launch(tensors, chunked(tensors, 1024), rows, [2, 0, 1, 0])
    check(tensors, rows, [2, 0, 1, 0])


def test_the_last_bytes_of_a_chunk_that_ends_inside_a_tensor_are_left_to_the_next(
    rng: np.random.Generator,
) -> None:
    """Chunks of a misaligned tensor share words; elements are updated once, not twice."""
    tensors = [tensor(ADAM, OPTIONS, ("float16", "float16"), 1000, rng, phase=3)]
    launch(tensors, chunked(tensors, 64), H, [0])
    check(tensors, H, [0])


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_every_optimizer_under_every_option(name: str, rng: np.random.Generator) -> None:
    definition: Definition = ELEMENTWISE[name].definition
    settings = [{}]
    for option in definition.option_names:
        settings = [{**s, option: value} for s in settings for value in (False, True)]
    for options in settings:
        tensors = [
            tensor(definition, options, ("bfloat16", "float32"), size, rng, phase=3) for size in (1, 77)
        ]
        wanted = {"weight_decay": 0.25, "momentum": 0.5}
        names = definition.hyperparameter_names
        h = [defaults(definition, **{n: v for n, v in wanted.items() if n in names})]
        launch(tensors, chunked(tensors, 1024), h, [0, 0])
        check(tensors, h, [0, 0])


# The skeleton's conversions by themselves: the text up to what the optimizer adds, and a kernel of our own.
CONVERT = """
extern "C" __global__ void sg_kernel(const float *wide, sg_param *narrow, const sg_param *all, float *widened,
                                     long long n) {
    for (long long i = 0; i < n; ++i) sg_narrow(wide[i], narrow[i]);
    for (long long i = 0; i < 65536; ++i) widened[i] = sg_widen(all[i]);
}
"""


def converted(half: str, wide: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each of ``wide`` narrowed, and each 16-bit number widened, by the kernel's functions."""
    text = Path(ADAM.folder, "kernel.cu").read_text(encoding="utf-8")
    code = STORAGE_TYPES[half].code
    text = text[: text.index("/* Where the buffers of a chunk begin. */")] + CONVERT
    compiled = cuda_host.HostCompiler().compile(text, "sm_host", {"SG_PARAM": code, "SG_GRAD": code})
    narrow = np.empty(len(wide), numpy_dtype(half))
    every = np.arange(1 << 16, dtype=np.uint16)
    widened = np.empty(1 << 16, np.float32)
    device = cuda_host.HostDevice()
    arguments = [np.uint64(a.ctypes.data) for a in (wide, narrow, every, widened)]
    device.launch(device.load(compiled.image, "sg_kernel"), 1, 1, [*arguments, np.int64(len(wide))])
    return narrow, widened


@pytest.mark.parametrize("half", ["bfloat16", "float16"])
def test_conversions_of_16_bit_numbers(half: str) -> None:
    """All of them to float32; to them every upper half of a float32, with lower halves at, beside and far
    from the ties of both types. Signalling NaNs too, which arithmetic would have quieted."""
    lower = (
        0,
        1,
        0xFFF,
        0x1000,
        0x1001,
        0x2FFF,
        0x3000,
        0x3001,
        0x7FFF,
        0x8000,
        0x8001,
        0xEFFF,
        0xF000,
        0xFFFF,
    )
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    wide = np.concatenate([upper | np.uint32(low) for low in lower]).view(np.float32)
    narrow, widened = converted(half, wide)
    with np.errstate(all="ignore"):
        assert (bits_of(narrow) == bits_of(wide.astype(numpy_dtype(half)))).all()
        every = np.arange(1 << 16, dtype=np.uint16).view(numpy_dtype(half))
        assert (bits_of(widened) == bits_of(every.astype(np.float32))).all()


def test_values_reach_the_tests_that_they_are_for(rng: np.random.Generator) -> None:
    """The generators make what they say: the tests above would be empty otherwise."""
    values = strange_values(rng, 5000, numpy_dtype("bfloat16")).astype(np.float32)
    assert np.isnan(values).any()
    assert np.isinf(strange_values(rng, 50000, np.dtype(np.float16))).any()
    assert (np.abs(values[np.isfinite(values)]) < 1e-30).any()
    assert np.isfinite(ordinary_values(rng, 100, np.dtype(np.float64))).all()


class TestFinite:
    """The kernel behind the policies for gradients that aren't finite."""

    @pytest.mark.parametrize("dtype", list(STORAGE_TYPES))
    def test_it_sees_each_bad_element_and_no_good_one(self, dtype: str, rng: np.random.Generator) -> None:
        kind = numpy_dtype(dtype)
        device = cuda_host.HostDevice()
        kernel = cuda_host.host_kernels().finite(device, dtype)
        limits = np.array([np.nan, np.inf, -np.inf]).astype(kind)
        largest = np.array([bits - 1 for bits in limits[1:2].view(f"u{kind.itemsize}")]).view(kind)
        for size in (0, 1, 7, 8, 33):
            for phase in range(16 // kind.itemsize):
                good = ordinary_values(rng, size, kind)
                if size:
                    good[rng.integers(size)] = largest[0]
                assert self.finite(device, kernel, good, phase * kind.itemsize)
                for position in range(size):
                    bad = good.copy()
                    bad[position] = limits[position % 3]
                    assert not self.finite(device, kernel, bad, phase * kind.itemsize)

    @staticmethod
    def finite(device: cuda_host.HostDevice, kernel: object, values: np.ndarray, offset: int) -> bool:
        memory = cuda_host.GuardedMemory(values.nbytes, alignment=16, offset=offset)
        memory.bytes[...] = values.view(np.uint8)
        pointers = np.array([memory.ptr], np.uint64)
        length = 24
        chunks = np.array(
            [(0, min(length, len(values) - s), s) for s in range(0, len(values), length)],
            [("tensor", np.int32), ("count", np.int32), ("start", np.int64)],
        )
        table = cuda_host.GuardedMemory(max(16, chunks.nbytes), alignment=16)
        table.bytes[: chunks.nbytes] = chunks.view(np.uint8)
        found = np.zeros(1, np.int32)
        arguments = [
            np.uint64(pointers.ctypes.data),
            np.uint64(table.ptr),
            np.int64(len(chunks)),
            np.uint64(found.ctypes.data),
        ]
        device.launch(kernel, 2, 64, arguments)
        assert found[0] in (0, 1)
        return not found[0]
