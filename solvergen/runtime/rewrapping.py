"""Snapshots of a rule taken over by the same rule with wrappers, and the other way round."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from solvergen.errors import SnapshotWarning
from solvergen.runtime.definition import Definition
from solvergen.runtime.dtypes import compute_dtype
from solvergen.runtime.groups import Group, multipliers_of
from solvergen.runtime.state import GroupData, SnapshotData, TensorData
from solvergen.runtime.wrappers import PREFIX, SHADOWS

T = TypeVar("T")


def without_wrappers(data: SnapshotData, definition: Definition, source: str) -> SnapshotData:
    """What a snapshot of ``definition`` wrapped has of the rule itself; another rule's as it is.

    What only wrappers remember is left out, with a SnapshotWarning.
    """
    if data.spec != f"wrapped_{definition.name}":
        return data
    names = {name for t in data.tensors for name in (*t.arrays, *t.scalars)} | set(data.shared)
    left_out = sorted(filter(_is_of, names))
    warnings.warn(
        f"{source} is of this optimizer with wrappers, which are left out"
        + (f", and with them {', '.join(left_out)}" if left_out else ""),
        SnapshotWarning,
        stacklevel=5,
    )
    multipliers = multipliers_of(definition.hyperparameter_names)
    return replace(
        data,
        spec=definition.name,
        class_name=definition.class_name,
        digest=definition.digest,
        schema=tuple(entry for entry in data.schema if not _is_of(entry[0])),
        groups=tuple(
            replace(
                group,
                hyperparameters=_own(group.hyperparameters),
                options=_own(group.options),
                multipliers={n: value for n, value in group.multipliers.items() if n in multipliers},
            )
            for group in data.groups
        ),
        tensors=tuple(
            replace(tensor, scalars=_own(tensor.scalars), arrays=_own(tensor.arrays))
            for tensor in data.tensors
        ),
        shared=_own(data.shared),
    )


def with_wrappers(
    data: SnapshotData,
    definition: Definition,
    bare: Definition,
    present: Callable[..., SnapshotData],
) -> SnapshotData:
    """A snapshot of ``bare`` as one of the wrapped ``definition``; others as they are.

    Hyperparameters and options of wrappers are those that the optimizer has (``present(params=True)``),
    sums begin at zero, and averages as copies of the parameters that will be there.
    """
    if data.spec != bare.name:
        return data
    ours = present(params=True)
    by_member = {name: group for group in ours.groups for name in group.members}
    params = {tensor.name: tensor for tensor in ours.tensors}

    def group_of(group: GroupData) -> GroupData:
        own = next((by_member[name] for name in group.members if name in by_member), None)
        if own is None:
            return group
        return replace(
            group,
            hyperparameters={**_wrappers(own.hyperparameters), **group.hyperparameters},
            options={**_wrappers(own.options), **group.options},
            multipliers={**own.multipliers, **group.multipliers},
        )

    def tensor_of(tensor: TensorData) -> TensorData:
        own = params.get(tensor.name)
        if own is None or own.shape != tensor.shape or own.dtype != tensor.dtype:
            return tensor  # the comparison says so
        param = own.param if tensor.param is None else tensor.param
        assert param is not None
        arrays = dict(tensor.arrays)
        for name in own.arrays:
            if name == "wrap_average":
                arrays[name] = param.astype(compute_dtype(tensor.dtype))
            elif _is_of(name):
                arrays[name] = np.zeros(tensor.shape, compute_dtype(tensor.dtype))
        scalars = {**dict.fromkeys(_wrappers(own.scalars), 0.0), **tensor.scalars}
        return replace(tensor, scalars=scalars, arrays=arrays)

    wraps = tuple(
        (state.name, state.shape) for state in definition.state if _is_of(state.name) and not state.dtype
    )
    same = data.digest == bare.digest
    return replace(
        data,
        spec=definition.name,
        class_name=definition.class_name,
        digest=definition.digest if same else data.digest,
        schema=(*data.schema, *wraps),
        groups=tuple(map(group_of, data.groups)),
        tensors=tuple(map(tensor_of, data.tensors)),
        shared={**dict.fromkeys(_wrappers(ours.shared), 0.0), **data.shared},
    )


def with_own_copies(data: SnapshotData, groups: Sequence[Group]) -> SnapshotData:
    """A snapshot as if the optimizer that wrote it had kept the copies of parameters that ``groups`` keep:
    they are no part of it, and made anew."""
    own = {name: group.options for group in groups for name in group.names}
    kept = [f"wrap_keep_{dtype}" for dtype in SHADOWS]

    def options_of(group: GroupData) -> dict[str, bool]:
        ours = next((own[name] for name in group.members if name in own), {})
        return {**group.options, **{n: ours[n] for n in kept if n in ours and n in group.options}}

    return replace(data, groups=tuple(replace(g, options=options_of(g)) for g in data.groups))


def _is_of(name: str) -> bool:
    return name.startswith(PREFIX)


def _own(values: Mapping[str, T]) -> dict[str, T]:
    return {name: value for name, value in values.items() if not _is_of(name)}


def _wrappers(values: Mapping[str, T]) -> dict[str, T]:
    return {name: value for name, value in values.items() if _is_of(name)}
