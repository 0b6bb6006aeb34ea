"""Events as Caffe's log lines, for the many scripts that read these.

Some of the scripts look for the place in Caffe's sources that stands before a line ("solver.cpp:239]"), so
lines have the places of Caffe 1.0. What Caffe doesn't say bears "solvergen".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from solvergen.solver.logs.glog import Severity, number, prefixed
from solvergen.solver.logs.sinks import Sink
from solvergen.solver.training import events
from solvergen.solver.training.events import Event, OutputValue

OWN = "solvergen"

_FORMATS = {"BINARYPROTO": "binary proto", "HDF5": "HDF5", "SAFETENSORS": "safetensors"}
_MODEL_PLACES = {"BINARYPROTO": "solver.cpp:464", "HDF5": "solver.cpp:474"}
_STATE_PLACES = {"BINARYPROTO": "sgd_solver.cpp:284", "HDF5": "sgd_solver.cpp:294"}

_SEVERITIES = {events.Warned: Severity.WARNING, events.DebugNorms: Severity.ERROR}
"""Caffe tells sums over all parameters as an error, too."""

Line = tuple[str, str]  # place, text


class CaffeLog:
    """A listener that writes what Caffe writes, line for line, and warnings.

    ``display`` is the solver's parameter, which the lines of displays repeat.
    """

    def __init__(self, sink: Sink, *, display: int = 0, clock: Callable[[], datetime] = datetime.now) -> None:
        self._sink = sink
        self._display = display
        self._clock = clock

    def handle(self, event: Event) -> None:
        """Write it down."""
        severity = _SEVERITIES.get(type(event), Severity.INFO)
        for place, text in lines_of(event, self._display):
            self._sink(prefixed(text, place, when=self._clock(), severity=severity))

    def say(self, text: str, place: str = OWN) -> None:
        """Write a line that is no event."""
        self._sink(prefixed(text, place, when=self._clock()))


def lines_of(event: Event, display: int = 0) -> Iterator[Line]:
    """Places and texts of an event's lines; none for what Caffe keeps to itself."""
    match event:
        case events.Started():
            yield "solver.cpp:289", f"Solving {event.net}"
            yield "solver.cpp:290", f"Learning Rate Policy: {event.policy}"
            yield OWN, f"{event.solver_type} on backend {event.backend}, up to iteration {event.max_iter}"
        case events.Resumed():
            yield "solver.cpp:296", f"Restoring previous solver status from {event.path}"
            # Caffe says SGDSolver whatever the type is, since all types share the function.
            yield "sgd_solver.cpp:329", "SGDSolver: restoring history"
        case events.Iteration(final=True):
            yield "solver.cpp:327", f"Iteration {event.iter}, loss = {number(event.smoothed)}"
        case events.Iteration():
            per_second = event.iterations / event.seconds if event.seconds else 0.0
            yield (
                "solver.cpp:239",
                f"Iteration {event.iter} ({number(per_second)} iter/s, {number(event.seconds)}s/"
                f"{display or event.iterations} iters), loss = {number(event.smoothed)}",
            )
        case events.Outputs():
            for value in event.values:
                yield "solver.cpp:258", f"    Train net output #{value.index}: {output_text(value)}"
        case events.RateUsed(displayed=True):
            yield "sgd_solver.cpp:112", f"Iteration {event.iter}, lr = {number(event.lr)}"
        case events.Clipped():
            yield (
                "sgd_solver.cpp:98",
                f"Gradient clipping: scaling down gradients (L2 norm {number(event.norm)} > "
                f"{number(event.threshold)}) by scale factor {number(event.scale)}",
            )
        case events.TestStarted():
            yield "solver.cpp:347", f"Iteration {event.iter}, Testing net (#{event.net})"
        case events.TestInterrupted():
            yield "solver.cpp:396", "Test interrupted."
        case events.TestOutputs():
            if event.loss is not None:
                yield "solver.cpp:401", f"Test loss: {number(event.loss)}"
            for value in event.values:
                yield "solver.cpp:414", f"    Test net output #{value.index}: {output_text(value)}"
        case events.Snapshotting():
            yield _snapshot(event)
        case events.Finished():
            yield "solver.cpp:332", "Optimization Done."
        case events.EarlyStop():
            yield "solver.cpp:311", "Optimization stopped early."
        case events.Warned():
            yield OWN, event.text
        case events.DebugBlob(phase="forward"):
            yield (
                "net.cpp:583",
                f"    [Forward] Layer {event.layer}, top blob {event.blob} data: {number(event.value)}",
            )
        case events.DebugBlob():
            yield (
                "net.cpp:607",
                f"    [Backward] Layer {event.layer}, bottom blob {event.blob} diff: {number(event.value)}",
            )
        case events.DebugInfo():
            yield _debug(event)
        case events.DebugNorms():
            yield (
                "net.cpp:541",
                f"    [Backward] All net params (data, diff): L1 norm = ({number(event.data_l1)}, "
                f"{number(event.diff_l1)}); L2 norm = ({number(event.data_l2)}, {number(event.diff_l2)})",
            )
        case _:
            return


def output_text(value: OutputValue) -> str:
    """An output's name and value, and what it adds to the loss."""
    text = f"{value.name} = {number(value.value)}"
    if value.loss_weight:
        text += f" (* {number(value.loss_weight)} = {number(value.loss)} loss)"
    return text


def _snapshot(event: events.Snapshotting) -> Line:
    form = _FORMATS.get(event.format, event.format)
    if event.kind == "model":
        return _MODEL_PLACES.get(event.format, OWN), f"Snapshotting to {form} file {event.path}"
    return (
        _STATE_PLACES.get(event.format, OWN),
        f"Snapshotting solver state to {form} file {event.path}",
    )


def _debug(event: events.DebugInfo) -> Line:
    if event.phase == "forward":
        return (
            "net.cpp:593",
            f"    [Forward] Layer {event.layer}, param blob {event.index} data: {number(event.data)}",
        )
    if event.phase == "backward":
        return (
            "net.cpp:619",
            f"    [Backward] Layer {event.layer}, param blob {event.index} diff: {number(event.diff)}",
        )
    return (
        "net.cpp:639",
        f"    [Update] Layer {event.layer}, param {event.name} data: {number(event.data)}; "
        f"diff: {number(event.diff)}",
    )
