"""A drawn spec: a rule, and all that a YAML file says beside its equations."""

from __future__ import annotations

from dataclasses import dataclass, field

from solvergen.verify.fuzzing.rule import Rule


@dataclass(frozen=True)
class Range:
    """A hyperparameter's default and bounds, as they are spelt: ``bounds`` by ``min max above below``."""

    default: str
    bounds: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DrawnSpec:
    """``ranges``: one for each hyperparameter of the rule. ``messages``: one for each constraint.

    ``docs`` of hyperparameters, options and states by name; ``prose``: summary, description and so on.
    """

    name: str
    class_name: str | None
    rule: Rule
    ranges: dict[str, Range]
    messages: tuple[str, ...]
    docs: dict[str, str]
    prose: dict[str, str | tuple[str, ...] | dict[str, str]]
