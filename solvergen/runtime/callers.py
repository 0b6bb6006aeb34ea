"""Where a warning points: at the program that uses solvergen, however deep in here it is given."""

from __future__ import annotations

import sys
from types import FrameType


def level_of_program() -> int:
    """The ``stacklevel`` with which the function that calls this warns of the line of the user's.

    That is the first one that is neither in this package nor in the constructor of one of its optimizers,
    wherever the class was generated and however many classes are derived from it.
    """
    level = 1
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        level += 1
        frame = frame.f_back
    return level


def _is_ours(frame: FrameType) -> bool:
    from solvergen.runtime.attributes import Attributes

    name: str = frame.f_globals.get("__name__", "")
    if name.partition(".")[0] == "solvergen":
        return True
    return frame.f_code.co_name == "__init__" and isinstance(frame.f_locals.get("self"), Attributes)
