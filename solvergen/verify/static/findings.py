"""What is wrong with a kernel's compiled text: the check, the line, where it comes from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from solvergen.errors import PtxError
from solvergen.runtime.ptx.module import Instruction
from solvergen.verify.static.source import Line, Source

_CALL = re.compile(r"\.func\b|^\s*(?:@!?\S+\s+)?call\b")


@dataclass(frozen=True, slots=True)
class Finding:
    """One check that fails.

    ``check``: its name (``approximation``, ``spill`` ...). ``line``, ``text``: the offending line of the PTX,
    or of the assembly, from 1; 0 and empty where it is about the whole. ``source``: the line of the kernel's
    own text.
    """

    check: str
    message: str
    line: int = 0
    text: str = ""
    source: Line | None = None

    def __str__(self) -> str:
        parts = [f"{self.check}: {self.message}"]
        if self.text:
            parts.append(f"  line {self.line}: {self.text}")
        if self.source is not None:
            parts += [f"  {line}" for line in str(self.source).splitlines()]
        return "\n".join(parts)

    def as_json(self) -> dict[str, Any]:
        """Plain data that ``json.dumps`` takes."""
        source = self.source
        return {
            "check": self.check,
            "message": self.message,
            "line": self.line,
            "text": self.text,
            "source_line": source.number if source else 0,
            "source_text": source.text.strip() if source else "",
            "equation": source.equation if source else "",
        }


def about(check: str, message: str, instruction: Instruction, source: Source) -> Finding:
    """A finding about an instruction of a PTX text."""
    place = instruction.place
    return Finding(check, message, place.line, place.text, source.at(place))


def unreadable(problem: PtxError) -> Finding:
    """What the parser refuses is a finding, too: a call of a library's function above all."""
    call = _CALL.search(problem.text) is not None
    return Finding(
        "library call" if call else "unknown PTX",
        "calls a function that isn't the language's own" if call else str(problem).splitlines()[0],
        problem.line,
        problem.text.strip(),
    )
