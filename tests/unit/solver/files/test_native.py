"""The native form: everything comes back to the bit, and every changed bit is noticed."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvergen.errors import SnapshotError, SolverFileError
from solvergen.optimizers import SGD
from solvergen.solver.files import (
    LayerData,
    ModelData,
    SolverStateData,
    native,
    plain,
    read_model,
    read_pair,
    read_state,
    write_model,
    write_pair,
    write_state,
)
from tests.unit.solver.files.caffe_bytes import (
    array,
    same_bits,
    same_model,
    same_state,
    small_model,
    small_state,
)

EXTRA = {
    "solver_type": "Adam",
    "policy": {
        "name": "plateau",
        "state": {"current_step": 3, "best": math.inf, "worst": -math.inf, "none": None},
    },
    "rng": {
        "key": np.arange(624, dtype=np.uint32),
        "pcg": 2**127 + 1,
        "bytes": b"\0\xff",
        "has_gauss": False,
    },
    "losses": [0.1, math.nan, -0.0, 5e-324],
    "position": (3, (4, 5)),
    "$odd": {"$tuple": 1},
    "numbers": {"mu": np.float32(0.1), "d": np.array(1e-6)},
}


def alike(a: Any, b: Any) -> bool:
    """The same types and bits, all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(alike(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return np.float64(a).tobytes() == np.float64(b).tobytes()
    return bool(a == b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_everything_comes_back(tmp_path: Path, dtype: str) -> None:
    model, state = (
        small_model(diffs=True, dtype=dtype),
        dataclasses.replace(small_state(dtype=dtype), extra=EXTRA),
    )
    write_model(tmp_path / "m.model.safetensors", model)
    write_state(tmp_path / "s.state.safetensors", state)
    found = read_model(tmp_path / "m.model.safetensors")
    assert same_model(found, model)
    assert found.layers[2].blobs[0] is found.layers[1].blobs[0]  # shared, still
    again = read_state(tmp_path / "s.state.safetensors")
    assert same_state(again, state)
    assert alike(again.extra, EXTRA)


def test_halves_stay_halves(tmp_path: Path) -> None:
    blobs = tuple(array(5).astype(kind) for kind in (np.float16, ml_dtypes.bfloat16, np.float64))
    write_model(tmp_path / "m.safetensors", ModelData("", (LayerData("a", "", blobs),)))
    assert all(map(same_bits, read_model(tmp_path / "m.safetensors").layers[0].blobs, blobs))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.binary(max_size=20)
    | st.text(st.characters(codec="utf-8"), max_size=10)
    | st.integers(0, 2**64 - 1).map(np.uint64),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.sampled_from(["a", "$int", "$dict", "b"]), inner, max_size=2)
    ),
    max_leaves=8,
)


MASKED = np.ma.masked_array([1.0, 2.0], [False, True])


@given(VALUES)
@settings(max_examples=60, deadline=None)
def test_extra_holds_whatever_it_is_given(value: Any) -> None:
    text = json.dumps(plain.encode(value), allow_nan=False)
    assert alike(plain.decode(json.loads(text)), value)


@pytest.mark.parametrize(
    "value", [object(), {1: 2}, {"a": {3}}, np.array(["x"]), np.array([None]), 1j, MASKED]
)
def test_extra_refuses_what_it_can_not_say(value: Any) -> None:
    with pytest.raises(SolverFileError, match="extra"):
        plain.encode(value)


@pytest.mark.parametrize(
    "value",
    [
        {"$int": 3},
        {"$int": "9" * 5000},
        {"$bytes": "*"},
        {"$float": "zz"},
        {"$array": {}},
        {"$new": 1},
        {"$tuple": 3},
    ]
    + [
        {"$array": {"dtype": d, "shape": s, "data": "AAAA"}}
        for d, s in [("O", [1]), ("<u1", [-1]), ("<f4", [1])]
    ],
)
def test_extra_that_is_malformed(value: Any) -> None:
    with pytest.raises(SolverFileError, match="extra"):
        plain.decode(value)


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "s.state.safetensors"
    write_state(path, dataclasses.replace(small_state(), extra={"a": 1.5}))
    data = path.read_bytes()
    for at in range(0, len(data), 7):
        changed = bytearray(data)
        changed[at] ^= 1 << at % 8
        path.write_bytes(changed)
        with pytest.raises(SnapshotError):
            read_state(path)
    for size in range(0, len(data), 31):
        path.write_bytes(data[:size])
        with pytest.raises(SnapshotError):
            read_state(path)


def test_one_is_not_the_other(tmp_path: Path) -> None:
    write_model(tmp_path / "m.safetensors", small_model())
    write_state(tmp_path / "s.safetensors", small_state())
    SGD([array(3)], lr=0.1).save(tmp_path / "o.safetensors")
    SGD([array(3)], lr=0.1).save(tmp_path / "o.h5")
    with pytest.raises(SolverFileError, match=r"a model \(weights alone\)"):
        read_state(tmp_path / "m.safetensors")
    with pytest.raises(SolverFileError, match="a solver's state, not a model"):
        read_model(tmp_path / "s.safetensors")
    for name in ("o.safetensors", "o.h5"):
        with pytest.raises(SolverFileError, match=r"load it with Optimizer\.load"):
            read_state(tmp_path / name)


def test_a_newer_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ModelData("n", (LayerData("a", "X", (np.zeros(2),), names=("a.w",)),))
    write_model(tmp_path / "m.safetensors", model)
    assert read_model(tmp_path / "m.safetensors").layers[0].names == ("a.w",)
    monkeypatch.setattr(native, "FORMAT", 1)
    with pytest.raises(SolverFileError, match="format 2 by a newer solvergen; this one reads up to 1"):
        read_model(tmp_path / "m.safetensors")


def test_files_without_names_are_of_the_first_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_model(tmp_path / "m.safetensors", small_model())
    monkeypatch.setattr(native, "FORMAT", 1)
    assert read_model(tmp_path / "m.safetensors").layers[0].names is None


def test_a_state_knows_its_model(tmp_path: Path) -> None:
    prefix = str(tmp_path / "run")
    _, path = write_pair(prefix, 7, small_model(), small_state(), "SAFETENSORS")
    state, model = read_pair(path)
    assert same_state(state, small_state())
    assert model is not None
    assert same_model(model, small_model())
    write_model(prefix + "_iter_7.model.safetensors", small_model(seed=9))
    with pytest.raises(SolverFileError, match="not the model that was written with"):
        read_pair(path)


def test_the_same_state_gives_the_same_bytes(tmp_path: Path) -> None:
    state = SolverStateData(iter=1, history=(array(5), array(5, dtype="float64")), extra=EXTRA)
    for name in ("a.safetensors", "b.safetensors"):
        write_state(tmp_path / name, state)
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
