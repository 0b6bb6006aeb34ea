"""Forms of a spec that stand for an update: each rewrites the tree into a spec that has one.

What the rest of the compiler sees is a spec like any other; what is made stands, for diagnostics, at what it
follows from.
"""

from __future__ import annotations

from solvergen.errors import Diagnostic
from solvergen.spec.made import scalar_at, with_update
from solvergen.spec.slopes import with_slopes
from solvergen.spec.source import Source
from solvergen.spec.tableau import read_tableau
from solvergen.spec.tree import Mapping


def expand(tree: Mapping, source: Source) -> tuple[Mapping, bool, list[Diagnostic]]:
    """The tree with its update written out, whether it is whole, and what is wrong with a form."""
    key = tree.key("tableau")
    if key is None:
        return tree, True, []
    update = tree.key("update")
    if update is not None:
        later = max(key, update, key=lambda k: (k.location.line, k.location.column))
        message, hint = "there is both 'update' and 'tableau'", "a tableau stands for the equations; keep one"
        return (
            tree,
            True,
            [Diagnostic("SG015", message, later.location, hint, source.line_of(later.location))],
        )
    node = tree.get("tableau")
    tableau, found = read_tableau(node, source) if isinstance(node, Mapping) else (None, [])
    if tableau is None:
        nothing = scalar_at("param = param", key.location, source)
        return with_update(tree, key, [nothing]), False, found
    return with_slopes(tree, key, tableau), True, found
