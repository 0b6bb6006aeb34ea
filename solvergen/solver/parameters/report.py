"""Parameters and findings as text for people and as data for programs."""

from __future__ import annotations

import dataclasses
import linecache
import math
from collections.abc import Iterable, Mapping
from typing import Any

from solvergen.runtime.naming import printable
from solvergen.solver.parameters.findings import Finding
from solvergen.solver.parameters.kinds import shortest_float
from solvergen.solver.parameters.mappings import mapping_lines, plain_entry
from solvergen.solver.parameters.model import CONVERSIONS, SNAPSHOT_FORMATS, SOLVER_MODES, SolverParameters
from solvergen.solver.parameters.net_state import NetSource, NetState

_ENUMS = {"solver_mode": SOLVER_MODES, "snapshot_format": SNAPSHOT_FORMATS}
_WIDTH = 120
"""How much of a line is shown."""
_TEXTS = ("net_param", "train_net_param", "test_net_param")


def explained(finding: Finding) -> str:
    """The finding, and under it the line of the file with a caret where it can be shown."""
    place = finding.location
    if place is None:
        return str(finding)
    linecache.checkcache(place.file)  # it may have been mended since
    line = finding.source or linecache.getline(place.file, place.line).rstrip("\r\n")
    if not line:
        return str(finding)
    shown, carets = _excerpt(line, place.column - 1, place.end_column - 1)
    return f"{finding}\n    {shown}\n    {carets}"


def _excerpt(line: str, start: int, end: int) -> tuple[str, str]:
    """What is shown of a line, and carets for under it. Of a long one it is what is around ``start``."""
    first = max(0, min(start - _WIDTH // 2, len(line) - _WIDTH))
    last = min(len(line), first + _WIDTH)
    before, marked, after = (
        "".join(letter if letter == "\t" else printable(letter) for letter in part)
        for part in (line[first:start], line[start : min(end, last)], line[max(start, min(end, last)) : last])
    )
    before = "..." * (first > 0) + before
    margin = "".join("\t" if letter == "\t" else " " for letter in before)
    return f"{before}{marked}{after}{'...' * (last < len(line))}", margin + "^" * max(1, len(marked))


def finding_as_data(finding: Finding) -> dict[str, Any]:
    """The finding for programs."""
    place = finding.location
    return {
        "severity": finding.severity,
        "field": finding.field,
        "message": finding.message,
        "hint": finding.hint,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
    }


def as_data(params: SolverParameters) -> dict[str, Any]:
    """Every parameter by its name, as JSON can hold it. Numbers that are float in Caffe have the digits that
    tell them apart as such; what mappings hold, which is double, has all."""
    return {name: _plain(getattr(params, name)) for name in CONVERSIONS}


def effective(params: SolverParameters) -> list[str]:
    """The parameters that were given or have a default, as lines; defaults say so.

    They are written as in a prototxt, and mappings as YAML says them.
    """
    lines = []
    for name in CONVERSIONS:
        if name == "solver_type" or (params.optimizer is not None and name == "type"):
            continue  # solver_type: ``type`` says it
        default = "" if params.has(name) or (name == "type" and params.has("solver_type")) else "   # default"
        value = getattr(params, name)
        values = value if isinstance(value, tuple) else () if value is None else (value,)
        for one in values:
            if isinstance(one, Mapping):
                lines += mapping_lines(name, one)
            else:
                lines.append(f"{name}{_written(name, one)}{default}")
    return lines


def described_state(state: NetState) -> str:
    """``TRAIN``, with level and stages where there are any."""
    words: list[str] = [state.phase or "TEST"]
    if state.level:
        words.append(f"level {state.level}")
    if state.stage:
        words.append(f"stage {', '.join(state.stage)}")
    return ", ".join(words)


def described_source(source: NetSource | None) -> str:
    """Where a net comes from, in a few words."""
    if source is None or (source.path is None and source.text is None):
        return "what the Solver is handed"
    if source.path is not None:
        return f"{source.kind} {source.path!r}"
    lines = len((source.text or "").strip().splitlines())
    return f"{source.kind} ({lines} line{'s' * (lines != 1)} in the solver's own file)"


def sentences(findings: Iterable[Finding]) -> list[str]:
    """What is said, without places."""
    return [finding.sentence for finding in findings]


def _written(name: str, value: Any) -> str:
    if isinstance(value, NetState):
        return f" {{ {described_state(value)} }}"
    if isinstance(value, bool):
        return f": {str(value).lower()}"
    if isinstance(value, float):
        return f": {shortest_float(value)}"
    if name in _TEXTS:
        return f" {{ {len(value.strip().splitlines())} lines }}"
    if isinstance(value, str) and name not in _ENUMS:
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f': "{escaped}"'
    return f": {value}"


def _plain(value: Any) -> Any:
    if isinstance(value, NetState):
        return dataclasses.asdict(value)
    if isinstance(value, Mapping):
        return {key: _strict(plain_entry(entry)) for key, entry in value.items()}
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return _strict(float(shortest_float(value)) if isinstance(value, float) else value)


def _strict(value: Any) -> Any:
    """Without the numbers that JSON has no words for: their names instead."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [_strict(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _strict(entry) for key, entry in value.items()}
    return value
