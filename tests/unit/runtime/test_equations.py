"""A buffer's value, and a line of a kernel, are traced to the equation of the spec that they come from."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from solvergen.runtime.equations import equation_above, equation_of, program_order
from solvergen.verify import built_from, shipped

ROOT = Path(__file__).parents[3]

SPEC = """\
name: branches
summary: The same buffer assigned in several places.
hyperparameters:
  lr: {default: 0.1, min: 0}
options:
  first: {default: false}
  second: {default: true}
state:
  m: {init: 0}
  s: {init: 0, shape: scalar, when: not first}
update:
  - m = m + grad
  - when: first and not second
    do: m = m*2
  - when: first or second
    do:
      - m = m - 1
      - m = m*(1 +
          lr)
  - {when: not first, do: "s = s + 1"}
  - param = param - lr*m
"""


@pytest.mark.parametrize(
    ("buffer", "first", "second", "line", "text"),
    [
        ("m", False, False, 12, "m = m + grad"),
        ("m", False, True, 18, "m = m*(1 + lr)"),
        ("m", True, False, 18, "m = m*(1 + lr)"),
        ("s", False, True, 20, "s = s + 1"),
        ("param", True, True, 21, "param = param - lr*m"),
    ],
)
def test_the_last_assignment_under_the_options(
    tmp_path: Path, buffer: str, first: bool, second: bool, line: int, text: str
) -> None:
    (tmp_path / "rules").mkdir()
    spec = tmp_path / "rules" / "branches.yaml"
    spec.write_text(SPEC)
    with built_from([spec]) as optimizers:
        definition = optimizers["branches"].definition
        found = equation_of(definition, buffer, {"first": first, "second": second})
    assert found is not None
    assert (found.text, found.place) == (text, f"rules/branches.yaml:{line}")
    assert str(found) == f"{text}  (rules/branches.yaml:{line})"


def test_what_no_equation_assigns() -> None:
    definition = shipped()["adam"].definition
    options = {"amsgrad": False, "maximize": False}
    assert equation_of(definition, "max_exp_avg_sq", options) is None
    assert equation_of(definition, "max_exp_avg_sq", {**options, "amsgrad": True}) is not None
    assert equation_of(definition, "grad", options) is None


def test_every_buffer_of_every_shipped_optimizer_has_one() -> None:
    for cls in shipped().values():
        definition = cls.definition
        options = {option.name: bool(option.default) for option in definition.options}
        assigned = program_order(definition)
        # Some only keep what they begin with, as the starting point.
        kept = [state.name for state in definition.state if state.name not in assigned]
        assert set(kept) <= {"p0", "x0"}
        for buffer in ("param", *definition.active_state(**options)):
            found = equation_of(definition, buffer, options)
            if buffer in kept:
                assert found is None
                continue
            assert found is not None
            assert found.text.startswith(f"{buffer} = ")
            path, _, line = found.place.rpartition(":")
            there = (ROOT / path).read_text().splitlines()[int(line) - 1].strip()
            # What follows from a tableau stands where its weights, its second ones and its tolerance do.
            assert found.text.split()[-1] in there or there.startswith(("weights: ", "embedded: ", "adapt: "))


@pytest.mark.parametrize("text", [None, "def update(:", "x = 1\n", "\0"])
def test_a_reference_that_cannot_be_read(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "reference.py").write_text(text)
    definition = dataclasses.replace(shipped()["lion"].definition, folder=str(tmp_path))
    assert equation_of(definition, "param", {}) is None


def test_a_reference_of_another_hand(tmp_path: Path) -> None:
    """Without the equations in its docstring, its own code is shown."""
    (tmp_path / "reference.py").write_text(
        "def update(param):\n    param = param - 1  # a.yaml:3\n    return param\n"
    )
    definition = dataclasses.replace(shipped()["lion"].definition, folder=str(tmp_path))
    found = equation_of(definition, "param", {})
    assert found is not None
    assert (found.text, found.place) == ("param = param - 1", "a.yaml:3")


@pytest.mark.parametrize("file", ["kernel.cu", "kernel.c"])
@pytest.mark.parametrize(
    ("code", "target"),
    [
        ("const sg_real g = -grad;", "g"),
        ("const sg_real g = grad;", "g"),  # after an #else
        ("const sg_real exp_avg_new = ", "exp_avg"),
        ("const sg_real denom = ", "denom"),  # after another statement of its own
        ("// denom = ", "denom"),
        ("_round_param(param - ", "param"),
        ("#define SG_SCALARS", None),
        ("exp_avg_new);", None),  # stored behind the last equation
        ("exp_avg_new;", None),
    ],
)
def test_the_equation_that_a_line_is_part_of(file: str, code: str, target: str | None) -> None:
    definition = shipped()["adam"].definition
    lines = Path(definition.folder, file).read_text().splitlines()
    for number in [number for number, line in enumerate(lines, start=1) if code in line]:
        found = equation_above(lines, number)
        assert (found and found.text.split(" = ")[0]) == target
        if found is not None:
            path, _, line = found.place.rpartition(":")
            assert found.text in (ROOT / path).read_text().splitlines()[int(line) - 1]


def test_lines_that_there_are_not() -> None:
    lines = ["// x = y  a.yaml:1", "x = y;"]
    assert str(equation_above(lines, 2)) == "x = y  (a.yaml:1)"
    assert [equation_above(lines, number) for number in (-1, 0, 3)] == [None] * 3
