"""Launches a generated package's kernel over buffers that a test has laid out itself, and says what is right.

Below the runtime: pointers, chunks and table are the test's, so that it can choose alignments, offsets
and grids which the runtime would choose otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.definition import Definition
from solvergen.runtime.dtypes import STORAGE_TYPES, compute_dtype, numpy_dtype, rounding
from solvergen.runtime.kernel_interface import CHUNK
from tests.support.cuda_host import GuardedMemory, HostDevice, host_kernels

MIXES = (
    ("float32", "float32"),
    ("float64", "float64"),
    *(
        (p, g)
        for p in ("float32", "bfloat16", "float16")
        for g in ("float32", "bfloat16", "float16")
        if p + g != "float32float32"
    ),
)
"""Every pair of parameter and gradient types."""


def bits_of(array: HostArray) -> HostArray:
    """The elements as integers, all NaNs alike."""
    unsigned = array.view(f"u{array.dtype.itemsize}")
    with np.errstate(invalid="ignore"):  # ml_dtypes: isnan of a signalling NaN
        return np.where(np.isnan(array), ~unsigned.dtype.type(0), unsigned)


def ordinary_values(rng: np.random.Generator, count: int, dtype: np.dtype[Any]) -> HostArray:
    return rng.standard_normal(count).astype(dtype)


def strange_values(rng: np.random.Generator, count: int, dtype: np.dtype[Any]) -> HostArray:
    """Any bits at all: subnormals, infinities, NaNs, huge and tiny numbers."""
    return np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).copy()


@dataclass
class Tensor:
    """One tensor of a launch: its values, and where its buffers lie.

    ``offsets``: for each buffer the bytes by which it misses a word. ``start`` is the position of its
    first element in a (mostly imaginary) larger tensor, of which the memory here is all that exists.
    """

    definition: Definition
    options: Mapping[str, bool]
    mix: tuple[str, str]
    values: list[HostArray | None]
    offsets: Sequence[int]
    start: int = 0
    at: Literal["end", "start"] = "end"
    memory: list[GuardedMemory | None] = field(init=False)

    def __post_init__(self) -> None:
        self.memory = []
        for value, offset in zip(self.values, self.offsets, strict=True):
            if value is None:
                self.memory.append(None)
                continue
            memory = GuardedMemory(value.nbytes, alignment=16, offset=offset, at=self.at)
            memory.bytes[...] = value.reshape(-1).view(np.uint8)
            self.memory.append(memory)

    @property
    def size(self) -> int:
        assert self.values[0] is not None
        return self.values[0].size

    def pointers(self) -> list[int]:
        return [
            0 if m is None or v is None else m.ptr - self.start * v.itemsize
            for m, v in zip(self.memory, self.values, strict=True)
        ]

    def results(self) -> list[HostArray | None]:
        """Copies of what the buffers hold now."""
        return [
            None if m is None or v is None else m.bytes.view(v.dtype).copy()
            for m, v in zip(self.memory, self.values, strict=True)
        ]

    def expected(self, hyperparameters: Mapping[str, float], t: float) -> list[HostArray | None]:
        """What the NumPy reference makes of the values."""
        param, grad, *states = self.values
        assert param is not None
        assert grad is not None
        compute = compute_dtype(self.mix[0])
        scalars = scalar_state(self.definition, hyperparameters, self.options)
        with np.errstate(all="ignore"):
            new = self.definition.update(
                param.astype(compute),
                grad.astype(compute),
                *(None if s is None else s.copy() for s in states),
                *scalars.values(),
                *(hyperparameters[name] for name in self.definition.hyperparameter_names),
                t,
                *(self.options[name] for name in self.definition.option_names),
                compute.type,
                rounding(self.mix[0]),
            )
            return [new[0].astype(param.dtype), grad, *new[1 : 1 + len(states)]]


def scalar_state(
    definition: Definition, hyperparameters: Mapping[str, float], options: Mapping[str, bool]
) -> dict[str, float]:
    """The scalar state that a tensor begins with, in the definition's order."""
    initial = definition.initial_state(**hyperparameters, **options)
    return {name: initial[name] for name in definition.scalar_states}


