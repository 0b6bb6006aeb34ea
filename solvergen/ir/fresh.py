"""Names that nobody has taken."""

from __future__ import annotations

from collections.abc import Iterable


class FreshNames:
    """Hands out names that are not taken, as close as possible to the one wished for."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def take(self, wish: str) -> str:
        """``wish``, or it with a number behind it; taken from now on."""
        name, number = wish, 2
        while name in self._taken:
            name = f"{wish}_{number}"
            number += 1
        self._taken.add(name)
        return name
