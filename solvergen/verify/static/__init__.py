"""Looks at compiled kernels without running them.

    from solvergen.verify.static import check_static
    from mypackage.optim import MyOptimizer

    def test_kernels_are_as_they_must_be():
        check_static(MyOptimizer)

Every kernel is compiled by NVRTC for each compute capability; its PTX is read (``runtime.ptx.text``) and held
to what the language says: arithmetic (``arithmetic``) and the way through memory (``memory``, which finds the
buffer of each access by ``buffers`` and the paths through a loop by ``flow``). ``capabilities`` knows what a
multiprocessor holds. Of a native kernel the compiler's assembly is read (``cpu``). ``matrix`` does this for
all options, types and capabilities, ``report`` holds what came of it.

See docs/verification.md.
"""

from __future__ import annotations

from solvergen.errors import StaticError
from solvergen.verify.static.cuda import Measured
from solvergen.verify.static.findings import Finding
from solvergen.verify.static.matrix import PARTS, TARGETS, check_static, static_report
from solvergen.verify.static.report import StaticReport, StaticRow

__all__ = [
    "PARTS",
    "TARGETS",
    "Finding",
    "Measured",
    "StaticError",
    "StaticReport",
    "StaticRow",
    "check_static",
    "static_report",
]
