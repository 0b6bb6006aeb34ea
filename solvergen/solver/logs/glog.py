"""Lines as Google's logging library writes them, which Caffe uses: what stands before the text, and numbers.

I0321 17:36:54.764469 14186 sgd_solver.cpp:112] Iteration 100, lr = 0.00992565
"""

from __future__ import annotations

import os
from datetime import datetime
from enum import Enum

from solvergen.runtime.naming import printable


class Severity(Enum):
    """How serious a line is: its first letter."""

    INFO = "I"
    WARNING = "W"
    ERROR = "E"


def prefixed(text: str, place: str, *, when: datetime, severity: Severity = Severity.INFO) -> str:
    """``text`` behind severity, local time, process id and place; a line for each of its lines. What can't be
    seen, as names may have it, is escaped.

    glog itself prefixes the first line alone, and the extractors of times that come with Caffe stumble over
    the others.
    """
    head = f"{severity.value}{when:%m%d %H:%M:%S}.{when.microsecond:06d} {os.getpid():>5} {place}] "
    lines = text.removesuffix("\n").split("\n")
    return "\n".join(head + "\t".join(map(printable, line.split("\t"))) for line in lines)


def number(value: float) -> str:
    """A number as a C++ stream writes it: six significant digits."""
    return f"{float(value):g}"
