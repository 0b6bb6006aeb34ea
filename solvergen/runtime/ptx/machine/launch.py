"""A whole launch: every block of the grid, where order can show under two, which must leave the same bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from solvergen.errors import KernelFault
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.machine.buffers import Buffer
from solvergen.runtime.ptx.machine.clock import Clock
from solvergen.runtime.ptx.machine.faults import Shape, fault
from solvergen.runtime.ptx.machine.marks import MAX_THREADS
from solvergen.runtime.ptx.machine.memory import Memory
from solvergen.runtime.ptx.machine.program import Program
from solvergen.runtime.ptx.machine.spaces import Spaces
from solvergen.runtime.ptx.machine.wave import Order, ThreadViolation, TooLong, Watch, Wave

ORDERS = (Order(lanes=16384), Order(lanes=24576, turns=(1, 0), backwards=True))
"""Under which launches are run: all warps in step; and, where ``Spaces.order_matters``, blocks from the last
to the first, of each block the odd warps first. The numbers are what was fastest: registers stay in the
processor's cache."""

LIMIT = 200_000
"""Instructions that threads which run together may execute, unless told otherwise. A chunk takes some
hundreds to some thousands; of a loop that reads memory these are ten to twenty seconds."""

MAX_BLOCK = 1024
"""Threads that a block may have."""

_PRIVATE = 1 << 27
"""Bytes of local memory that are there at once."""


def no_source() -> str:
    """No text is known."""
    return ""


@dataclass(frozen=True, slots=True)
class Launch:
    """What is launched. ``arguments``: NumPy scalars of the parameters' sizes. ``shared_nbytes``: of dynamic
    shared memory. ``source``: tells the CUDA text, for messages. ``limit``: see ``LIMIT``. ``watch``: is told
    of every instruction under the first order. ``both_orders``: also where no order can show."""

    program: Program
    grid: Shape
    block: Shape
    arguments: Sequence[np.generic]
    buffers: Sequence[Buffer]
    shared_nbytes: int = 0
    source: Callable[[], str] = no_source
    limit: int = LIMIT
    watch: Watch | None = None
    both_orders: bool = False


def run(launch: Launch) -> None:
    """Run a launch, and write its results to its buffers once it has gone well.

    Raises:
        KernelFault: it does what it must not. Nothing has changed then.
    """
    parameters = _parameters(launch)
    _check_shape(launch)
    spaces = Spaces(launch.program, launch.buffers, launch.shared_nbytes)
    first = _run_once(launch, ORDERS[0], parameters, spaces)
    if launch.both_orders or spaces.order_matters:
        second = _run_once(launch, ORDERS[1], parameters, spaces)
        for index, buffer in spaces.results:
            _compare(launch, buffer, first.contents(index), second.contents(index))
    for index, buffer in spaces.results:
        buffer.data[...] = first.contents(index)
        if buffer.written is not None:
            buffer.written[...] |= first.written(index)


