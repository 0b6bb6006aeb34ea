"""States of lines: how they begin, what users see, and how they are taken out and put back."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest

from solvergen.errors import ArrayError, CompilerBug, SnapshotError, SnapshotMismatch
from solvergen.runtime import lines, snapshots
from solvergen.runtime.definition import Hyperparameter, Option, Pass, State
from solvergen.runtime.lines import LineTables, shape_of_kind
from solvergen.runtime.reference_math import mean, sqrt
from tests.support.bits import assert_same_bits
from tests.support.handwritten.staged import Handwritten, defined
from tests.support.reductions import reduction

F = np.dtype(np.float32)
WAYS = ["state_dict", ".h5", ".safetensors"]
SHAPES = {"w": (3, 4), "tensor": (2, 3, 5), "bias": (6,), "scale": (), "empty": (0, 3), "hollow": (3, 0)}


def _update(param, grad, above, m, across, lr, beta, t, kept, real, rounded, ndim):
    square = grad * grad
    above = beta * above + (1 - beta) * mean(square, "rows")
    if kept:
        across = beta * across + (1 - beta) * mean(square, "columns")
        m = real(beta) * m + grad
    whole = mean(above, "matrices", "rows")
    scaled = grad / real(sqrt(above / (whole + 1.0) + ndim))
    return rounded(param - real(lr) * scaled), above, m, across


class Factored(Handwritten):
    """Two states of lines around one of elements; an option without which only one is left."""

    definition = defined(
        "factored",
        "Factored",
        hyperparameters=(
            Hyperparameter("lr", default=0.1, min=0.0),
            Hyperparameter("beta", default=0.5, min=0.0, below=1.0),
        ),
        options=(Option("kept", default=True),),
        state=(State("above", "rows"), State("m"), State("across", "columns")),
        table=("lr",),
        update=_update,
        scalars=lambda *, lr, beta, kept, t: ((lr,), (beta,), {}),
        active_state=lambda *, kept: ("above", "m", "across") if kept else ("above",),
        initial_state=lambda *, lr, beta, kept: {"above": 0.25, "m": 0.0, "across": lr},
        wide=("beta",),
        passes=(Pass(walk="tiles", row_kinds=("mean",), column_kinds=("mean",)), Pass(row_first=1)),
        view="matrices",
        line_stages=((1, "rows"), (1, "columns")),
        active_stages=lambda *, kept: (1,),
        active_passes=lambda *, kept: (0, 1),
    )


def params(rng):
    made = {name: np.array(rng.standard_normal(shape), F) for name, shape in SHAPES.items()}
    return {**made, "half": rng.standard_normal((2, 2)).astype(ml_dtypes.bfloat16)}


def gradients(rng, of):
    return {name: np.array(rng.standard_normal(p.shape)).astype(p.dtype) for name, p in of.items()}


def states(opt):
    return {
        (state, name): np.array(value) for state, view in opt.state.items() for name, value in view.items()
    }


def assert_equal(a, b):
    assert a.keys() == b.keys()
    for key, value in a.items():
        assert_same_bits(value, b[key])


def move(opt, other, way, tmp_path):
    if way == "state_dict":
        for name, p in other.params.items():
            p[...] = opt.params[name]
        other.load_state_dict(opt.state_dict())
    else:
        opt.save(tmp_path / f"s{way}")
        other.load(tmp_path / f"s{way}")


def test_how_they_begin_and_what_shape_they_have(rng):
    opt = Factored(params(rng), lr=0.75)
    rows = {name: value.shape for name, value in opt.state["above"].items()}
    columns = {name: value.shape for name, value in opt.state["across"].items()}
    assert rows == {
        "w": (3,), "tensor": (2, 3), "bias": (6,), "scale": (), "empty": (0,), "hollow": (3,), "half": (2,)
    }  # fmt: skip
    assert columns == {
        "w": (4,), "tensor": (2, 5), "bias": (1,), "scale": (), "empty": (3,), "hollow": (0,), "half": (2,)
    }  # fmt: skip
    for name in SHAPES:
        assert_same_bits(opt.state["above"][name], np.full(rows[name], 0.25))
        assert_same_bits(opt.state["across"][name], np.full(columns[name], 0.75))
    opt.state["above"]["w"][...] = 9.0  # a copy
    assert opt.state["above"]["w"][0] == 0.25


def test_a_step_against_loops(rng):
    p, g = (np.array(rng.standard_normal((3, 4)), F) for _ in range(2))
    opt = Factored({"w": p.copy(), "other": np.ones((2, 2), F)})
    opt.step({"w": g, "other": None})
    square = (g * g).astype(np.float64)
    above = [0.5 * 0.25 + 0.5 * reduction("mean", row.tolist()) for row in square]
    across = [0.5 * 0.1 + 0.5 * reduction("mean", row.tolist()) for row in square.T]
    assert_same_bits(opt.state["above"]["w"], np.array(above))
    assert_same_bits(opt.state["across"]["w"], np.array(across))
    assert_same_bits(opt.state["above"]["other"], np.full(2, 0.25))
    whole = sum(above) / 3 + 1.0
    expected = p - F.type(0.1) * (g / np.array([[np.sqrt(a / whole + 2.0)] for a in above]).astype(F))
    assert_same_bits(opt.params["w"], expected)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kept", [True, False])
def test_resuming_is_never_having_stopped(rng, tmp_path, way, kept):
    first = params(rng)
    opt = Factored(first, kept=kept)
    history = [gradients(rng, first) for _ in range(4)]
    history[1]["w"] = None
    for grads in history[:2]:
        opt.step(grads)
    second = {name: np.zeros_like(p) for name, p in first.items()}
    resumed = Factored(second, kept=kept, lr=0.5)
    resumed.step(gradients(rng, second))
    move(opt, resumed, way, tmp_path)
    assert_equal(states(resumed), states(opt))
    for grads in history[2:]:
        opt.step(grads)
        resumed.step(grads)
    assert_equal(states(resumed), states(opt))
    for name in first:
        assert_same_bits(second[name], first[name])


def test_a_state_that_does_not_exist(rng):
    opt = Factored(params(rng), kept=False)
    assert list(opt.state) == ["above"]
    assert list(opt.state_dict()["tensors"]["w"]["arrays"]) == ["above"]


def test_what_is_in_a_snapshot(rng, tmp_path):
    path = tmp_path / "s.safetensors"
    Factored(params(rng)).save(path)
    found = snapshots.describe(path)
    assert found["format_version"] == 2
    assert found["state"] == {"above": "rows", "m": "param", "across": "columns"}
    assert {t["name"]: t["arrays"] for t in found["tensors"]}["half"] == {
        "above": "float64", "m": "float32", "across": "float64"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.update(above=np.zeros(4)), "'above' of tensor 'w' has the shape (4,) in it"),
        (lambda t: t.update(above=np.zeros((3, 1))), "has the shape (3, 1)"),
        (lambda t: t.update(above=np.zeros(3, F)), "'above' of tensor 'w' is float32 in it, float64 here"),
        (lambda t: t.pop("across"), "state 'across' exists here, not in it"),
        (lambda t: t.update(m=np.zeros((3, 4))), "'m' of tensor 'w' is float64 in it, float32 here"),
    ],
)
def test_state_dicts_that_do_not_fit(rng, change, message):
    opt = Factored(params(rng))
    state = opt.state_dict()
    before = states(opt)
    change(state["tensors"]["w"]["arrays"])
    with pytest.raises(SnapshotMismatch) as caught:
        opt.load_state_dict(state)
    assert message in "\n".join(caught.value.differences)
    assert_equal(states(opt), before)


def test_states_of_another_kind(rng):
    opt = Factored(params(rng))
    state = opt.state_dict()
    state["schema"]["above"] = "leading"
    state["tensors"]["tensor"]["arrays"]["above"] = np.zeros(2)
    with pytest.raises(SnapshotMismatch) as caught:
        opt.load_state_dict(state)
    assert (
        "state 'above' is one number for each of its rows (leading) in it, one number for each of its rows "
        "(rows) here" in caught.value.differences
    )
    state["schema"]["above"] = "lines"
    with pytest.raises(SnapshotError, match="of the kind 'lines'"):
        opt.load_state_dict(state)


def test_arrays_of_a_wrong_shape_are_not_written(rng, tmp_path):
    data = Factored({"w": np.ones((3, 4), F)})._snapshot(params=False)
    data.tensors[0].arrays["above"] = np.zeros((3, 4))
    with pytest.raises(SnapshotError, match=r"state 'above' of tensor 'w' has shape \(3, 4\), not \(3,\)"):
        snapshots.save(tmp_path / "s.h5", data)


def test_shapes_of_kinds():
    assert shape_of_kind("param", (2, 3)) == (2, 3)
    assert shape_of_kind("scalar", (2, 3)) is None
    assert shape_of_kind("rows", (2, 3, 4)) == (2, 3)
    assert shape_of_kind("matrices", (2, 3, 4)) == (2,)
    assert shape_of_kind("leading", (2, 3, 4)) == (2,)
    assert shape_of_kind("trailing", (2, 3, 4)) == (4,)
    assert shape_of_kind("trailing", (3,)) == (3,)


def test_tables_of_another_optimizer_are_refused():
    tables = LineTables(Factored.definition, [(3, 4), (5,)])
    states = tables.read()
    assert {rank: table.shape for rank, table in states.items()} == {
        "rows": (8, 1), "columns": (5, 1), "matrices": (2, 0)
    }  # fmt: skip
    states["rows"][...] = 2.0
    tables.write(states)
    assert (tables.state("rows", 1, 0) == 2.0).all()
    with pytest.raises(CompilerBug):
        tables.write({**states, "columns": np.zeros((4, 1))})


def test_too_many_lines_are_refused(monkeypatch):
    monkeypatch.setattr(lines, "MOST_LINES", 6)
    Factored(np.ones((6, 2), F))
    with pytest.raises(ArrayError, match="the parameters have 7 rows, but Factored keeps track of 6 at most"):
        Factored(np.ones((7, 2), F))


def test_the_configuration_is_as_of_any_rule(rng):
    opt = Factored(params(rng), lr=0.5)
    config = json.loads(json.dumps(opt.get_config()))
    assert Factored.from_config(params(rng), config).lr == 0.5
