"""Mutants that compute the same bits although their code is another, each with the reason."""

from __future__ import annotations

import re
from dataclasses import dataclass

from solvergen.verify.mutations import Mutant

_KERNELS = r"kernel\.cu?"


@dataclass(frozen=True)
class Equivalent:
    """``file`` and ``line`` are patterns for the file and for some of the line; the fault puts ``after``, or
    what this pattern matches, in the place of ``before``."""

    file: str
    line: str
    before: str
    after: str
    reason: str

    def covers(self, mutant: Mutant) -> bool:
        """Whether it speaks of this mutant."""
        return (
            re.fullmatch(self.file, mutant.file) is not None
            and re.search(self.line, mutant.source) is not None
            and re.fullmatch(self.before, mutant.before) is not None
            and re.fullmatch(self.after, mutant.after) is not None
        )


_PAYLOAD = "another payload of NaN, and any NaN is like any other"
_STORED = "the parameter is only stored afterwards, and a store rounds too"
_SAME_THERE = "at the boundary both formulas give the same bits"

EQUIVALENT = (
    Equivalent(_KERNELS, r"param_new = sg_round_param\(", r"sg_round_param\(.*\)", r"\(.*\)", _STORED),
    Equivalent(
        r"scalars\.py",
        r" = 1\.0 if .* else 0\.0$",
        r"1\.0",
        r"2\.0",
        "a condition, which kernels compare with 0",
    ),
    # Rounding to bfloat16 and float16.
    Equivalent(_KERNELS, r" quiet = ", r"0x40u", r"0x3fu", _PAYLOAD),
    Equivalent(_KERNELS, r"\? 0x7e00u : bounded", r"0x7e00u", r"0x7dffu", _PAYLOAD),
    Equivalent(_KERNELS, r"magnitude < 0x400u \? tiny", r"<", r"<=", _SAME_THERE),
    Equivalent(_KERNELS, r"magnitude < 0x38800000u \? tiny", r"<", r"<=", _SAME_THERE),
    Equivalent(_KERNELS, r"magnitude < 0x38800000u \? tiny", r"0x38800000u", r"0x387fffffu", _SAME_THERE),
    Equivalent(_KERNELS, r"magnitude >= 0x47800000u", r">=", r">", _SAME_THERE),
    Equivalent(_KERNELS, r"magnitude >= 0x47800000u", r"0x47800000u", r"0x477fffffu", _SAME_THERE),
    Equivalent(
        r"kernel\.c",
        r"sg_from_bits32\(magnitude\) \+ 0\.5f\) - 0x3f000000u",
        r"-",
        r"\+",
        "what is added or subtracted has no bits below the sixteenth, and only those are stored",
    ),
)


def reason_of(mutant: Mutant) -> str | None:
    """Why a mutant computes the same; None if it isn't known to."""
    return next((known.reason for known in EQUIVALENT if known.covers(mutant)), None)
