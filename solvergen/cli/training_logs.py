"""The logs of a command that trains: Caffe's lines, JSON lines and a bar, told alike."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from solvergen.solver.logs.caffe_log import CaffeLog
    from solvergen.solver.logs.json_lines import JsonLines
    from solvergen.solver.parameters.model import SolverParameters
    from solvergen.solver.training.events import Listener


@dataclass
class Logs:
    """Who listens to a training; what is told beside its events goes to the logs among them."""

    caffe: list[CaffeLog] = field(default_factory=list)
    json: list[JsonLines] = field(default_factory=list)
    bar: list[Listener] = field(default_factory=list)

    @property
    def listeners(self) -> list[Listener]:
        """All of them, for a solver."""
        return [*self.caffe, *self.json, *self.bar]

    def say(self, text: str, place: str) -> None:
        """Write what is no event into logs of Caffe's form."""
        for one in self.caffe:
            one.say(text, place)

    def warn(self, texts: Iterable[str]) -> None:
        """Tell all of what was seen before the training."""
        from solvergen.solver.training.events import Warned

        for text in texts:
            for listener in self.listeners:
                listener.handle(Warned(0, text))

    def parameters(self, params: SolverParameters) -> None:
        """What was given, as Caffe prints it."""
        from solvergen.solver.parameters.report import as_data, effective

        lines = [line for line in effective(params) if not line.endswith("# default")]
        for one in self.caffe:
            one.say("\n".join(["Initializing solver from parameters: ", *lines]), "solver.cpp:45")
        given = {name: value for name, value in as_data(params).items() if params.has(name)}
        for log in self.json:
            log.note("parameters", iter=0, parameters=given)


@contextlib.contextmanager
def opened(params: SolverParameters, file: Path | None) -> Iterator[Logs]:
    """Caffe's lines on stderr, a bar below them on a terminal, and the log in a file."""
    from solvergen.solver.logs.caffe_log import CaffeLog
    from solvergen.solver.logs.json_lines import JsonLines
    from solvergen.solver.logs.progress import shown
    from solvergen.solver.logs.sinks import LineFile, Sink, to_stderr

    logs = Logs()
    with contextlib.ExitStack() as stack:
        sink: Sink = to_stderr
        if sys.stderr.isatty():
            bar, sink = stack.enter_context(shown(sys.stderr))
            logs.bar.append(bar)
        logs.caffe.append(CaffeLog(sink, display=params.display))
        if file is not None:
            lines = stack.enter_context(LineFile(file))
            if file.suffix.lower() == ".jsonl":
                logs.json.append(JsonLines(lines))
            else:
                logs.caffe.append(CaffeLog(lines, display=params.display))
        yield logs
