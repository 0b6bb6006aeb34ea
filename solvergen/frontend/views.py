"""How a rule reads tensors as matrices: the words for lines that it uses say so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from solvergen.errors import Location
from solvergen.frontend.findings import Findings
from solvergen.frontend.flow import Line
from solvergen.ir.nodes import Extent, Reduce, walk
from solvergen.ir.reductions import VIEWS

if TYPE_CHECKING:
    from solvergen.spec.model import Spec

DEFAULT = "matrices"
"""The view of a rule that asks for the number of axes, but for no lines."""


def view_of(spec: Spec, lines: Sequence[Line], findings: Findings) -> str:
    """The view of a rule; empty if it knows no lines. Words of several views are reported."""
    first: tuple[str, str] | None = None
    for word, location in _words(spec, lines):
        view = VIEWS[word]
        if first is None:
            first = word, view
        elif view != first[1] and location is not None:
            findings.at(
                "SG093",
                f"{word} beside {first[0]}: a rule reads tensors in one way",
                location,
                text=spec,
                hint="rows, columns and matrices go together; leading, trailing and blocks each stand alone",
            )
            break
    view = first[1] if first is not None else ""
    if not view and any(isinstance(node, Extent) for line in lines for node in walk(line.equation.value)):
        view = DEFAULT
    return view


def _words(spec: Spec, lines: Sequence[Line]) -> Iterator[tuple[str, Location | None]]:
    """Every word for lines, and where it stands."""
    for state in spec.state:
        if state.is_of_lines:
            yield state.shape, state.location
    for line in lines:
        for node in walk(line.equation.value):
            if isinstance(node, Reduce) and node.along:
                yield node.along, node.location
