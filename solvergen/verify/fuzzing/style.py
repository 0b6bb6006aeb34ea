"""How a drawn spec is written down: spaces, parentheses, quotes. None of it changes what it means."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Style:
    """Choices from a seed. Seed 0 always takes the first, the plainest."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._random = random.Random(seed) if seed else None

    def __repr__(self) -> str:
        return f"Style({self.seed})"

    def choose(self, options: Sequence[T]) -> T:
        """One of ``options``, the plainest of which comes first."""
        return options[0] if self._random is None else self._random.choice(options)

    def one_in(self, n: int) -> bool:
        """True once in ``n`` times; never in the plain style."""
        return self._random is not None and self._random.randrange(n) == 0

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """``items`` in any order; the plain style leaves them as they are."""
        found = list(items)
        if self._random is not None:
            self._random.shuffle(found)
        return found


PLAIN = Style(0)
