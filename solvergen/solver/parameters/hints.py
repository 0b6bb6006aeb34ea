"""What was probably meant."""

from __future__ import annotations

from collections.abc import Iterable

from solvergen.runtime.naming import did_you_mean


def meant(name: object, known: Iterable[str]) -> str:
    """``"did you mean 'GPU'?"``, whatever the case of the letters, or ``"there are ..."``."""
    names = list(known)
    same = [candidate for candidate in names if candidate.lower() == str(name).lower()]
    return f"did you mean {same[0]!r}?" if same else did_you_mean(name, names).removeprefix("; ")
