"""A kernel decoded: basic blocks of steps, with the registers that each needs and leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from solvergen.errors import PtxError
from solvergen.runtime.ptx.instructions import decode
from solvergen.runtime.ptx.machine.access import Use, atomic, load, store
from solvergen.runtime.ptx.machine.addresses import cvta, isspacep
from solvergen.runtime.ptx.machine.flow import BRANCH, LEAVE, End, is_barrier, stretches
from solvergen.runtime.ptx.machine.liveness import Needs, needs_of
from solvergen.runtime.ptx.machine.slots import Slots, Values, error
from solvergen.runtime.ptx.machine.step import Step, nothing
from solvergen.runtime.ptx.machine.values import arithmetic
from solvergen.runtime.ptx.machine.variables import Variables, place_variables
from solvergen.runtime.ptx.machine.warps import Meeting, activemask, meeting
from solvergen.runtime.ptx.module import Instruction, Kernel, Module

_CONTROL = (BRANCH, *LEAVE, "trap")


@dataclass(frozen=True, slots=True)
class Block:
    """A basic block.

    ``runs``: the steps' functions; ``meeting``: what lanes meet at, alone in its block. ``gather``: places
    that threads bring along when only some of them run the block; ``scatter``: those that they leave.
    ``asked``: registers that a thread may come here without having written, each with the instruction that
    reads it; ``given``: those of them that the block writes. ``spent``: temporaries, of no use afterwards.
    """

    steps: tuple[Step, ...]
    runs: tuple[Callable[[Values], None], ...]
    meeting: Meeting | None
    end: End
    gather: tuple[int, ...]
    scatter: tuple[int, ...]
    asked: tuple[tuple[int, Instruction], ...]
    given: tuple[int, ...]
    spent: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel that can be run. ``uses``: every access to memory."""

    kernel: Kernel
    blocks: tuple[Block, ...]
    slots: Slots
    uses: tuple[Use, ...]
    variables: Variables


def decoded(module: Module, name: str) -> Program:
    """Decode the kernel ``name``.

    Raises:
        PtxError: there is none of this name, or one of its instructions isn't known.
    """
    if name not in module.kernels:
        raise PtxError(f"there is no kernel {name}; the text has {', '.join(module.kernels) or 'none'}")
    kernel = module.kernels[name]
    variables = place_variables(module, kernel)
    slots = Slots(kernel, variables.addresses)
    steps: list[Step | Meeting] = []
    uses: list[Use] = []
    for instruction in kernel.instructions:
        steps.append(_step(instruction, slots, kernel, uses))
    alone = [isinstance(step, Meeting) for step in steps]
    cut = stretches(kernel, alone)
    parts = []
    for stretch in cut:
        inside = steps[stretch.begin : stretch.end]
        parts.append(tuple(step.step if isinstance(step, Meeting) else step for step in inside))
    needs = needs_of(parts, [stretch.how for stretch in cut], slots)
    blocks = []
    for stretch, part, need in zip(cut, parts, needs, strict=True):
        first = steps[stretch.begin] if stretch.begin < stretch.end else None
        blocks.append(_block(part, first if isinstance(first, Meeting) else None, stretch.how, need))
    return Program(kernel, tuple(blocks), slots, tuple(uses), variables)


def _block(steps: tuple[Step, ...], met: Meeting | None, end: End, needs: Needs) -> Block:
    return Block(
        steps,
        tuple(step.run for step in steps if step.run is not nothing),
        met,
        end,
        needs.gather,
        needs.scatter,
        needs.asked,
        needs.given,
        needs.spent,
    )


def _step(instruction: Instruction, slots: Slots, kernel: Kernel, uses: list[Use]) -> Step | Meeting:
    """What an instruction does; where it sends its threads is the affair of ``flow``."""
    opcode = instruction.opcode
    if opcode in ("membar", "fence"):
        _check_fence(instruction)
    if opcode in (*_CONTROL, "membar", "fence") or is_barrier(instruction):
        return Step(instruction, nothing, (), ())
    if opcode == "ld":
        step, use = load(instruction, slots, kernel)
        uses += [use] if use else []
        return step
    if opcode in ("st", "atom", "red"):
        step, use = store(instruction, slots) if opcode == "st" else atomic(instruction, slots)
        uses.append(use)
        return step
    if opcode == "cvta":
        return cvta(instruction, slots)
    if opcode == "isspacep":
        return isspacep(instruction, slots)
    met = meeting(instruction, slots)
    if met is not None:
        return met
    if opcode == "activemask":
        return activemask(instruction, slots)
    operation = decode(instruction)
    if operation is None:
        raise error(instruction, f"the interpreter doesn't know {instruction.name}")
    return arithmetic(instruction, operation, slots)


_FENCES = {
    ("membar", "cta"),
    ("membar", "gl"),
    ("membar", "sys"),
    *(
        ("fence", *order, scope)
        for order in ((), ("sc",), ("acq_rel",), ("acquire",), ("release",))
        for scope in ("cta", "cluster", "gpu", "sys")
    ),
}


def _check_fence(instruction: Instruction) -> None:
    """Memory is always as every thread sees it, so fences have nothing to do (PTX ISA, "membar, fence").

    Raises PtxError for a fence of another kind.
    """
    if (instruction.opcode, *instruction.modifiers) not in _FENCES or instruction.operands:
        raise error(instruction, f"the interpreter doesn't know {instruction.name}")
