"""Caffe's messages as bytes, built from the tables of their fields and nothing else.

An oracle for the reader and the writer: it shares no code with them, and no protobuf either.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from solvergen.solver.files import LayerData, ModelData, SolverStateData

Array = np.ndarray[tuple[int, ...], np.dtype[np.float32 | np.float64]]


def number(value: int) -> bytes:
    value %= 2**64
    groups = []
    while True:
        groups.append(value % 128)
        value //= 128
        if not value:
            return bytes([g + 128 for g in groups[:-1]] + groups[-1:])


def integer(field: int, value: int) -> bytes:
    return number(field * 8) + number(value)


def content(field: int, data: bytes) -> bytes:
    return number(field * 8 + 2) + number(len(data)) + data


def floats(values: Array) -> bytes:
    letter = "d" if values.dtype == np.float64 else "f"
    return b"".join(struct.pack("<" + letter, v) for v in values.reshape(-1).tolist())


def blob(values: Array, diff: Array | None = None) -> bytes:
    """As Caffe writes a BlobProto: packed, the fields in the order of their numbers."""
    double = values.dtype == np.float64
    fields = {8 if double else 5: floats(values), 7: content(1, b"".join(map(number, values.shape)))}
    if diff is not None:
        fields[9 if double else 6] = floats(diff)
    return b"".join(content(f, fields[f]) for f in sorted(fields))


def old_blob(values: Array, *, packed: bool = True) -> bytes:
    """As before 2015: num, channels, height, width; some writers didn't pack."""
    axes = (1,) * (4 - values.ndim) + values.shape
    head = b"".join(integer(i + 1, size) for i, size in enumerate(axes))
    if packed:
        return head + content(5, floats(values))
    return head + b"".join(b"\x2d" + struct.pack("<f", v) for v in values.reshape(-1).tolist())


def state(iteration: int, learned_net: str, history: Sequence[bytes], current_step: int | None = 0) -> bytes:
    made = integer(1, iteration) + content(2, learned_net.encode()) + b"".join(content(3, b) for b in history)
    return made if current_step is None else made + integer(4, current_step)


def layer(name: str, kind: str, blobs: Sequence[bytes] = ()) -> bytes:
    made = content(1, name.encode()) + content(2, kind.encode()) + b"".join(content(7, b) for b in blobs)
    return content(100, made)


def v1_layer(name: str, kind: int, blobs: Sequence[bytes] = ()) -> bytes:
    """A layer of 2014: bottoms and tops come first, the type is a number."""
    made = content(2, b"below") + content(3, b"above") + content(4, name.encode()) + integer(5, kind)
    return content(2, made + b"".join(content(6, b) for b in blobs) + b"\x3d\0\0\x80\x3f")


def v0_layer(name: str, kind: str, blobs: Sequence[bytes] = ()) -> bytes:
    """A layer of 2013, within one of 2014."""
    made = content(1, name.encode()) + content(2, kind.encode()) + b"".join(content(50, b) for b in blobs)
    return content(2, content(1, made) + content(2, b"below"))


def net(name: str, *layers: bytes) -> bytes:
    return content(1, name.encode()) + b"".join(layers)


def array(*shape: int, seed: int = 0, dtype: str = "float32") -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)  # type: ignore[no-any-return]


def small_model(seed: int = 0, *, diffs: bool = False, dtype: str = "float32") -> ModelData:
    """A net with a layer without weights and one that has the weights of another."""
    w, b, v = (
        array(3, 4, seed=seed, dtype=dtype),
        array(4, seed=seed + 1, dtype=dtype),
        array(2, seed=seed + 2, dtype=dtype),
    )
    return ModelData(
        "small",
        (
            LayerData("data", "Data"),
            LayerData("one", "InnerProduct", (w, b), (w * 2, b * 2) if diffs else None),
            LayerData("two", "InnerProduct", (w, v), (w * 3, v * 3) if diffs else None),
        ),
    )


def small_state(iteration: int = 7, seed: int = 5, dtype: str = "float32") -> SolverStateData:
    history = (
        array(3, 4, seed=seed, dtype=dtype),
        array(4, seed=seed + 1, dtype=dtype),
        array(2, seed=seed + 2, dtype=dtype),
    )
    return SolverStateData(iter=iteration, learned_net="somewhere", history=history, current_step=2)


def same_bits(a: object, b: object) -> bool:
    if a is None or b is None:
        return a is b
    assert isinstance(a, np.ndarray)
    assert isinstance(b, np.ndarray)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def same_model(a: ModelData, b: ModelData) -> bool:
    return (
        a.name == b.name
        and [(x.name, x.type, len(x.blobs), None if x.diffs is None else len(x.diffs)) for x in a.layers]
        == [(x.name, x.type, len(x.blobs), None if x.diffs is None else len(x.diffs)) for x in b.layers]
        and all(
            same_bits(p, q)
            for x, y in zip(a.layers, b.layers, strict=True)
            for p, q in zip((*x.blobs, *(x.diffs or ())), (*y.blobs, *(y.diffs or ())), strict=True)
        )
    )


def same_state(a: SolverStateData, b: SolverStateData) -> bool:
    return (a.iter, a.current_step, len(a.history)) == (b.iter, b.current_step, len(b.history)) and all(
        same_bits(p, q) for p, q in zip(a.history, b.history, strict=True)
    )
