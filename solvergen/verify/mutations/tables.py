"""Faults of the tables that the runtime hands to a kernel: chunks, pointers, rows, scalars."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.definition import Definition
from solvergen.verify.mutations.patching import put, put_around

Change = Callable[[HostArray], HostArray]
Tell = Callable[[], None]
"""Called when a table is really another than it was."""


@dataclass(frozen=True)
class TableFault:
    """``table``: chunks, pointers, rows, scalars or another word for what is handed over; "order" if it is
    not what but when. ``what`` is wrong. ``apply`` makes it so here. ``concerns``: whether a
    rule looks at it."""

    table: str
    what: str
    apply: Callable[[Tell], None]
    concerns: Callable[[Definition], bool] = lambda definition: True


def _on(part: HostArray, amount: int, where: Any = True) -> None:
    """Add to a part of a table, in place."""
    part[...] = np.where(where, part + amount, part)


def _short(chunks: HostArray) -> HostArray:
    _on(chunks["count"][-1:], -1)
    return chunks


def _late(chunks: HostArray) -> HostArray:
    _on(chunks["start"], 1)
    return chunks


def _overlapping(chunks: HostArray) -> HostArray:
    later = chunks["start"] > 0
    _on(chunks["start"], -1, later)
    _on(chunks["count"], 1, later)
    return chunks


def _boundaries(chunks: HostArray) -> HostArray:
    later = np.flatnonzero(chunks["start"] > 0)
    _on(chunks["start"], -1, chunks["start"] > 0)
    chunks["count"][later] += 1
    chunks["count"][later - 1] -= 1
    return chunks


def _of_others(chunks: HostArray) -> HostArray:
    chunks["tensor"] = chunks["tensor"].max(initial=0) - chunks["tensor"]
    return chunks


def _twice(chunks: HostArray) -> HostArray:
    return np.concatenate([chunks, chunks[-1:]])


def _gradients_of_others(pointers: HostArray) -> HostArray:
    pointers[:, 1] = np.roll(pointers[:, 1], 1)
    return pointers


def _states_exchanged(pointers: HostArray) -> HostArray:
    pointers[:, 2:] = np.roll(pointers[:, 2:], 1, axis=1)
    return pointers


def _parameters_moved(pointers: HostArray) -> HostArray:
    _on(pointers[:, 0], 4)
    return pointers


_CHUNKS: tuple[tuple[str, Change], ...] = (
    ("the last is one element short", _short),
    ("all begin one element late", _late),
    ("they overlap by one element", _overlapping),
    ("they belong to other tensors", _of_others),
    ("one is missing", lambda chunks: chunks[:-1]),
    ("one is there twice", _twice),
)
_BOUNDARIES = ("each begins one element early", _boundaries)
"""The same elements in other chunks, which only totals show."""

_POINTERS: tuple[tuple[str, Change], ...] = (
    ("gradients of other tensors", _gradients_of_others),
    ("states exchanged", _states_exchanged),
    ("parameters four bytes on", _parameters_moved),
)
_ROWS: tuple[tuple[str, Change], ...] = (
    ("the first row for all", np.zeros_like),
    ("the row of another tensor", lambda rows: np.roll(rows, 1)),
)
_SCALARS: tuple[tuple[str, Change], ...] = (
    ("rounded to float32", lambda table: np.ascontiguousarray(table.astype(np.float32).astype(table.dtype))),
    ("one column on", lambda table: np.roll(table, 1, axis=1)),
    ("one row on", lambda table: np.roll(table, 1, axis=0)),
)


def _exchanged(tiles: HostArray) -> HostArray:
    for one, other in (("row", "column"), ("rows", "columns")):
        kept = tiles[one].copy()
        tiles[one], tiles[other] = tiles[other], kept
    return tiles


def _fewer(field: str) -> Change:
    def change(tiles: HostArray) -> HostArray:
        _on(tiles[field], -1, tiles[field] > 1)
        return tiles

    return change


def _earlier(field: str) -> Change:
    def change(tiles: HostArray) -> HostArray:
        _on(tiles[field], -1, tiles[field] > 0)
        return tiles

    return change


_TILES: tuple[tuple[str, Change], ...] = (
    ("each is a row short", _fewer("rows")),
    ("each is a column short", _fewer("columns")),
    ("later ones begin a row early", _earlier("row")),
    ("later ones begin a column early", _earlier("column")),
    ("later ones are of the matrix before", _earlier("matrix")),
    ("rows and columns are exchanged", _exchanged),
    ("they belong to other tensors", _of_others),
    ("one is missing", lambda tiles: tiles[:-1]),
)
_PARTIALS: tuple[tuple[str, Change], ...] = (
    ("those of rows and columns are exchanged", lambda offsets: np.ascontiguousarray(offsets[:, ::-1])),
    ("of the tensor before", lambda offsets: np.concatenate([offsets[:1], offsets[:-1]])),
)
"""Where the partial totals of tensors' lines begin."""


