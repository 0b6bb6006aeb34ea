"""Arrays of tensors: over the same memory for an optimizer, on the host for people."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from solvergen.runtime.dtypes import numpy_dtype
from solvergen.solver.net.error import NetError

_STORED = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def shared(tensor: torch.Tensor) -> Any:
    """An array over the tensor's own memory: NumPy's, or CuPy's on a GPU."""
    tensor = tensor.detach()
    if tensor.device.type == "cuda":
        import cupy

        return cupy.from_dlpack(tensor)
    if tensor.device.type != "cpu":
        raise NetError(f"parameters on {tensor.device}: they can be on the CPU or on an NVIDIA GPU")
    if tensor.dtype not in _STORED:
        stored = ", ".join(str(dtype).removeprefix("torch.") for dtype in _STORED)
        raise NetError(f"parameters and buffers of {tensor.dtype}: there can be {stored}")
    return as_array(tensor)


def as_array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """A NumPy array over the memory of a tensor on the CPU, which must be detached."""
    found: np.ndarray[Any, Any]
    if tensor.dtype == torch.bfloat16:  # which NumPy doesn't have; both have int16
        found = tensor.view(torch.int16).numpy().view(numpy_dtype("bfloat16"))
    else:
        found = tensor.numpy()
    return found


def as_tensor(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """A tensor over the memory of a NumPy array."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def on_host(value: torch.Tensor) -> np.ndarray[Any, Any]:
    """A copy of its numbers on the host, for looking at: float32 of narrower ones, which NumPy doesn't have
    all of. Raises NetError for what isn't numbers, one for each place."""
    if value.is_nested or value.is_quantized or value.is_meta:
        kind = "nested" if value.is_nested else "quantized" if value.is_quantized else "meta"
        raise NetError(f"a {kind} tensor among what the net puts out: make it one of plain numbers")
    value = value.detach()
    if value.layout is not torch.strided:
        value = value.to_dense()
    if value.is_floating_point() and value.element_size() < 4:
        value = value.float()
    return np.array(value.resolve_neg().cpu().numpy())
