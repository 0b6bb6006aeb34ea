"""Forms of a spec that stand for an update: each rewrites the tree into a spec that has one.

What the rest of the compiler sees is a spec like any other; what is made stands, for diagnostics, at what it
follows from.
"""

from __future__ import annotations

from collections.abc import Callable

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


def expand(tree: Mapping, source: Source, bases: Bases) -> Expanded:
    """``tree`` written out, whatever form it has."""
    found = _clashes(tree, source)
    if found:
        return tree, "change" not in tree.by_key, found
    found = _alone(tree, source)
    if found:
        return _nothing(tree, found)
    if "tableau" in tree.by_key:
        return _by_tableau(tree, source)
    if "extends" in tree.by_key:
        return _by_base(tree, source, bases)
    return tree, True, []


def _by_tableau(tree: Mapping, source: Source) -> Expanded:
    key, node = tree.by_key["tableau"]
    tableau, found = read_tableau(node, source) if isinstance(node, Mapping) else (None, [])
    return _nothing(tree, found) if tableau is None else (with_slopes(tree, key, tableau), True, found)


def _by_base(tree: Mapping, source: Source, bases: Bases) -> Expanded:
    node = tree.get("extends")
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return _nothing(tree, [])
    base, found = bases(node)
    return _nothing(tree, found) if base is None else extended(tree, base, source)


def _nothing(tree: Mapping, found: list[Diagnostic]) -> Expanded:
    """A spec of which it isn't known what its equations would be."""
    if "update" in tree.by_key:
        return tree, False, found
    key = next((tree.by_key[k][0] for k in ("tableau", "extends", "change") if k in tree.by_key), None)
    assert key is not None
    nothing = scalar_at("param = param", key.location, key.text.source)
    return with_update(tree, key, [nothing]), False, found


def _clashes(tree: Mapping, source: Source) -> list[Diagnostic]:
    """Keys that say the same thing twice."""
    found = []
    for one, other, hint in (
        ("update", "tableau", "a tableau stands for the equations; keep one"),
        ("update", "change", "equations of the base are changed, or replaced by those under 'update'"),
    ):
        first, second = tree.key(one), tree.key(other)
        if first is not None and second is not None:
            later = max(first, second, key=lambda k: (k.location.line, k.location.column))
            message = f"there is both '{one}' and '{other}'"
            line = source.line_of(later.location)
            found.append(Diagnostic("SG015", message, later.location, hint, line))
            break
    return found


def _alone(tree: Mapping, source: Source) -> list[Diagnostic]:
    """What can't stand beside, or without, another key."""
    both = tree.key("extends"), tree.key("tableau")
    if both[0] is not None and both[1] is not None:
        later = max((k for k in both if k is not None), key=lambda k: (k.location.line, k.location.column))
        message, hint = (
            "there is both 'extends' and 'tableau'",
            "a tableau is no change of another spec's equations",
        )
        return [Diagnostic("SG015", message, later.location, hint, source.line_of(later.location))]
    key = tree.key("change")
    if key is None or "extends" in tree.by_key:
        return []
    message, hint = "'change' without 'extends'", "add 'extends: ...', the spec whose equations are changed"
    return [Diagnostic("SG011", message, key.location, hint, source.line_of(key.location))]
