"""What a PTX text says about a kernel: its instructions, counted and sorted."""

from __future__ import annotations

import re
from collections import Counter

_INSTRUCTION = re.compile(r"^\s+(?:@!?%p\d+\s+)?([a-z][\w.:]*)\s", re.MULTILINE)

# fmt: off
KNOWN = frozenset({
    "ld", "st", "atom", "mov", "cvt", "cvta", "prmt", "add", "sub", "mul", "mad", "div", "rcp", "sqrt", "neg",
    "abs", "min", "max", "and", "or", "xor", "not", "shl", "shr", "setp", "selp", "bra", "ret",
})
# fmt: on
"""Families of instructions that the update kernels are made of; an interpreter needs no others."""


def instructions(ptx: str) -> Counter[str]:
    """Every instruction with its modifiers, and how often it stands there."""
    return Counter(_INSTRUCTION.findall(ptx))


def accesses(ptx: str, kind: str) -> Counter[tuple[int, int]]:
    """Accesses to global memory of ``kind`` ("ld", "st"): (elements, bits of each) and how many."""
    found: Counter[tuple[int, int]] = Counter()
    for instruction, count in instructions(ptx).items():
        family, *modifiers = instruction.split(".")
        if family == kind and "global" in modifiers:
            vector = next((int(m[1:]) for m in modifiers if re.fullmatch(r"v\d", m)), 1)
            found[vector, int(re.sub(r"\D", "", modifiers[-1]))] += count
    return found
