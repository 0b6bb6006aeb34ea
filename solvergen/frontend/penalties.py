"""Penalties and projections: equations in the parameter that a spec has beside its update.

A penalty is a term of the loss: SymPy differentiates it, and the derivative, as text of the language, is
added to each gradient that the rule gets. A projection is what becomes of the parameter's new value. Both
turn into statements like any other, so that everything behind this sees nothing but a rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from solvergen.errors import Diagnostic, NotExpressible
from solvergen.frontend.findings import Findings
from solvergen.frontend.infer import Typer
from solvergen.frontend.parse import is_gradient, read_expression, target_of
from solvergen.frontend.scope import DESCRIPTIONS, scope_of
from solvergen.frontend.suggestions import instead_of_name
from solvergen.ir.nodes import Binary, Call, Compare, Expression, Name, Reduce, names_in, walk
from solvergen.ir.program import Role
from solvergen.spec.digest import digest_of
from solvergen.spec.made import text_at
from solvergen.spec.model import Spec, Statement, Text

if TYPE_CHECKING:
    from solvergen.spec.model import Hyperparameter

PARAM = "param"
_MAY_BE_READ = (Role.PARAM, Role.HYPERPARAMETER)
_STEPPED = {"floor": "floor", "//": "the whole quotient (//)", "%": "the remainder (%)"}
"""What makes steps of a number that changes smoothly, in words."""


def with_penalty(spec: Spec) -> tuple[Spec, list[Diagnostic]]:
    """``spec`` with its penalty and its projection among the equations, or as it is and what is wrong."""
    update, findings = spec.update, Findings()
    if spec.penalty is not None and _is_clear(spec.penalty, spec):
        penalty = _read(spec.penalty, spec, findings, "a penalty")
        derivative = None if penalty is None else _derivative(penalty, spec, findings)
        if derivative is not None:
            added = text_at(f"grad = grad + {derivative}", spec.penalty.location, spec.penalty.source)
            update = _after_gradients(update, Statement(added, wraps=True))
    if spec.project is not None and _is_clear(spec.project, spec):
        projection = _read(spec.project, spec, findings, "a projection")
        if projection is not None:
            written = " ".join(spec.project.text.split())
            put = text_at(f"param = {written}", spec.project.location, spec.project.source)
            update = _after_param(update, Statement(put))
    if findings.has_errors:
        return replace(spec, penalty=None, project=None), list(findings.all())
    if update is spec.update:
        return spec, []
    parts = (spec.hyperparameters, spec.options, spec.state, update, spec.constraints)
    return replace(spec, update=update, penalty=None, project=None, digest=digest_of(spec.name, *parts)), []


def _is_clear(text: Text, spec: Spec) -> bool:
    """Is all there that it may speak of? What the reader has left out isn't complained about again."""
    return not spec.incomplete and not any(name in text.text for name in spec.unclear)


def _read(text: Text, spec: Spec, findings: Findings, what: str) -> Expression | None:
    """The expression, if it is a number for each element, made of the parameter and hyperparameters."""
    expression = read_expression(text, findings)
    if expression is None:
        return None
    scope = scope_of(spec, {})
    types = {name: symbol.type for name, symbol in scope.symbols.items() if symbol.role in _MAY_BE_READ}

    def unknown(node: Name, text: Text) -> None:
        assert node.location is not None
        if node.name in scope.symbols:
            message = f"{what} can't read {node.name}, which is {DESCRIPTIONS[scope.role(node.name)]}"
            hint = "it is made of param and hyperparameters"
            findings.at("SG096", message, node.location, text=text, hint=hint)
        else:
            hint = instead_of_name(node.name, types) or "declare it under hyperparameters"
            findings.at("SG060", f"unknown name '{node.name}'", node.location, text=text, hint=hint)

    for node in walk(expression):
        if isinstance(node, Reduce):
            assert node.location is not None
            message = f"{what} is of each element by itself; {node.kind} is of all of a tensor's"
            findings.at("SG096", message, node.location, text=text, hint="put it into the update")
            return None
    typer = Typer(text, types, findings, unknown)
    typed = typer.visit(expression)
    return expression if typer.number(typed, what) else None


