"""Everything that an optimizer has to remember, as plain data.

``SnapshotData`` is what ``Optimizer.save`` hands to ``solvergen.runtime.snapshots`` and what comes
back from there; ``state_dict`` is the same content as plain dicts. Arrays are on the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from solvergen.runtime.arrays import HostArray


@dataclass(frozen=True, eq=False)
class TensorData:
    """One parameter. ``dtype`` names its storage type, ``t`` counts its updates.

    ``scalars`` holds its active scalar states, ``arrays`` its active array states: C-contiguous, of
    the parameter's shape and compute type, or (states of lines) of float64 and the shape that
    ``lines.state_shape`` says, for a parameter of so many ``blocks``. ``param`` is the parameter itself where
    it was kept too.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    t: int
    scalars: Mapping[str, float] = field(default_factory=dict)
    arrays: Mapping[str, HostArray] = field(default_factory=dict)
    param: HostArray | None = None
    blocks: int = 1


@dataclass(frozen=True)
class GroupData:
    """One group: the names of its tensors, all hyperparameters, all options as resolved (derived ones
    too), and the multipliers ``lr_mult`` and ``decay_mult``."""

    members: tuple[str, ...]
    hyperparameters: Mapping[str, float]
    options: Mapping[str, bool]
    multipliers: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class SnapshotData:
    """An optimizer at rest.

    ``version`` is solvergen's; ``schema`` lists (name, shape as in ``State``) of all states of the definition
    in order, whether active or not. ``shared`` holds those that are one number for the whole optimizer, as
    far as they exist. ``frozen`` are names of tensors; ``constraints`` has, by their names, what
    ``constraints.as_data`` says of those of some.
    """

    spec: str
    class_name: str
    digest: str
    version: str
    schema: tuple[tuple[str, str], ...]
    groups: tuple[GroupData, ...]
    tensors: tuple[TensorData, ...]
    shared: Mapping[str, float] = field(default_factory=dict)
    frozen: tuple[str, ...] = ()
    constraints: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
