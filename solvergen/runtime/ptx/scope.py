"""Names in a PTX text and what they stand for; operands, read by them.

Braces open a scope: inline assembly declares registers, variables and labels of its own in one, as often as
it is written (PTX ISA, "Identifiers", "Block Statements").
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from solvergen.runtime.ptx.module import (
    Address,
    Integer,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Value,
    Vector,
)
from solvergen.runtime.ptx.numbers import number
from solvergen.runtime.ptx.statements import NAME
from solvergen.runtime.ptx.types import Type

_INNER = r"[^,\s{}\[\]()|\"]+"
_ITEM = rf"\{{[^{{}}\[\]()]*\}}|\[[^\[\]{{}}()]*\]|!\s*{_INNER}|{_INNER}(?:\s*\|\s*{_INNER})?"
_ITEMS = re.compile(_ITEM)
_LIST = re.compile(rf"\s*(?:(?:{_ITEM})\s*(?:,\s*(?:{_ITEM})\s*)*)?")
_ADDRESS = re.compile(
    rf"\[\s*(?:(?P<base>{NAME})\s*(?:(?P<sign>[+-])\s*(?P<offset>-?\w+))?|(?P<fixed>\w+))\s*\]"
)

# PTX ISA, "Special Registers".
_SPECIAL = re.compile(
    r"""%(?:
      (?:n?tid|n?ctaid|n?clusterid|cluster_n?ctaid)\.[xyz]
    | laneid | n?warpid | n?smid | gridid | cluster_n?ctarank | is_explicit_cluster
    | lanemask_(?:eq|le|lt|ge|gt) | clock(?:_hi|64)? | globaltimer(?:_lo|_hi)?
    | pm[0-7](?:_64)? | envreg(?:[12]?\d|3[01]) | current_graph_exec
    | (?:total|aggr|dynamic)_smem_size | reserved_smem_offset_(?:begin|end|cap|0|1)
    )""",
    re.VERBOSE,
)


class Unreadable(Exception):
    """An operand or a declaration is wrong; whoever knows the line says where."""


@dataclass(slots=True)
class Scope:
    """What names mean between two braces.

    ``registers`` and ``taken`` are the kernel's own, shared by all of its scopes: registers get their slots
    as they are first used; names of labels and variables that several scopes have are told apart by a number.
    """

    parent: Scope | None
    registers: list[Register]
    taken: set[str]
    names: dict[str, Register | Symbol | Type] = field(default_factory=dict)
    ranges: dict[str, tuple[Type, int]] = field(default_factory=dict)
    _read: dict[str, Operand] = field(default_factory=dict)

    def inner(self) -> Scope:
        """A scope within this one."""
        return Scope(self, self.registers, self.taken)

    def declare_register(self, name: str, type_: Type, count: int | None) -> None:
        """A register, or, with a ``count``, as many of them: name0, name1, ...

        Raises:
            Unreadable: one of that name is there.
        """
        if count is None:
            self._declare(name, type_)
            return
        overlapping = name in self.ranges or any(
            f"{longer}0" in _Numbered(shorter, counted)
            for other, (_, others) in self.ranges.items()
            for shorter, counted, longer in ((name, count, other), (other, others, name))
        )
        if overlapping or any(known in _Numbered(name, count) for known in self.names):
            raise Unreadable(f"one of {name}<{count}> is declared a second time")
        self._read.clear()
        self.ranges[name] = (type_, count)

    def declare_symbol(self, name: str) -> str:
        """A label, parameter or variable. Returns what the kernel calls it.

        Raises:
            Unreadable: the scope has that name already.
        """
        unique, again = name, 1
        while unique in self.taken:
            again += 1
            unique = f"{name}@{again}"
        self._declare(name, Symbol(unique))
        self.taken.add(unique)
        return unique

    def register(self, name: str) -> Register:
        """The register of that name.

        Raises:
            Unreadable: there is none.
        """
        found = self._find(name)
        if not isinstance(found, Register):
            raise Unreadable(f"there is no register {name}")
        return found

    def operands(self, text: str) -> tuple[Operand, ...]:
        """The operands of an instruction, as they are written.

        Raises:
            Unreadable: one can't be read, or names what isn't declared.
        """
        if not _LIST.fullmatch(text):
            raise Unreadable("its operands can't be read")
        read = self._read
        found = []
        for item in _ITEMS.findall(text):
            operand = read.get(item)
            if operand is None:
                operand = read[item] = self._operand(item)
            found.append(operand)
        return tuple(found)

    def _operand(self, text: str) -> Operand:
        if text[0] == "[":
            return self._address(text)
        if text[0] == "{":
            return Vector(tuple(self._value(part.strip()) for part in text[1:-1].split(",")))
        if text[0] == "!":
            return Not(self.register(text[1:].strip()))
        if "|" in text:
            first, second = (self._result(part.strip()) for part in text.split("|"))
            return Pair(first, second)
        return self._value(text)

    def _address(self, text: str) -> Address:
        match = _ADDRESS.fullmatch(text)
        if match is None:
            raise Unreadable(f"{text} is no address that solvergen can read")
        written = match["fixed"] or match["offset"] or "0"
        offset = number(written)
        if not isinstance(offset, Integer):
            raise Unreadable(f"{written} is no offset of an address")
        if match["base"] is None:
            return Address(None, offset.value)
        base = self._value(match["base"])
        if not isinstance(base, Register | Symbol):
            raise Unreadable(f"{match['base']} is no address")
        return Address(base, -offset.value if match["sign"] == "-" else offset.value)

    def _result(self, text: str) -> Register | Sink:
        return Sink() if text == "_" else self.register(text)

    def _value(self, text: str) -> Value:
        if text == "_":
            return Sink()
        if text == "WARP_SZ":
            return Integer(32)
        found = self._find(text) or number(text)
        if found is not None:
            return found
        if _SPECIAL.fullmatch(text):
            return Special(text)
        raise Unreadable(f"{text!r} is neither declared nor a number that PTX can hold")

    def _declare(self, name: str, meaning: Symbol | Type) -> None:
        if name in self.names or any(name in _Numbered(p, count) for p, (_, count) in self.ranges.items()):
            raise Unreadable(f"{name} is declared a second time")
        self._read.clear()
        self.names[name] = meaning

    def _find(self, name: str) -> Register | Symbol | None:
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name)
            if found is None:
                found = scope._in_ranges(name)
            if isinstance(found, Type):
                found = Register(name, found, len(self.registers))
                self.registers.append(found)
                scope.names[name] = found
            if found is not None:
                return found
            scope = scope.parent
        return None

    def _in_ranges(self, name: str) -> Type | None:
        stem = name.rstrip("0123456789")  # nearly always the range that a register is of
        for prefix in (stem, *self.ranges):
            type_, count = self.ranges.get(prefix, (None, 0))
            if name in _Numbered(prefix, count):
                return type_
        return None


@dataclass(frozen=True, slots=True)
class _Numbered:
    """The names prefix0, prefix1, ... up to a count."""

    prefix: str
    count: int

    def __contains__(self, name: str) -> bool:
        digits = name[len(self.prefix) :] if name.startswith(self.prefix) else ""
        # Of 00 and of digits outside of ASCII, no register has the name.
        if not (digits.isascii() and digits.isdecimal()) or len(digits) > 10 or digits != str(int(digits)):
            return False
        return int(digits) < self.count
