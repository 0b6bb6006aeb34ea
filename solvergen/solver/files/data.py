"""What the Solver's files hold, whatever their format: a model (weights) and a solver's state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from solvergen.runtime.arrays import HostArray


@dataclass(frozen=True, eq=False)
class LayerData:
    """A layer's weights, each of its own shape; a blob of a file from before 2015 has four axes.

    A layer that uses the weights of another one has the very same array, once more. Only a file in HDF5
    doesn't say whose they are: there such a blob is None when it is read. ``diffs`` are the gradients, or
    after an update the update itself, where they were kept. ``partial``: it was read from HDF5, so that blobs
    of other layers may be missing at the end, too.
    """

    name: str
    type: str = ""
    blobs: tuple[HostArray | None, ...] = ()
    diffs: tuple[HostArray, ...] | None = None
    partial: bool = False
    names: tuple[str, ...] | None = None
    """What the net calls its parameters, one name for each blob; None: the file doesn't say."""


@dataclass(frozen=True, eq=False)
class ModelData:
    """All layers in their order, those without weights too."""

    name: str = ""
    layers: tuple[LayerData, ...] = ()


@dataclass(frozen=True, eq=False)
class SolverStateData:
    """A solver at rest after ``iter`` updates.

    ``learned_net`` is the model's path as it was written: relative to wherever the process was. ``history``
    is in Caffe's order: one array for each parameter, then for each of the rule's other states all its
    arrays. ``extra`` is what Caffe doesn't keep and only the native form holds: JSON's values, tuples,
    floats that aren't finite, integers of any size, bytes and NumPy arrays, in dicts with text as keys.
    """

    iter: int
    learned_net: str | None = None
    history: tuple[HostArray, ...] = ()
    current_step: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)
    model_digest: str | None = None
    """Native form: the digest of the model that was written with it (see ``native.write_model``)."""
