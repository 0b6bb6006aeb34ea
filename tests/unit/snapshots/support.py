"""Snapshot data for tests, and comparing it to the bit."""

from __future__ import annotations

import hashlib
import math
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from solvergen.runtime.state import GroupData, SnapshotData, TensorData

SUFFIXES = (".h5", ".safetensors")

DTYPES: dict[str, Any] = {
    "float32": np.float32,
    "float64": np.float64,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
}

SCHEMA = (("m", "param"), ("v", "param"), ("v_max", "param"), ("mu", "scalar"))


def array(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray[Any, Any]:
    """Random bits, so that subnormals, infinities and NaNs occur."""
    size = math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize
    return np.frombuffer(np.random.default_rng(seed).bytes(size), DTYPES[dtype]).reshape(shape).copy()


def tensor(
    name: str,
    shape: tuple[int, ...] = (3,),
    dtype: str = "float32",
    *,
    t: int = 1,
    param: bool = False,
    states: tuple[str, ...] = ("m", "v"),
    scalars: dict[str, float] | None = None,
    seed: int = 0,
) -> TensorData:
    compute = "float64" if dtype == "float64" else "float32"
    return TensorData(
        name=name,
        shape=shape,
        dtype=dtype,
        t=t,
        scalars={"mu": 0.1} if scalars is None else scalars,
        arrays={state: array(compute, shape, seed + i) for i, state in enumerate(states)},
        param=array(dtype, shape, seed + 99) if param else None,
    )


def group(*members: str, **changes: Any) -> GroupData:
    values: dict[str, Any] = {
        "hyperparameters": {"lr": 0.1, "beta1": 0.9},
        "options": {"amsgrad": False},
        "multipliers": {"lr_mult": 1.0, "decay_mult": 1.0},
    }
    return GroupData(members=members, **{**values, **changes})


def snapshot(
    *tensors: TensorData, groups: tuple[GroupData, ...] | None = None, **changes: Any
) -> SnapshotData:
    values: dict[str, Any] = {
        "spec": "adam",
        "class_name": "Adam",
        "digest": "a1" * 32,
        "version": "0.1.0",
        "schema": SCHEMA,
        "groups": groups if groups is not None else (group(*(t.name for t in tensors)),),
        "tensors": tensors,
    }
    return SnapshotData(**{**values, **changes})


def small() -> SnapshotData:
    """One of everything, in as few bytes as that takes: its files are damaged bit by bit."""
    return snapshot(
        tensor("w", (2,), "bfloat16", t=2**53 + 1, param=True, scalars={"mu": 1.5}),
        tensor("b", (), "float64", t=3, scalars={"mu": math.inf}),
        groups=(group("w"), group("b", options={"amsgrad": False}, hyperparameters={"lr": 1e-300})),
    )


def with_shared() -> SnapshotData:
    """One of everything that only format 2 has."""
    return snapshot(
        tensor("w", (2,), "float16", t=2, scalars={"mu": -0.0}),
        schema=(*SCHEMA, ("d", "shared"), ("limit", "shared"), ("absent", "shared")),
        shared={"d": 1e-6, "limit": math.inf},
    )


def bits(data: SnapshotData) -> tuple[Any, ...]:
    """All of ``data`` as values that compare equal only if every bit does (any NaN scalar is one NaN)."""
    return (
        (data.spec, data.class_name, data.digest, data.version, data.schema, _floats(data.shared)),
        tuple(
            (g.members, _floats(g.hyperparameters), dict(g.options), _floats(g.multipliers))
            for g in data.groups
        ),
        tuple(
            (t.name, t.shape, t.dtype, t.t, type(t.t), _floats(t.scalars), _arrays(t)) for t in data.tensors
        ),
    )


def _floats(values: Any) -> dict[str, bytes | str]:
    return {k: "nan" if math.isnan(v) else struct.pack("<d", v) for k, v in values.items()}


def _arrays(t: TensorData) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    every = {**t.arrays, **({} if t.param is None else {"<param>": t.param})}
    return {name: (a.dtype.name, a.shape, a.tobytes()) for name, a in every.items()}


def reseal(path: Path) -> None:
    """Give an HDF5 snapshot that was tampered with a seal that holds (as docs/snapshots.md describes it)."""
    content = path.read_bytes()
    body = content[512:]
    text = f"solvergen snapshot\nformat 1\nbytes {len(content)}\nsha256 {hashlib.sha256(body).hexdigest()}\n"
    path.write_bytes(text.encode().ljust(512, b"\0") + body)
