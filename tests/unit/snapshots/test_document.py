"""What a document is told that says what it can't: which field, and what its format lacks."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from solvergen.errors import SnapshotError
from solvergen.runtime.snapshots import document
from tests.unit.snapshots.support import snapshot, tensor


def written() -> dict[str, Any]:
    data = snapshot(tensor("w", states=("start",), scalars={}), schema=(("start", "param"),))
    specs = {slot.spec.key: slot.spec for slot, _ in document.slots_of(data)}
    value: dict[str, Any] = json.loads(document.encode(data, specs, dict.fromkeys(specs, "0" * 64)))
    return value


def said(value: dict[str, Any]) -> str:
    with pytest.raises(SnapshotError) as caught:
        document.decode(json.dumps(value).encode())
    return str(caught.value)


@pytest.mark.parametrize(
    ("version", "kind", "since"),
    [
        (1, "shared", 2),
        *((1, kind, 2) for kind in ("rows", "columns", "matrices", "leading", "trailing")),
        *((version, "blocks", 4) for version in (1, 2, 3)),
    ],
)
def test_kinds_that_the_format_does_not_have(version: int, kind: str, since: int) -> None:
    value = written()
    value["format"] = version
    value["schema"].append(["extra", kind])
    if version > 1:
        value["shared"] = {}
    if version > 2:
        value["frozen"] = []
    if kind == "blocks":
        for one in value["tensors"]:
            one["blocks"] = 1
    assert said(value) == (
        f"the document is not what solvergen writes: format {version} has no states of the kind '{kind}', as "
        f"'extra' is; format {since} has"
    )
    value["format"] = since
    value.update({"shared": {}} if since == 2 else {"shared": {}, "frozen": []})
    assert document.decode(json.dumps(value).encode()).version == since


def test_the_format_that_data_is_written_in() -> None:
    data = snapshot(tensor("w", states=("start",), scalars={}), schema=(("start", "param"),))
    assert document.version_of(data) == 1
    assert document.version_of(replace(data, schema=())) == 1
    assert document.version_of(replace(data, frozen=("w",))) == 3
    for kind, version in (("shared", 2), ("rows", 2), ("blocks", 4)):
        more = replace(data, schema=(("a", kind), ("b", "scalar")))
        assert document.version_of(more) == version
        assert document.version_of(replace(more, frozen=("w",))) == max(3, version)
        assert document.version_of(replace(more, constraints={"w": {}})) == 5


@pytest.mark.parametrize("wrong", [3, "int8"])
def test_wrong_types_and_checksums_are_named(wrong: object) -> None:
    def change(field: str, *keys: str) -> str:
        value = written()
        place = value["tensors"][0]
        for key in keys:
            place = place[key]
        place[field] = wrong
        return said(value)

    shown = f"is '{wrong}'"
    assert change("dtype").endswith(f"tensor.dtype {shown}")
    assert change("dtype", "arrays", "start").endswith(f"tensor.arrays.dtype {shown}")
    assert change("sha256", "arrays", "start").endswith(f"tensor.arrays.sha256 {shown}")
    value = written()
    value["tensors"][0]["param"] = {"dtype": value["tensors"][0]["dtype"], "sha256": wrong}
    assert said(value).endswith(f"tensor.param.sha256 {shown}")
