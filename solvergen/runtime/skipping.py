"""Flags that leave a step out (``Optimizer.step(gradients, found_inf=flag)``), as host backends read them."""

from __future__ import annotations

from typing import Any

import numpy as np

from solvergen.errors import ArrayError
from solvergen.runtime.buffers import ARRAY_TYPES, type_name
from solvergen.runtime.naming import with_article


def plain_flag(flag: Any) -> bool | None:
    """What a flag says that is a number of Python's or NumPy's; None if it is something else."""
    if isinstance(flag, (bool, int, float, np.bool_, np.integer, np.floating)):
        return bool(flag)
    return None


def check_flag(size: int, dtype: np.dtype[Any]) -> None:
    """Raises ArrayError unless an array of this kind can be a flag, which kernels read as it lies: of at most
    64 bits, in this machine's byte order."""
    known = (dtype.kind in "biuf" and dtype.itemsize <= 8) or dtype.name == "bfloat16"
    if size != 1 or not known or not dtype.isnative:
        raise ArrayError(
            f"found_inf must be one number (float32, bool or whole), not an array of {size} of dtype "
            f"{dtype}: pass bool(x)"
        )


class HostFlags:
    """Reads flags in host memory. See ``Flags``."""

    def read(self, flag: object) -> bool:
        """Whether it is set. Raises ArrayError for what is no flag."""
        plain = plain_flag(flag)
        return bool(host_flag(flag).reshape(-1)[0]) if plain is None else plain


def host_flag(flag: Any) -> np.ndarray[Any, Any]:
    """A flag that is a NumPy array. Raises ArrayError for what isn't one."""
    if type(flag) not in ARRAY_TYPES:
        raise ArrayError(
            f"found_inf is {with_article(type_name(flag))}, not a number or a numpy.ndarray of one "
            "element: pass bool(x)"
        )
    array: np.ndarray[Any, Any] = flag
    check_flag(array.size, array.dtype)
    return array
