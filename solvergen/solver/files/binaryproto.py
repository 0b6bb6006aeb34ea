"""Caffe's binaryproto files: ``.caffemodel`` (NetParameter) and ``.solverstate`` (SolverState).

Read are files of any age; written is today's form. There is no checksum: what parses, loads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from solvergen.errors import SolverFileError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.naming import quoted
from solvergen.solver.files import blobs, layer_types, wire
from solvergen.solver.files.data import LayerData, ModelData, SolverStateData

MOST_BYTES = 2**31 - 1
"""protobuf's limit for one message, and with it Caffe's for one file."""

Kind = Literal["model", "state"]
Pieces = list[bytes | memoryview]

_ITER, _LEARNED_NET, _HISTORY, _CURRENT_STEP = 1, 2, 3, 4
_NET_NAME, _V1_LAYERS, _LAYERS = 1, 2, 100
_MOST_ITERATIONS = 2**31 - 1


def kind_of(data: memoryview) -> Kind | None:
    """Whether these are a model or a state, by their fields: both are protobuf messages without a mark.

    Raises:
        SolverFileError: no protobuf message at all.
    """
    seen = {(number, kind) for number, kind, _, _ in wire.fields(data, "the file")}
    state = (_ITER, wire.VARINT) in seen
    model = bool(seen & {(_NET_NAME, wire.BYTES), (_LAYERS, wire.BYTES)})
    if state != model:
        return "state" if state else "model"
    if not state and seen == {(_V1_LAYERS, wire.BYTES)}:  # a net of 2014 without a name
        return "model"
    return None


def read_state(data: memoryview) -> SolverStateData:
    """The state in a file's bytes. Raises ``SolverFileError``."""
    _check(data, "state")
    iteration = current_step = 0
    learned_net: str | None = None
    history: list[HostArray] = []
    for number, kind, value, _ in wire.fields(data, "the file"):
        if isinstance(value, int):
            if number == _ITER:
                iteration = wire.int32(value)
            elif number == _CURRENT_STEP:
                current_step = wire.int32(value)
        elif kind == wire.BYTES and number == _LEARNED_NET:
            learned_net = wire.text(value)
        elif kind == wire.BYTES and number == _HISTORY:
            history.append(blobs.read(value, f"history {len(history)}").data)
    if iteration < 0 or current_step < 0:
        raise SolverFileError(f"damaged: iter is {iteration} and current_step {current_step}")
    return SolverStateData(
        iter=iteration, learned_net=learned_net, history=tuple(history), current_step=current_step
    )


def read_model(data: memoryview) -> ModelData:
    """The model in a file's bytes. Raises ``SolverFileError``."""
    _check(data, "model")
    name = ""
    layers: list[LayerData] = []
    former: list[LayerData] = []
    for number, kind, value, _ in wire.fields(data, "the file"):
        if isinstance(value, int) or kind != wire.BYTES:
            continue
        if number == _NET_NAME:
            name = wire.text(value)
        elif number == _LAYERS:
            layers.append(_layer(value, f"layer {len(layers)}"))
        elif number == _V1_LAYERS:
            former.append(_v1_layer(value, f"layer {len(former)}"))
    if layers and former:
        raise SolverFileError("it has layers of the present form and of 2014's: Caffe refuses that, too")
    return ModelData(name, tuple(layers or former))


def state_pieces(state: SolverStateData) -> Pieces:
    """A state's bytes, to be written one after the other. Raises ``SolverFileError``."""
    for what, value in (("iter", state.iter), ("current_step", state.current_step)):
        if not 0 <= value <= _MOST_ITERATIONS:
            raise SolverFileError(f"{what} is {value}; Caffe's files hold 0 to {_MOST_ITERATIONS}")
    sizes = [blobs.size_of(array, None, f"history {i}") for i, array in enumerate(state.history)]
    _check_size(sum(sizes))
    made: Pieces = [wire.varint_field(_ITER, state.iter)]
    if state.learned_net is not None:
        made.append(wire.text_field(_LEARNED_NET, state.learned_net))
    for index, (array, size) in enumerate(zip(state.history, sizes, strict=True)):
        made.append(wire.opening(_HISTORY, size))
        made.extend(blobs.pieces(array, None, f"history {index}"))
    made.append(wire.varint_field(_CURRENT_STEP, state.current_step))
    return _checked(made)