def tensor(
    definition: Definition,
    options: Mapping[str, bool],
    mix: tuple[str, str],
    size: int,
    rng: np.random.Generator,
    *,
    phase: int | Sequence[int] = 0,
    start: int = 0,
    at: Literal["end", "start"] = "end",
    values: Any = ordinary_values,
) -> Tensor:
    """A tensor of random values. ``phase``: elements by which its buffers miss a word, for all or each."""
    compute = compute_dtype(mix[0])
    active = definition.active_state(**options)
    dtypes = [numpy_dtype(mix[0]), numpy_dtype(mix[1])]
    dtypes += [compute if name in active else None for name in definition.array_states]  # type: ignore[list-item]
    phases = [phase] * len(dtypes) if isinstance(phase, int) else phase
    data = [None if d is None else values(rng, size, d) for d in dtypes]
    offsets = [0 if d is None else n * d.itemsize % 16 for d, n in zip(dtypes, phases, strict=True)]
    return Tensor(definition, options, mix, data, offsets, start, at)


def chunked(tensors: Sequence[Tensor], length: int) -> HostArray:
    """Cut each tensor into chunks of ``length`` elements."""
    rows = [
        (i, min(length, t.size - first), t.start + first)
        for i, t in enumerate(tensors)
        for first in range(0, t.size, length)
    ]
    return np.array(rows, CHUNK)


def launch(
    tensors: Sequence[Tensor],
    chunks: HostArray,
    hyperparameters: Sequence[Mapping[str, float]],
    rows: Sequence[int],
    *,
    t: float = 3.0,
    blocks: int | None = None,
    threads: int = 256,
) -> int:
    """Run the kernel; a row of the table for each of ``hyperparameters``. Returns the 128-bit stores."""
    first = tensors[0]
    definition = first.definition
    compute = compute_dtype(first.mix[0])
    device = HostDevice()
    kernel = host_kernels().update(device, definition.folder, *first.mix, first.options)
    with np.errstate(all="ignore"):
        table = np.array(
            [
                definition.scalars(**h, **first.options, t=t, **scalar_state(definition, h, first.options))[0]
                or (0.0,)
                for h in hyperparameters
            ],
            np.float64,
        ).astype(compute)
    tables = [
        np.array([tensor.pointers() for tensor in tensors], np.int64),
        np.array(rows, np.int32),
        table,
        np.ascontiguousarray(chunks),
    ]
    memory = []
    for part in tables:
        held = GuardedMemory(part.nbytes, alignment=16)
        held.bytes[...] = part.reshape(-1).view(np.uint8)
        memory.append(held)
    arguments = [*(np.uint64(m.ptr) for m in memory), np.int64(len(chunks))]
    device.launch(kernel, len(chunks) if blocks is None else blocks, threads, arguments)
    for held, part in zip(memory, tables, strict=True):
        assert held.bytes.tobytes() == part.tobytes(), "a table was written to"
    return device.words


def check(
    tensors: Sequence[Tensor],
    hyperparameters: Sequence[Mapping[str, float]],
    rows: Sequence[int],
    t: float = 3.0,
) -> None:
    """Assert that every buffer holds the reference's bits and that nothing around them was touched."""
    for number, (each, row) in enumerate(zip(tensors, rows, strict=True)):
        names = ("param", "grad", *each.definition.array_states)
        expected = each.expected(hyperparameters[row], t)
        for name, memory, got, want in zip(names, each.memory, each.results(), expected, strict=True):
            if got is None or want is None or memory is None:
                assert got is want is memory is None
                continue
            assert memory.slack_intact(), f"tensor {number}: written beside {name}"
            assert got.dtype == want.dtype
            different = np.flatnonzero(bits_of(got) != bits_of(want))
            assert not different.size, (
                f"tensor {number} ({each.mix}, size {each.size}, offsets {each.offsets}): "
                f"{name}[{different[0]}] is {got[different[0]]!r}, not {want[different[0]]!r} "
                f"({different.size} of {each.size} differ)"
            )


def lanes(mix: tuple[str, str]) -> int:
    """Elements in a word of the narrowest buffer."""
    return 16 // min(STORAGE_TYPES[name].itemsize for name in mix)


def defaults(definition: Definition, **changes: float) -> dict[str, float]:
    """The default hyperparameters, with changes."""
    return {h.name: float(h.default) for h in definition.hyperparameters} | changes
