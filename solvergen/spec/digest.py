"""The fingerprint of what a spec means."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING

from solvergen.spec.source import Text

if TYPE_CHECKING:
    from solvergen.spec.model import Constraint, Hyperparameter, Option, State, Statement

_FORM = "solvergen spec 1"
"""Enters the digest; to be changed if ever the same text comes to mean something else."""


def digest_of(
    name: str,
    hyperparameters: tuple[Hyperparameter, ...],
    options: tuple[Option, ...],
    state: tuple[State, ...],
    update: tuple[Statement, ...],
    constraints: tuple[Constraint, ...],
) -> str:
    """SHA-256, in hexadecimal, of all that decides what an optimizer computes.

    Prose (summary, docs, references, messages), the class's name, comments, the spelling of numbers
    and spaces in equations don't enter; the order of declarations and equations does.
    """
    content = [
        _FORM,
        name,
        [
            [h.name, *map(_number, (h.default, h.min, h.max, h.above, h.below)), h.integer]
            for h in hyperparameters
        ],
        [[o.name, _value(o.default)] for o in options],
        [
            [s.name, s.shape, _value(s.init), _condition(s.when), *([s.dtype] if s.dtype else [])]
            for s in state
        ],
        [[normalised(s.equation.text), _condition(s.when)] for s in update],
        [[normalised(c.that.text), _condition(c.when)] for c in constraints],
    ]
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def normalised(equation: str) -> str:
    """An equation without the blanks that mean nothing: only those between words are left."""
    return re.sub(r"(?<!\w) | (?!\w)", "", " ".join(equation.split()))


def _number(value: float | None) -> str | None:
    return None if value is None else float(value).hex()


def _value(value: float | bool | Text) -> str | bool | None:
    if isinstance(value, Text):
        return "=" + normalised(value.text)
    return value if isinstance(value, bool) else _number(value)


def _condition(text: Text | None) -> str | None:
    return None if text is None else normalised(text.text)