def model_pieces(model: ModelData) -> Pieces:
    """A model's bytes, to be written one after the other. Raises ``SolverFileError``."""
    _check_size(sum(size for layer in model.layers for size in _sizes(layer)))
    made: Pieces = [wire.text_field(_NET_NAME, model.name)]
    for layer in model.layers:
        content: Pieces = [wire.text_field(1, layer.name)]
        if layer.type:
            content.append(wire.text_field(2, layer.type))
        for size, (data, diff, what) in zip(_sizes(layer), _blobs(layer), strict=True):
            content.append(wire.opening(7, size))
            content.extend(blobs.pieces(data, diff, what))
        made.append(wire.opening(_LAYERS, sum(map(len, content))))
        made.extend(content)
    return _checked(made)


def _blobs(layer: LayerData) -> Iterator[tuple[HostArray, HostArray | None, str]]:
    if layer.diffs is not None and len(layer.diffs) != len(layer.blobs):
        raise SolverFileError(
            f"layer {quoted(layer.name)} has {len(layer.blobs)} blobs and {len(layer.diffs)} diffs"
        )
    for index, data in enumerate(layer.blobs):
        what = f"layer {quoted(layer.name)}, blob {index}"
        if data is None:
            raise SolverFileError(
                f"{what} is another layer's, and the file that it was read from doesn't say which one's: "
                "use HDF5 for it"
            )
        yield data, None if layer.diffs is None else layer.diffs[index], what


def _sizes(layer: LayerData) -> list[int]:
    return [blobs.size_of(data, diff, what) for data, diff, what in _blobs(layer)]


def _check(data: memoryview, wanted: Kind) -> None:
    """Refuse what is of the other kind: protobuf itself would see a message without its fields there."""
    if len(data) > MOST_BYTES:
        raise SolverFileError(
            f"{len(data)} bytes; a binaryproto file has at most {MOST_BYTES} (2 GB - 1), "
            "and Caffe reads no more"
        )
    found = kind_of(data)
    if found == wanted:
        return
    if found == "model":
        raise SolverFileError(
            "a model (weights alone), not a solver's state: give it as weights, or give the .solverstate "
            "that was written with it"
        )
    if found == "state":
        raise SolverFileError("a solver's state, not a model: give it as the snapshot to resume from")
    raise SolverFileError("neither a model nor a solver's state of Caffe's: damaged or foreign")


def _check_size(size: int) -> None:
    if size > MOST_BYTES:
        raise SolverFileError(
            f"it would take {size} bytes; a binaryproto file has at most {MOST_BYTES} (2 GB - 1): "
            "use the snapshot_format HDF5 or SAFETENSORS"
        )


def _checked(made: Pieces) -> Pieces:
    _check_size(sum(map(len, made)))
    return made


def _layer(message: memoryview, what: str) -> LayerData:
    name = type_name = ""
    found: list[blobs.Blob] = []
    for number, kind, value, _ in wire.fields(message, what):
        if isinstance(value, int) or kind != wire.BYTES:
            continue
        if number == 1:
            name = wire.text(value)
        elif number == 2:
            type_name = wire.text(value)
        elif number == 7:
            found.append(blobs.read(value, f"{what} ({quoted(name)}), blob {len(found)}"))
    return _data(name, type_name, found)


def _v1_layer(message: memoryview, what: str) -> LayerData:
    name = type_name = ""
    found: list[blobs.Blob] = []
    for number, kind, value, _ in wire.fields(message, what):
        if isinstance(value, int):
            if number == 5:
                type_name = layer_types.OF_NUMBER.get(value, "")
        elif kind != wire.BYTES:
            continue
        elif number == 1:
            return _v0_layer(value, what)
        elif number == 4:
            name = wire.text(value)
        elif number == 6:
            found.append(blobs.read(value, f"{what} ({quoted(name)}), blob {len(found)}"))
    return _data(name, type_name, found)


def _v0_layer(message: memoryview, what: str) -> LayerData:
    name = word = ""
    found: list[blobs.Blob] = []
    for number, kind, value, _ in wire.fields(message, what):
        if isinstance(value, int) or kind != wire.BYTES:
            continue
        if number == 1:
            name = wire.text(value)
        elif number == 2:
            word = wire.text(value)
        elif number == 50:
            found.append(blobs.read(value, f"{what} ({quoted(name)}), blob {len(found)}"))
    return _data(name, layer_types.OF_WORD.get(word, word), found)


def _data(name: str, type_name: str, found: list[blobs.Blob]) -> LayerData:
    diffs = [blob.diff for blob in found]
    kept = tuple(diff for diff in diffs if diff is not None)
    return LayerData(
        name=name,
        type=type_name,
        blobs=tuple(blob.data for blob in found),
        diffs=kept if found and len(kept) == len(found) else None,
    )
