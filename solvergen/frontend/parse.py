"""Equation text to IR, through Python's ``ast`` and a visitor that knows only what the language has.

Nothing is ever evaluated. The text has been measured and its tokens put in order (``tokens.py``,
``order.py``) before
``ast.parse`` sees it; the visitor refuses every node that it doesn't know.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from solvergen.errors import Location
from solvergen.frontend.findings import Findings
from solvergen.frontend.order import check_order
from solvergen.frontend.suggestions import instead_of_function
from solvergen.frontend.tokens import Token, scan
from solvergen.ir.functions import FUNCTIONS, GRADIENT
from solvergen.ir.nodes import (
    Binary,
    Call,
    Compare,
    Expression,
    Extent,
    GradientAt,
    Logic,
    Name,
    Number,
    Reduce,
    Unary,
)
from solvergen.ir.reductions import ALL, LINES, NDIM, REDUCTIONS

if TYPE_CHECKING:
    from solvergen.spec.model import Text

MAX_DEPTH = 100
"""Levels of the syntax tree: a sum of 100 terms, say."""

_SIGNATURES = {name: f"{name}(x)" for name in FUNCTIONS} | {
    "min": "min(a, b)",
    "max": "max(a, b)",
    "where": "where(condition, a, b)",
    "clip": "clip(x, low, high)",
}

_TARGET = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=(?!=)")

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


@dataclass(frozen=True)
class Equation:
    """``target = value``, and where the target stands."""

    target: str
    value: Expression
    target_location: Location


def parse_equation(text: Text) -> tuple[str, Expression]:
    """``target = expression`` as the target's name and an untyped expression.

    Raises SpecError with all that is wrong with the text. Names are not looked up.
    """
    findings = Findings()
    equation = read_equation(text, findings)
    findings.raise_errors()
    assert equation is not None
    return equation.target, equation.value


def parse_condition(text: Text) -> Expression:
    """A condition (or any other expression without ``=``), untyped. Raises SpecError."""
    findings = Findings()
    expression = read_expression(text, findings)
    findings.raise_errors()
    assert expression is not None
    return expression


def read_equation(text: Text, findings: Findings) -> Equation | None:
    """As ``parse_equation``; what is wrong goes to ``findings``, and the result is then None."""
    tokens = scan(text, findings)
    if tokens is None:
        return None
    place = next(
        (i for i, token in enumerate(tokens) if token.kind == "operator" and token.text == "="), None
    )
    if place is None:
        comparison = next((token for token in tokens if token.text == "=="), None)
        if comparison is not None:
            findings.add(
                "SG053",
                "an equation assigns with one `=`",
                text,
                comparison.start,
                comparison.end,
                hint="write `=`",
            )
        else:
            findings.add(
                "SG053",
                "this is no equation: there is no `=`",
                text,
                tokens[0].start,
                tokens[-1].end,
                hint="write `name = expression`",
            )
        return None
    target, equals, value = tokens[:place], tokens[place], tokens[place + 1 :]
    if len(target) != 1 or target[0].kind != "name":
        start, end = (target[0].start, target[-1].end) if target else (equals.start, equals.end)
        findings.add(
            "SG053",
            "left of the `=` stands exactly one name",
            text,
            start,
            end,
            hint="write `name = expression`",
        )
        return None
    if not value:
        hint = "write the new value"
        findings.add("SG040", "nothing stands right of the `=`", text, equals.start, equals.end, hint=hint)
        return None
    expression = _expression(text, value, findings)
    if expression is None:
        return None
    return Equation(target[0].text, expression, text.locate(target[0].start, target[0].end))


def is_gradient(text: Text) -> bool:
    """Is it the statement ``gradient``, which evaluates the gradient anew?"""
    return text.text.strip() == GRADIENT


def gradient_statement(text: Text, number: int) -> Equation:
    """That statement as what it does: ``grad`` becomes the gradient at ``param``."""
    start = text.text.index(GRADIENT)
    place = text.locate(start, start + len(GRADIENT))
    return Equation("grad", GradientAt(Name("param", location=place), number, location=place), place)


def target_of(text: Text) -> str | None:
    """The name left of the ``=``, also of an equation that can't be read."""
    match = _TARGET.match(text.text)
    return match[1] if match else None


