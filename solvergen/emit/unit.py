"""What the emitters print: one spec at all the levels that they need."""

from __future__ import annotations

from dataclasses import dataclass

from solvergen.ir.program import Program
from solvergen.ir.schedule import Schedule
from solvergen.ir.surroundings import Surroundings
from solvergen.spec.model import Spec


@dataclass(frozen=True, slots=True)
class Unit:
    """One optimizer, compiled: what every emitter is handed.

    ``source`` names the spec's file in what is printed: its folder and name, wherever that lies, so
    that the output is the same on every machine. ``package`` is how its modules name the package that it
    lies in.
    """

    spec: Spec
    source: str
    parsed: Program
    typed: Program
    optimised: Program
    schedule: Schedule
    surroundings: Surroundings
    package: str = ".."
