"""Whether a snapshot fits an optimizer, and what is said where it doesn't."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from solvergen.errors import SnapshotError, SnapshotMismatch
from solvergen.runtime import snapshots
from solvergen.runtime.definition import Definition, Hyperparameter, Option, State
from solvergen.runtime.snapshots import Restoration, TensorLayout
from solvergen.runtime.state import GroupData, SnapshotData
from tests.unit.snapshots.support import group, snapshot, tensor

OLD = "00" * 32  # the digest of another version of the spec
SAME = "a1" * 32


def definition(**changes: Any) -> Definition:
    """Adam as far as ``match`` looks at it."""

    def active_state(**options: bool) -> tuple[str, ...]:
        return ("m", "v", "v_max", "mu") if options.get("amsgrad") else ("m", "v", "mu")

    def constraints(**values: Any) -> str | None:
        return "beta1 needs a larger lr" if values["beta1"] > 100 * values["lr"] else None

    def unused(*_: Any, **__: Any) -> Any:
        raise AssertionError

    values: dict[str, Any] = {
        "name": "adam",
        "class_name": "Adam",
        "spec": "specs/adam.yaml",
        "digest": SAME,
        "folder": ".",
        "hyperparameters": (
            Hyperparameter("lr", 1e-3, min=0.0),
            Hyperparameter("beta1", 0.9, min=0.0, below=1.0),
        ),
        "options": (Option("amsgrad", False),),
        "state": (State("m"), State("v"), State("v_max"), State("mu", "scalar")),
        "table": (),
        "update": unused,
        "scalars": unused,
        "options_of": unused,
        "constraints": constraints,
        "active_state": active_state,
        "buffers_read": unused,
        "buffers_written": unused,
        "initial_state": unused,
    }
    return Definition(**{**values, **changes})


def layout(name: str, shape: tuple[int, ...] = (3,), dtype: str = "float32") -> TensorLayout:
    return TensorLayout(name, shape, dtype)


def match(
    data: SnapshotData,
    *tensors: TensorLayout,
    groups: tuple[GroupData, ...] | None = None,
    spec: Definition | None = None,
    **keywords: Any,
) -> Restoration:
    ours = groups if groups is not None else (group(*(t.name for t in tensors)),)
    return snapshots.match(data, spec or definition(), ours, tensors, **keywords)


def differences(*args: Any, **keywords: Any) -> tuple[str, ...]:
    with pytest.raises(SnapshotMismatch) as caught:
        match(*args, **keywords)
    assert "nothing was changed" in str(caught.value)
    for text in caught.value.differences:
        assert text in str(caught.value)
    return caught.value.differences


def test_what_fits_is_restored_in_the_optimizers_order() -> None:
    data = snapshot(
        tensor("a", (1,), t=5),
        tensor("b", (2,), t=6),
        tensor("c", (3,), t=7),
        groups=(
            group(
                "a",
                hyperparameters={"lr": 0.5, "beta1": 0.1},
                multipliers={"lr_mult": 3.0, "decay_mult": 0.0},
            ),
            group("c", "b", hyperparameters={"lr": 0.25, "beta1": 0.2}),
        ),
    )
    found = match(
        data,
        layout("c", (3,)),
        layout("b", (2,)),
        layout("a", (1,)),
        groups=(group("b", "c"), group("a")),
    )
    assert found.warnings == ()
    assert [(t.name, t.t) for t in found.tensors] == [("c", 7), ("b", 6), ("a", 5)]
    assert [g.members for g in found.groups] == [("b", "c"), ("a",)]
    assert [g.hyperparameters for g in found.groups] == [
        {"lr": 0.25, "beta1": 0.2},
        {"lr": 0.5, "beta1": 0.1},
    ]
    assert found.groups[1].multipliers == {"lr_mult": 3.0, "decay_mult": 0.0}


def test_hyperparameters_may_be_left_alone() -> None:
    data = snapshot(tensor("w"), groups=(group("w", hyperparameters={"lr": -1.0, "beta1": 5.0}),))
    assert match(data, layout("w"), hyperparameters=False).groups == (group("w"),)
    assert len(differences(data, layout("w"))) == 2


def test_another_optimizer() -> None:
    data = snapshot(tensor("w"), spec="sgd", class_name="SGD", digest=OLD)
    expected = "it is of the optimizer 'sgd' (class 'SGD'), this one is 'adam' (class Adam)"
    assert differences(data, layout("w")) == (expected,)
    other = definition(state=(State("buf"),), active_state=lambda **_: ("buf",))
    assert differences(data, layout("w"), spec=other) == (expected,)
    assert differences(data, layout("v"), spec=other)[1:] == (
        "1 tensor of this optimizer not in it: 'v'",
        "1 tensor in it that this optimizer does not have: 'w'",
    )


def test_the_source_is_named() -> None:
    with pytest.raises(
        SnapshotMismatch, match=r"^run/s\.h5 does not fit this optimizer; nothing was changed:"
    ):
        match(snapshot(tensor("w"), spec="sgd"), layout("w"), source="run/s.h5")


def test_names() -> None:
    data = snapshot(tensor("a"), tensor("b"), tensor("x"))
    assert differences(data, layout("a"), layout("c"), layout("d")) == (
        "2 tensors of this optimizer not in it: 'c' and 'd'",
        "2 tensors in it that this optimizer does not have: 'b' and 'x'",
    )


def test_long_lists_are_sorted_and_cut() -> None:
    ours = [layout(f"layer{i:02}") for i in reversed(range(30))]
    (text, _) = differences(snapshot(tensor("w")), *ours)
    assert text.startswith("30 tensors of this optimizer not in it: 'layer00', 'layer01', 'layer02'")
    assert text.endswith("'layer09' and 20 more")
    data = snapshot(*(tensor(f"layer{i:02}", (2,)) for i in range(30)))
    found = differences(data, *ours)
    assert len(found) == 11
    assert found[0] == "tensor 'layer00' has the shape (2,) in it, (3,) here"
    assert found[-1] == "and 20 more of this kind"


def test_shapes_and_dtypes_all_at_once() -> None:
    data = snapshot(
        tensor("a", (2, 3)), tensor("b", (), "bfloat16"), tensor("c", (1,), "float64"), tensor("d")
    )
    assert differences(
        data, layout("a", (3, 2)), layout("b", (1,), "float16"), layout("c", (1,)), layout("d")
    ) == (
        "tensor 'a' has the shape (2, 3) in it, (3, 2) here",
        "tensor 'b' has the shape () in it, (1,) here",
        "tensor 'b' is bfloat16 in it, float16 here",
        "tensor 'c' is float64 in it, float32 here",
    )


def test_a_state_of_another_dtype_or_shape() -> None:
    """B25: moments that were stored narrower are not widened in silence."""
    item = dataclasses.replace(
        tensor("w"), arrays={"m": np.zeros(3, np.float16), "v": np.zeros((3, 1), np.float32)}
    )
    assert differences(snapshot(item), layout("w")) == (
        "state 'm' of tensor 'w' is float16 in it, float32 here",
        "state 'v' of tensor 'w' has the shape (3, 1) in it",
    )


def test_options() -> None:
    with_it = snapshot(
        tensor("w", states=("m", "v", "v_max")), groups=(group("w", options={"amsgrad": True}),)
    )
    assert differences(with_it, layout("w")) == (
        "state 'v_max' exists in it, not here: other options ('amsgrad', below)",
        "option 'amsgrad' is True in it, False here: construct it with amsgrad=True",
    )
    assert differences(
        snapshot(tensor("w")), layout("w"), groups=(group("w", options={"amsgrad": True}),)
    ) == (
        "state 'v_max' exists here, not in it: other options ('amsgrad', below)",
        "option 'amsgrad' is False in it, True here: construct it with amsgrad=False",
    )


def test_groups_are_named_where_there_are_several() -> None:
    data = snapshot(
        tensor("a"),
        tensor("b", states=("m", "v", "v_max")),
        groups=(
            group("a"),
            group("b", options={"amsgrad": True}, hyperparameters={"lr": -1.0, "beta1": 0.0}),
        ),
    )
    found = differences(data, layout("a"), layout("b"), groups=(group("a"), group("b")))
    assert found[1] == "group 1: option 'amsgrad' is True in it, False here: construct it with amsgrad=True"
    assert found[2] == "group 1: hyperparameter in it: lr must be at least 0, not -1.0"


def test_other_partition() -> None:
    data = snapshot(tensor("a"), tensor("b"), tensor("c"), groups=(group("a"), group("b", "c")))
    assert differences(data, layout("a"), layout("b"), layout("c"), groups=(group("a", "b"), group("c"))) == (
        "group 0 here has 'a' and 'b'; in it they are in group 0 with 'a', group 1 with 'b' and 'c'",
        "group 1 here has 'c'; in it they are in group 1 with 'b' and 'c'",
    )
    assert differences(data, layout("a"), layout("b"), layout("c"))[0] == (
        "group 0 here has 'a', 'b' and 'c'; in it they are in group 0 with 'a', group 1 with 'b' and 'c'"
    )


def test_another_version_with_the_same_state() -> None:
    found = match(snapshot(tensor("w"), digest=OLD), layout("w"))
    (warning,) = found.warnings
    assert warning == (
        "the snapshot was loaded although it was written under another version of the spec 'adam' "
        "(digest 000000000000, here a1a1a1a1a1a1): the state is the same"
    )


def test_another_version_with_other_hyperparameters_and_options() -> None:
    theirs = group(
        "w",
        hyperparameters={"lr": 0.2, "beta1": 0.5, "decay": 0.1},
        options={"amsgrad": False, "maximize": True},
        multipliers={"lr_mult": 2.0},
    )
    ours = group("w", hyperparameters={"lr": 0.1, "beta1": 0.9}, options={"amsgrad": False, "nesterov": True})
    found = match(snapshot(tensor("w"), groups=(theirs,), digest=OLD), layout("w"), groups=(ours,))
    for text in (
        "hyperparameter 'decay' (0.1 in it) no longer exists",
        "option 'maximize' (True in it) no longer exists",
        "option 'nesterov' is not in it and keeps True",
        "multiplier 'decay_mult' is not in it and keeps 1.0",
    ):
        assert text in found.warnings[0]
    assert found.groups[0].hyperparameters == {"lr": 0.2, "beta1": 0.5}
    assert found.groups[0].multipliers == {"lr_mult": 2.0, "decay_mult": 1.0}
    assert found.groups[0].options == ours.options


def test_the_same_version_can_not_have_other_hyperparameters() -> None:
    theirs = group("w", hyperparameters={"lr": 0.2})
    assert differences(snapshot(tensor("w"), groups=(theirs,)), layout("w")) == (
        "hyperparameter 'beta1' is not in it and keeps 0.9",
    )


def test_states_of_another_version() -> None:
    spec = definition(
        digest=OLD,
        state=(State("exp_avg"), State("v"), State("mu", "scalar"), State("row")),
        active_state=lambda **_: ("exp_avg", "v", "mu", "row"),
    )
    with pytest.raises(SnapshotMismatch) as caught:
        match(snapshot(tensor("w")), layout("w"), spec=spec)
    assert caught.value.differences == (
        "state 'm' (param) is no longer in the spec",
        "state 'exp_avg' (param) was added to the spec (renamed? the other version has 'm')",
        "state 'row' (param) was added to the spec (renamed? the other version has 'm')",
    )
    assert "(it was written under another version of the spec 'adam'" in str(caught.value)


def test_a_renamed_state_is_guessed() -> None:
    spec = definition(
        digest=OLD,
        state=(State("m"), State("v2"), State("mu", "scalar")),
        active_state=lambda **_: ("m", "v2", "mu"),
    )
    assert differences(snapshot(tensor("w")), layout("w"), spec=spec) == (
        "state 'v' (param) is no longer in the spec (renamed? the other version has 'v2')",
        "state 'v2' (param) was added to the spec (renamed? the other version has 'v')",
    )


def test_a_state_of_another_kind() -> None:
    spec = definition(
        digest=OLD,
        state=(State("m"), State("v", "scalar"), State("mu", "scalar")),
        active_state=lambda **_: ("m", "v", "mu"),
    )
    assert differences(snapshot(tensor("w")), layout("w"), spec=spec) == (
        "state 'v' is shaped as its parameter in it, a scalar here",
    )


def test_states_that_do_not_exist_under_the_options_do_not_matter() -> None:
    """A newer spec has one more optional state, an older had one more: nothing of it is in the file."""
    schema = (("m", "param"), ("v", "param"), ("mu", "scalar"), ("trace", "param"))
    found = match(snapshot(tensor("w"), schema=schema, digest=OLD), layout("w"))
    assert len(found.warnings) == 1


def test_a_state_missing_under_the_same_options() -> None:
    spec = definition(digest=OLD, active_state=lambda **_: ("m", "v", "v_max", "mu"))
    assert differences(snapshot(tensor("w")), layout("w"), spec=spec) == (
        "state 'v_max' exists here, not in it: under the same options",
    )


@pytest.mark.parametrize(
    ("hyperparameters", "message"),
    [
        ({"lr": -1.0, "beta1": 0.5}, "hyperparameter in it: lr must be at least 0, not -1.0"),
        ({"lr": 0.1, "beta1": 1.0}, "hyperparameter in it: beta1 must be at least 0 and below 1, not 1.0"),
        ({"lr": math.nan, "beta1": 0.5}, "hyperparameter in it: lr is NaN"),
        ({"lr": math.inf, "beta1": 0.5}, "hyperparameter in it: lr must be a finite number, not inf"),
        ({"lr": 0.001, "beta1": 0.9}, "its hyperparameters are not allowed here: beta1 needs a larger lr"),
    ],
)
def test_restored_hyperparameters_must_be_allowed(hyperparameters: dict[str, float], message: str) -> None:
    data = snapshot(tensor("w"), groups=(group("w", hyperparameters=hyperparameters),))
    assert differences(data, layout("w")) == (message,)


@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan])
def test_restored_multipliers_must_be_allowed(value: float) -> None:
    multipliers = {"lr_mult": value, "decay_mult": 1.0}
    (text,) = differences(snapshot(tensor("w"), groups=(group("w", multipliers=multipliers),)), layout("w"))
    assert text.startswith(
        "multiplier in it: lr_mult " + ("is NaN" if value != value else "must be a finite number")
    )


def test_restored_products_must_be_finite() -> None:
    groups = (
        group(
            "w",
            hyperparameters={"lr": 1e200, "beta1": 0.5},
            multipliers={"lr_mult": 1e200, "decay_mult": 1.0},
        ),
    )
    assert differences(snapshot(tensor("w"), groups=groups), layout("w")) == (
        "its hyperparameters are not allowed here: lr times lr_mult is too large for a float",
    )


def test_everything_at_once() -> None:
    data = snapshot(
        tensor("a", (2,), states=("m", "v", "v_max")),
        tensor("x"),
        groups=(group("a", "x", options={"amsgrad": True}, hyperparameters={"lr": -1.0, "beta1": 0.1}),),
        digest=OLD,
    )
    found = "\n".join(differences(data, layout("a", (3,), "float64"), layout("b")))
    for text in (
        "not in it: 'b'",
        "not have: 'x'",
        "(2,) in it",
        "float32 in it",
        "v_max",
        "amsgrad",
        "lr must",
    ):
        assert text in found


def test_data_that_contradicts_itself() -> None:
    with pytest.raises(SnapshotError, match="groups' members"):
        match(snapshot(tensor("w"), groups=()), layout("w"))
