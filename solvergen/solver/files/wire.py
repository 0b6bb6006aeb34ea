"""protobuf's wire format, as far as Caffe's snapshots need it.

protobuf's own Python classes make an object of every number of a blob, which for a network of today takes
minutes and many times the file's size in memory. Here the numbers of a packed field stay bytes. The format:
https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from collections.abc import Iterator

from solvergen.errors import SolverFileError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

_SIZES = {FIXED64: 8, FIXED32: 4}
_INT32 = 1 << 31


def fields(data: memoryview, what: str) -> Iterator[tuple[int, int, int | memoryview, int]]:
    """Every field of a message: its number, its wire type, its value and where its key begins.

    The value is an integer for ``VARINT``, bytes otherwise. ``what`` names the message in errors.

    Raises:
        SolverFileError: cut short, or no such message.
    """
    at, end = 0, len(data)
    while at < end:
        start = at
        key, at = _varint(data, at, what)
        number, kind = key >> 3, key & 7
        if number == 0 or number >= 1 << 29:
            raise SolverFileError(
                f"{what}: a field of the number {number} at byte {start}: damaged or foreign"
            )
        if kind == VARINT:
            value, at = _varint(data, at, what)
            yield number, kind, value, start
            continue
        if kind == BYTES:
            size, at = _varint(data, at, what)
        elif kind in _SIZES:
            size = _SIZES[kind]
        else:
            raise SolverFileError(
                f"{what}: no protobuf message (a key {key} at byte {start}): damaged or foreign"
            )
        if size > end - at:
            raise SolverFileError(
                f"{what}: cut short or damaged: its field {number} at byte {start} should have {size} bytes "
                f"and {end - at} are left"
            )
        yield number, kind, data[at : at + size], start
        at += size


def int32(value: int) -> int:
    """An int32 from its varint; higher bits are dropped, as protobuf does."""
    low = value & 0xFFFFFFFF
    return low - (1 << 32) if low >= _INT32 else low


def int64(value: int) -> int:
    """An int64 from its varint."""
    return value - (1 << 64) if value >= 1 << 63 else value


def varints(data: memoryview, what: str) -> Iterator[int]:
    """The numbers of a packed field of varints."""
    at = 0
    while at < len(data):
        value, at = _varint(data, at, what)
        yield value


def text(data: memoryview) -> str:
    """A string. Caffe writes paths in whatever encoding the system has: other bytes become surrogates."""
    return bytes(data).decode("utf-8", "surrogateescape")


def varint(value: int) -> bytes:
    """``value``, which may be negative (ten bytes then), as a varint."""
    rest, pieces = value & (1 << 64) - 1, bytearray()
    while rest > 0x7F:
        pieces.append(rest & 0x7F | 0x80)
        rest >>= 7
    pieces.append(rest)
    return bytes(pieces)


def varint_field(number: int, value: int) -> bytes:
    """A field of the wire type ``VARINT``."""
    return varint(number << 3 | VARINT) + varint(value)


def opening(number: int, size: int) -> bytes:
    """What comes before the ``size`` bytes of a field of the wire type ``BYTES``."""
    return varint(number << 3 | BYTES) + varint(size)


def text_field(number: int, value: str) -> bytes:
    """A string. Raises ``SolverFileError`` where it can't be stored."""
    try:
        data = value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise SolverFileError(
            f"{value!r} holds half of a surrogate pair and can't be stored as text"
        ) from None
    return opening(number, len(data)) + data


def _varint(data: memoryview, at: int, what: str) -> tuple[int, int]:
    """A varint, and where the next byte is."""
    value = shift = 0
    for index in range(at, min(at + 10, len(data))):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, index + 1
        shift += 7
    if len(data) - at < 10:
        raise SolverFileError(f"{what}: cut short or damaged: it ends within a number at byte {at}")
    raise SolverFileError(f"{what}: no protobuf message (a number of more than ten bytes at byte {at})")
