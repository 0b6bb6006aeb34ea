"""Faults of the host program, the function ``scalars`` in an optimizer's scalars.py."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from solvergen.verify.mutations.mutant import Mutant, at

FILE = "scalars.py"

_OTHER: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
# In one expression, since a fault is one place of the text.
_SINGLE = '(lambda x: float(__import__("numpy").float32(x)))({})'


def faults_in_scalars(text: str) -> list[Mutant]:
    """Every fault of the function ``scalars`` of the module ``text``."""
    tree = ast.parse(text)
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "scalars")
    found = {(*m.key, m.start): m for m in _Finder(text).all_in(function)}
    return sorted(found.values(), key=lambda m: (m.start, m.kind, m.after))


class _Finder:
    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = text.splitlines(keepends=True)
        self._known: list[str] = []

    def all_in(self, function: ast.FunctionDef) -> Iterator[Mutant]:
        self._known = [a.arg for a in function.args.kwonlyargs]
        parameters = list(self._known)
        for statement in function.body:
            yield from self._statement(statement)
        self._known = parameters

    def _statement(self, statement: ast.stmt) -> Iterator[Mutant]:
        if isinstance(statement, ast.If):
            yield self._edit("option", statement.test, f"not ({self._source(statement.test)})")
            for inner in (*statement.body, *statement.orelse):
                yield from self._statement(inner)
        elif isinstance(statement, ast.Assign):
            target = statement.targets[0]
            if isinstance(target, ast.Name) and target.id in ("row", "wide"):
                yield from self._row(statement.value)
                return
            yield from self._value(statement.value)
            if isinstance(target, ast.Subscript):
                yield self._edit("store", statement, "pass")
            elif isinstance(target, ast.Name):
                single = _SINGLE.format(self._source(statement.value))
                if not isinstance(statement.value, (ast.Name, ast.IfExp)):
                    yield self._edit("float32 scalar", statement.value, single)
                self._known.append(target.id)

    def _row(self, row: ast.expr) -> Iterator[Mutant]:
        """A row of a table: entries exchanged, and each by itself."""
        assert isinstance(row, ast.Tuple)
        for one, other in zip(row.elts, row.elts[1:], strict=False):
            start, end = self._start(one), self._end(other)
            between = self._text[self._end(one) : self._start(other)]
            exchanged = self._source(other) + between + self._source(one)
            yield at(self._text, FILE, "row", start, end, exchanged)
        for entry in row.elts:
            yield from self._value(entry)

    def _value(self, value: ast.expr) -> Iterator[Mutant]:
        for node in ast.walk(value):
            if isinstance(node, ast.BinOp):
                yield from self._operator("operator", node.op, node.left, node.right)
                if isinstance(node.op, ast.Sub):
                    exchanged = f"({self._source(node.right)} - {self._source(node.left)})"
                    yield self._edit("operands", node, exchanged)
                yield from self._rounded(node)
            elif isinstance(node, ast.Compare):
                yield from self._operator("operator", node.ops[0], node.left, node.comparators[0])
            elif isinstance(node, ast.BoolOp):
                yield from self._operator("operator", node.op, node.values[0], node.values[1])
            elif isinstance(node, ast.UnaryOp):
                yield self._edit("operator", node, self._source(node.operand))
            elif isinstance(node, ast.IfExp):
                parts = [self._source(part) for part in (node.orelse, node.test, node.body)]
                yield self._edit("branch", node, f"({parts[0]} if {parts[1]} else {parts[2]})")
            elif isinstance(node, ast.Call):
                yield from self._call(node)
            elif isinstance(node, ast.Constant) and isinstance(node.value, float):
                yield self._edit("constant", node, repr(node.value * 2 or 1.0))
            elif isinstance(node, ast.Name):
                yield from self._name(node)

    def _operator(self, kind: str, op: ast.AST, left: ast.expr, right: ast.expr) -> Iterator[Mutant]:
        if type(op) not in _OTHER:
            return
        sign, other = _OTHER[type(op)]
        start, end = self._end(left), self._start(right)
        match = re.search(rf"(?<![<>=!]){re.escape(sign)}", self._text[start:end])
        assert match is not None
        yield at(self._text, FILE, kind, start + match.start(), start + match.end(), other)

    def _rounded(self, node: ast.BinOp) -> Iterator[Mutant]:
        """The operation on float32 numbers, its result rounded to float32."""
        left, right = (_SINGLE.format(self._source(part)) for part in (node.left, node.right))
        between = self._text[self._end(node.left) : self._start(node.right)].strip()
        if re.fullmatch(r"[-+*/]", between):
            yield self._edit("float32 scalar", node, _SINGLE.format(f"{left} {between} {right}"))

    def _call(self, node: ast.Call) -> Iterator[Mutant]:
        arguments = [self._source(argument) for argument in node.args]
        if len(arguments) == 1:
            yield self._edit("call", node, f"({arguments[0]})")
        elif len(arguments) == 2:
            name = self._source(node.func)
            yield self._edit("call", node, f"{name}({arguments[1]}, {arguments[0]})")

    def _name(self, node: ast.Name) -> Iterator[Mutant]:
        if node.id == "t":
            yield self._edit("t", node, "(t - 1.0)")
            yield self._edit("t", node, "(t + 1.0)")
            yield self._edit("float32 scalar", node, _SINGLE.format("t"))
        elif node.id in self._known:
            others = {self._known[self._known.index(node.id) - 1]}
            old = re.fullmatch(r"(\w+?)_(?:new|next)(?:_\d+)?", node.id)
            if old is not None and old.group(1) in self._known:
                others.add(old.group(1))
            for other in sorted(others - {node.id}):
                yield self._edit("variable", node, other)

    def _edit(self, kind: str, node: ast.AST, after: str) -> Mutant:
        return at(self._text, FILE, kind, self._start(node), self._end(node), after)

    def _source(self, node: ast.AST) -> str:
        return self._text[self._start(node) : self._end(node)]

    def _start(self, node: ast.AST) -> int:
        return self._position(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def _end(self, node: ast.AST) -> int:
        return self._position(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def _position(self, line: int, column: int) -> int:
        """Where a place that ``ast`` names, in bytes of its line, lies in the text."""
        before = sum(map(len, self._lines[: line - 1]))
        return before + len(self._lines[line - 1].encode()[:column].decode())
