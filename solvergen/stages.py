"""``solvergen show``: one optimizer at any stage of its way, as text."""

from __future__ import annotations

import os
from collections.abc import Callable

from solvergen.compiler import EMITTERS, compile_spec, compile_wrapped
from solvergen.emit.docstring import docstring_lines
from solvergen.emit.package import takes_blocks
from solvergen.emit.unit import Unit
from solvergen.ir.schedule_text import schedule_text
from solvergen.ir.text import program_text
from solvergen.spec.reader import read_spec


def _sympy(unit: Unit) -> str:
    from solvergen.frontend.sympy_bridge import program_sympy  # imports SymPy, which is slow

    return program_sympy(unit.parsed)


def _latex(unit: Unit) -> str:
    from solvergen.frontend.latex import program_latex

    return program_latex(unit.parsed)


def _wrapped(unit: Unit) -> str:
    return schedule_text(compile_wrapped(unit.spec).schedule)


_SHOW: dict[str, Callable[[Unit], str]] = {
    "doc": lambda unit: "\n".join(docstring_lines(unit.spec, has_blocks=takes_blocks(unit))) + "\n",
    "parsed": lambda unit: program_text(unit.parsed),
    "typed": lambda unit: program_text(unit.typed),
    "optimised": lambda unit: program_text(unit.optimised),
    "scheduled": lambda unit: schedule_text(unit.schedule),
    "wrapped": _wrapped,
    "sympy": _sympy,
    "latex": _latex,
    "cuda": EMITTERS["kernel.cu"],
    "cpu": EMITTERS["kernel.c"],
    "numpy": EMITTERS["reference.py"],
    "scalars": EMITTERS["scalars.py"],
}

STAGES = tuple(_SHOW)
"""Every stage that ``show`` knows, in the order in which a spec passes through them."""


def show(path: str | os.PathLike[str], stage: str) -> str:
    """The spec at ``path`` at ``stage`` (one of STAGES). Raises SpecError."""
    return _SHOW[stage](compile_spec(read_spec(path)))
