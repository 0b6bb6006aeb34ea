"""One array of a snapshot: its key, what it must look like, its bytes and its checksum.

Nothing here knows a file format; both formats store the same arrays under the same keys.
"""

from __future__ import annotations

import hashlib
import math
import re
import sys
from dataclasses import dataclass

import numpy as np

from solvergen.errors import BackendUnavailable, SnapshotError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.dtypes import STORAGE_TYPES, numpy_dtype

MAX_RANK = 64
"""NumPy's own limit."""

_SPECIAL = re.compile(r"[\x00-\x1f\x7f%/]")


@dataclass(frozen=True)
class ArraySpec:
    """What is said about an array before its bytes are looked at."""

    key: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the data."""
        return math.prod(self.shape) * STORAGE_TYPES[self.dtype].itemsize

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


def state_key(state: str, tensor: str) -> str:
    """Key of a state array: ``state/<state>/<escaped tensor name>``."""
    return f"state/{state}/{escape(tensor)}"


def param_key(tensor: str) -> str:
    """Key of a parameter: ``param/<escaped tensor name>``."""
    return f"param/{escape(tensor)}"


def escape(name: str) -> str:
    """A tensor's name as one component of a key.

    HDF5 splits paths at ``/`` and gives ``.`` a meaning of its own, and control characters are safe
    nowhere: they become ``%`` and two hexadecimal digits, and so does ``%`` itself. The empty name
    is a lone ``%``. Different names have different escapes.
    """
    if name == "":
        return "%"
    if name == ".":
        return "%2E"
    return _SPECIAL.sub(lambda found: f"%{ord(found.group()):02X}", name)


def allocate(spec: ArraySpec) -> HostArray:
    """An uninitialised array as ``spec`` says. The caller has checked ``spec`` against the file's size.

    Raises:
        SnapshotError: NumPy can't make such an array; or it is bfloat16, and ml_dtypes isn't installed.
    """
    try:
        return np.empty(spec.shape, numpy_dtype(spec.dtype))
    except BackendUnavailable as problem:
        raise SnapshotError(f"{spec.key}: {problem}") from problem
    except (ValueError, MemoryError, OverflowError) as error:
        raise SnapshotError(f"{spec.key}: no memory for {spec} ({error})") from error


def bytes_of(array: HostArray) -> memoryview:
    """The array's elements in C order, little endian, as flat bytes; a view wherever that is possible."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    flat = np.ascontiguousarray(array).reshape(-1)
    if sys.byteorder == "big":
        flat = flat.view(f"u{flat.dtype.itemsize}").byteswap()
    return flat.view(np.uint8).data


def from_little_endian(array: HostArray) -> HostArray:
    """Turn an array that was filled with little endian bytes into one of the host's order, in place."""
    if sys.byteorder == "big":
        array.view(f"u{array.dtype.itemsize}").byteswap(inplace=True)
    return array


def checksum(spec: ArraySpec, data: memoryview) -> str:
    """SHA-256, in hexadecimal, over dtype and shape (as ``float32[2,3]``) and the data's bytes."""
    digest = hashlib.sha256(str(spec).encode("ascii"))
    digest.update(data)
    return digest.hexdigest()
