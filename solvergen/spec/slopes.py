"""The update that a tableau stands for: slopes between evaluations of the gradient, and their sums."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from solvergen.spec.made import scalar_at, with_declared, with_update
from solvergen.spec.tableau import Tableau

if TYPE_CHECKING:
    from solvergen.errors import Location
    from solvergen.spec.tree import Mapping, Scalar

LENGTH = {"lr": {"default": "0.1", "min": "0", "doc": "length of a step along the gradient flow"}}
CONTROL = {
    "tolerance": {"default": "0.001", "above": "0", "doc": "largest error estimate of a step that is taken"},
    "safety": {
        "default": "0.9",
        "above": "0",
        "max": "1",
        "doc": "share taken of the length that the estimate allows",
    },
    "shrink": {
        "default": "0.2",
        "above": "0",
        "below": "1",
        "doc": "least factor by which the length changes",
    },
    "grow": {"default": "5", "min": "1", "doc": "largest factor by which the length changes"},
}
ERROR = {
    "error": {
        "init": "0",
        "shape": "shared",
        "output": "true",
        "doc": "error estimate of the last step, its norm over all tensors",
    }
}
SCALE = {"scale": {"init": "1", "shape": "shared", "doc": "what lr is multiplied by for the next step"}}


def with_slopes(tree: Mapping, key: Scalar, tableau: Tableau) -> Mapping:
    """``tree`` with the update of ``tableau``, which stands at ``key``, and what it needs declared."""
    source = key.text.source
    statements = [scalar_at(text, place, source) for text, place in equations(tableau)]
    tree = with_update(tree, key, statements)
    tree = with_declared(tree, "hyperparameters", key, {**LENGTH, **(CONTROL if tableau.adapt else {})})
    state = ERROR if tableau.embedded is not None else {}
    return with_declared(tree, "state", key, {**state, **(SCALE if tableau.adapt else {})})


def equations(tableau: Tableau) -> list[tuple[str, Location]]:
    """Each statement, and the place of the row or list that it follows from."""
    rows, places = tableau.rows, tableau.places
    slopes = [f"k{i}" for i in range(1, len(rows) + 1)]
    length, adapting = "lr", []
    if tableau.adapt:
        length, adapting = "h", [("h = lr*scale", places["adapt"])]
    found = [("before = param", rows[0]), *adapting, ("k1 = grad", rows[0])]
    for row, place, slope in zip(tableau.matrix[1:], rows[1:], slopes[1:], strict=True):
        found += [
            (f"param = {_moved(length, row, slopes)}", place),
            ("gradient", place),
            (f"{slope} = grad", place),
        ]
    moved, place = _moved(length, tableau.weights, slopes), places["weights"]
    if tableau.embedded is not None:
        sign, change = _change(length, tableau.estimate, slopes)
        found.append((f"error = norm2({sign}{change}, all)", places["embedded"]))
    if tableau.adapt:
        control = places["adapt"]
        factor = f"safety*(tolerance/error)**(1/{tableau.order_of_estimate + 1})"
        found += [
            (f"factor = where(error == error, clip({factor}, shrink, grow), shrink)", control),
            ("scale = scale*where(error == 0, grow, factor)", control),
            (f"param = where(error <= tolerance, {moved}, before)", place),
        ]
    else:
        found.append((f"param = {moved}", place))
    return found


def _moved(length: str, coefficients: Sequence[Fraction], slopes: Sequence[str]) -> str:
    """The parameter moved from where it was along a sum of slopes."""
    if not any(coefficients):
        return "before"
    sign, change = _change(length, coefficients, slopes)
    return f"before {'+' if sign else '-'} {change}"


def _change(length: str, coefficients: Sequence[Fraction], slopes: Sequence[str]) -> tuple[str, str]:
    """A sum of slopes times the length of the step, and the sign that is taken out of it.

    A coefficient that all slopes have is multiplied with the length, as one scalar.
    """
    terms = [(c, slope) for c, slope in zip(coefficients, slopes, strict=True) if c]
    if len({c for c, _ in terms}) == 1:
        common = terms[0][0]
        names = " + ".join(slope for _, slope in terms)
        names = names if len(terms) == 1 else f"({names})"
        factor = "" if abs(common) == 1 else f"{_number(abs(common))}*"
        return ("-" if common < 0 else ""), f"{length}*{factor}{names}"
    text = ""
    for c, slope in terms:
        sign = ("-" if not text else " - ") if c < 0 else ("" if not text else " + ")
        text += sign + ("" if abs(c) == 1 else f"{_number(abs(c))}*") + slope
    return "", f"{length}*({text})"


def _number(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"({value.numerator}/{value.denominator})"
