"""What a tableau becomes: its equations, the order that is found, and what is said of mistakes."""

from __future__ import annotations

from fractions import Fraction

import pytest

from solvergen.emit.equations import equation_lines
from solvergen.spec.orders import order_of, trees
from solvergen.spec.reader import examine
from tests.unit.spec.support import read

HEAD = "name: rule\nsummary: A rule for a test.\n"


def spec(tmp_path, tableau, more=""):
    return read(tmp_path, f"{HEAD}{more}tableau:\n" + "".join(f"  {line}\n" for line in tableau))


HEUN = ("matrix: [[], [1]]", "weights: [1/2, 1/2]")
EMBEDDED = (*HEUN, "embedded: [1, 0]")


def test_heun_is_what_one_writes(tmp_path):
    assert equation_lines(spec(tmp_path, HEUN)) == [
        "before = param",
        "k1 = grad",
        "param = before - lr*k1",
        "gradient",
        "k2 = grad",
        "param = before - lr*(1/2)*(k1 + k2)",
    ]


def test_one_stage_is_gradient_descent(tmp_path):
    lines = equation_lines(spec(tmp_path, ["matrix: [[]]", "weights: [1]"]))
    assert lines == ["before = param", "k1 = grad", "param = before - lr*k1"]


def test_coefficients_signs_and_zeros(tmp_path):
    tableau = ["matrix: [[], [-1/3], [2, -1], [0, 0, 0]]", "weights: [-1/8, 1/8, 2/4, 1/2]"]
    moved = [line for line in equation_lines(spec(tmp_path, tableau)) if line.startswith("param")]
    assert moved == [
        "param = before + lr*(1/3)*k1",
        "param = before - lr*(2*k1 - k2)",
        "param = before",
        "param = before - lr*(-(1/8)*k1 + (1/8)*k2 + (1/2)*k3 + (1/2)*k4)",
    ]


def test_an_estimate_is_shared_state_for_the_caller(tmp_path):
    rule = spec(tmp_path, EMBEDDED)
    assert equation_lines(rule)[-2:] == [
        "error = norm2(lr*(-(1/2)*k1 + (1/2)*k2), all)",
        "param = before - lr*(1/2)*(k1 + k2)",
    ]
    assert [(s.name, s.shape, s.output) for s in rule.state] == [("error", "shared", True)]
    assert [h.name for h in rule.hyperparameters] == ["lr"]


def test_a_step_that_adapts(tmp_path):
    rule = spec(tmp_path, (*EMBEDDED, "adapt: true"))
    assert equation_lines(rule) == [
        "before = param",
        "h = lr*scale",
        "k1 = grad",
        "param = before - h*k1",
        "gradient",
        "k2 = grad",
        "error = norm2(h*(-(1/2)*k1 + (1/2)*k2), all)",
        "factor = where(error == error, clip(safety*(tolerance/error)**(1/2), shrink, grow), shrink)",
        "scale = scale*where(error == 0, grow, factor)",
        "param = where(error <= tolerance, before - h*(1/2)*(k1 + k2), before)",
    ]
    assert [h.name for h in rule.hyperparameters] == ["lr", "tolerance", "safety", "shrink", "grow"]
    assert [(s.name, s.init) for s in rule.state] == [("error", 0.0), ("scale", 1.0)]


def test_what_is_declared_stays_as_it_is_declared(tmp_path):
    more = "hyperparameters:\n  tolerance: {default: 1e-5, above: 0, max: 1}\n"
    rule = spec(tmp_path, (*EMBEDDED, "adapt: true"), more)
    assert [h.name for h in rule.hyperparameters] == ["tolerance", "lr", "safety", "shrink", "grow"]
    assert (rule.hyperparameters[0].default, rule.hyperparameters[0].max) == (1e-5, 1.0)


def test_a_section_without_entries_is_none(tmp_path):
    assert [h.name for h in spec(tmp_path, HEUN, "hyperparameters:\n").hyperparameters] == ["lr"]


def test_equations_stand_at_their_rows(tmp_path):
    rule = spec(tmp_path, HEUN)
    lines = [(s.equation.location.line, s.equation.location.column) for s in rule.update]
    assert lines == [(4, 12), (4, 12), (4, 16), (4, 16), (4, 16), (5, 12)]


