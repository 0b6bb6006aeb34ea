"""solvergen's own files: safetensors with a document that says what they hold, all of it under checksums.

The container is the one of ``solvergen.runtime.snapshots``: one entry of metadata, the document with its
SHA-256, and exactly the arrays that the document names, each with its own. ``docs/solver.md`` says more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

from solvergen.errors import SolverFileError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.dtypes import STORAGE_TYPES
from solvergen.runtime.naming import listed, quoted
from solvergen.runtime.snapshots import safetensors_format, strict_json
from solvergen.runtime.snapshots.arrays import MAX_RANK, ArraySpec, bytes_of, checksum
from solvergen.runtime.snapshots.container import Container
from solvergen.runtime.snapshots.fields import LARGEST_WHOLE_NUMBER
from solvergen.solver.files import extra, plain
from solvergen.solver.files.data import LayerData, ModelData, SolverStateData

FORMAT = 2
"""Version of the document. Raised by any change that a reader must know of; files are written in the oldest
that can say what they hold. 2 knows the names of a model's parameters."""

Kind = Literal["model", "state"]
T = TypeVar("T")

_CONTAINER = 1
_DICT: type[dict[str, Any]] = dict
_LIST: type[list[Any]] = list
_MARK = "solver_format"
_MODEL = {_MARK, "kind", "solvergen", "name", "layers", "arrays"}
_STATE = {
    _MARK,
    "kind",
    "solvergen",
    "iter",
    "learned_net",
    "current_step",
    "history",
    "model",
    "extra",
    "arrays",
}


def write_model(path: str, model: ModelData) -> str:
    """Fill the new, empty file at ``path``; the SHA-256 of its document, which says what is in it to the bit.

    Raises:
        SolverFileError: something that the format can't hold, or no package safetensors.
        OSError: as the system says.
    """
    arrays = _Arrays()

    def keys(layer: int, what: str, blobs: tuple[HostArray | None, ...]) -> list[str | None]:
        return [None if b is None else arrays.key(f"{what}/{layer}/{i}", b) for i, b in enumerate(blobs)]

    with_names = any(layer.names is not None for layer in model.layers)
    layers = [
        {
            "name": layer.name,
            "type": layer.type,
            "blobs": keys(index, "data", layer.blobs),
            "diffs": None if layer.diffs is None else keys(index, "diff", layer.diffs),
            **({"names": None if layer.names is None else list(layer.names)} if with_names else {}),
        }
        for index, layer in enumerate(model.layers)
    ]
    version = 2 if with_names else 1
    return _write(path, "model", {"name": model.name, "layers": layers}, arrays, version)


def write_state(path: str, state: SolverStateData) -> None:
    """Fill the new, empty file at ``path``. Raises as ``write_model``."""
    arrays = _Arrays()
    content = {
        "iter": _count(state.iter, "iter"),
        "learned_net": state.learned_net,
        "current_step": _count(state.current_step, "current_step"),
        "history": [arrays.key(f"history/{i}", array) for i, array in enumerate(state.history)],
        "model": state.model_digest,
        "extra": plain.encode(dict(state.extra)),
    }
    _write(path, "state", content, arrays, 1)


def kind_of(path: str) -> Kind | None:
    """Which of the two a file is; None for another snapshot of solvergen's. Raises ``SnapshotError``."""
    with _opened(path) as (_, container):
        document = strict_json.parse(container.document)
    kind = document.get("kind") if isinstance(document, dict) and _MARK in document else None
    return kind if kind in ("model", "state") else None


def read_model(path: str) -> ModelData:
    """The model in a file, verified. Raises ``SnapshotError`` and ``OSError``."""
    return read_model_and_digest(path)[0]


