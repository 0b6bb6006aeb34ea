"""Whose a shared blob is, where a file doesn't say: Caffe's HDF5 has it in its owner's layer alone, and
binaryproto once for each of its users."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from solvergen.errors import SolverFileError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.naming import quoted
from solvergen.solver.files.data import LayerData, ModelData

Place = tuple[str, int]
"""A layer, and the number of one of its blobs."""


def place_of(text: str) -> Place | None:
    """``layer/0``; layers may have slashes in their names. None: that isn't it."""
    layer, _, index = text.rpartition("/")
    return (layer, int(index)) if layer and index.isascii() and index.isdigit() and len(index) < 6 else None


def pairs_of(texts: Iterable[str]) -> dict[Place, Place]:
    """``decode/0=encode/0``: the one is the other. Raises SolverFileError."""
    found = {}
    for text in texts:
        mine, _, theirs = text.partition("=")
        user, owner = place_of(mine.strip()), place_of(theirs.strip())
        if user is None or owner is None:
            raise SolverFileError(f"{text!r}: written LAYER/NUMBER=LAYER/NUMBER, as in decode/0=encode/0")
        found[user] = owner
    return found


def resolved(model: ModelData, owners: Mapping[Place, Place]) -> ModelData:
    """The model with each of these blobs being its owner's. Raises SolverFileError where there is none."""
    layers = {layer.name: layer for layer in model.layers}
    wanted: dict[str, dict[int, HostArray]] = {}
    for (layer, index), (owner, place) in owners.items():
        if layer not in layers:
            raise SolverFileError(f"no layer {quoted(layer)} to share a blob of {quoted(owner)}")
        blobs = layers[owner].blobs if owner in layers else ()
        array = blobs[place] if place < len(blobs) else None
        if array is None:
            raise SolverFileError(
                f"blob {index} of layer {quoted(layer)} is said to be blob {place} of {quoted(owner)}, and "
                "there is none"
            )
        wanted.setdefault(layer, {})[index] = array
    return dataclasses.replace(
        model, layers=tuple(_filled(layer, wanted.get(layer.name, {})) for layer in model.layers)
    )


def _filled(layer: LayerData, arrays: Mapping[int, HostArray]) -> LayerData:
    if not arrays:
        return layer
    blobs = list(layer.blobs)
    for index, array in sorted(arrays.items()):
        if index < len(blobs):
            own = blobs[index]
            if own is not None and not _same(own, array):
                raise SolverFileError(
                    f"blob {index} of layer {quoted(layer.name)} is its own: it has other numbers"
                )
            blobs[index] = array
        elif index == len(blobs):
            blobs.append(array)
        else:
            raise SolverFileError(
                f"blob {index} of layer {quoted(layer.name)}, and nothing says whose {len(blobs)} is"
            )
    return dataclasses.replace(layer, blobs=tuple(blobs))


def _same(a: HostArray, b: HostArray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
