"""Where the characters of a YAML scalar stand in the file.

YAML folds lines, drops indentation and replaces escapes, so the text that a scalar stands for isn't
a piece of the file. But the characters that are not blank come in the same order in both; this
module walks through both and pairs them.
"""

from __future__ import annotations

from typing import NamedTuple

_BLANK = " \t\n"
_ESCAPE_WIDTH = {"x": 4, "u": 6, "U": 10}


class _Unit(NamedTuple):
    """What one character of the text was written as, and where. ``character`` is None for an escape."""

    character: str | None
    line: int
    column: int
    width: int


def align(value: str, raw: str, line: int, column: int, style: str | None) -> tuple[tuple[int, int], ...]:
    """The (line, column) of each character of ``value``, and of its end.

    ``raw`` is the scalar as written, quotes and block indicators included, from ``line`` and
    ``column`` on; ``style`` is None or one of ``' " | >``. If the two can't be paired, every
    character is placed at the beginning.
    """
    if value == raw:  # written plainly, on one line or several
        return _running(raw, line, column)
    units = _units(raw, line, column, style)
    if value and not units:
        return ((line, column),) * (len(value) + 1)
    positions: list[tuple[int, int]] = []
    end = (units[0].line, units[0].column) if units else (line, column + (1 if raw else 0))
    i = 0
    for character in value:
        blank = character in _BLANK
        if not blank:
            while i < len(units) and units[i].character not in (None, character):
                if units[i].character not in (" ", "\t", "\n"):
                    return ((line, column),) * (len(value) + 1)
                i += 1
            if i == len(units):
                return ((line, column),) * (len(value) + 1)
        if i == len(units):
            positions.append(end)
            continue
        unit = units[i]
        positions.append((unit.line, unit.column))
        if not blank or unit.character is None or unit.character in _BLANK:
            end = (unit.line, unit.column + unit.width)
            i += 1
    return (*positions, end)


def _running(raw: str, line: int, column: int) -> tuple[tuple[int, int], ...]:
    """The places of the characters of ``raw`` themselves, and of its end."""
    positions = [(line, column)]
    for character in raw:
        line, column = (line + 1, 1) if character == "\n" else (line, column + 1)
        positions.append((line, column))
    return tuple(positions)


def _units(raw: str, line: int, column: int, style: str | None) -> list[_Unit]:
    """``raw`` without quotes or block header, one unit for each character that YAML takes as one."""
    units: list[_Unit] = []
    i, stop = 0, len(raw)
    if style in ("'", '"'):
        i, stop, column = 1, stop - 1, column + 1
    in_header = style in ("|", ">")
    while i < stop:
        character = raw[i]
        width = 1
        if style == "'" and character == "'":
            width = 2
        elif style == '"' and character == "\\":
            width = _ESCAPE_WIDTH.get(raw[i + 1], 2)
            if raw[i + 1] == "\n":  # an escaped line break is nothing at all
                i, line, column = i + 2, line + 1, 1
                continue
            units.append(_Unit(None, line, column, width))
            i, column = i + width, column + width
            continue
        if not in_header:
            units.append(_Unit(character, line, column, width))
        i += width
        if character == "\n":
            line, column, in_header = line + 1, 1, False
        else:
            column += width
    return units