def read_model_and_digest(path: str) -> tuple[ModelData, str]:
    """The model in a file, and the SHA-256 of its document. Raises as ``read_model``."""
    with _opened(path) as (size, container):
        document = _document(container, "model", _MODEL)
        loaded = _load(container, document["arrays"], size)
        digest = hashlib.sha256(container.document).hexdigest()
    layers = tuple(_layer(value, loaded) for value in _typed(document["layers"], _LIST, "layers"))
    loaded.check_all_used()
    return ModelData(_typed(document["name"], str, "name"), layers), digest


def read_state(path: str) -> SolverStateData:
    """The state in a file, verified. Raises as ``read_model``."""
    with _opened(path) as (size, container):
        document = _document(container, "state", _STATE)
        loaded = _load(container, document["arrays"], size)
    history = tuple(loaded.get(key) for key in _typed(document["history"], _LIST, "history"))
    loaded.check_all_used()
    learned_net, digest = document["learned_net"], document["model"]
    beside = plain.decode(_typed(document["extra"], _DICT, "extra"))
    extra.check(_typed(beside, _DICT, "extra"))
    return SolverStateData(
        iter=_count(document["iter"], "iter"),
        learned_net=None if learned_net is None else _typed(learned_net, str, "learned_net"),
        history=history,
        current_step=_count(document["current_step"], "current_step"),
        extra=beside,
        model_digest=None if digest is None else _typed(digest, str, "model"),
    )


@contextmanager
def _opened(path: str) -> Iterator[tuple[int, Container]]:
    """A file's size and its container."""
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        with safetensors_format.opened(path, file, size) as container:
            yield size, container


class _Arrays:
    """Arrays to write by key; the same array is written once."""

    def __init__(self) -> None:
        self.pieces: list[tuple[ArraySpec, HostArray]] = []
        self._known: dict[tuple[int, tuple[int, ...], str], str] = {}

    def key(self, key: str, array: HostArray) -> str:
        """The key under which ``array`` is written: ``key``, or the one that it has already."""
        dtype = array.dtype.name
        if dtype not in STORAGE_TYPES:
            raise SolverFileError(f"{key} has dtype {dtype}; a snapshot holds {', '.join(STORAGE_TYPES)}")
        place = (array.__array_interface__["data"][0], array.strides, f"{dtype}{array.shape}")
        if array.size and place in self._known:
            return self._known[place]
        self._known[place] = key
        self.pieces.append((ArraySpec(key, dtype, array.shape), array))
        return key


def _write(path: str, kind: Kind, content: Mapping[str, Any], arrays: _Arrays, version: int) -> str:
    from solvergen import __version__

    pieces = sorted(arrays.pieces, key=lambda p: (-STORAGE_TYPES[p[0].dtype].itemsize, p[0].key))
    described = {
        spec.key: {"dtype": spec.dtype, "shape": list(spec.shape), "sha256": checksum(spec, bytes_of(array))}
        for spec, array in pieces
    }
    document = {_MARK: version, "kind": kind, "solvergen": __version__, **content, "arrays": described}
    text = strict_json.dump(document).encode("ascii")
    safetensors_format.write(path, pieces, text, _CONTAINER)
    return hashlib.sha256(text).hexdigest()


def _document(container: Container, wanted: Kind, keys: set[str]) -> dict[str, Any]:
    """The document, if it is what is wanted."""
    try:
        document = strict_json.parse(container.document)
    except ValueError as error:
        raise SolverFileError(f"the document is not what solvergen writes: {error}") from error
    if not isinstance(document, dict) or _MARK not in document:
        raise SolverFileError(
            "an optimizer's snapshot (of Optimizer.save), not the Solver's: load it with Optimizer.load, or "
            "let `solvergen snapshot convert` make a solver's state of it"
        )
    version = document[_MARK]
    if type(version) is not int or version < 1:
        raise SolverFileError("the document is damaged")
    if version > FORMAT:
        raise SolverFileError(
            f"written in format {version} by a newer solvergen; this one reads up to {FORMAT}: upgrade"
        )
    kind = document.get("kind")
    if kind != wanted:
        if kind == "model":
            raise SolverFileError(
                "a model (weights alone), not a solver's state: give it as weights, or give the "
                ".state.safetensors that was written with it"
            )
        if kind == "state":
            raise SolverFileError("a solver's state, not a model: give it as the snapshot to resume from")
        raise SolverFileError(f"a file of the kind {quoted(kind)}, not a {wanted}")
    if document.keys() != keys:
        raise SolverFileError(f"the document has {listed(sorted(document))}: damaged")
    return document


