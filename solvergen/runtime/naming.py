"""Names, suggestions and lists of names in messages: readable, and short whatever they hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_MOST_NAMES = 10
_MOST_CHARACTERS = 80

_ELSEWHERE = {"gpu": "cuda", "learning_rate": "lr"}
"""What other libraries call something, and its name here."""


def as_name(key: Any, by_position: bool) -> Any:
    """What names a tensor: the position that stands for a name where parameters have none of the user's, as
    that name; anything else as it is."""
    return str(key) if by_position and isinstance(key, int) and not isinstance(key, bool) else key


def nearest(name: object, candidates: Iterable[str]) -> str | None:
    """The one of ``candidates`` that was probably meant."""
    from difflib import get_close_matches  # only on the way to an error

    known, text = list(candidates), str(name)[:100]
    meant = _ELSEWHERE.get(text.lower())
    return meant if meant in known else next(iter(get_close_matches(text, known, n=1)), None)


def did_you_mean(name: object, candidates: Iterable[str], *, shown: Iterable[str] | None = None) -> str:
    """``"; did you mean 'lr'?"`` where something is near, else ``"; there are 'a' and 'b'"``.

    ``shown``: what there is said to be, if not all of ``candidates``.
    """
    known = list(candidates)
    near = nearest(name, known)
    if near is not None:
        return f"; did you mean {near!r}?"
    named = known if shown is None else list(shown)
    return f"; there {'are' if len(named) > 1 else 'is only'} {listed(named)}" if named else ""


def with_article(noun: str) -> str:
    """``"a list"``, ``"an int"``."""
    return f"an {noun}" if noun[:1] in "AEIOaeio" else f"a {noun}"


def quoted(name: object) -> str:
    """``name`` in quotes, control characters escaped, the middle left out where it is long."""
    return repr(shortened(str(name)))


def shortened(text: str) -> str:
    """``text``, the middle left out where it is long."""
    half = _MOST_CHARACTERS // 2
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:half]}...{text[-half:]}"


def printable(text: str) -> str:
    """``text`` on one line: escapes stand for what can't be seen, or would act on a terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def listed(names: Iterable[object]) -> str:
    """``'a', 'b' and 'c'``; of a long list the first ten, and how many more there are."""
    shown = [quoted(name) for name in names]
    if len(shown) > _MOST_NAMES:
        shown = [*shown[:_MOST_NAMES], f"{len(shown) - _MOST_NAMES} more"]
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"
