"""A snapshot for people to look at."""

from __future__ import annotations

from typing import Any

from solvergen.runtime.blocks import BLOCKS
from solvergen.runtime.snapshots.fields import numbers_out
from solvergen.runtime.snapshots.files import Snapshot, StrPath


def describe(path: StrPath) -> dict[str, Any]:
    """What is in a snapshot, as plain dicts and lists that JSON can hold (infinities and NaN as text).

    Everything is verified, the arrays too (one at a time), so that a description is also the answer to
    whether the file is sound. No optimizer is needed.

    Raises:
        SnapshotError: as ``load`` does.
    """
    with Snapshot.opened(path) as snapshot:
        for slot in snapshot.header.slots:
            snapshot.read(slot.spec)
    data, slots = snapshot.header.data, snapshot.header.slots
    has_blocks = any(kind == BLOCKS for _, kind in data.schema)
    states: dict[str, dict[str, str]] = {tensor.name: {} for tensor in data.tensors}
    for slot in slots:
        if slot.state is not None:
            states[slot.tensor][slot.state] = slot.spec.dtype
    with_param = {slot.tensor for slot in slots if slot.state is None}
    return {
        "path": snapshot.path,
        "file_format": snapshot.format,
        "format_version": snapshot.header.version,
        "file_bytes": snapshot.size,
        "state_bytes": sum(slot.spec.nbytes for slot in slots if slot.state is not None),
        "solvergen": data.version,
        "optimizer": {"spec": data.spec, "class": data.class_name, "digest": data.digest},
        "state": dict(data.schema),
        "shared": numbers_out(data.shared),
        "frozen": list(data.frozen),
        "constraints": {name: dict(one) for name, one in data.constraints.items()},
        "groups": [
            {
                "members": list(group.members),
                "hyperparameters": numbers_out(group.hyperparameters),
                "options": dict(group.options),
                "multipliers": numbers_out(group.multipliers),
            }
            for group in data.groups
        ],
        "tensors": [
            {
                "name": tensor.name,
                "shape": list(tensor.shape),
                "dtype": tensor.dtype,
                "t": tensor.t,
                "scalars": numbers_out(tensor.scalars),
                "arrays": states[tensor.name],
                "parameter": tensor.name in with_param,
                **({BLOCKS: tensor.blocks} if has_blocks else {}),
            }
            for tensor in data.tensors
        ],
    }