class _Loaded:
    """The arrays of a file, by key; which of them its document has named."""

    def __init__(self, arrays: Mapping[str, HostArray]) -> None:
        self._arrays = arrays
        self._used: set[str] = set()

    def get(self, key: object) -> HostArray:
        """The array of a key, the same one each time."""
        if not isinstance(key, str) or key not in self._arrays:
            raise SolverFileError(f"the document names an array {quoted(key)} that it doesn't list: damaged")
        self._used.add(key)
        return self._arrays[key]

    def check_all_used(self) -> None:
        """Raise if there are arrays that belong nowhere."""
        if unused := self._arrays.keys() - self._used:
            raise SolverFileError(f"arrays that belong nowhere: {listed(sorted(unused))}")


def _load(container: Container, described: object, size: int) -> _Loaded:
    specs: dict[str, ArraySpec] = {}
    sums: dict[str, str] = {}
    for key, entry in _typed(described, _DICT, "arrays").items():
        fields = _typed(entry, _DICT, f"arrays {quoted(key)}")
        dtype, shape = fields.get("dtype"), fields.get("shape")
        if (
            fields.keys() != {"dtype", "shape", "sha256"}
            or dtype not in STORAGE_TYPES
            or not isinstance(shape, list)
            or len(shape) > MAX_RANK
            or not all(type(axis) is int and axis >= 0 for axis in shape)
        ):
            raise SolverFileError(f"the array {quoted(key)} is described in a way that can't be: damaged")
        specs[key] = ArraySpec(key, dtype, tuple(shape))
        sums[key] = str(fields["sha256"])
    if sum(spec.nbytes for spec in specs.values()) > size:
        raise SolverFileError("cut short or damaged: it declares more data than it is long")
    container.check(specs)
    arrays = {}
    for key, spec in specs.items():
        array = container.read(spec)
        if checksum(spec, bytes_of(array)) != sums[key]:
            raise SolverFileError(f"the data of {quoted(key)} does not match its checksum: damaged")
        arrays[key] = array
    return _Loaded(arrays)


def _layer(value: object, loaded: _Loaded) -> LayerData:
    entry = _typed(value, _DICT, "layers")
    if entry.keys() - {"names"} != {"name", "type", "blobs", "diffs"}:
        raise SolverFileError(f"a layer has {listed(sorted(entry))}: damaged")
    diffs, names = entry["diffs"], entry.get("names")
    blobs = _typed(entry["blobs"], _LIST, "blobs")
    if names is not None and len(_typed(names, _LIST, "names")) != len(blobs):
        raise SolverFileError("a layer has another number of names than of blobs: damaged")
    return LayerData(
        name=_typed(entry["name"], str, "name"),
        type=_typed(entry["type"], str, "type"),
        blobs=tuple(None if k is None else loaded.get(k) for k in blobs),
        diffs=None if diffs is None else tuple(map(loaded.get, _typed(diffs, _LIST, "diffs"))),
        names=None if names is None else tuple(_typed(name, str, "names") for name in names),
    )


def _typed(value: object, kind: type[T], what: str) -> T:
    if not isinstance(value, kind):
        raise SolverFileError(f"{what} is {quoted(value)}: damaged")
    return value


def _count(value: object, what: str) -> int:
    if type(value) is not int or not 0 <= value <= LARGEST_WHOLE_NUMBER:
        raise SolverFileError(f"{what} is {quoted(value)}: damaged")
    return value
