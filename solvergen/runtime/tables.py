"""The tables of scalars that launches read, filled once a step by the host program."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Literal

from solvergen.runtime.cohorts import Cohort
from solvergen.runtime.definition import Definition
from solvergen.runtime.groups import Group


class Settings:
    """What the host program is given beside ``t`` and scalar states, kept until a hyperparameter changes.

    Groups with equal settings have equal keys, so that many groups cost no more than what differs.
    """

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = groups
        self._stale = True
        self.arguments: list[dict[str, Any]] = []
        self.values: list[tuple[float, ...]] = []
        self.keys: list[int] = []

    def mark_stale(self) -> None:
        """A hyperparameter or multiplier has changed."""
        self._stale = True

    def refresh(self) -> None:
        """Read the groups again if anything has changed."""
        if not self._stale:
            return
        arguments, values, keys = [], [], []
        distinct: dict[tuple[bytes, tuple[bool, ...]], int] = {}
        for group in self._groups:
            effective = group.effective()
            row = tuple(effective.values())
            bits = struct.pack(f"{len(row)}d", *row)
            keys.append(distinct.setdefault((bits, tuple(group.options.values())), len(distinct)))
            arguments.append({**effective, **group.options})
            values.append(row)
        self.arguments, self.values, self.keys = arguments, values, keys
        self._stale = False


def host_step(
    definition: Definition,
    settings: Settings,
    cohorts: Sequence[Cohort],
    table: Literal["kernel", "reference"],
    scalars: Callable[[Cohort], tuple[float, ...]] = attrgetter("scalars"),
) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]], list[tuple[float, ...]]]:
    """The rows of the table, those of the wide table (of staged rules; none otherwise) and the new scalar
    states, each for each cohort at its next ``t``.

    Nothing is changed. ``table`` is what the backend wants rows to hold, ``scalars`` the scalar states that a
    cohort is taken to have.
    """
    names = definition.scalar_states
    staged = definition.is_staged
    rows: list[tuple[float, ...]] = []
    wide_rows: list[tuple[float, ...]] = []
    new_scalars: list[tuple[float, ...]] = []
    memo: dict[tuple[int, int, bytes], tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]] = {}
    for cohort in cohorts:
        t, old = cohort.t + 1, scalars(cohort)
        key = (settings.keys[cohort.group], t, struct.pack(f"{len(old)}d", *old) if old else b"")
        found = memo.get(key)
        if found is None:
            computed = definition.scalars(
                **settings.arguments[cohort.group], t=float(t), **dict(zip(names, old, strict=True))
            )
            row, new = computed[0], computed[-1]
            if table == "reference":
                row = (*old, *settings.values[cohort.group], float(t))
            found = memo[key] = (
                row,
                computed[1] if staged else (),
                tuple(new.get(name, o) for name, o in zip(names, old, strict=True)),
            )
        rows.append(found[0])
        if staged:
            wide_rows.append(found[1])
        new_scalars.append(found[2])
    return rows, wide_rows, new_scalars


def table_width(definition: Definition, table: Literal["kernel", "reference"]) -> int:
    """Number of values in a row."""
    if table == "kernel":
        return len(definition.table)
    return len(definition.scalar_states) + len(definition.hyperparameters) + 1
