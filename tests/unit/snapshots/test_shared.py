"""Shared states in snapshots: one number for a whole optimizer."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from solvergen.errors import SnapshotError, SnapshotMismatch
from solvergen.runtime import snapshots
from solvergen.runtime.definition import State
from solvergen.runtime.snapshots import document
from solvergen.runtime.state import GroupData
from tests.support.handwritten.staged import DistanceSGD
from tests.unit.snapshots.support import SUFFIXES, bits, small, snapshot, tensor, with_shared

DEFINITION = DistanceSGD.definition
SHARED: Any = {"d": 0.5, "steps": 3.0}


def group(*members: str, adapt: bool = True) -> GroupData:
    return GroupData(members, {"lr": 1.0, "d0": 0.01, "growth": 2.0}, {"adapt": adapt}, {"lr_mult": 1.0})


def saved(**changes: Any) -> Any:
    values: dict[str, Any] = {
        "spec": DEFINITION.name,
        "class_name": DEFINITION.class_name,
        "digest": DEFINITION.digest,
        "schema": (("start", "param"), ("d", "shared"), ("steps", "shared")),
        "groups": (group("w"),),
        "shared": SHARED,
    }
    return snapshot(tensor("w", states=("start",), scalars={}), **{**values, **changes})


def match(data: Any, definition: Any = DEFINITION, groups: Any = None) -> Any:
    layouts = [snapshots.TensorLayout(t.name, t.shape, t.dtype) for t in data.tensors]
    return snapshots.match(data, definition, groups or data.groups, layouts)


def differences(*arguments: Any) -> tuple[str, ...]:
    with pytest.raises(SnapshotMismatch) as caught:
        match(*arguments)
    return caught.value.differences


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_they_come_back_to_the_bit(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"s{suffix}"
    for shared in (with_shared().shared, {"d": math.nan, "limit": -0.0}, {"limit": 5e-324}, {}):
        data = replace(with_shared(), shared=shared)
        snapshots.save(path, data)
        assert bits(snapshots.load(path)) == bits(data)
    described = snapshots.describe(path)
    assert described["shared"] == {}
    assert described["state"]["d"] == "shared"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_they_are_described(tmp_path: Path, suffix: str) -> None:
    snapshots.save(tmp_path / f"s{suffix}", with_shared())
    described = snapshots.describe(tmp_path / f"s{suffix}")
    assert described["shared"] == {"d": 1e-6, "limit": "inf"}
    assert described["format_version"] == 2
    snapshots.save(tmp_path / f"t{suffix}", small())
    described = snapshots.describe(tmp_path / f"t{suffix}")
    assert described["shared"] == {}
    assert described["format_version"] == 1


def text_of(data: Any) -> dict[str, Any]:
    specs = {slot.spec.key: slot.spec for slot, _ in document.slots_of(data)}
    value: dict[str, Any] = json.loads(document.encode(data, specs, dict.fromkeys(specs, "0" * 64)))
    return value


def test_only_rules_that_have_them_need_the_newer_format() -> None:
    assert text_of(small())["format"] == 1
    assert "shared" not in text_of(small())
    assert text_of(with_shared())["format"] == 2
    assert text_of(with_shared())["shared"] == {"d": 1e-6, "limit": "inf"}


def test_documents_that_are_none() -> None:
    def refused(change: Any, message: str, data: Any = None) -> None:
        value = text_of(data or with_shared())
        change(value)
        with pytest.raises(SnapshotError, match=message):
            document.decode(json.dumps(value).encode())

    refused(lambda v: v.update(format=1), "'shared'")
    refused(lambda v: v.pop("shared"), "not what solvergen writes")
    refused(lambda v: (v.update(format=1), v.pop("shared")), "format 1 has no states of the kind 'shared'")
    refused(lambda v: v.update(format=2), "not what solvergen writes", small())
    refused(lambda v: v.update(format=3), "not what solvergen writes")
    refused(lambda v: v.update(format=3, frozen=["nobody"]), "frozen tensors are not some of the tensors")
    refused(lambda v: v.update(format=5, frozen=[]), "not what solvergen writes")
    refused(lambda v: v.update(format=5, frozen=[], constraints={"w": {}}), "constraints is no constraint")
    newest = document.FORMAT
    refused(lambda v: v.update(format=newest + 1), f"newer solvergen; this one reads formats up to {newest}")
    refused(lambda v: v.update(format=2.0), "format is")
    refused(lambda v: v.update(format=0), "not what solvergen writes")
    refused(lambda v: v["shared"].update(d="x"), "shared is 'x'")
    refused(lambda v: v["shared"].update(mu=1.0), "no shared states 'mu'")
    refused(lambda v: v["shared"].update(other=1.0), "no shared states 'other'")
    refused(lambda v: v["tensors"][0]["scalars"].update(d=1.0), "no scalar states 'd'")
    refused(lambda v: v["schema"][-1].__setitem__(1, "global"), "of the kind 'global'")


def test_what_fits() -> None:
    assert match(saved()).warnings == ()
    split = saved(groups=(group("w"), group(adapt=False)))
    assert match(split).warnings == ()


def test_states_that_exist_on_one_side() -> None:
    without = saved(groups=(group("w", adapt=False),), shared={})
    assert differences(without, DEFINITION, [group("w")]) == (
        "state 'd' exists here, not in it: other options ('adapt', below)",
        "state 'steps' exists here, not in it: other options ('adapt', below)",
        "option 'adapt' is False in it, True here: construct it with adapt=False",
    )
    assert differences(saved(), DEFINITION, [group("w", adapt=False)])[:2] == (
        "state 'd' exists in it, not here: other options ('adapt', below)",
        "state 'steps' exists in it, not here: other options ('adapt', below)",
    )
    assert differences(saved(shared={"d": 1.0})) == (
        "state 'steps' exists here, not in it: under the same options",
    )


def test_states_of_another_version() -> None:
    renamed = saved(
        schema=(("start", "param"), ("dist", "shared"), ("steps", "shared")),
        shared={"dist": 1.0, "steps": 1.0},
    )
    assert differences(renamed) == (
        "state 'dist' (shared) is no longer in the spec (renamed? the other version has 'd')",
        "state 'd' (shared) was added to the spec (renamed? the other version has 'dist')",
    )
    scalar = replace(
        DEFINITION, state=(State("start"), State("d", shape="scalar"), State("steps", shape="shared"))
    )
    assert differences(saved(), scalar) == ("state 'd' is one number for all tensors in it, a scalar here",)


def test_of_another_optimizer() -> None:
    assert differences(with_shared()) == (
        "it is of the optimizer 'adam' (class 'Adam'), this one is 'distance_sgd' (class DistanceSGD)",
    )
