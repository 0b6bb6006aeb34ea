"""Caffe's message BlobProto: a shape and its numbers, in float or double.

Files from before 2015 have four axes (``num``, ``channels``, ``height``, ``width``) and no ``shape``. Packed
fields may come in several pieces, and some old writers didn't pack: both are read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from solvergen.errors import SolverFileError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.naming import quoted
from solvergen.solver.files import wire

MOST_AXES = 32
"""Caffe's own limit."""

_MOST_ELEMENTS = 2**31 - 1
_LEGACY = (1, 2, 3, 4)
_DATA, _DIFF, _SHAPE, _DOUBLE_DATA, _DOUBLE_DIFF = 5, 6, 7, 8, 9
_PACKED = {_DATA: "<f4", _DIFF: "<f4", _DOUBLE_DATA: "<f8", _DOUBLE_DIFF: "<f8"}
_UNPACKED = {wire.FIXED32: "<f4", wire.FIXED64: "<f8"}


@dataclass(frozen=True, eq=False)
class Blob:
    """A blob as it was read."""

    data: HostArray
    diff: HostArray | None


def read(message: memoryview, what: str) -> Blob:
    """The blob in ``message``. Raises ``SolverFileError`` where its numbers don't fit its shape."""
    numbers: dict[int, list[HostArray]] = {number: [] for number in _PACKED}
    axes: list[int] = []
    legacy: dict[int, int] = {}
    rest: memoryview | None = message
    while rest is not None:
        unread, rest = rest, None
        for number, kind, value, start in wire.fields(unread, what):
            if isinstance(value, int):
                if number in _LEGACY:
                    legacy[number] = wire.int32(value)
            elif number == _SHAPE and kind == wire.BYTES:
                axes.extend(_axes(value, what))
            elif number in _PACKED and kind == wire.BYTES:
                numbers[number].append(_packed(value, _PACKED[number], what))
            elif number in _PACKED and _UNPACKED.get(kind) == _PACKED[number] and unread[start] > 0x7F:
                numbers[number].append(_packed(value, _PACKED[number], what))  # a key of several bytes
            elif number in _PACKED and _UNPACKED.get(kind) == _PACKED[number]:
                found, end = _unpacked(unread, start, np.dtype(_PACKED[number]))
                numbers[number].append(found)
                rest = unread[end:]
                break
    shape = tuple(legacy.get(number, 0) for number in _LEGACY) if legacy else tuple(axes)
    if len(shape) > MOST_AXES or any(size < 0 for size in shape) or math.prod(shape) > _MOST_ELEMENTS:
        raise SolverFileError(f"{what}: no shape of Caffe's: {quoted(shape)}")
    data = _joined(numbers[_DOUBLE_DATA] or numbers[_DATA], shape, what)
    if data is None:
        raise SolverFileError(f"{what}: no numbers, but the shape {shape} wants {math.prod(shape)}")
    return Blob(data, _joined(numbers[_DOUBLE_DIFF] or numbers[_DIFF], shape, f"{what}, diff"))


def pieces(data: HostArray, diff: HostArray | None, what: str) -> Iterator[bytes | memoryview]:
    """A blob as bytes to be written one after the other; of the arrays as they are, where that is possible.

    Raises:
        SolverFileError: an array that Caffe's message can't hold.
    """
    stored, data_number, diff_number = _stored(data, what)
    if len(data.shape) > MOST_AXES:
        raise SolverFileError(f"{what}: {len(data.shape)} axes; Caffe goes to {MOST_AXES}")
    if diff is not None and diff.shape != data.shape:
        raise SolverFileError(f"{what}: the diff has the shape {diff.shape}, the data {data.shape}")
    arrays = [(data_number, data)] + ([] if diff is None else [(diff_number, diff)])
    shape = _shape(data.shape)
    # In the order of the fields' numbers, as protobuf writes them: 5, 6, 7 for float, 7, 8, 9 for double.
    if stored.itemsize == 8:
        yield shape
    for number, array in arrays:
        flat = np.ascontiguousarray(array, stored).reshape(-1)
        if flat.size:
            yield wire.opening(number, flat.nbytes)
            yield flat.view(np.uint8).data
    if stored.itemsize == 4:
        yield shape


def size_of(data: HostArray, diff: HostArray | None, what: str) -> int:
    """How many bytes ``pieces`` yields."""
    stored, data_number, diff_number = _stored(data, what)
    size = len(_shape(data.shape))
    nbytes = math.prod(data.shape) * stored.itemsize
    for number in (data_number, *(() if diff is None else (diff_number,))):
        if nbytes:
            size += len(wire.opening(number, nbytes)) + nbytes
    return size


def _stored(data: HostArray, what: str) -> tuple[np.dtype[np.generic], int, int]:
    """The type in which an array is stored, and the fields' numbers. Halves are widened, which is exact."""
    if data.dtype.name == "float64":
        return np.dtype("<f8"), _DOUBLE_DATA, _DOUBLE_DIFF
    if data.dtype.name in ("float32", "float16", "bfloat16"):
        return np.dtype("<f4"), _DATA, _DIFF
    raise SolverFileError(f"{what}: Caffe's files hold floats and doubles, this is {data.dtype.name}")


def _shape(shape: tuple[int, ...]) -> bytes:
    """The field ``shape``; none for a single number, as Caffe does."""
    if not shape:
        return b""
    sizes = b"".join(map(wire.varint, shape))
    message = wire.opening(1, len(sizes)) + sizes
    return wire.opening(_SHAPE, len(message)) + message


def _axes(message: memoryview, what: str) -> Iterator[int]:
    for number, kind, value, _ in wire.fields(message, f"{what}, shape"):
        if number != 1:
            continue
        if isinstance(value, int):
            yield wire.int64(value)
        elif kind == wire.BYTES:
            yield from map(wire.int64, wire.varints(value, f"{what}, shape"))


def _packed(value: memoryview, stored: str, what: str) -> HostArray:
    if len(value) % np.dtype(stored).itemsize:
        raise SolverFileError(f"{what}: {len(value)} bytes aren't whole numbers: damaged")
    return np.frombuffer(value, stored)


def _unpacked(message: memoryview, start: int, stored: np.dtype[np.generic]) -> tuple[HostArray, int]:
    """All numbers from ``start`` on that have the same key of one byte before them, and where they end."""
    record = np.dtype([("key", "u1"), ("value", stored)])
    most = (len(message) - start) // record.itemsize
    records = np.frombuffer(message[start : start + most * record.itemsize], record)
    count, block = 0, 64
    while count < most:  # in growing blocks, so that many short runs don't each look at the whole rest
        keys = records["key"][count : count + block]
        other = np.flatnonzero(keys != message[start])
        if other.size:
            count += int(other[0])
            break
        count, block = count + len(keys), 2 * block
    return records["value"][:count], start + count * record.itemsize


def _joined(found: list[HostArray], shape: tuple[int, ...], what: str) -> HostArray | None:
    """The numbers as a new array of the host's byte order; None if there are none but should be some."""
    count = sum(piece.size for piece in found)
    expected = math.prod(shape)
    if not found and expected:
        return None
    if count != expected:
        raise SolverFileError(f"{what}: {count} numbers, but the shape {shape} wants {expected}: damaged")
    if not found:
        return np.empty(shape, np.float32)
    joined = np.empty(count, found[0].dtype.newbyteorder("="))
    np.concatenate(found, out=joined)
    return joined.reshape(shape)
