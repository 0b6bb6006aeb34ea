"""Names of the Solver's files, and what a name says about the format."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from solvergen.errors import SolverFileError

Format = Literal["BINARYPROTO", "HDF5", "SAFETENSORS"]

SUFFIXES: dict[Format, tuple[str, str]] = {
    "BINARYPROTO": (".caffemodel", ".solverstate"),
    "HDF5": (".caffemodel.h5", ".solverstate.h5"),
    "SAFETENSORS": (".model.safetensors", ".state.safetensors"),
}
"""The endings of models and states."""

TORCH_ENDINGS = (".pt", ".pth")
"""Of what torch writes."""

FORMATS: tuple[Format, ...] = tuple(SUFFIXES)
"""All formats, by Caffe's names and ours."""

_MOST_DIGITS = 19


@dataclass(frozen=True)
class Pair:
    """The paths of a model and of the state that belongs to it, after ``iter`` updates."""

    iter: int
    model: str
    state: str


def checked_format(name: str) -> Format:
    """``name``, if it is a format. Raises ``SolverFileError``."""
    for known in FORMATS:
        if name == known:
            return known
    raise SolverFileError(f"no snapshot format {name!r}; there are {', '.join(FORMATS)}")


def pair(prefix: str, iteration: int, form: Format) -> Pair:
    """Caffe's names of a snapshot: ``{prefix}_iter_{iteration}`` and the format's suffixes."""
    model, state = SUFFIXES[form]
    stem = f"{prefix}_iter_{iteration}"
    return Pair(iteration, stem + model, stem + state)


def pairs(prefix: str, form: Format) -> Iterator[Pair]:
    """The snapshots of a prefix in one format whose states are there, in no order."""
    folder, name = os.path.split(prefix)
    _, suffix = SUFFIXES[form]
    wanted = re.compile(rf"{re.escape(name)}_iter_(0|[1-9][0-9]{{0,{_MOST_DIGITS - 1}}}){re.escape(suffix)}")
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return
    for found in names:
        if match := wanted.fullmatch(found):
            yield pair(prefix, int(match[1]), form)


def is_of_torch(path: str) -> bool:
    """Whether a name is that of a file of torch's."""
    return path.lower().endswith(TORCH_ENDINGS)


def format_of(path: str) -> Format:
    """What a name means to Caffe, and the native form's own suffix: ``.h5`` is HDF5, all else binaryproto."""
    if path.lower().endswith(".safetensors"):
        return "SAFETENSORS"
    return "HDF5" if path.endswith((".h5", ".hdf5")) else "BINARYPROTO"
