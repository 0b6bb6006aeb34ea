"""The process that ``bounded`` asks: specs on its input, one line of JSON about each on its output."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
import traceback
import unicodedata
import warnings
from pathlib import Path
from typing import Any

from solvergen import stages
from solvergen.compiler import build, check
from solvergen.errors import Diagnostic
from solvergen.spec.report import as_data, format_diagnostics

MEMORY = 400 << 20
"""Bytes of address space beyond what the process has once everything is imported."""


def main() -> None:
    """Answer until the input ends."""
    build([Path("specs", "lion.yaml")])
    _import_lazily()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory(prefix="solvergen-fuzz-") as folder:
        path = Path(folder, "rule.yaml")
        while header := sys.stdin.buffer.read(4):
            data = sys.stdin.buffer.read(int.from_bytes(header, "big"))
            path.write_bytes(data)
            started = time.process_time()
            try:
                answer = _examine(path, data)
            except BaseException:
                answer = {"failure": traceback.format_exc()}
            answer["seconds"] = time.process_time() - started
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def _import_lazily() -> None:
    for stage in stages.STAGES:
        stages.show(Path("specs", "lion.yaml"), stage)


def _examine(path: Path, data: bytes) -> dict[str, Any]:
    found = check([path])
    codes = sorted({d.code for d in found.diagnostics})
    if found.failed or found.diagnostics:
        assert format_diagnostics(found.diagnostics)
        json.dumps([as_data(d) for d in found.diagnostics])
    for diagnostic in found.diagnostics:
        _check_place(diagnostic, data)
    if found.failed:
        assert any(d.severity == "error" for d in found.diagnostics)
        return {"valid": False, "codes": codes}
    assert all(d.severity == "warning" for d in found.diagnostics)
    for name, text in build([path], wrap=False).artifacts.items():
        if name.endswith(".py"):
            compile(text, name, "exec")
    for stage in ("parsed", "scheduled", "latex", "sympy"):
        assert stages.show(path, stage)
    return {"valid": True, "codes": codes}


def _check_place(diagnostic: Diagnostic, data: bytes) -> None:
    """A finding points into the file, says something, and shows a line that is there."""
    place = diagnostic.location
    lines = data.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert diagnostic.message.strip()
    hidden = [c for c in diagnostic.message if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")]
    assert not hidden, repr(diagnostic.message)
    assert diagnostic.hint is None or diagnostic.hint.strip()
    assert len(diagnostic.message) < 1000
    assert 1 <= place.line <= len(lines), (place, len(lines))
    assert 1 <= place.column < place.end_column, place


if __name__ == "__main__":
    main()