def _cpu_chunks(change: Change) -> None:
    from solvergen.runtime.backends import cpu, cpu_staged

    put_around(cpu, "chunk_table", change)
    put_around(cpu_staged, "chunk_table", change)


def _cpu_launch(what: str, change: Change) -> None:
    from solvergen.runtime.backends.cpu import CpuLauncher

    right = CpuLauncher.launch

    def launch(self: CpuLauncher, table: HostArray, rows: HostArray) -> None:
        if what == "pointers":
            self._pointers[...] = change(self._pointers)
        right(
            self,
            change(table) if what == "scalars" else table,
            change(rows) if what == "rows" else rows,
        )

    put(CpuLauncher, "launch", launch)


def _cuda_chunks(change: Change) -> None:
    from solvergen.runtime.cuda import launch, staged

    put_around(launch, "chunks_of", change)
    put_around(staged, "chunk_table", change)


def _cuda_launch(what: str, change: Change) -> None:
    from solvergen.runtime.cuda.launch import _Part

    right = _Part.launch

    def launch(self: _Part, pointers: HostArray, table: HostArray, rows: HostArray) -> None:
        right(
            self,
            change(pointers) if what == "pointers" else pointers,
            change(table) if what == "scalars" else table,
            change(rows) if what == "rows" else rows,
        )

    put(_Part, "launch", launch)


def _faults(
    chunks: Callable[[Change], None], launch: Callable[[str, Change], None]
) -> tuple[tuple[TableFault, ...], tuple[TableFault, ...]]:
    """All of them for rules of one pass, and those of chunks for staged rules."""

    def fault(table: str, what: str, change: Change) -> TableFault:
        def apply(tell: Tell) -> None:
            def changed(right: HostArray) -> HostArray:
                wrong = change(right.copy())
                if wrong.tobytes() != right.tobytes():
                    tell()
                return wrong

            if table == "chunks":
                chunks(changed)
            else:
                launch(table, changed)

        return TableFault(table, what, apply)

    named = {"chunks": _CHUNKS, "pointers": _POINTERS, "rows": _ROWS, "scalars": _SCALARS}
    return (
        tuple(fault(table, what, change) for table, faults in named.items() for what, change in faults),
        tuple(fault("chunks", what, change) for what, change in (*_CHUNKS, _BOUNDARIES)),
    )


def _line_faults(module: str) -> tuple[TableFault, ...]:
    """Those of the tables of lines, which a backend's ``module`` makes of its tensors."""

    def fault(table: str, function: str, what: str, change: Change) -> TableFault:
        def apply(tell: Tell) -> None:
            def changed(right: HostArray) -> HostArray:
                wrong = change(right.copy())
                if wrong.tobytes() != right.tobytes():
                    tell()
                return wrong

            put_around(importlib.import_module(module), function, changed)

        return TableFault(table, what, apply)

    return (
        *(fault("tiles", "tile_table", what, change) for what, change in _TILES),
        *(fault("partial totals", "partial_offsets", what, change) for what, change in _PARTIALS),
    )


LINES_ON_CPU = _line_faults("solvergen.runtime.backends.cpu_lines")
LINES_ON_CUDA = _line_faults("solvergen.runtime.cuda.lines")
ON_CPU, CHUNKS_ON_CPU = _faults(_cpu_chunks, _cpu_launch)
ON_CUDA, CHUNKS_ON_CUDA = _faults(_cuda_chunks, _cuda_launch)
