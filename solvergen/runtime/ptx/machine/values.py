"""Arithmetic: an instruction, and what it computes, become one function over a list of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.instructions.operation import Operation
from solvergen.runtime.ptx.machine.slots import Read, Slots, Values, error, extend, results_of, widened
from solvergen.runtime.ptx.machine.step import Step
from solvergen.runtime.ptx.module import Instruction, Operand, Register, Sink, Vector

Compute = Callable[..., Any]
DType = np.dtype[Any]


def arithmetic(instruction: Instruction, operation: Operation, slots: Slots) -> Step:
    """The step of an instruction that only computes.

    Raises:
        PtxError: its operands don't fit the operation.
    """
    if not instruction.operands:
        raise error(instruction, "an operand is missing")
    results = results_of(instruction.operands[0])
    sources = [value for operand in instruction.operands[1:] for value in _flat(operand)]
    if len(results) != len(operation.results) or len(sources) != len(operation.sources):
        raise error(
            instruction,
            f"{len(operation.results)} results and {len(operation.sources)} operands are due, found "
            f"{len(results)} and {len(sources)}",
        )
    reads = [
        slots.source(operand, kind, instruction)
        for operand, kind in zip(sources, operation.sources, strict=True)
    ]
    writes: list[tuple[int, DType | None]] = []
    for operand, kind in zip(results, operation.results, strict=True):
        if isinstance(operand, Sink):
            writes.append((-1, None))
        elif isinstance(operand, Register):
            writes.append((slots.register(operand), widened(operand, kind, instruction)))
        else:
            raise error(instruction, f"a result can't go to {operand}")
    dtypes = [kind.dtype for kind in operation.sources]
    simple = all(read is None for _, read in reads) and len(writes) == 1 and writes[0][0] > 0
    if simple and writes[0][1] is None and 1 <= len(reads) <= 3:
        run = _plain(operation.compute, [slot for slot, _ in reads], dtypes, writes[0][0])
    else:
        run = _general(operation.compute, reads, dtypes, writes)
    return Step(
        instruction,
        run,
        tuple(slot for slot, _ in reads),
        tuple(slot for slot, _ in writes if slot > 0),
    )


def _flat(operand: Operand) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _plain(compute: Compute, reads: list[int], dtypes: list[DType], target: int) -> Callable[[Values], None]:
    """One result, and operands that are at most viewed: nearly all instructions, so these are fast."""
    if len(reads) == 1:
        a, type_a = reads[0], dtypes[0]

        def unary(values: Values) -> None:
            x = values[a]
            values[target] = compute(x if x.dtype is type_a else x.view(type_a))

        return unary
    if len(reads) == 2:
        (a, b), (type_a, type_b) = reads, dtypes

        def binary(values: Values) -> None:
            x, y = values[a], values[b]
            values[target] = compute(
                x if x.dtype is type_a else x.view(type_a), y if y.dtype is type_b else y.view(type_b)
            )

        return binary
    (a, b, c), (type_a, type_b, type_c) = reads, dtypes

    def ternary(values: Values) -> None:
        x, y, z = values[a], values[b], values[c]
        values[target] = compute(
            x if x.dtype is type_a else x.view(type_a),
            y if y.dtype is type_b else y.view(type_b),
            z if z.dtype is type_c else z.view(type_c),
        )

    return ternary


def reading(slot: int, read: Read | None, dtype: DType) -> Read:
    """A function that reads a place as ``dtype``."""
    if read is not None:
        return read

    def view(values: Values) -> HostArray:
        value: HostArray = values[slot]
        return value if value.dtype is dtype else value.view(dtype)

    return view


def _general(
    compute: Compute,
    reads: list[tuple[int, Read | None]],
    dtypes: list[DType],
    writes: list[tuple[int, DType | None]],
) -> Callable[[Values], None]:
    readers = [reading(slot, read, dtype) for (slot, read), dtype in zip(reads, dtypes, strict=True)]

    def run(values: Values) -> None:
        found = compute(*[read(values) for read in readers])
        results = found if isinstance(found, tuple) else (found,)
        for (target, wide), result in zip(writes, results, strict=True):
            if target > 0:
                values[target] = result if wide is None else extend(result, wide)

    return run
