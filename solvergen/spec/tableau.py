"""The tableau of an explicit Runge-Kutta method, read in exact rationals and checked."""

from __future__ import annotations

import re
from collections.abc import Sequence as Items
from dataclasses import dataclass
from fractions import Fraction

from solvergen.errors import Diagnostic, Location
from solvergen.spec.limits import MAX_WHOLE
from solvergen.spec.made import whole_number
from solvergen.spec.names import RATIONAL_PATTERN
from solvergen.spec.orders import order_of
from solvergen.spec.source import Source
from solvergen.spec.tree import Mapping, Node, Scalar, Sequence, shorten

_LISTS = ("nodes", "weights", "embedded")


@dataclass(frozen=True)
class Tableau:
    """A method. ``matrix`` is square, ``embedded`` the weights of the method that it is compared with.

    ``adapt``: the step follows the estimate. ``rows``, ``places``: where the rows of the matrix and the other
    parts stand, by their keys.
    """

    matrix: tuple[tuple[Fraction, ...], ...]
    weights: tuple[Fraction, ...]
    embedded: tuple[Fraction, ...] | None
    adapt: bool
    rows: tuple[Location, ...]
    places: dict[str, Location]

    @property
    def order(self) -> int:
        """The order of the method itself."""
        return order_of(self.matrix, self.weights)

    @property
    def estimate(self) -> tuple[Fraction, ...]:
        """The weights of the error estimate: those of the method less the embedded ones."""
        assert self.embedded is not None
        return tuple(b - other for b, other in zip(self.weights, self.embedded, strict=True))

    @property
    def order_of_estimate(self) -> int:
        """The lower order of the two methods."""
        assert self.embedded is not None
        return min(self.order, order_of(self.matrix, self.embedded))


def read_tableau(node: Mapping, source: Source) -> tuple[Tableau | None, list[Diagnostic]]:
    """The method, None if something is wrong with it, and what.

    Values of the wrong kind are passed over: they have been complained about.
    """
    reader = _Reader(node, source)
    return reader.tableau(), reader.found


