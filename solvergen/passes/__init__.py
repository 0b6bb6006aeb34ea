"""The passes from a typed program to an optimised one, in their order."""

from __future__ import annotations

from collections.abc import Callable

from solvergen.ir.program import Program
from solvergen.ir.verify import verify
from solvergen.passes.eliminate_dead import eliminate_dead
from solvergen.passes.fold_constants import fold_constants
from solvergen.passes.lower_lines import lower_lines
from solvergen.passes.lower_powers import lower_powers
from solvergen.passes.select_options import select_options
from solvergen.passes.share import share
from solvergen.passes.single_assignment import single_assignment

PASSES: tuple[Callable[[Program], Program], ...] = (
    select_options,
    single_assignment,
    lower_lines,
    lower_powers,
    fold_constants,
    share,
    eliminate_dead,
)


def optimise(program: Program) -> Program:
    """Run every pass on a typed program, verifying the result of each."""
    for apply in PASSES:
        program = verify(apply(program), apply.__name__)
    return program
