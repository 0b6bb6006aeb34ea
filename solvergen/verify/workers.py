"""One worker as the process sees it that has started it.

It leads a process group of its own, so that it can be ended together with the compilers that it has started,
and has its temporary files where it is told, so that nothing of it need be left, however it ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solvergen.runtime.backends.base import Backend
from solvergen.runtime.optimizer import Optimizer

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from solvergen.verify.worker import main; main()"
)


@dataclass(frozen=True, eq=False)
class Task:
    """An optimizer and the backends that are still to be run, each with its column in the report."""

    name: str
    optimizer: type[Optimizer]
    backends: tuple[tuple[int, Backend], ...]


class Worker:
    """A process with its ``task``, and ``at`` which it is: the position of a backend and the number of an
    example; None before the first one."""

    def __init__(self, folder: Path) -> None:
        flags = ("dont_write_bytecode", "-B"), ("ignore_environment", "-E"), ("no_user_site", "-s")
        options = [option for flag, option in flags if getattr(sys.flags, flag)]
        options += [f"-W{option}" for option in sys.warnoptions]
        self._process = subprocess.Popen(
            [sys.executable, *options, "-c", _START, json.dumps(sys.path)],
            env={**os.environ, "TMPDIR": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input = self._process.stdin
        self.output = self._process.stdout
        self.task: Task | None = None
        self.at: tuple[int, int] | None = None
        self._said = b""

    def give(self, task: Task, settings: Mapping[str, int]) -> None:
        """Set it to work."""
        self.task, self.at = task, None
        definition, module = task.optimizer.definition, task.optimizer.__module__
        package = module.partition(".")[0]
        what = {
            "name": task.name,
            "package": package,
            "folder": _folder(package),
            "module": module,
            "class": task.optimizer.__qualname__,
            "definition": [definition.digest, definition.folder],
            "backends": [backend.name for _, backend in task.backends],
            **settings,
        }
        with contextlib.suppress(BrokenPipeError):  # that it has ended shows when its output is read
            self._input.write(json.dumps(what).encode() + b"\n")

    def read(self) -> list[dict[str, Any]] | None:
        """What it has said since, when there is something to be read; None when it has ended."""
        piece = os.read(self.output.fileno(), 1 << 16)
        if not piece:
            return None
        *lines, self._said = (self._said + piece).split(b"\n")
        return [json.loads(line) for line in lines]

    def signal(self, number: int) -> None:
        """Send a signal to the process and to the compilers that it has started."""
        if self._process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, number)

    def end(self, patience: float) -> int:
        """Wait until it has ended, force it after ``patience`` seconds; its exit code."""
        with contextlib.suppress(OSError):
            self._input.close()
        try:
            self._process.wait(max(0.0, patience))
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
        finally:
            self.output.close()
        return self._process.wait()


def _folder(package: str) -> str | None:
    """Where a package lies that was imported from a folder of its own."""
    path = getattr(sys.modules.get(package), "__path__", None)
    folders = [] if path is None else list(path)
    return folders[0] if len(folders) == 1 and Path(folders[0], "__init__.py").is_file() else None