class _Reader:
    def __init__(self, node: Mapping, source: Source) -> None:
        self.node = node
        self.source = source
        self.found: list[Diagnostic] = []

    def report(self, code: str, message: str, place: Location, hint: str | None = None) -> None:
        self.found.append(Diagnostic(code, message, place, hint, self.source.line_of(place)))

    def tableau(self) -> Tableau | None:
        lists = {key: self.node.get(key) for key in _LISTS}
        matrix, adapt = self.node.get("matrix"), self.node.get("adapt")
        flag = adapt.value if isinstance(adapt, Scalar) else False
        written = [matrix, lists["weights"], *(node for node in lists.values() if node is not None)]
        lists_only = all(isinstance(node, Sequence) and node.items for node in written)
        if not lists_only or not isinstance(flag, bool):
            return None
        assert isinstance(matrix, Sequence)
        if not all(isinstance(row, Sequence) for row in matrix.items):
            return None
        rows = [self.numbers(row) for row in matrix.items]
        read = {key: self.numbers(node) for key, node in lists.items() if node is not None}
        if self.found or None in rows or None in read.values():
            return None
        places = {key: node.location for key, (_, node) in self.node.by_key.items()}
        square = self.square(matrix, [row for row in rows if row is not None], read)
        if square is None:
            return None
        result = Tableau(
            square,
            tuple(read["weights"] or ()),
            None if "embedded" not in read else tuple(read["embedded"] or ()),
            flag,
            tuple(row.location for row in matrix.items),
            places,
        )
        self.check_sums(result, read.get("nodes"))
        self.check_use(result)
        self.check_order(result)
        return None if self.found else result

    def numbers(self, node: Node) -> list[Fraction] | None:
        """The numbers of a list; None if one isn't of the right kind."""
        assert isinstance(node, Sequence)
        found = [self.number(item) for item in node.items]
        return None if None in found else [number for number in found if number is not None]

    def number(self, node: Node) -> Fraction | None:
        if not isinstance(node, Scalar) or (not isinstance(node.value, str) and whole_number(node) is None):
            return None
        written = node.text.text.strip()
        hint = "write it as a quotient of whole numbers, such as 1/3 or -71/57600"
        if re.match(RATIONAL_PATTERN, written) is None:
            self.report("SG030", f"'{shorten(written)}' is no exact rational number", node.location, hint)
            return None
        if len(written) > 40:
            self.report(
                "SG030", f"'{shorten(written)}' is beyond 2**53 above or below the line", node.location
            )
            return None
        above, _, below = written.partition("/")
        if below and int(below) == 0:
            self.report("SG030", f"'{shorten(written)}' divides by zero", node.location, hint)
            return None
        number = Fraction(int(above), int(below or "1"))
        if max(abs(number.numerator), number.denominator) > MAX_WHOLE:
            message = f"'{shorten(written)}' is beyond 2**53 above or below the line"
            self.report(
                "SG030", message, node.location, "as float64 it wouldn't be exact before it is divided"
            )
            return None
        return number

    def square(
        self, matrix: Sequence, rows: Items[Items[Fraction]], read: dict[str, list[Fraction] | None]
    ) -> tuple[tuple[Fraction, ...], ...] | None:
        """The matrix with all its zeros, if there is one stage in all parts."""
        stages = len(read["weights"] or ())
        key = self.node.key("matrix")
        assert key is not None
        if len(rows) != stages:
            message = f"the matrix has {_count(len(rows), 'row')}, but there {_are(stages, 'weight')}"
            self.report("SG031", message, key.location, "it has a row for each stage; the first is []")
        for part in ("nodes", "embedded"):
            numbers = read.get(part)
            if numbers is not None and len(numbers) != stages:
                head = self.node.key(part)
                assert head is not None
                message = f"'{part}' has {_count(len(numbers), 'number')}, but there {_are(stages, 'weight')}"
                self.report("SG031", message, head.location, "both have one for each stage")
        for i, (row, node) in enumerate(zip(rows, matrix.items, strict=True)):
            assert isinstance(node, Sequence)
            late = next((j for j, a in enumerate(row) if j >= i and a != 0), None)
            if late is not None:
                message = f"stage {i + 1} would need the slope of stage {late + 1}, which comes after it"
                if late == i:
                    message = f"stage {i + 1} would need its own slope"
                hint = "in an explicit method a row has numbers for the stages before it only"
                self.report("SG031", message, node.items[late].location, hint)
            elif len(row) < i or len(row) > max(stages, i):
                message = f"row {i + 1} of the matrix has {_count(len(row), 'number')}"
                self.report("SG031", message, node.location, f"it has one for each stage before it: {i}")
        if self.found:
            return None
        return tuple(tuple(row[:i]) + (Fraction(),) * (stages - i) for i, row in enumerate(rows))

    def check_sums(self, tableau: Tableau, nodes: Items[Fraction] | None) -> None:
        """Weights sum to 1, and the rows of the matrix to the nodes."""
        for part, weights in (("weights", tableau.weights), ("embedded", tableau.embedded)):
            if weights is not None and sum(weights) != 1:
                what = "the weights" if part == "weights" else "the embedded weights"
                self.report("SG032", f"{what} sum to {sum(weights)}, not to 1", tableau.places[part])
        written = self.node.get("nodes")
        for i, node in enumerate(nodes or ()):
            total = sum(tableau.matrix[i])
            if node != total:
                assert isinstance(written, Sequence)
                message = f"row {i + 1} of the matrix sums to {total}, but its node is {node}"
                self.report("SG032", message, written.items[i].location)

    def check_use(self, tableau: Tableau) -> None:
        """Every slope is used, the embedded weights are others, and a step that adapts has an estimate."""
        ends = [tableau.weights, *([tableau.embedded] if tableau.embedded is not None else [])]
        for j, place in enumerate(tableau.rows):
            if not any(row[j] for row in (*tableau.matrix, *ends)):
                self.report(
                    "SG031", f"the slope of stage {j + 1} is never used", place, "leave the stage out"
                )
        if tableau.embedded == tableau.weights:
            message = "the embedded weights are the method's own, so they estimate nothing"
            self.report("SG031", message, tableau.places["embedded"])
        if tableau.adapt and tableau.embedded is None:
            message = "there is no error estimate that the step could adapt to"
            self.report("SG031", message, tableau.places["adapt"], "add 'embedded', or leave 'adapt' out")

    def check_order(self, tableau: Tableau) -> None:
        """The order that the spec claims, if it does."""
        claimed = self.node.get("order")
        order = whole_number(claimed)
        if claimed is not None and order not in (None, tableau.order) and not self.found:
            message = f"the method has order {tableau.order}, not {order}"
            self.report("SG032", message, claimed.location)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number or 'no'} {noun}s"


def _are(number: int, noun: str) -> str:
    return f"{'is' if number == 1 else 'are'} {_count(number, noun)}"
