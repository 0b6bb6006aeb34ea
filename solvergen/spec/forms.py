"""Forms of a spec that stand for an update: each rewrites the tree into a spec that has one.

What the rest of the compiler sees is a spec like any other; what is made stands, for diagnostics, at what it
follows from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

from solvergen.errors import Diagnostic
from solvergen.spec.extending import extended
from solvergen.spec.made import scalar_at, with_update
from solvergen.spec.slopes import with_slopes
from solvergen.spec.source import Source
from solvergen.spec.tableau import read_tableau
from solvergen.spec.tree import Mapping, Scalar

Bases = Callable[[Scalar], tuple[Mapping | None, list[Diagnostic]]]
"""From the name of another spec to its tree, written out, or to what is wrong with it."""

Expanded = tuple[Mapping, bool, list[Diagnostic]]
"""The tree with its update written out, whether it is whole, and what is wrong with a form."""


FORMS = ("update", "change", "extends", "of", "tableau")
TOGETHER = (("update", "extends"), ("change", "extends"))
"""Of what says how the parameter is updated, the pairs that may stand together."""

_HINTS = {
    ("update", "tableau"): "a tableau stands for the equations; keep one",
    ("update", "change"): "equations of the base are changed, or replaced by those under 'update'",
    ("extends", "tableau"): "a tableau is no change of another spec's equations",
}
_NEEDED = {
    "change": ("extends", "the spec whose equations are changed"),
    "transform": ("of", "the spec that is transformed"),
    "of": ("transform", "what is applied to that spec"),
}


def expand(tree: Mapping, source: Source, bases: Bases) -> Expanded:
    """``tree`` written out, whatever form it has."""
    found = [*_clashes(tree, source), *_lacking(tree, source)][:1]
    if found:
        return _nothing(tree, found)
    if "tableau" in tree.by_key:
        return _by_tableau(tree, source)
    for key in ("extends", "of"):
        if key in tree.by_key:
            return _by_base(tree, source, bases, key)
    return tree, True, []


def _by_tableau(tree: Mapping, source: Source) -> Expanded:
    key, node = tree.by_key["tableau"]
    tableau, found = read_tableau(node, source) if isinstance(node, Mapping) else (None, [])
    return _nothing(tree, found) if tableau is None else (with_slopes(tree, key, tableau), True, found)


def _by_base(tree: Mapping, source: Source, bases: Bases, key: str) -> Expanded:
    node = tree.get(key)
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return _nothing(tree, [])
    base, found = bases(node)
    return _nothing(tree, found) if base is None else extended(tree, base, source, key)


def _nothing(tree: Mapping, found: list[Diagnostic]) -> Expanded:
    """A spec of which it isn't known what its equations would be."""
    if "update" in tree.by_key:
        return tree, False, found
    key = next(tree.by_key[k][0] for k in (*FORMS, *_NEEDED) if k in tree.by_key)
    nothing = scalar_at("param = param", key.location, key.text.source)
    return with_update(tree, key, [nothing]), False, found


def _clashes(tree: Mapping, source: Source) -> Iterator[Diagnostic]:
    """Keys that can't stand together."""
    for pair in combinations(FORMS, 2):
        first, second = (tree.key(key) for key in pair)
        if first is not None and second is not None and pair not in TOGETHER:
            later = max(first, second, key=lambda k: (k.location.line, k.location.column))
            message = f"there is both '{pair[0]}' and '{pair[1]}'"
            line = source.line_of(later.location)
            yield Diagnostic("SG015", message, later.location, _HINTS.get(pair), line)


def _lacking(tree: Mapping, source: Source) -> Iterator[Diagnostic]:
    """Keys that mean nothing without another."""
    for name, (other, what) in _NEEDED.items():
        key = tree.key(name)
        if key is not None and other not in tree.by_key:
            message, hint = f"'{name}' without '{other}'", f"add '{other}: ...', {what}"
            yield Diagnostic("SG011", message, key.location, hint, source.line_of(key.location))