def test_the_digest_is_that_of_the_equations(tmp_path):
    by_tableau = spec(tmp_path, HEUN)
    update = "".join(f"  - {line}\n" for line in equation_lines(by_tableau))
    by_hand = read(tmp_path, f"{HEAD}hyperparameters:\n  lr: {{default: 0.1, min: 0}}\nupdate:\n{update}")
    assert by_hand.digest == by_tableau.digest
    again = spec(tmp_path, ["nodes: [0, 1]", "matrix: [[0], [2/2, 0]]", "weights: [2/4, +1/2]", "order: 2"])
    assert again.digest == by_tableau.digest


def test_numbers_of_rooted_trees():
    """https://oeis.org/A000081"""
    assert [len(trees(n)) for n in range(1, 10)] == [1, 1, 2, 4, 9, 20, 48, 115, 286]
    assert all(len(set(trees(n))) == len(trees(n)) for n in range(1, 9))


def rationals(*numbers):
    return tuple(Fraction(number) for number in numbers)


def padded(*rows):
    return tuple((*rationals(*row), *[Fraction()] * (len(rows) - len(row))) for row in rows)


KUTTA = padded((), ("1/2",), (0, "1/2"), (0, 0, 1))
BUTCHER = padded(
    (),
    ("1/3",),
    (0, "2/3"),
    ("1/12", "1/3", "-1/12"),
    ("25/48", "-55/24", "35/48", "15/8"),
    ("3/20", "-11/24", "-1/8", "1/2", "1/10"),
    ("-261/260", "33/13", "43/156", "-118/39", "32/195", "80/39"),
)
"""Order 6 in seven stages: Butcher, On Runge-Kutta processes of high order, 1964."""


@pytest.mark.parametrize(
    ("order", "matrix", "weights"),
    [
        (1, padded(()), ("1",)),
        (1, padded((), ("1/3",)), ("1/2", "1/2")),
        (2, padded((), ("1/2",)), ("0", "1")),
        (2, padded((), ("1/2",), (0, "1/2"), (0, 0, 1)), ("0", "1/2", "1/2", "0")),
        (3, padded((), ("1/2",), (-1, 2)), ("1/6", "2/3", "1/6")),
        (4, KUTTA, ("1/6", "1/3", "1/3", "1/6")),
        (6, BUTCHER, ("13/200", 0, "11/40", "11/40", "4/25", "4/25", "13/200")),
        (0, padded(()), ("1/2",)),
    ],
)
def test_the_order_of_methods_from_books(order, matrix, weights):
    assert order_of(matrix, rationals(*weights)) == order


@pytest.mark.parametrize(
    ("tableau", "message"),
    [
        (
            ["matrix: [[]]", "weights: [1.5]"],
            "tableau.weights[1] must be a whole number or a quotient of two",
        ),
        (["matrix: [[]]", "weights: [x]"], "'x' is no exact rational number"),
        (["matrix: [[]]", "weights: [1/9007199254740993]"], "is beyond 2**53 above or below the line"),
        (["matrix: [[]]", f"weights: [{'9' * 50}/7]"], "is beyond 2**53 above or below the line"),
        (["matrix: [[], []]", "weights: [1/2, 1/2]"], "row 2 of the matrix has no numbers"),
        (["matrix: [[], [1, 0, 0]]", "weights: [1/2, 1/2]"], "row 2 of the matrix has 3 numbers"),
        (["matrix: [[]]", "weights: [1]", "nodes: [0, 1]"], "'nodes' has 2 numbers, but there is 1 weight"),
        (["matrix: [[], [1]]", "weights: [1]"], "the matrix has 2 rows, but there is 1 weight"),
        (["matrix: [[0, 2], [1]]", "weights: [1, 0]"], "stage 1 would need the slope of stage 2"),
        (["matrix: [[], [1]]", "weights: [1/2, 1/2]", "nodes: [0, 2]"], "sums to 1, but its node is 2"),
        (["matrix: [[]]", "weights: [1]", "order: 4"], "the method has order 1, not 4"),
        (["matrix: [[]]"], "tableau has no 'weights'"),
        (["matrix: [1]", "weights: [1]"], "tableau.matrix[1] must be a list"),
        (["matrix: []", "weights: [1]"], "tableau.matrix has nothing in it"),
    ],
)
def test_what_is_said_of_mistakes(tmp_path, tableau, message):
    path = tmp_path / "rule.yaml"
    path.write_text(f"{HEAD}tableau:\n" + "".join(f"  {line}\n" for line in tableau), encoding="utf-8")
    found, diagnostics = examine(path)
    assert found is None
    assert len(diagnostics) == 1
    assert message in diagnostics[0].message
