"""The lines of generated code that make up an update, without what surrounds them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from solvergen.compiler import EMITTERS
from solvergen.emit.kernel import BODY_INDENT, kernel_context
from solvergen.emit.library import c_functions
from solvergen.emit.unit import Unit


def reference(unit: Unit) -> list[str]:
    """The body of the NumPy reference."""
    return _function(EMITTERS["reference.py"](unit), "def update(")


def kernel(unit: Unit) -> list[str]:
    """The bodies of the CUDA kernels' loops over elements and, between them, of the stages."""
    context = kernel_context(unit, "cuda/kernel.cu.j2", c_functions)
    if not context.staged:
        return [line.removeprefix(BODY_INDENT) for line in context.passes[0].body]
    stages = {stage.number: stage for stage in context.stages}
    lines: list[str] = []
    for number in range(len(context.passes) + 1):
        if number in stages:
            lines += ["", f"// stage {number}: scalars of a tensor, in double", *stages[number].body]
        if number < len(context.passes):
            sweep = context.passes[number]
            reduced = [f"// {r.name} gathers {r.term}" for r in sweep.reductions]
            lines += ["", f"// pass {number}: {sweep.reason}", *sweep.body, *reduced]
    return [line.removeprefix(BODY_INDENT) for line in lines[1:]]


def host(unit: Unit) -> list[str]:
    """What the host computes for the kernel's table of scalars; empty if all of it is arguments."""
    lines = _function(EMITTERS["scalars.py"](unit), "def scalars(")
    return lines[: next(i for i, line in enumerate(lines) if line.startswith(("row = ", "wide = ")))]


def _function(text: str, begins: str) -> list[str]:
    """The body of a function of generated Python, without its docstring."""
    lines = text.splitlines()
    lines = lines[next(i for i, line in enumerate(lines) if line.startswith(begins)) :]
    body = lines[next(i for i, line in enumerate(lines) if line.endswith(":")) + 1 :]
    quotes = [i for i, line in enumerate(body) for _ in range(line.count('"""'))]
    return _dedented(_until_the_end(body[quotes[1] + 1 :]))


def _until_the_end(lines: Iterable[str]) -> list[str]:
    body: list[str] = []
    for line in lines:
        if line and not line.startswith(" "):
            break
        body.append(line)
    return body


def _dedented(lines: list[str]) -> list[str]:
    return textwrap.dedent("\n".join(lines)).strip("\n").splitlines()