def read_expression(text: Text, findings: Findings) -> Expression | None:
    """As ``parse_condition``; what is wrong goes to ``findings``, and the result is then None."""
    tokens = scan(text, findings)
    if tokens is None:
        return None
    return _expression(text, tokens, findings)


def _expression(text: Text, tokens: tuple[Token, ...], findings: Findings) -> Expression | None:
    if not check_order(text, tokens, findings):
        return None
    start, end = tokens[0].start, tokens[-1].end
    # One line in parentheses: Python's columns, less one, are then offsets from ``start``.
    line = "".join(" " if c in "\t\r\n" else c for c in text.text[start:end])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # such as `1 (x)`, which is refused anyway
            tree = ast.parse(f"({line})", mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        findings.add(
            "SG052", f"this can't be read as an expression ({type(error).__name__})", text, start, end
        )
        return None
    visitor = _Visitor(text, start - 1, findings)
    if visitor.too_deep(tree.body):
        findings.add(
            "SG042",
            f"the expression nests more than {MAX_DEPTH} levels deep",
            text,
            start,
            end,
            hint="name parts of it and compute them first",
        )
        return None
    expression = visitor.visit(tree.body)
    return None if visitor.refused else expression


class _Visitor:
    """Builds IR from the nodes that the language has, and refuses the others."""

    def __init__(self, text: Text, offset: int, findings: Findings) -> None:
        self.text = text
        self.offset = offset
        self.findings = findings
        self.refused = False

    def too_deep(self, root: ast.AST) -> bool:
        """Whether the tree has more than MAX_DEPTH levels; without recursion."""
        level: list[ast.AST] = [root]
        for _ in range(MAX_DEPTH):
            level = [
                child for node in level for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)
            ]
            if not level:
                return False
        return True

    def span(self, node: ast.expr) -> tuple[int, int]:
        """Offsets of ``node`` in the text."""
        end = node.end_col_offset
        assert end is not None
        return node.col_offset + self.offset, end + self.offset

    def refuse(self, node: ast.expr, code: str, message: str, hint: str | None = None) -> Expression:
        """Record a finding; what is returned only lets the visit go on."""
        self.refused = True
        self.findings.add(code, message, self.text, *self.span(node), hint=hint)
        return Number(0.0)

    def visit(self, node: ast.expr) -> Expression:
        """The IR of ``node``."""
        location = self.text.locate(*self.span(node))
        if isinstance(node, ast.Constant):
            value = node.value
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                return self.refuse(node, "SG048", "only numbers can be written out")
            return Number(float(value), isinstance(value, int), location=location)
        if isinstance(node, ast.Name):
            if node.id == ALL:
                return self.refuse(
                    node,
                    "SG056",
                    "`all` says what a reduction ranges over",
                    "it comes last in a reduction: norm2(grad, all)",
                )
            if node.id in LINES:
                return self.refuse(
                    node,
                    "SG056",
                    f"`{node.id}` says along what a reduction goes",
                    f"it comes last in a reduction: mean(grad**2, {node.id})",
                )
            if node.id == GRADIENT:
                return self.refuse(
                    node,
                    "SG056",
                    "`gradient` is a statement and has no value of its own",
                    "write `- gradient` as an item of the update; from there on `grad` is the new gradient",
                )
            if node.id in FUNCTIONS or node.id in REDUCTIONS or node.id == NDIM:
                return self.refuse(
                    node,
                    "SG056",
                    f"`{node.id}` is a function and has no value of its own",
                    f"call it: {node.id}(...)",
                )
            return Name(node.id, location=location)
        if isinstance(node, ast.UnaryOp):
            return self.unary(node, location)
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            return Binary(
                _BINARY[type(node.op)], self.visit(node.left), self.visit(node.right), location=location
            )
        if isinstance(node, ast.BoolOp):
            return self.chain(
                "and" if isinstance(node.op, ast.And) else "or",
                [self.visit(v) for v in node.values],
                location,
            )
        if isinstance(node, ast.Compare) and all(type(op) in _COMPARE for op in node.ops):
            return self.comparison(node, location)
        if isinstance(node, ast.IfExp):
            condition, first, second = self.visit(node.test), self.visit(node.body), self.visit(node.orelse)
            return Call("where", (condition, first, second), location=location)
        if isinstance(node, ast.Call):
            return self.call(node, location)
        return self.refuse(node, "SG052", "this is not of the language")

    def unary(self, node: ast.UnaryOp, location: Location) -> Expression:
        """Signs and ``not``. A sign before a number belongs to the number."""
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return Unary("not", operand, location=location)
        if not isinstance(node.op, (ast.USub, ast.UAdd)):
            return self.refuse(node, "SG044", "there is no such operator")
        if isinstance(operand, (Compare, Logic)) or (isinstance(operand, Unary) and operand.op == "not"):
            return self.refuse(
                node, "SG080", "a sign before a condition", "use where(condition, 1, 0) for a number"
            )
        if isinstance(node.op, ast.UAdd):
            return operand
        if isinstance(operand, Number):
            whole = operand.integral and operand.value != 0  # no whole number is -0.0
            return Number(-operand.value, whole, location=location)
        return Unary("-", operand, location=location)

    def chain(self, op: str, parts: list[Expression], location: Location) -> Expression:
        """``a and b and c``, grouped from the left."""
        result = parts[0]
        for part in parts[1:]:
            result = Logic(op, result, part, location=location)
        return result

    def comparison(self, node: ast.Compare, location: Location) -> Expression:
        """``a < b < c`` is ``a < b and b < c``."""
        values = [self.visit(value) for value in (node.left, *node.comparators)]
        pairs = zip(node.ops, values, values[1:], strict=False)
        return self.chain(
            "and", [Compare(_COMPARE[type(op)], a, b, location=location) for op, a, b in pairs], location
        )

    def call(self, node: ast.Call, location: Location) -> Expression:
        """A function of the table, with as many arguments as it takes."""
        if not isinstance(node.func, ast.Name):
            return self.refuse(node, "SG056", "only functions of the language can be called")
        name = node.func.id
        if name in REDUCTIONS:
            return self.reduction(node, name, location)
        if name == NDIM:
            return self.ndim(node, location)
        args = tuple(self.visit(arg) for arg in node.args)
        if name == GRADIENT:
            return self.refuse(
                node.func,
                "SG054",
                "`gradient` is a statement, not a function",
                "write `- gradient` as an item of the update; from there on `grad` is the new gradient",
            )
        if name not in FUNCTIONS:
            return self.refuse(node.func, "SG054", f"unknown function '{name}'", instead_of_function(name))
        if node.keywords:
            return self.refuse(node, "SG055", "arguments go by position, not by name")
        arity = FUNCTIONS[name].arity
        if len(args) != arity:
            nested = name in ("min", "max") and len(args) > 2
            hint = f"nest them: {name}(a, {name}(b, c))" if nested else f"write {_SIGNATURES[name]}"
            takes = "1 argument" if arity == 1 else f"{arity} arguments"
            return self.refuse(node, "SG055", f"{name} takes {takes}, not {len(args)}", hint)
        return Call(name, args, location=location)

    def reduction(self, node: ast.Call, name: str, location: Location) -> Expression:
        """A reduction, with ``all``, lines, or nothing behind its values."""
        given = list(node.args)
        last = given[-1].id if given and isinstance(given[-1], ast.Name) else ""
        over_all, along = last == ALL, last if last in LINES else ""
        args = tuple(self.visit(arg) for arg in (given[:-1] if over_all or along else given))
        if node.keywords:
            return self.refuse(node, "SG055", "arguments go by position, not by name")
        arity = REDUCTIONS[name].arity
        if len(args) != arity:
            values = "x, y" if arity == 2 else "x"
            takes = "1 value" if arity == 1 else f"{arity} values"
            hint = f"write {name}({values}), or {name}({values}, all) over all tensors"
            return self.refuse(node, "SG055", f"{name} takes {takes}, not {len(args)}", hint)
        return Reduce(name, args, over_all, along, location=location)

    def ndim(self, node: ast.Call, location: Location) -> Expression:
        """``ndim(param)``, of nothing else."""
        given = node.args
        is_param = len(given) == 1 and isinstance(given[0], ast.Name) and given[0].id == "param"
        if node.keywords or not is_param:
            hint = "write ndim(param): gradient and state have as many axes"
            return self.refuse(node, "SG055", "ndim takes the parameter alone", hint)
        return Extent(NDIM, location=location)
