"""What a fault says: kernel, instruction, line, thread, buffer."""

from __future__ import annotations

from dataclasses import dataclass

from solvergen.errors import KernelFault
from solvergen.runtime.equations import Equation, equation_above
from solvergen.runtime.ptx.module import Instruction, Place


class Violation(Exception):
    """Something that a thread must not do, on its way to become a ``KernelFault``.

    ``position`` is the thread's place among those that execute the instruction. ``other`` is the number in
    the grid of a thread that it has to do with, which stands as ``{other}`` in the message.
    """

    def __init__(
        self,
        instruction: Instruction,
        position: int,
        message: str,
        *,
        buffer: str = "",
        other: int | None = None,
    ) -> None:
        self.instruction = instruction
        self.position = position
        self.message = message
        self.buffer = buffer
        self.other = other
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Shape:
    """Extents along x, y and z: of a grid in blocks, of a block in threads. x runs fastest."""

    x: int
    y: int = 1
    z: int = 1

    @property
    def count(self) -> int:
        """How many there are in all."""
        return self.x * self.y * self.z

    def __str__(self) -> str:
        return " x ".join(map(str, (self.x, self.y, self.z)[: 3 if self.z > 1 else 2 if self.y > 1 else 1]))

    def place(self, index: int) -> str:
        """Where the ``index``-th is: ``7``, or ``7 (x 3, y 1)`` where there is more than one dimension."""
        if self.y == self.z == 1:
            return str(index)
        x, y, z = index % self.x, index // self.x % self.y, index // (self.x * self.y)
        return f"{index} (x {x}, y {y}" + (f", z {z})" if self.z > 1 else ")")


def fault(
    message: str,
    *,
    kernel: str,
    instruction: Instruction | None = None,
    thread: int | None = None,
    grid: Shape | None = None,
    block: Shape | None = None,
    buffer: str = "",
    source: str = "",
) -> KernelFault:
    """The error for what ``thread`` (its number in the whole grid) did at ``instruction``.

    ``source`` is the CUDA text, of which the line is quoted; empty where it isn't known.
    """
    lines = [f"kernel {kernel}: {message}"]
    number = inner = None
    if thread is not None and block is not None and grid is not None:
        number, inner = divmod(thread, block.count)
        lines.append(
            f"block {grid.place(number)} of {grid.count}, thread {block.place(inner)} of {block.count}"
        )
    if instruction is not None:
        place = instruction.place
        lines.append(f"PTX line {place.line}: {place.text.strip()}")
        lines += source_lines(place, source)
    return KernelFault(
        "\n  ".join(lines),
        kernel=kernel,
        instruction=instruction.name if instruction is not None else "",
        line=instruction.place.line if instruction is not None else 0,
        source_line=instruction.place.source if instruction is not None else 0,
        block=number,
        thread=inner,
        buffer=buffer,
    )


def source_lines(place: Place, source: str) -> list[str]:
    """The lines of CUDA that an instruction comes from, and the equation that one is part of, if there is."""
    text = source.splitlines()
    found: list[str] = []
    equation: Equation | None = None
    for number in (place.source, *place.calls):
        if not number:
            continue
        quoted = text[number - 1].strip() if number <= len(text) else ""
        what = "called at line" if found else "CUDA line"
        found.append(f"{what} {number}" + (f": {quoted}" if quoted else ""))
        equation = equation or equation_above(text, number)
    return [*found, f"equation: {equation}"] if equation else found
