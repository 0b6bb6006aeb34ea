"""A process of its own that examines specs under limits: what hangs or eats memory ends there."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

WALL_SECONDS = 120
"""After so long without an answer the process is ended: long, since machines can be busy."""

ROOT = Path(__file__).parents[2]


class Hung(AssertionError):
    """There was no answer in time, or the process ended itself."""


class Worker:
    """``python -m tests.fuzz.examining``, asked one spec after another; begun anew if one ended it."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def examine(self, data: bytes) -> dict[str, Any]:
        """What the compiler makes of a file that holds ``data``. Raises Hung."""
        if self.process is None:
            command = [sys.executable, "-m", "tests.fuzz.examining"]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=dict(os.environ)
            )
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(len(data).to_bytes(4, "big") + data)
            self.process.stdin.flush()
            answer = self._line()
        except BrokenPipeError:
            answer = b""
        if not answer:
            code = self.process.poll()
            self.close()
            raise Hung(f"no answer (exit status {code}) to {len(data)} bytes: {data[:2000]!r}")
        found: dict[str, Any] = json.loads(answer)
        return found

    def _line(self) -> bytes:
        assert self.process is not None
        assert self.process.stdout is not None
        line, until = b"", time.monotonic() + WALL_SECONDS
        while not line.endswith(b"\n"):
            if not select.select([self.process.stdout], [], [], max(0, until - time.monotonic()))[0]:
                return b""
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                return b""
            line += part
        return line
