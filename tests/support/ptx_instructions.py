"""Instructions of PTX by hand, and what they compute, as plain numbers and bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from solvergen.runtime.ptx.instructions import Operation, decode
from solvergen.runtime.ptx.module import Instruction, Integer, Operand, Pair, Place, Register, Vector
from solvergen.runtime.ptx.types import TYPES

Column: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

_REGISTERS = tuple(Register(f"%x{slot}", TYPES["b32"], slot) for slot in range(8))
_REGISTER = _REGISTERS[0]


def instruction(name: str, *operands: Operand | int, sources: int = 0) -> Instruction:
    """``name`` with these operands, an int for a constant; without any, a destination and ``sources``."""
    opcode, *modifiers = name.split(".")
    given = tuple(Integer(operand) if isinstance(operand, int) else operand for operand in operands)
    if not given:
        given = _REGISTERS[: 1 + sources]
    place = Place(7, f"{name} by hand;")
    return Instruction(opcode, tuple(modifiers), given, None, place)


def register() -> Register:
    """Some register; decoding doesn't care which."""
    return _REGISTER


def pair() -> Pair:
    """``p|q``."""
    return Pair(_REGISTER, _REGISTER)


def vector(count: int) -> Vector:
    """``{x, x, ...}``."""
    return Vector((_REGISTER,) * count)


def decoded(given: Instruction) -> Operation:
    """The operation of an instruction that must be known."""
    operation = decode(given)
    assert operation is not None
    return operation


def compute(
    name: str,
    *values: Sequence[Any],
    constants: Sequence[int | None] = (),
    destination: Operand | None = None,
) -> list[Any]:
    """The results of an instruction for columns of source values, a column of Python numbers back.

    ``constants``: the sources that the text gives as constants; their column must say the same. Several
    results: a list of columns.
    """
    texts: list[Operand | int] = [destination or _REGISTER]
    for index in range(len(values)):
        constant = constants[index] if index < len(constants) else None
        texts.append(_REGISTERS[1 + index] if constant is None else constant)
    operation = decoded(instruction(name, *texts))
    columns = [
        np.asarray(column, source.dtype) for column, source in zip(values, operation.sources, strict=True)
    ]
    listed = [result.tolist() for result in evaluate(operation, columns)]
    return listed[0] if len(listed) == 1 else listed


def evaluate(operation: Operation, columns: Sequence[Column]) -> list[Column]:
    """Runs ``operation``; checks types and lengths of the results, that the arguments are left alone, and
    that a lane gives alone what it gave among the others."""
    before = [column.tobytes() for column in columns]
    for column in columns:
        column.setflags(write=False)
    lanes = max(len(column) for column in columns)
    probe = lanes // 2
    with np.errstate(all="ignore"):
        results = as_tuple(operation.compute(*columns))
        alone = as_tuple(operation.compute(*(c if len(c) == 1 else c[probe : probe + 1] for c in columns)))
    assert [column.tobytes() for column in columns] == before
    assert len(results) == len(operation.results)
    for result, single, type in zip(results, alone, operation.results, strict=True):
        assert result.dtype == type.dtype, (result, type)
        assert result.shape in ((lanes,), (1,)), result
        assert single.shape == (1,)
        chosen = result[probe : probe + 1] if len(result) == lanes else result
        assert chosen.tobytes() == single.tobytes(), (chosen, single)
    return [np.broadcast_to(result, (lanes,)) for result in results]


def as_tuple(results: Any) -> tuple[Any, ...]:
    """Results as a tuple, one or several."""
    return results if isinstance(results, tuple) else (results,)


def bits_of(name: str, *columns: Sequence[int], destination: Operand | None = None) -> list[int]:
    """The result of an instruction on floats, as bits of all sources and of the result."""
    given = instruction(name, destination or _REGISTER, *_REGISTERS[1 : 1 + len(columns)])
    operation = decoded(given)
    arrays = [
        np.asarray(column, f"u{source.nbytes}").view(source.dtype)
        for column, source in zip(columns, operation.sources, strict=True)
    ]
    (result,) = evaluate(operation, arrays)
    listed: list[int] = np.ascontiguousarray(result).view(f"u{result.itemsize}").tolist()
    return listed
