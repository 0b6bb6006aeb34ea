"""Names and lists of names in messages: readable, and short whatever a damaged file says."""

from __future__ import annotations

from collections.abc import Iterable

_MOST_NAMES = 10
_MOST_CHARACTERS = 80


def quoted(name: object) -> str:
    """``name`` in quotes, control characters escaped, the middle left out where it is long."""
    text = str(name)
    if len(text) > _MOST_CHARACTERS:
        half = _MOST_CHARACTERS // 2
        text = f"{text[:half]}...{text[-half:]}"
    return repr(text)


def listed(names: Iterable[object]) -> str:
    """The names sorted and in quotes, at most ten of them, and how many more there are."""
    ordered = sorted(map(str, names))
    shown = ", ".join(map(quoted, ordered[:_MOST_NAMES]))
    more = len(ordered) - _MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
