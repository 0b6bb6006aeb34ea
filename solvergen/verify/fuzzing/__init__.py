"""Whole random specs, and what equations mean, worked out apart from the compiler.

``specs`` (``strategies``) draws valid specs, ``yaml_of`` writes them down. ``check_meaning`` holds the
reference of anybody's spec to an evaluation of its equations by another reader (``reading``), other types
(``kinds``) and exact arithmetic (``meaning``, ``spans``, ``real_functions``). See docs/verification.md,
"Fuzzing".
"""

from __future__ import annotations

from solvergen.verify.fuzzing.checking import check_meaning
from solvergen.verify.fuzzing.holding import Departure, Tally, first_departure
from solvergen.verify.fuzzing.rule import Rule, rule_of
from solvergen.verify.fuzzing.spec import DrawnSpec
from solvergen.verify.fuzzing.strategies import specs
from solvergen.verify.fuzzing.style import PLAIN, Style
from solvergen.verify.fuzzing.yaml_text import yaml_of

__all__ = [
    "PLAIN",
    "Departure",
    "DrawnSpec",
    "Rule",
    "Style",
    "Tally",
    "check_meaning",
    "first_departure",
    "rule_of",
    "specs",
    "yaml_of",
]
