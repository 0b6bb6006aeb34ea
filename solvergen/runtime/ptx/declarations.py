"""Declarations in PTX: registers, parameters, variables and their initial bytes.

PTX ISA, "State Spaces, Types, and Variables".
"""

from __future__ import annotations

import math
import re
import struct

from solvergen.runtime.ptx.module import Float, Parameter, Variable
from solvergen.runtime.ptx.numbers import number
from solvergen.runtime.ptx.scope import Scope, Unreadable
from solvergen.runtime.ptx.statements import NAME
from solvergen.runtime.ptx.types import TYPES, Type

_REGISTERS = re.compile(rf"\.(\w+)\s+({NAME}(?:<\d+>)?(?:\s*,\s*{NAME}(?:<\d+>)?)*)\s*")
_REGISTER = re.compile(r"([^<]*)(?:<(\d+)>)?")
_VARIABLE = re.compile(
    rf"""(?:\.align\s+(?P<align>\d+)\s+)?
    (?:\.v(?P<vector>[24])\s+)?
    \.(?P<type>\w+)\s+
    (?:\.ptr\s*(?:\.(?:const|global|local|shared)\s*)?(?:\.align\s+\d+)?\s*)?
    (?P<name>{NAME})\s*
    (?P<dimensions>(?:\[\s*\d*\s*\]\s*)*)
    (?:=\s*(?P<initial>.*?))?\s*""",
    re.VERBOSE | re.DOTALL,
)
_DIMENSION = re.compile(r"\[\s*(\d*)\s*\]")
_LARGEST = 2**40
"""Bytes of a variable: more than any GPU has."""


def declare_registers(scope: Scope, text: str) -> None:
    """``.b32 %r<53>``, what stands behind ``.reg``.

    Raises:
        Unreadable: it can't be read, or a register is declared a second time.
    """
    match = _REGISTERS.fullmatch(text)
    if match is None:
        raise Unreadable("this is no declaration of registers that solvergen can read")
    type_ = _type(match[1])
    for declared in match[2].split(","):
        register = _REGISTER.fullmatch(declared.strip())
        assert register is not None
        scope.declare_register(register[1], type_, None if register[2] is None else int(register[2]))


def parameters(scope: Scope, text: str) -> tuple[Parameter, ...]:
    """What stands between the parentheses of an entry; each parameter behind the last, aligned.

    Raises:
        Unreadable: it can't be read.
    """
    found: list[Parameter] = []
    end = 0
    for declared in text.split(",") if text.strip() else ():
        space, _, rest = declared.strip().partition(" ")
        if space != ".param":
            raise Unreadable(f"{declared.strip()!r} is no parameter")
        name, type_, alignment, nbytes, initial = _declared(rest.strip())
        if initial is not None or nbytes == 0:
            raise Unreadable(f"{declared.strip()!r} is no parameter of an entry")
        offset = -(-end // alignment) * alignment
        end = offset + nbytes
        found.append(Parameter(scope.declare_symbol(name), type_, offset, nbytes))
    return tuple(found)


def variable(scope: Scope, space: str, text: str, *, extern: bool = False) -> Variable:
    """A variable in ``space``, from what stands behind its name.

    Where nothing else is said, global and constant variables begin as zeros; shared and local ones have no
    value.

    Raises:
        Unreadable: it can't be read, isn't defined in this text, or there is one of that name.
    """
    name, type_, alignment, nbytes, initial = _declared(text)
    if extern and (space != "shared" or nbytes):
        raise Unreadable(f"{name} is defined in another module")
    if not extern and nbytes == 0:
        raise Unreadable(f"{name} has no size")
    content: bytes | None = None
    if space in ("global", "const"):
        content = bytes(nbytes) if initial is None else _initial(type_, nbytes, initial)
    elif initial is not None:
        raise Unreadable(f"a variable in .{space} can't have an initial value")
    return Variable(scope.declare_symbol(name), space, alignment, nbytes, content)


def _declared(text: str) -> tuple[str, Type, int, int, str | None]:
    """Name, type, alignment, bytes in all and the initial value as written."""
    match = _VARIABLE.fullmatch(text)
    if match is None:
        raise Unreadable("this is no declaration that solvergen can read")
    type_ = _type(match["type"])
    if type_.kind == "predicate":
        raise Unreadable("predicates have no place in memory")
    size = type_.nbytes * int(match["vector"] or 1)
    alignment = int(match["align"] or size)
    if alignment.bit_count() != 1 or alignment < size:
        raise Unreadable(f"{alignment} is no alignment for {type_}")
    counts = [int(count) if count else 0 for count in _DIMENSION.findall(match["dimensions"])]
    nbytes = size * math.prod(counts)
    if nbytes > _LARGEST:
        raise Unreadable(f"{match['name']} is larger than any memory")
    return match["name"], type_, alignment, nbytes, match["initial"]


def _initial(type_: Type, nbytes: int, text: str) -> bytes:
    """The bytes of an initial value; what it doesn't reach is zero."""
    listed = text.startswith("{")
    if listed and not text.endswith("}"):
        raise Unreadable("the initial value has no closing brace")
    items = (text[1:-1] if listed else text).split(",")
    content = b"".join(_bytes(type_, item.strip()) for item in items) if items != [""] else b""
    if len(content) > nbytes:
        raise Unreadable("the initial value is larger than the variable")
    return content.ljust(nbytes, b"\0")


def _bytes(type_: Type, text: str) -> bytes:
    value = number(text)
    if value is None:
        raise Unreadable(f"{text!r} as an initial value is no number; addresses aren't supported there")
    if isinstance(value, Float):
        if type_.kind != "float" or type_.bits < 32:
            raise Unreadable(f"{text} is no value of {type_}")
        if value.width == type_.bits:
            return value.bits.to_bytes(type_.nbytes, "little")
        bits = value.bits.to_bytes(value.width // 8, "little")
        held = struct.unpack("<f" if value.width == 32 else "<d", bits)
        try:
            return struct.pack("<d" if type_.bits == 64 else "<f", *held)
        except OverflowError:
            raise Unreadable(f"{text} is no value of {type_}") from None
    if type_.kind == "float":
        raise Unreadable(f"{text} is no value of {type_}")
    if not -(1 << (type_.bits - 1)) <= value.value < 1 << type_.bits:
        raise Unreadable(f"{text} is no value of {type_}")
    return (value.value % (1 << type_.bits)).to_bytes(type_.nbytes, "little")


def _type(name: str) -> Type:
    found = TYPES.get(name)
    if found is None:
        raise Unreadable(f".{name} is no type that solvergen knows")
    return found
