"""The order of an explicit Runge-Kutta method, exactly, by the theory of Butcher.

A method has order p if for every rooted tree of at most p vertices the sum of its weights, each times what
the tree makes of the stages, is 1/density of the tree (Hairer, Nørsett, Wanner: Solving Ordinary Differential
Equations I, section II.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import prod

Tree = tuple["Tree", ...]
"""A rooted tree: what hangs on its root, in order of ``trees``."""

Matrix = Sequence[Sequence[Fraction]]


@cache
def trees(vertices: int) -> tuple[Tree, ...]:
    """All rooted trees of that many vertices: 1, 1, 2, 4, 9, 20 ..."""
    return tuple(_forests(vertices - 1, vertices - 1))


@cache
def _forests(vertices: int, largest: int) -> tuple[Tree, ...]:
    """Multisets of trees with so many vertices in all, the largest tree first."""
    if vertices == 0:
        return ((),)
    found = []
    for size in range(min(vertices, largest), 0, -1):
        for number, tree in enumerate(trees(size)):
            for rest in _forests(vertices - size, size):
                if not rest or _size(rest[0]) < size or trees(size).index(rest[0]) >= number:
                    found.append((tree, *rest))
    return tuple(found)


def order_of(matrix: Matrix, weights: Sequence[Fraction]) -> int:
    """The order of the method; it can't be more than the number of its stages."""
    order = 0
    while order < len(weights) and all(_fulfils(matrix, weights, tree) for tree in trees(order + 1)):
        order += 1
    return order


def _fulfils(matrix: Matrix, weights: Sequence[Fraction], tree: Tree) -> bool:
    stages = _stages(matrix, tree)
    return sum((b * x for b, x in zip(weights, stages, strict=True)), Fraction()) == Fraction(
        1, _density(tree)
    )


def _stages(matrix: Matrix, tree: Tree) -> tuple[Fraction, ...]:
    """What the tree makes of each stage: the product over its branches of what the matrix makes of theirs."""
    branches = [_stages(matrix, branch) for branch in tree]
    return tuple(
        prod(
            (sum((a * x for a, x in zip(row, b, strict=True)), Fraction()) for b in branches),
            start=Fraction(1),
        )
        for row in matrix
    )


@cache
def _size(tree: Tree) -> int:
    return 1 + sum(_size(branch) for branch in tree)


@cache
def _density(tree: Tree) -> int:
    return _size(tree) * prod(_density(branch) for branch in tree)
