"""Tensors of a file of torch's as arrays: plain numbers, and not far more of them than the file has."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from solvergen.adapters.torch_arrays import as_array
from solvergen.errors import SolverFileError
from solvergen.runtime.arrays import HostArray

_EXPANDED = 1 << 20
"""Bytes up to which a tensor, and all tensors of a file, may be more than the file has, as ``expand`` makes
them."""

_VIEWS = 8
"""How many times what the file has its tensors may be together: each view of a storage is an array."""

_REAL = (torch.bfloat16, torch.float16, torch.float32, torch.float64)
_WHOLE = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(getattr(torch, name) for name in ("uint16", "uint32", "uint64") if hasattr(torch, name)),
)
"""Dtypes whose numbers NumPy has too."""


class Tensors:
    """The arrays of one file's tensors: one array for what is one in the file.

    The tensors must live as long as this does, since it knows them by their places in memory.
    """

    def __init__(self) -> None:
        self._arrays: dict[Any, HostArray] = {}
        self._storages: set[int] = set()
        self._held = 0
        self._made = 0

    def numbers(self, tensor: torch.Tensor, what: str) -> HostArray:
        """The numbers of a tensor, whole ones and truth values too. Raises SolverFileError."""
        if is_whole(tensor):
            return self._array(tensor, what)
        return self.array(tensor, what)

    def array(self, tensor: torch.Tensor, what: str) -> HostArray:
        """The numbers of a tensor of floating ones. Raises SolverFileError."""
        _check_plain(tensor, what)
        if tensor.dtype not in _REAL:
            raise SolverFileError(
                f"{what} is {tensor.dtype}; snapshots hold float64, float32, bfloat16, float16"
            )
        return self._array(tensor, what)

    def _array(self, tensor: torch.Tensor, what: str) -> HostArray:
        _check_plain(tensor, what)
        place = (
            tensor.data_ptr() if tensor.numel() else id(tensor),
            tensor.dtype,
            tensor.shape,
            tensor.stride(),
            tensor.is_neg(),
        )
        if place not in self._arrays:
            self._count(tensor, what)
            plain = tensor.detach().resolve_neg().contiguous()
            self._arrays[place] = np.array(as_array(plain))
        return self._arrays[place]

    def _count(self, tensor: torch.Tensor, what: str) -> None:
        """Raises SolverFileError where all arrays would become far more than what the file has."""
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._storages:
            self._storages.add(storage.data_ptr())
            self._held += storage.nbytes()
        self._made += tensor.numel() * tensor.element_size()
        if self._made > _VIEWS * self._held + _EXPANDED:
            raise SolverFileError(
                f"{what}: the tensors up to it would take {self._made} bytes, and the file has {self._held} "
                "for them: save clones"
            )


def is_whole(tensor: torch.Tensor) -> bool:
    """Whether it is of whole numbers or truth values."""
    return tensor.dtype in _WHOLE


def _check_plain(tensor: torch.Tensor, what: str) -> None:
    """Raises SolverFileError for a tensor that isn't numbers in memory, one for each place."""
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.device.type != "cpu":
        kind = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
        kind = tensor.device.type if tensor.device.type != "cpu" else kind
        raise SolverFileError(f"{what} is a {kind} tensor: save one of plain numbers (to_dense(), clone())")
    held = tensor.untyped_storage().nbytes()
    if tensor.numel() * tensor.element_size() > max(held, _EXPANDED):
        raise SolverFileError(
            f"{what} has the shape {tuple(tensor.shape)} and no numbers for it, {held} bytes: save a clone()"
        )
