"""What decoding yields, and the reading of modifiers that all families share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from solvergen.errors import PtxError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.module import Instruction, Operand, Pair, Vector
from solvergen.runtime.ptx.types import TYPES, Type

Compute: TypeAlias = Callable[..., "HostArray | tuple[HostArray, ...]"]


@dataclass(frozen=True, slots=True)
class Operation:
    """What an arithmetic instruction computes.

    ``compute`` takes an array for each of ``sources`` (the operands after the destinations, vectors
    flattened), one-dimensional, of that type's dtype, with an element for each lane or a single one that
    stands for all lanes. It returns an array of the result type's dtype, or a tuple of them if there are
    several ``results``. It never writes to what it is given; a result may be an argument itself. Constants of
    the text may be bound when decoding; their array is then ignored.

    Warnings about overflow, NaNs and division must be off (``np.errstate(all="ignore")``): here they are
    results.
    """

    compute: Compute
    sources: tuple[Type, ...]
    results: tuple[Type, ...]


class Form:
    """An instruction whose modifiers are read one after another; whatever nobody asked for is an error.

    Types stand at the end and are taken from there, so the last one first.
    """

    def __init__(self, instruction: Instruction) -> None:
        self.instruction = instruction
        self._left = list(instruction.modifiers)
        if "approx" in self._left or "full" in self._left:
            self.approximate()

    def approximate(self) -> NoReturn:
        """Raise PtxError: the instruction's results can't be known here."""
        self.fail(
            f"{self.instruction.name} is an approximation whose bits only the hardware knows; "
            f"kernels that are to give the same bits everywhere must not use it"
        )

    def fail(self, message: str) -> NoReturn:
        """Raise PtxError for this instruction."""
        place = self.instruction.place
        raise PtxError(message, line=place.line, text=place.text)

    def unknown(self, what: str = "") -> NoReturn:
        """Raise PtxError: there is no such form, or none that the interpreter knows."""
        self.fail(f"the interpreter doesn't know {what + ' of ' if what else ''}{self.instruction.name}")

    def one_of(self, *names: str) -> str | None:
        """Take whichever of ``names`` is among the modifiers; None if none is."""
        for name in self._left:
            if name in names:
                self._left.remove(name)
                return name
        return None

    def needs(self, *names: str) -> str:
        """As ``one_of``, but one must be there."""
        name = self.one_of(*names)
        if name is None:
            self.unknown(f"a form without {' or '.join('.' + n for n in names)}")
        return name

    def flag(self, name: str) -> bool:
        """Take ``name``; whether it was there."""
        return self.one_of(name) is not None

    def type_name(self, *allowed: str) -> str:
        """Take the last modifier, which must be one of ``allowed``."""
        if not self._left or self._left[-1] not in allowed:
            self.unknown("the type")
        return self._left.pop()

    def type(self, *allowed: str) -> Type:
        """Take the last modifier, which must be one of ``allowed`` types."""
        return TYPES[self.type_name(*allowed)]

    @property
    def is_float(self) -> bool:
        """Whether the last modifier is a floating-point type."""
        return bool(self._left) and self._left[-1].startswith(("f", "bf"))

    def operation(self, compute: Compute, sources: Sequence[Type], result: Type, *others: Type) -> Operation:
        """The finished operation. Raises PtxError over modifiers that are left and over operand counts."""
        if self._left:
            self.unknown(" ".join("." + name for name in self._left))
        results = (result, *others)
        destinations, values = counts(self.instruction.operands)
        if destinations != len(results) or values != len(sources):
            self.fail(
                f"{self.instruction.name} takes {len(results)} destination(s) and {len(sources)} source(s), "
                f"not {destinations} and {values}"
            )
        return Operation(compute, tuple(sources), results)


def counts(operands: Sequence[Operand]) -> tuple[int, int]:
    """How many values an instruction writes and reads, vectors and pairs taken apart."""

    def width(operand: Operand) -> int:
        if isinstance(operand, Vector):
            return len(operand.elements)
        return 2 if isinstance(operand, Pair) else 1

    if not operands:
        return 0, 0
    return width(operands[0]), sum(map(width, operands[1:]))


Decoder: TypeAlias = Callable[[Form], Operation]
