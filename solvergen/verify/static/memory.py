"""How a kernel's PTX goes through memory: each buffer once, by words of 128 bits, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from solvergen.runtime.ptx.module import Kernel
from solvergen.verify.static.buffers import TILE_TOTALS, TOTALS, Access, accesses
from solvergen.verify.static.findings import Finding, about
from solvergen.verify.static.flow import Flow, Loop
from solvergen.verify.static.source import Source

WORD = 128
"""Bits of the widest access that every capability has."""

_VALUE = 8
"""Bytes of a value of lines."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What the update must move for each element: the buffers, each with the bytes of an element of it.

    ``loads``, ``stores``: how often each is read and written, at least.
    """

    itemsizes: Mapping[str, int]
    loads: Mapping[str, int]
    stores: Mapping[str, int]
    may_stay: frozenset[str] = frozenset()
    """Buffers whose new value may be the one that was loaded: an iteration may leave out that store."""
    idle: bool = False
    """Whether a thread may have no elements in an iteration: where all of a block meet in each."""

    tiles: bool = False
    """Whether it walks tiles, whose totals of rows and of columns it writes."""
    lines: bool = False
    """Whether it is of a rule that knows lines."""
    values: Mapping[int, int] = field(default_factory=dict)
    """Values of lines that the equations read for each element, by the number of the parameter that is their
    table."""

    @property
    def nbytes(self) -> int:
        """Bytes for each element in all."""
        moved = (*self.loads.items(), *self.stores.items())
        return sum(self.itemsizes[name] * times for name, times in moved)

    def word_of(self, buffer: int | None) -> int:
        """Bits that an access of a buffer is to have: fewer than ``WORD`` only of a copy in a narrower type
        than parameter and gradient, which decide how many elements a thread takes at once."""
        itemsizes = tuple(self.itemsizes.values())
        if buffer is None or not 0 <= buffer < len(itemsizes):
            return WORD
        return min(WORD, WORD // min(itemsizes[:2]) * itemsizes[buffer])

    @property
    def loaded(self) -> int:
        """Bytes read for each element."""
        return sum(self.itemsizes[name] * times for name, times in self.loads.items())


@dataclass(frozen=True, slots=True)
class Memory:
    """How the main loop goes through memory.

    ``width``: bits of its narrowest access, 0 if there is no loop. ``loads``, ``stores``: accesses for
    each element, at most.
    """

    width: int
    loads: float
    stores: float
    findings: tuple[Finding, ...]
    values: float = 0.0
    """Values of lines that are read for each element, at most."""


def memory_of(kernel: Kernel, source: Source, traffic: Traffic) -> Memory:
    """What there is to say of a kernel's accesses.

    Args:
        kernel: the PTX.
        source: its CUDA text.
        traffic: the buffers in the order of the kernel's table, and what the update does to them.
    """
    names = tuple(traffic.itemsizes)
    found = accesses(kernel, len(names), TILE_TOTALS if traffic.tiles else TOTALS)
    findings = list(space_findings(kernel, source))
    for access in found:
        if access.buffer == -1:
            message = "a buffer that can't be told, or several"
            findings.append(about("unknown buffer", message, access.instruction, source))
    flow = Flow(kernel)
    mine = [a for a in found if a.buffer is not None and a.buffer >= 0]
    loops = flow.innermost(a.index for a in mine)
    outside = [a for a in mine if not any(a.index in loop.body for loop in loops)]
    findings += [
        about("outside of loops", "touches a buffer only once", a.instruction, source) for a in outside
    ]
    widest = max((a.nbytes * 8 for a in mine), default=0)
    main = [loop for loop in loops if any(a.nbytes * 8 == widest for a in mine if a.index in loop.body)]
    if widest < WORD:
        findings.append(Finding("width", f"no loop has accesses of {WORD} bits"))
    width, loads, stores, values = widest, 0.0, 0.0, 0.0
    for loop in loops:
        inside = [a for a in found if a.index in loop.body]
        per_element, elements = _per_element(flow, loop, inside, names, traffic)
        findings += _counted(inside, per_element, names, traffic, source)
        read = _values_read(flow, loop, inside, elements, kernel, traffic)
        findings += _too_many_values(inside, read, kernel, traffic, source)
        if loop not in main:
            continue
        for access in inside:
            if access.buffer is None and traffic.lines:
                continue  # values of lines, in float64
            due = traffic.word_of(access.buffer)
            if access.buffer is not None and access.nbytes * 8 < due:
                message = (
                    f"{access.nbytes * 8} bits of {_name(names, access)} in the main loop instead of {due}"
                )
                findings.append(about("width", message, access.instruction, source))
            width = min(width, access.nbytes * 8)
        values = max(values, sum(read.values()))
        loads = max(loads, _sum(per_element, "ld", traffic))
        stores = max(stores, _sum(per_element, "st", traffic))
    return Memory(width if main else 0, loads, stores, tuple(findings), values)


_Counts = dict[tuple[str, int | None], tuple[float, float]]


def _per_element(
    flow: Flow, loop: Loop, inside: Sequence[Access], names: Sequence[str], traffic: Traffic
) -> tuple[_Counts, float]:
    """Loads and stores for each element, by kind and buffer: the fewest and the most of any path; and how
    many elements an iteration takes."""
    counts: dict[tuple[str, int | None], tuple[float, float]] = {}
    busy = frozenset(a.index for a in inside if a.buffer is not None and traffic.idle)
    for kind, buffer in dict.fromkeys((a.kind, a.buffer) for a in inside):
        size = traffic.itemsizes[names[buffer]] if buffer is not None and buffer >= 0 else 1
        weights = {a.index: a.nbytes for a in inside if (a.kind, a.buffer) == (kind, buffer)}
        low, high = flow.counts(loop, weights, busy)
        counts[kind, buffer] = (low / size, high / size)
    # An iteration takes as many elements as most of its buffers have accesses: compilers may unroll it.
    needed = [
        most / times
        for (kind, buffer), (_, most) in counts.items()
        if buffer is not None and buffer >= 0
        for times in [(traffic.loads if kind == "ld" else traffic.stores).get(names[buffer], 0)]
        if times
    ]
    elements = Counter(needed).most_common(1)[0][0] if needed else 1.0
    elements = elements or 1.0
    return {key: (low / elements, high / elements) for key, (low, high) in counts.items()}, elements


def _values_read(
    flow: Flow,
    loop: Loop,
    inside: Sequence[Access],
    elements: float,
    kernel: Kernel,
    traffic: Traffic,
) -> dict[int, float]:
    """Values of lines for each element, by the number of their table: the most of any path."""
    read: dict[int, float] = {}
    for number in traffic.values:
        name = kernel.parameters[number].name if number < len(kernel.parameters) else ""
        weights = {a.index: a.nbytes for a in inside if a.table == name and a.kind == "ld"}
        read[number] = flow.counts(loop, weights)[1] / _VALUE / elements
    return read


def _too_many_values(
    inside: Sequence[Access],
    read: Mapping[int, float],
    kernel: Kernel,
    traffic: Traffic,
    source: Source,
) -> Iterator[Finding]:
    """Values of lines that are read more often than the equations have them."""
    for number, most in read.items():
        needed = traffic.values[number]
        if most <= needed:
            continue
        name = kernel.parameters[number].name
        last = next(a for a in reversed(inside) if a.table == name)
        message = f"reads {most:g} values of lines for each element; its equations have {needed}"
        yield about("traffic", message, last.instruction, source)


def _sum(per_element: _Counts, kind: str, traffic: Traffic) -> float:
    """Accesses for each element at most. Of rules with lines those of buffers: their tables are small."""
    return sum(
        most
        for (which, buffer), (_, most) in per_element.items()
        if which == kind and not (buffer is None and traffic.lines)
    )


def _counted(
    inside: Sequence[Access], per_element: _Counts, names: Sequence[str], traffic: Traffic, source: Source
) -> Iterator[Finding]:
    """What an iteration reads or writes too often, or not at all."""
    for index, name in enumerate(names):
        for kind, verb, needed in (
            ("ld", "reads", traffic.loads.get(name, 0)),
            ("st", "writes", traffic.stores.get(name, 0)),
        ):
            least, most = per_element.get((kind, index), (0.0, 0.0))
            last = next((a for a in reversed(inside) if (a.kind, a.buffer) == (kind, index)), None)
            if most > needed and last is not None:
                times = f"{most:g} times for each element; {needed} {'is' if needed == 1 else 'are'} enough"
                yield about("traffic", f"{verb} {name} {times}", last.instruction, source)
            if kind == "st" and least < needed and name not in traffic.may_stay:
                message = f"an iteration may end without having written {name}"
                yield (
                    Finding("traffic", message)
                    if last is None
                    else about("traffic", message, last.instruction, source)
                )
    for access in inside:
        if access.buffer is None and not traffic.lines:
            message = "reads a table of the launch again for each word"
            yield about("traffic", message, access.instruction, source)


def space_findings(kernel: Kernel, source: Source) -> Iterator[Finding]:
    """Accesses to memory that an update doesn't need."""
    for instruction in kernel.instructions:
        if instruction.opcode in ("atom", "red"):
            message = "threads change one place in an order that nobody knows"
            yield about("atomic", message, instruction, source)
        if instruction.opcode not in ("ld", "st"):
            continue
        if "local" in instruction.modifiers:
            yield about("local memory", "an array in slow memory", instruction, source)
        elif not {"global", "param", "shared", "const"} & set(instruction.modifiers):
            yield about(
                "generic address", "the compiler doesn't know which memory this is", instruction, source
            )


def _name(names: Sequence[str], access: Access) -> str:
    return names[access.buffer] if access.buffer is not None and access.buffer >= 0 else "an unknown buffer"
