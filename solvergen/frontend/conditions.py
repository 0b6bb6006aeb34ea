"""``when`` conditions: from text to the set of option settings in which they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from solvergen.frontend.findings import Findings
from solvergen.frontend.parse import read_expression
from solvergen.frontend.suggestions import instead_of_name
from solvergen.ir.guards import guard_of
from solvergen.ir.nodes import Expression, Logic, Name, Unary

if TYPE_CHECKING:
    from collections.abc import Collection

    from solvergen.spec.model import Text


def read_when(
    text: Text, options: tuple[str, ...], known: Collection[str], findings: Findings
) -> Expression | None:
    """The condition of a ``when``, purely of options; None, with the reasons in ``findings``, if it isn't.

    ``known`` are all names of the spec, to tell a name that isn't an option from one that doesn't exist.
    """
    expression = read_expression(text, findings)
    if expression is not None and guard_of(expression, options) is None:
        _explain(expression, text, options, known, findings)
        return None
    return expression


def _explain(
    node: Expression, text: Text, options: tuple[str, ...], known: Collection[str], findings: Findings
) -> None:
    """Say which parts of a ``when`` aren't options."""
    assert node.location is not None
    if isinstance(node, Logic) or (isinstance(node, Unary) and node.op == "not"):
        for operand in node.operands:
            _explain(operand, text, options, known, findings)
    elif isinstance(node, Name) and node.name not in known:
        hint = instead_of_name(node.name, options) or "declare it under options"
        findings.at("SG060", f"unknown name '{node.name}'", node.location, hint=hint, text=text)
    elif not (isinstance(node, Name) and node.name in options):
        findings.at(
            "SG076",
            "`when` takes only options, joined by `and`, `or` and `not`",
            node.location,
            text=text,
            hint="choose by values with where(condition, a, b), or define an option that has this as default",
        )
