"""The document: everything in a snapshot but the arrays' bytes, as JSON text.

Both formats hold the same document, with its SHA-256. ``docs/snapshots.md`` describes it for other
programs. ``encode`` and ``decode`` are each other's inverse; ``decode`` trusts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from solvergen.errors import OptimizerError, SnapshotError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.blocks import BLOCKS
from solvergen.runtime.constraints import as_data, from_data
from solvergen.runtime.definition import RANK_OF_SHAPE
from solvergen.runtime.dtypes import STORAGE_TYPES
from solvergen.runtime.lines import shape_of_kind
from solvergen.runtime.naming import quoted
from solvergen.runtime.snapshots import fields, strict_json
from solvergen.runtime.snapshots.arrays import (
    MAX_RANK,
    ArraySpec,
    param_key,
    state_key,
)
from solvergen.runtime.snapshots.consistency import check
from solvergen.runtime.state import GroupData, SnapshotData, TensorData

FORMAT = 5
"""Newest version of the document and of how the files hold it. Raised by any change that a reader must know
of. Files are written in the oldest that can say what they hold: 2 knows shared states and states of lines,
3 frozen tensors, 4 states of blocks, 5 constraints."""


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
    return max(3 if data.frozen else 1, *(_version_of_kind(kind) for _, kind in data.schema), 1)


def _version_of_kind(kind: str) -> int:
    """The first format that knows states of this kind."""
    if kind == BLOCKS:
        return 4
    return 2 if kind == "shared" or kind in RANK_OF_SHAPE else 1


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
            "scalars": fields.numbers_out(item.scalars),
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
                "hyperparameters": fields.numbers_out(group.hyperparameters),
                "options": {name: bool(value) for name, value in group.options.items()},
                "multipliers": fields.numbers_out(group.multipliers),
            }
            for group in data.groups
        ],
        "tensors": [tensor(item) for item in data.tensors],
    }
    if version_of(data) > 1:
        value["shared"] = fields.numbers_out(data.shared)
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
    top = fields.record(value, "the document", keys)
    if type(version) is not int or not 1 <= version <= FORMAT:
        raise fields.malformed("format", version)
    optimizer = fields.record(top["optimizer"], "optimizer", {"spec", "class", "digest"})
    slots: list[Slot] = []
    checksums: dict[str, str] = {}
    schema = tuple(_schema_entry(entry) for entry in fields.sequence(top["schema"], "schema"))
    data = SnapshotData(
        spec=fields.text(optimizer["spec"], "optimizer.spec"),
        class_name=fields.text(optimizer["class"], "optimizer.class"),
        digest=fields.text(optimizer["digest"], "optimizer.digest"),
        version=fields.text(top["solvergen"], "solvergen"),
        schema=schema,
        groups=tuple(_group(group) for group in fields.sequence(top["groups"], "groups")),
        tensors=tuple(
            _tensor(tensor, dict(schema), slots, checksums)
            for tensor in fields.sequence(top["tensors"], "tensors")
        ),
        shared=fields.mapping(top["shared"], "shared", fields.number) if since_2 else {},
        frozen=tuple(fields.text(name, "frozen") for name in fields.sequence(top["frozen"], "frozen"))
        if since_3
        else (),
        constraints=fields.mapping(top["constraints"], "constraints", _constraint) if since_5 else {},
    )
    for state, kind in schema:
        if version < _version_of_kind(kind):
            raise SnapshotError(
                f"the document is not what solvergen writes: format {version} has no states of the kind "
                f"{quoted(kind)}, as {quoted(state)} is; format {_version_of_kind(kind)} has"
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


def _tensor(
    value: object, kinds: Mapping[str, str], slots: list[Slot], checksums: dict[str, str]
) -> TensorData:
    keys = {"name", "shape", "dtype", "t", "scalars", "arrays"}
    optional = {"param"} if isinstance(value, dict) and "param" in value else set()
    optional |= {BLOCKS} if BLOCKS in kinds.values() else set()
    record = fields.record(value, "tensor", keys | optional)
    name = fields.text(record["name"], "tensor.name")
    shape = tuple(
        fields.whole(size, "tensor.shape") for size in fields.sequence(record["shape"], "tensor.shape")
    )
    if len(shape) > MAX_RANK:
        raise SnapshotError(f"tensor {quoted(name)} has {len(shape)} dimensions; NumPy goes to {MAX_RANK}")
    dtype = fields.dtype(record["dtype"], "tensor.dtype")
    blocks = fields.whole(record[BLOCKS], "tensor.blocks") if BLOCKS in record else 1
    for state, entry in fields.mapping(record["arrays"], "tensor.arrays", lambda item, _: item).items():
        if not fields.IDENTIFIER.fullmatch(state):
            raise fields.malformed("tensor.arrays", state)
        held = fields.record(entry, "tensor.arrays", {"dtype", "sha256"})
        stored = fields.dtype(held["dtype"], "tensor.arrays.dtype")
        spec = ArraySpec(state_key(state, name), stored, _shape_of(state, kinds, shape, blocks))
        slots.append(Slot(name, state, spec))
        checksums[spec.key] = fields.sha256(held["sha256"], "tensor.arrays.sha256")
    if "param" in record:
        held = fields.record(record["param"], "tensor.param", {"dtype", "sha256"})
        if held["dtype"] != dtype:
            raise fields.malformed("tensor.param.dtype", held["dtype"])
        spec = ArraySpec(param_key(name), dtype, shape)
        slots.append(Slot(name, None, spec))
        checksums[spec.key] = fields.sha256(held["sha256"], "tensor.param.sha256")
    return TensorData(
        name=name,
        shape=shape,
        dtype=dtype,
        t=fields.whole(record["t"], "tensor.t"),
        scalars=fields.mapping(record["scalars"], "tensor.scalars", fields.number),
        blocks=blocks,
    )


def _group(value: object) -> GroupData:
    record = fields.record(value, "group", {"members", "hyperparameters", "options", "multipliers"})
    return GroupData(
        members=tuple(
            fields.text(member, "group.members")
            for member in fields.sequence(record["members"], "group.members")
        ),
        hyperparameters=fields.mapping(record["hyperparameters"], "group.hyperparameters", fields.number),
        options=fields.mapping(record["options"], "group.options", fields.switch),
        multipliers=fields.mapping(record["multipliers"], "group.multipliers", fields.number),
    )


def _constraint(value: object, where: str) -> Mapping[str, Any]:
    try:
        return as_data(from_data(value, where))
    except OptimizerError as error:
        raise SnapshotError(f"the document is not what solvergen writes: {error}") from error


def _schema_entry(value: object) -> tuple[str, str]:
    entry = fields.sequence(value, "schema")
    if len(entry) != 2:
        raise fields.malformed("schema", value)
    return fields.text(entry[0], "schema"), fields.text(entry[1], "schema")
