"""The scheduled form: what the host computes, what enters the kernel, and the passes over memory."""

from __future__ import annotations

from dataclasses import dataclass

from solvergen.ir.guards import Guard
from solvergen.ir.program import Assign, Result


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the kernel's table of scalars: the host's definition ``name``, rounded once."""

    name: str
    guard: Guard


@dataclass(frozen=True, slots=True)
class Load:
    """Reads an element of ``buffer``; its value goes by the buffer's name."""

    buffer: str
    guard: Guard


@dataclass(frozen=True, slots=True)
class Pass:
    """One sweep over memory: each load once, then the body, then each store once.

    ``reason`` says why a new sweep had to begin here.
    """

    loads: tuple[Load, ...]
    body: tuple[Assign, ...]
    stores: tuple[Result, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Schedule:
    """A program ready for printing.

    ``given`` names the scalars that the host begins with (hyperparameters, ``t``, scalar state,
    options) and where they exist; ``host`` runs in float64 once for each distinct set of their values;
    ``scalar_results`` are the new values of scalar state; ``table`` lists what the kernels read;
    ``allowed`` is the program's.
    """

    name: str
    options: tuple[str, ...]
    buffers: tuple[str, ...]
    given: tuple[tuple[str, Guard], ...]
    host: tuple[Assign, ...]
    scalar_results: tuple[Result, ...]
    table: tuple[Column, ...]
    passes: tuple[Pass, ...]
    allowed: Guard | None = None
