"""The document: everything in a snapshot but the arrays' bytes, as JSON text.

Both formats hold the same document, with its SHA-256. ``docs/snapshots.md`` describes it for other
programs. ``encode`` and ``decode`` are each other's inverse; ``decode`` trusts nothing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from solvergen.errors import OptimizerError, SnapshotError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.blocks import BLOCKS
from solvergen.runtime.constraints import as_data, from_data
from solvergen.runtime.definition import RANK_OF_SHAPE, Shape
from solvergen.runtime.dtypes import STORAGE_TYPES
from solvergen.runtime.lines import shape_of_kind
from solvergen.runtime.naming import listed, quoted
from solvergen.runtime.snapshots import strict_json
from solvergen.runtime.snapshots.arrays import (
    MAX_RANK,
    ArraySpec,
    param_key,
    state_key,
)
from solvergen.runtime.state import GroupData, SnapshotData, TensorData

FORMAT = 5
"""Newest version of the document and of how the files hold it. Raised by any change that a reader must know
of. Files are written in the oldest that can say what they hold: 2 knows shared states and states of lines,
3 frozen tensors, 4 states of blocks, 5 constraints."""

T = TypeVar("T")

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,255}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MOST_UPDATES = 2**63 - 1
_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


@dataclass(frozen=True)
class Slot:
    """Where one array belongs: a state of a tensor, or (``state`` is None) the parameter itself."""

    tensor: str
    state: str | None
    spec: ArraySpec


@dataclass(frozen=True)
class Header:
    """A decoded document: the data without its arrays, and the arrays that the file must hold.

    ``checksums`` has one for each slot's key, ``version`` is the document's format.
    """

    version: int
    data: SnapshotData
    slots: tuple[Slot, ...]
    checksums: Mapping[str, str]


def version_of(data: SnapshotData) -> int:
    """The format in which ``data`` is written."""
    if data.constraints:
        return 5
    if any(kind == BLOCKS for _, kind in data.schema):
        return 4
    if data.frozen:
        return 3
    return 2 if any(kind == "shared" or kind in RANK_OF_SHAPE for _, kind in data.schema) else 1


def slots_of(data: SnapshotData) -> Iterator[tuple[Slot, HostArray]]:
    """Every array of ``data`` with its place, tensor by tensor, each asked for once.

    Raises:
        SnapshotError: an array's shape isn't its parameter's, or its dtype can't be stored.
    """
    kinds = dict(data.schema)
    for tensor in data.tensors:
        pieces: list[tuple[str | None, HostArray]] = [*tensor.arrays.items()]
        if tensor.param is not None:
            pieces.append((None, tensor.param))
        for state, array in pieces:
            what = f"{'parameter' if state is None else f'state {state!r}'} of tensor {quoted(tensor.name)}"
            dtype = array.dtype.name
            if dtype not in STORAGE_TYPES:
                raise SnapshotError(
                    f"the {what} has dtype {dtype}; a snapshot holds {', '.join(STORAGE_TYPES)}"
                )
            shape = tensor.shape
            if state is not None:
                shape = _shape_of(state, kinds, tensor.shape, tensor.blocks)
            if array.shape != shape:
                due = f"not {shape}" if shape != tensor.shape else f"its parameter {tensor.shape}"
                raise SnapshotError(f"the {what} has shape {array.shape}, {due}")
            if state is None and dtype != tensor.dtype:
                raise SnapshotError(f"the {what} is {dtype} but declared as {tensor.dtype}")
            key = param_key(tensor.name) if state is None else state_key(state, tensor.name)
            yield Slot(tensor.name, state, ArraySpec(key, dtype, shape)), array


def _shape_of(state: str, kinds: Mapping[str, str], shape: tuple[int, ...], blocks: int) -> tuple[int, ...]:
    """The shape of a tensor's array state. Of one that isn't in the schema, which ``check`` refuses, any."""
    found = shape_of_kind(kinds.get(state, "param"), shape, blocks)
    return shape if found is None else found


def encode(data: SnapshotData, specs: Mapping[str, ArraySpec], checksums: Mapping[str, str]) -> bytes:
    """The document of ``data``. ``specs`` and ``checksums`` are by key and cover every array.

    Raises:
        SnapshotError: ``data`` contradicts itself.
    """
    check(data)
    has_blocks = any(kind == BLOCKS for _, kind in data.schema)

    def array(key: str) -> dict[str, str]:
        return {"dtype": specs[key].dtype, "sha256": checksums[key]}

    def tensor(item: TensorData) -> dict[str, object]:
        result: dict[str, object] = {
            "name": item.name,
            "shape": list(item.shape),
            "dtype": item.dtype,
            "t": int(item.t),
            "scalars": floats_out(item.scalars),
            "arrays": {state: array(state_key(state, item.name)) for state in item.arrays},
        }
        if has_blocks:
            result[BLOCKS] = item.blocks
        if param_key(item.name) in specs:
            result["param"] = array(param_key(item.name))
        return result

    value: dict[str, object] = {
        "format": version_of(data),
        "solvergen": data.version,
        "optimizer": {"spec": data.spec, "class": data.class_name, "digest": data.digest},
        "schema": [list(entry) for entry in data.schema],
        "groups": [
            {
                "members": list(group.members),
                "hyperparameters": floats_out(group.hyperparameters),
                "options": {name: bool(value) for name, value in group.options.items()},
                "multipliers": floats_out(group.multipliers),
            }
            for group in data.groups
        ],
        "tensors": [tensor(item) for item in data.tensors],
    }
    if version_of(data) > 1:
        value["shared"] = floats_out(data.shared)
    if version_of(data) > 2:
        value["frozen"] = list(data.frozen)
    if version_of(data) > 4:
        value["constraints"] = {name: dict(one) for name, one in data.constraints.items()}
    return strict_json.dump(value).encode("ascii")


def decode(text: bytes) -> Header:
    """The inverse of ``encode``.

    Raises:
        SnapshotError: written in a newer format, or not such a document.
    """
    try:
        value = strict_json.parse(text)
    except ValueError as error:
        raise SnapshotError(f"the document is not what solvergen writes: {error}") from error
    if isinstance(value, dict) and "solver_format" in value:
        raise SnapshotError(
            "a file of the Solver's, not an optimizer's snapshot: `solvergen snapshot inspect` looks into it"
        )
    version = value.get("format") if isinstance(value, dict) else None
    refuse_newer(version)
    number = version if isinstance(version, (int, float)) else 0
    since_2 = {"shared"} if number >= 2 else set()
    since_3 = {"frozen"} if number >= 3 else set()
    since_5 = {"constraints"} if number >= 5 else set()
    keys = {"format", "solvergen", "optimizer", "schema", "groups", "tensors"} | since_2 | since_3 | since_5
    top = _record(value, "the document", keys)
    if type(version) is not int or not 1 <= version <= FORMAT:
        raise _malformed("format", version)
    optimizer = _record(top["optimizer"], "optimizer", {"spec", "class", "digest"})
    slots: list[Slot] = []
    checksums: dict[str, str] = {}
    schema = tuple(_schema_entry(entry) for entry in _list(top["schema"], "schema"))
    data = SnapshotData(
        spec=_text(optimizer["spec"], "optimizer.spec"),
        class_name=_text(optimizer["class"], "optimizer.class"),
        digest=_text(optimizer["digest"], "optimizer.digest"),
        version=_text(top["solvergen"], "solvergen"),
        schema=schema,
        groups=tuple(_group(group) for group in _list(top["groups"], "groups")),
        tensors=tuple(
            _tensor(tensor, dict(schema), slots, checksums) for tensor in _list(top["tensors"], "tensors")
        ),
        shared=_mapping(top["shared"], "shared", _float_in) if since_2 else {},
        frozen=tuple(_text(name, "frozen") for name in _list(top["frozen"], "frozen")) if since_3 else (),
        constraints=_mapping(top["constraints"], "constraints", _constraint) if since_5 else {},
    )
    if version < version_of(data):
        raise SnapshotError(
            f"the document is not what solvergen writes: format {version} has neither shared states nor "
            f"states of rows or columns{', or none of blocks' if version > 1 else ''}"
        )
    arrays: dict[str, list[str]] = {}
    for slot in slots:
        if slot.state is not None:
            arrays.setdefault(slot.tensor, []).append(slot.state)
    check(data, arrays)
    return Header(version, data, tuple(slots), checksums)


def refuse_newer(version: object) -> None:
    """Raise ``SnapshotError`` if ``version`` is a format that only a later solvergen can read."""
    if isinstance(version, int) and not isinstance(version, bool) and version > FORMAT:
        raise SnapshotError(
            f"written in snapshot format {version}, by a newer solvergen; this one reads formats up to "
            f"{FORMAT}: upgrade solvergen"
        )


def check(data: SnapshotData, arrays: Mapping[str, Iterable[str]] | None = None) -> None:
    """Whether ``data`` is of one piece: what it names exists, once, and fits its schema.

    ``arrays`` has the names of each tensor's array states, where ``data`` itself doesn't have the arrays.

    Raises:
        SnapshotError: it isn't.
    """
    kinds = dict(data.schema)
    if len(kinds) != len(data.schema):
        raise SnapshotError("the schema names a state twice")
    for state, kind in data.schema:
        if not _IDENTIFIER.fullmatch(state) or kind not in get_args(Shape):
            raise SnapshotError(f"the schema has the state {quoted(state)} of the kind {quoted(kind)}")
    names = [tensor.name for tensor in data.tensors]
    for name in (*names, data.spec, data.class_name, data.digest, data.version):
        if not _encodes(name):
            raise SnapshotError(f"{quoted(name)} holds half of a surrogate pair and can't be stored as text")
    if len(set(names)) != len(names):
        raise SnapshotError(
            f"tensors given twice: {listed(sorted(n for n, k in Counter(names).items() if k > 1))}"
        )
    if len(set(data.frozen)) != len(data.frozen) or not set(data.frozen) <= set(names):
        raise SnapshotError("the frozen tensors are not some of the tensors, each once")
    if unknown := sorted(set(data.constraints) - set(names)):
        raise SnapshotError(f"there are constraints for {listed(unknown)}, which is no tensor")
    members = [member for group in data.groups for member in group.members]
    if len(set(members)) != len(members) or set(members) != set(names):
        raise SnapshotError("the groups' members are not the tensors, each once")
    if unknown := [state for state in data.shared if kinds.get(state) != "shared"]:
        raise SnapshotError(f"the schema has no shared states {listed(sorted(unknown))}")
    for tensor in data.tensors:
        if tensor.dtype not in STORAGE_TYPES:
            raise SnapshotError(f"tensor {quoted(tensor.name)} has dtype {quoted(tensor.dtype)}")
        if isinstance(tensor.t, bool) or not 0 <= tensor.t <= _MOST_UPDATES:
            raise SnapshotError(f"tensor {quoted(tensor.name)} has counted {tensor.t} updates")
        held = tensor.arrays if arrays is None else arrays.get(tensor.name, ())
        arrays_are = {"param", *RANK_OF_SHAPE}
        for kind, states in (("param", held), ("scalar", tensor.scalars)):
            allowed = arrays_are if kind == "param" else {kind}
            if unknown := [state for state in states if kinds.get(state) not in allowed]:
                raise SnapshotError(
                    f"tensor {quoted(tensor.name)}: the schema has no {kind} states {listed(sorted(unknown))}"
                )


def _tensor(
    value: object, kinds: Mapping[str, str], slots: list[Slot], checksums: dict[str, str]
) -> TensorData:
    keys = {"name", "shape", "dtype", "t", "scalars", "arrays"}
    optional = {"param"} if isinstance(value, dict) and "param" in value else set()
    optional |= {BLOCKS} if BLOCKS in kinds.values() else set()
    record = _record(value, "tensor", keys | optional)
    name = _text(record["name"], "tensor.name")
    shape = tuple(_integer(size, "tensor.shape") for size in _list(record["shape"], "tensor.shape"))
    if len(shape) > MAX_RANK:
        raise SnapshotError(f"tensor {quoted(name)} has {len(shape)} dimensions; NumPy goes to {MAX_RANK}")
    dtype = _dtype(record["dtype"])
    blocks = _integer(record[BLOCKS], "tensor.blocks") if BLOCKS in record else 1
    for state, entry in _mapping(record["arrays"], "tensor.arrays", lambda item, _: item).items():
        if not _IDENTIFIER.fullmatch(state):
            raise _malformed("tensor.arrays", state)
        fields = _record(entry, "tensor.arrays", {"dtype", "sha256"})
        spec = ArraySpec(
            state_key(state, name), _dtype(fields["dtype"]), _shape_of(state, kinds, shape, blocks)
        )
        slots.append(Slot(name, state, spec))
        checksums[spec.key] = _sha256(fields["sha256"])
    if "param" in record:
        fields = _record(record["param"], "tensor.param", {"dtype", "sha256"})
        if fields["dtype"] != dtype:
            raise _malformed("tensor.param.dtype", fields["dtype"])
        spec = ArraySpec(param_key(name), dtype, shape)
        slots.append(Slot(name, None, spec))
        checksums[spec.key] = _sha256(fields["sha256"])
    return TensorData(
        name=name,
        shape=shape,
        dtype=dtype,
        t=_integer(record["t"], "tensor.t"),
        scalars=_mapping(record["scalars"], "tensor.scalars", _float_in),
        blocks=blocks,
    )


def _group(value: object) -> GroupData:
    record = _record(value, "group", {"members", "hyperparameters", "options", "multipliers"})
    return GroupData(
        members=tuple(_text(member, "group.members") for member in _list(record["members"], "group.members")),
        hyperparameters=_mapping(record["hyperparameters"], "group.hyperparameters", _float_in),
        options=_mapping(record["options"], "group.options", _bool),
        multipliers=_mapping(record["multipliers"], "group.multipliers", _float_in),
    )


def _constraint(value: object, where: str) -> Mapping[str, Any]:
    try:
        return as_data(from_data(value, where))
    except OptimizerError as error:
        raise SnapshotError(f"the document is not what solvergen writes: {error}") from error


def _schema_entry(value: object) -> tuple[str, str]:
    entry = _list(value, "schema")
    if len(entry) != 2:
        raise _malformed("schema", value)
    return _text(entry[0], "schema"), _text(entry[1], "schema")


def floats_out(values: Mapping[str, float]) -> dict[str, float | str]:
    """As the document has them: the infinities and NaN, which JSON lacks, as text; others to the bit."""
    result: dict[str, float | str] = {}
    for name, value in values.items():
        number = float(value)
        if math.isfinite(number):
            result[name] = number
        else:
            result[name] = "nan" if math.isnan(number) else "inf" if number > 0 else "-inf"
    return result


def _float_in(value: object, where: str) -> float:
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    if isinstance(value, float):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2**53:
        return float(value)  # other programs may write 1 for 1.0
    raise _malformed(where, value)


def _bool(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise _malformed(where, value)
    return value


def _integer(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST_UPDATES:
        raise _malformed(where, value)
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise _malformed(where, value)
    return value


def _dtype(value: object) -> str:
    if not isinstance(value, str) or value not in STORAGE_TYPES:
        raise _malformed("dtype", value)
    return value


def _sha256(value: object) -> str:
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise _malformed("sha256", value)
    return value


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise _malformed(where, value)
    return value


def _mapping(value: object, where: str, item: Callable[[object, str], T]) -> dict[str, T]:
    if not isinstance(value, dict):
        raise _malformed(where, value)
    return {name: item(entry, where) for name, entry in value.items()}


def _record(value: object, where: str, keys: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _malformed(where, value)
    if set(value) != keys:
        raise SnapshotError(
            f"the document is not what solvergen writes: {where} has {listed(sorted(value))}, "
            f"not {listed(sorted(keys))}"
        )
    return value


def _malformed(where: str, value: object) -> SnapshotError:
    shown = f"of the type {type(value).__name__}" if isinstance(value, list | dict) else quoted(value)
    return SnapshotError(f"the document is not what solvergen writes: {where} is {shown}")


def _encodes(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
