"""Suggestions in error messages."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: object, candidates: Iterable[str]) -> str:
    """``"; did you mean 'lr'?"`` where something is near, else ``"; there are a, b"``."""
    from difflib import get_close_matches  # only on the way to an error

    known = list(candidates)
    near = get_close_matches(str(name), known, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; there is {listed(known)}" if known else ""


def listed(names: Iterable[object], limit: int = 8) -> str:
    """``'a', 'b' and 'c'``; long lists are cut."""
    quoted = [repr(name) for name in names]
    if len(quoted) > limit:
        quoted = [*quoted[: limit - 1], f"{len(quoted) - limit + 1} more"]
    if len(quoted) < 2:
        return "".join(quoted)
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"
