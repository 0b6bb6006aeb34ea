"""One deliberate fault: a small change of one text, as data."""

from __future__ import annotations

import re
from dataclasses import dataclass

KINDS = (
    "operator",  # + for -, * for /, a comparison that takes in its bound, or a sign that is left out
    "operands",  # b - a for a - b
    "grouping",  # a + (b + c) for a + b + c, or parentheses that are left out
    "contraction",  # a*b + c rounded once
    "flush",  # a subnormal result is zero
    "constant",  # another number
    "ulp",  # the neighbouring number
    "variable",  # another value: the one before, or that of before its assignment
    "call",  # a function left out, or its arguments exchanged
    "branch",  # both branches exchanged
    "option",  # what an option guards, with the option off
    "load",  # a buffer that is not read
    "store",  # a buffer that is not written
    "buffer",  # another buffer
    "row",  # another scalar of the table
    "float32 scalar",  # a scalar computed or kept in float32
    "t",  # the count of updates, one off
    "bounds",  # of loops, heads and tails
    "chunks",  # of the runs of elements that tensors are cut into
    "lanes",  # of vectors: order, number, position
    "reduction",  # a lane, the halving, a term, a partial total, how they are combined, the root, the mean
    "stage",  # who speaks for the optimizer, what stages leave to passes
    "lines",  # of tiles, rows, columns and matrices: where they lie, what they keep, their partial totals
    "barriers",  # threads that don't wait for one another
    "conversion",  # to and from bfloat16 and float16
    "functions",  # exp, log, max and the like
    "flags",  # what the kernel is compiled with
    "tables",  # chunks, pointers and rows as the runtime hands them to the kernel
    "order",  # of stages and passes
)
"""The kinds of faults, in the order in which they are reported."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A text with one place changed.

    ``file``: of the optimizer's folder ("kernel.c", "kernel.cu", "scalars.py"), or "flags" or "tables".
    ``start``: where ``before`` stands in the text of the file. ``line``: its number; ``source``: the line.
    ``function``: the one of ``kernel.c`` in which it stands.
    """

    file: str
    kind: str
    start: int
    before: str
    after: str
    line: int
    source: str
    place: int
    function: str = ""

    def applied(self, text: str) -> str:
        """``text`` with the fault in it."""
        end = self.start + len(self.before)
        assert text[self.start : end] == self.before
        return text[: self.start] + self.after + text[end:]

    @property
    def changed(self) -> str:
        """The source line with the fault in it, without the spaces around."""
        end = self.place + len(self.before)
        return (self.source[: self.place] + self.after + self.source[end:]).strip()

    @property
    def key(self) -> tuple[str, str, str, str]:
        """File, function, line before and line after: the same wherever in the function the line stands."""
        return (self.file, self.function, self.source.strip(), self.changed)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.kind}: {self.source.strip()}  ->  {self.changed}"


_FUNCTION = re.compile(r"(?m)^[^\s#/}*].*?\b(sg_\w+)\((?!\()")
"""The line that a function of ``kernel.c`` begins with."""


def at(text: str, file: str, kind: str, start: int, end: int, after: str) -> Mutant:
    """The mutant that puts ``after`` in the place of ``text[start:end]``."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    source = text[first : len(text) if last < 0 else last]
    within = text.rfind("\n}\n", 0, start) + 1
    function = _FUNCTION.search(text, within, start) if file == "kernel.c" else None
    return Mutant(
        file,
        kind,
        start,
        text[start:end],
        after,
        text.count("\n", 0, start) + 1,
        source,
        start - first,
        function.group(1) if function is not None else "",
    )