def _run_once(launch: Launch, order: Order, parameters: HostArray, spaces: Spaces) -> Memory:
    """Run all blocks in waves; returns global memory as they left it."""
    grid, block, backwards = launch.grid, launch.block, order.backwards
    clock = Clock(grid.count, block.count)
    # A launch without races does the same under any order, unless its threads talk to one another by atomics.
    watched = clock if order is ORDERS[0] or spaces.order_matters else None
    memory = spaces.common(watched, backwards)
    lanes = min(order.lanes, _PRIVATE // max(1, spaces.local_nbytes))
    together = max(1, lanes // block.count)
    numbers = np.arange(grid.count)
    if backwards:
        numbers = numbers[::-1]
    with np.errstate(all="ignore"):
        for begin in range(0, grid.count, together):
            blocks = np.sort(numbers[begin : begin + together])
            wave = Wave(
                launch.program,
                grid=grid,
                block=block,
                blocks=blocks,
                order=order,
                parameters=parameters,
                memories={"global": memory, **spaces.own(len(blocks), block.count, watched, backwards)},
                clock=clock,
                limit=launch.limit,
                watch=launch.watch if order is ORDERS[0] else None,
            )
            try:
                wave.run()
            except ThreadViolation as found:
                raise _fault(launch, found) from None
            except TooLong as endless:
                raise _endless(launch, endless) from None
    return memory


def _fault(launch: Launch, found: ThreadViolation) -> KernelFault:
    violation, message = found.violation, found.violation.message
    if violation.other is not None:
        block, thread = divmod(violation.other, launch.block.count)
        own = found.thread // launch.block.count == block
        who = f"thread {launch.block.place(thread)}" + (
            "" if own else f" of block {launch.grid.place(block)}"
        )
        message = message.replace("{other}", who)
    return fault(
        message,
        kernel=launch.program.kernel.name,
        instruction=violation.instruction,
        thread=found.thread,
        grid=launch.grid,
        block=launch.block,
        buffer=violation.buffer,
        source=launch.source(),
    )


def _endless(launch: Launch, endless: TooLong) -> KernelFault:
    steps = endless.block.steps
    return fault(
        f"its threads have executed {launch.limit} instructions and are not done; a loop may have no end",
        kernel=launch.program.kernel.name,
        instruction=steps[0].instruction if steps else None,
        source=launch.source(),
    )


def _compare(launch: Launch, buffer: Buffer, first: HostArray, second: HostArray) -> None:
    different = first != second
    if not different.any():
        return
    element = int(different.argmax()) // buffer.itemsize
    begin, end = element * buffer.itemsize, (element + 1) * buffer.itemsize
    values = " and ".join("0x" + bytes(found[begin:end][::-1]).hex() for found in (first, second))
    raise fault(
        f"the results depend on the order of threads: element {element} of {buffer.name} becomes {values}",
        kernel=launch.program.kernel.name,
        buffer=buffer.name,
    )


def _parameters(launch: Launch) -> HostArray:
    """The block of parameters, from the arguments."""
    kernel = launch.program.kernel
    if len(launch.arguments) != len(kernel.parameters):
        raise fault(
            f"it has {len(kernel.parameters)} parameters, and was given {len(launch.arguments)} arguments",
            kernel=kernel.name,
        )
    end = max((p.offset + p.nbytes for p in kernel.parameters), default=0)
    block = np.zeros(end, np.uint8)
    for place, (parameter, argument) in enumerate(zip(kernel.parameters, launch.arguments, strict=True)):
        given = np.asarray(argument).reshape(1).view(np.uint8)
        if len(given) != parameter.nbytes:
            raise fault(
                f"parameter {place} ({parameter.name}) has {parameter.nbytes} bytes, "
                f"its argument {len(given)}",
                kernel=kernel.name,
            )
        block[parameter.offset : parameter.offset + parameter.nbytes] = given
    return block


def _check_shape(launch: Launch) -> None:
    kernel, grid, block = launch.program.kernel, launch.grid, launch.block
    problem = ""
    if min(grid.x, grid.y, grid.z, block.x, block.y, block.z) < 1:
        problem = f"a grid of {grid} blocks of {block} threads has none"
    elif block.count > MAX_BLOCK:
        problem = f"a block of {block} threads is too large; {MAX_BLOCK} fit"
    elif kernel.required_threads is not None and (block.x, block.y, block.z) != kernel.required_threads:
        problem = f"it was compiled for blocks of {Shape(*kernel.required_threads)} threads, not {block}"
    elif kernel.max_threads is not None and block.count > Shape(*kernel.max_threads).count:
        problem = (
            f"it was compiled for at most {Shape(*kernel.max_threads).count} threads a block, not {block}"
        )
    elif grid.count * block.count > MAX_THREADS:
        problem = f"a grid of {grid.count} blocks of {block.count} threads is more than can be interpreted"
    elif launch.shared_nbytes and launch.program.variables.dynamic is None:
        problem = f"it has no dynamic shared memory, and was given {launch.shared_nbytes} bytes"
    if problem:
        raise fault(problem, kernel=kernel.name)