def _derivative(penalty: Expression, spec: Spec, findings: Findings) -> str | None:
    """The derivative with respect to the parameter, as text to be added."""
    # SymPy takes a quarter of a second to load, which only such specs cost.
    import sympy

    from solvergen.frontend.sympy_bridge import algebra, language_text

    assert spec.penalty is not None
    text = spec.penalty
    stepped = next(_stepped(penalty), None)
    if stepped is not None:
        assert stepped.location is not None
        message = f"this penalty has no derivative: {_STEPPED[_operation(stepped)]} of param jumps"
        hint = "add what you mean to grad in the update, as an equation"
        findings.at("SG097", message, stepped.location, text=text, hint=hint)
        return None
    param = sympy.Symbol(PARAM, real=True)
    symbols = {PARAM: param} | {h.name: _symbol(h) for h in spec.hyperparameters}
    try:
        smooth = algebra(penalty, symbols).replace(lambda e: isinstance(e, (sympy.Max, sympy.Min)), _as_cases)
        power = _power_of()
        split = smooth.replace(
            lambda e: e.is_Pow and _is_of_hyperparameters(e.exp, param), lambda e: power(*e.args)
        )
        found = sympy.diff(split, param).replace(power, sympy.Pow)
        # What SymPy says of the points of a jump: nothing is added there.
        found = found.replace(sympy.DiracDelta, lambda *_: sympy.S.Zero)
        written = language_text(found.replace(sympy.ITE, _as_logic))
    except (
        NotExpressible,
        ArithmeticError,
        TypeError,
        ValueError,
        NotImplementedError,
        RecursionError,
    ) as reason:
        # SymPy raises these of numbers that are none, as in max(param, 1/0).
        message = f"this penalty has no derivative that the language could express: {reason}"
        hint = "add the derivative to grad in the update, as an equation"
        findings.at("SG097", message, text.location, text=text, hint=hint)
        return None
    if found == 0:
        message = "this penalty doesn't change with param: its derivative is 0"
        findings.at("SG097", message, text.location, text=text, hint="leave it out")
        return None
    return written if not _is_sum(found) else f"({written})"


def _operation(node: Expression) -> str:
    """The function or operator of a call or an operation; empty for other nodes."""
    return node.function if isinstance(node, Call) else node.op if isinstance(node, Binary) else ""


def _stepped(node: Expression) -> Iterator[Expression]:
    """What makes steps of the parameter, but for conditions, whose derivative nobody takes."""
    if not isinstance(node, Compare):
        for operand in node.operands:
            yield from _stepped(operand)
        if _operation(node) in _STEPPED and PARAM in names_in(node):
            yield node


def _as_cases(extreme: Any) -> Any:
    """Max or Min of several as a choice, whose branches have derivatives."""
    import sympy

    first, *others = sorted(extreme.args, key=sympy.default_sort_key)
    for other in others:
        chosen = first > other if isinstance(extreme, sympy.Max) else first < other
        first = sympy.Piecewise((first, chosen), (other, True))
    return first


def _is_of_hyperparameters(exponent: Any, param: Any) -> bool:
    return not exponent.is_number and not exponent.has(param)


def _power_of() -> Any:
    """A power whose derivative is n*x**(n - 1). SymPy's own for an unknown n is n*x**n/x, NaN at 0."""
    import sympy

    class Power(sympy.Function):  # type: ignore[misc]
        nargs = 2

        def fdiff(self, argindex: int = 1) -> Any:
            base, exponent = self.args
            return exponent * Power(base, exponent - 1) if argindex == 1 else sympy.S.Zero

    return Power


def _as_logic(condition: Any, yes: Any, no: Any) -> Any:
    """A choice between conditions, as ``and`` and ``or`` have it."""
    import sympy

    return sympy.Or(sympy.And(condition, yes), sympy.And(sympy.Not(condition), no))


def _is_sum(found: Any) -> bool:
    return bool(found.is_Add) or bool(found.could_extract_minus_sign())


def _symbol(h: Hyperparameter) -> Any:
    import sympy

    low = h.min if h.above is None else h.above
    positive = low is not None and (low > 0 or (low == 0 and h.above is not None))
    not_negative = low is not None and low >= 0
    return sympy.Symbol(h.name, real=True, positive=positive or None, nonnegative=not_negative or None)


def _after_gradients(update: tuple[Statement, ...], added: Statement) -> tuple[Statement, ...]:
    """At the beginning, and behind each evaluation of the gradient."""
    placed = [added]
    for statement in update:
        placed += [statement, added] if is_gradient(statement.equation) else [statement]
    return tuple(placed)


def _after_param(update: tuple[Statement, ...], put: Statement) -> tuple[Statement, ...]:
    """Behind the last equation for the parameter."""
    last = max((i for i, s in enumerate(update) if target_of(s.equation) == PARAM), default=len(update) - 1)
    return (*update[: last + 1], put, *update[last + 1 :])
