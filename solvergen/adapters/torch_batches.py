"""Tensors in batches of rows, in file order or drawn, from any place again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from solvergen.runtime.naming import with_article
from solvergen.solver.net.error import NetError


class Batches:
    """Tensors in batches of rows, beginning again at the end; a batch may reach over it.

    Args:
        tensors: of equal lengths; each batch is a tuple of as many.
        batch_size: rows in a batch.
        shuffle: take rows in an order drawn anew for each turn; else in file order.
        seed: of these orders.
    """

    def __init__(self, *tensors: torch.Tensor, batch_size: int, shuffle: bool = False, seed: int = 0) -> None:
        for one in tensors:
            if not isinstance(one, torch.Tensor) or not one.dim():
                kind = with_article(type(one).__name__)
                what = "a single number" if isinstance(one, torch.Tensor) else kind
                raise NetError(f"Batches takes tensors of rows (torch.as_tensor makes them), not {what}")
        if not tensors or any(len(t) != len(tensors[0]) for t in tensors) or not len(tensors[0]):
            raise NetError("Batches needs tensors of one length, and rows in them")
        if batch_size < 1:
            raise NetError(f"batch_size must be at least 1, not {batch_size}")
        self._tensors = tensors
        self._batch_size = batch_size
        self._shuffle = shuffle
        self._seed = seed
        self._next = 0
        self._turn, self._order = -1, torch.arange(len(tensors[0]))

    def __iter__(self) -> Iterator[tuple[torch.Tensor, ...]]:
        while True:
            yield self.next()

    def next(self) -> tuple[torch.Tensor, ...]:
        """The next batch."""
        count = len(self._tensors[0])
        rows = torch.arange(self._next, self._next + self._batch_size)
        if self._shuffle:
            picked = torch.empty_like(rows)
            turns = rows // count
            for turn in range(int(turns[0]), int(turns[-1]) + 1):
                here = turns == turn
                picked[here] = self._order_of(turn)[rows[here] % count]
        else:
            picked = rows % count
        self._next += self._batch_size
        return tuple(t[picked] for t in self._tensors)

    def position(self) -> Mapping[str, int]:
        """How many rows were taken, and the seed of their order."""
        return {"row": self._next, "seed": self._seed}

    def seek(self, position: Mapping[str, int]) -> None:
        """Go on as if these rows had been taken."""
        self._next = int(position["row"])
        self._seed, self._turn = int(position["seed"]), -1

    def seed(self, seed: int) -> None:
        """Draw the orders by this seed, from the beginning."""
        self._next, self._seed, self._turn = 0, seed, -1

    def _order_of(self, turn: int) -> torch.Tensor:
        if turn != self._turn:
            generator = torch.Generator().manual_seed((self._seed * 1_000_003 + turn) % 2**63)
            self._turn, self._order = turn, torch.randperm(len(self._tensors[0]), generator=generator)
        return self._order
