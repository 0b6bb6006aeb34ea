"""Whether a snapshot is of one piece, before it is written and when it was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import get_args

from solvergen.errors import SnapshotError
from solvergen.runtime.definition import RANK_OF_SHAPE, Shape
from solvergen.runtime.dtypes import STORAGE_TYPES
from solvergen.runtime.naming import listed, quoted
from solvergen.runtime.snapshots.fields import IDENTIFIER, LARGEST_WHOLE_NUMBER
from solvergen.runtime.state import SnapshotData


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
        if not IDENTIFIER.fullmatch(state) or kind not in get_args(Shape):
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
        raise SnapshotError(f"there are constraints for {listed(unknown)}, but no such tensor")
    members = [member for group in data.groups for member in group.members]
    if len(set(members)) != len(members) or set(members) != set(names):
        raise SnapshotError("the groups' members are not the tensors, each once")
    if unknown := [state for state in data.shared if kinds.get(state) != "shared"]:
        raise SnapshotError(f"the schema has no shared states {listed(sorted(unknown))}")
    for tensor in data.tensors:
        if tensor.dtype not in STORAGE_TYPES:
            raise SnapshotError(f"tensor {quoted(tensor.name)} has dtype {quoted(tensor.dtype)}")
        if isinstance(tensor.t, bool) or not 0 <= tensor.t <= LARGEST_WHOLE_NUMBER:
            raise SnapshotError(f"tensor {quoted(tensor.name)} has counted {tensor.t} updates")
        held = tensor.arrays if arrays is None else arrays.get(tensor.name, ())
        arrays_are = {"param", *RANK_OF_SHAPE}
        for kind, states in (("param", held), ("scalar", tensor.scalars)):
            allowed = arrays_are if kind == "param" else {kind}
            if unknown := [state for state in states if kinds.get(state) not in allowed]:
                raise SnapshotError(
                    f"tensor {quoted(tensor.name)}: the schema has no {kind} states {listed(sorted(unknown))}"
                )


def _encodes(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
