"""A process that makes rows for ``verify_all``: reads tasks from stdin, a line each, and says how far it is.

What it says goes to what was its stdout, as lines of JSON. What kernels and optimizers print, goes to
stderr: to somebody who reads it, and not between those lines.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from solvergen.runtime.importing import import_package
from solvergen.runtime.optimizer import Optimizer
from solvergen.verify.machines import machine
from solvergen.verify.rows import rows_of
from solvergen.verify.wire import row_data

_PR_SET_PDEATHSIG = 1
_stop = False


def main() -> None:
    """Work until there are no more tasks, or until SIGTERM: then to the end of an example."""
    _end_with_parent()
    signal.signal(signal.SIGTERM, _note)
    with open(_results(), "wb", buffering=0) as results:

        def say(**what: Any) -> None:
            if _stop:
                os._exit(1)  # its temporary folder is the parent's to remove
            results.write(json.dumps(what).encode() + b"\n")

        try:
            for line in sys.stdin.buffer:
                task = json.loads(line)
                try:
                    rows = list(_rows(task, lambda position, done: say(at=[position, done])))
                except BrokenPipeError:
                    raise
                except Exception as problem:  # the parent tries it, and tells what comes of it
                    say(elsewhere=f"{type(problem).__name__}: {problem}")
                else:
                    say(rows=rows)
        except BrokenPipeError:  # nobody is waiting any more
            os._exit(1)


def _results() -> int:
    """A descriptor of the process's stdout; from now on that is its stderr."""
    results = os.dup(1)
    try:
        os.dup2(2, 1)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
    return results


def _rows(task: Mapping[str, Any], tell: Any) -> Iterator[dict[str, Any]]:
    optimizer = _optimizer(task)
    backends = [machine(name) for name in task["backends"]]
    rows = rows_of(task["name"], optimizer, backends, examples=task["examples"], seed=task["seed"], tell=tell)
    yield from map(row_data, rows)


def _optimizer(task: Mapping[str, Any]) -> type[Optimizer]:
    """The very class that the parent has. Raises ImportError if there is another one of its name."""
    package, folder = task["package"], task["folder"]
    if folder is not None and package not in sys.modules:
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None or not os.path.samefile(Path(found.origin).parent, folder):
            import_package(package, Path(folder))
    optimizer: type[Optimizer] = getattr(importlib.import_module(task["module"]), task["class"])
    definition = optimizer.definition
    if [definition.digest, definition.folder] != task["definition"]:
        raise ImportError(f"{task['module']}.{task['class']} is another class here")
    return optimizer


def _note(number: int, frame: FrameType | None) -> None:
    global _stop
    _stop = True


def _end_with_parent() -> None:
    """Nothing is left behind by a parent that is killed, where the system can see to that."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None
    if prctl is not None:
        with contextlib.suppress(OSError):
            prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
