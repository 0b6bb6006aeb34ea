"""Snapshots: an optimizer's state in a file, HDF5 (``.h5``, ``.hdf5``) or safetensors (``.safetensors``).

``save`` writes a file whole or not at all; ``load`` returns it only if every checksum holds; ``match``
compares what was loaded with an optimizer; ``describe`` is for people. The two formats are described in
``docs/snapshots.md``. Nothing in a file is unpickled or evaluated.
"""

from __future__ import annotations

from solvergen.runtime.snapshots.compare import Restoration, TensorLayout, match
from solvergen.runtime.snapshots.describe import describe
from solvergen.runtime.snapshots.files import load, save

__all__ = ["Restoration", "TensorLayout", "describe", "load", "match", "save"]
