"""What the modifiers of a load, store or atomic say (PTX ISA, "Data Movement and Conversion")."""

from __future__ import annotations

from dataclasses import dataclass

from solvergen.runtime.ptx.machine.slots import error
from solvergen.runtime.ptx.module import Instruction
from solvergen.runtime.ptx.types import TYPES, Type

_SPACES = {
    "global": "global",
    "shared": "shared",
    "shared::cta": "shared",
    "local": "local",
    "const": "const",
    "param": "param",
    "param::entry": "param",
}
_STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"})
_SCOPES = frozenset({"cta", "cluster", "gpu", "sys"})
_HINTS = frozenset({"ca", "cg", "cs", "lu", "cv", "wb", "wt", "weak"})
"""Where a value is cached, which no result depends on."""

_HINT_LEVELS = ("L1::", "L2::")
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_TYPES = frozenset(TYPES) - {"pred", "f16"}


@dataclass(frozen=True, slots=True)
class AccessForm:
    """``space`` None: a generic address. ``operation``: of an atomic, else ""."""

    space: str | None
    strong: bool
    constant: bool
    count: int
    type: Type
    operation: str = ""


def access_form(instruction: Instruction, operations: frozenset[str] = frozenset()) -> AccessForm:
    """Read the modifiers. Raises PtxError for one that isn't known."""
    space: str | None = None
    strong, constant, count, operation = False, False, 1, ""
    *modifiers, kind = instruction.modifiers or ("",)
    if kind not in _TYPES:
        raise error(instruction, f"the interpreter doesn't know {instruction.name}")
    for modifier in modifiers:
        if modifier in _SPACES and space is None:
            space = _SPACES[modifier]
        elif modifier in _STRONG:
            strong = True
        elif modifier == "nc" and instruction.opcode == "ld":
            constant = True
        elif modifier in operations and not operation:
            operation = modifier
        elif modifier in _VECTORS and count == 1 and not operations:
            count = _VECTORS[modifier]
        elif (
            modifier in _SCOPES
            or modifier in _HINTS
            or (modifier.startswith(_HINT_LEVELS) and modifier != "L2::cache_hint")
        ):
            continue
        else:
            raise error(instruction, f"the interpreter doesn't know .{modifier} of {instruction.name}")
    if count * TYPES[kind].nbytes > 32:
        raise error(instruction, f"{instruction.name} accesses more than 32 bytes at once")
    return AccessForm(space, strong, constant, count, TYPES[kind], operation)
