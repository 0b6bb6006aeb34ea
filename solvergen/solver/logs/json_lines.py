"""Events as JSON, one object a line.

Each has the event's class name in snake case under ``event``, the time under ``time``, and the event's fields
under their names (``training.events`` says what they mean). JSON has no NaN nor infinities: they are the
strings "nan", "inf" and "-inf", which ``float`` reads.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from solvergen.solver.logs.sinks import Sink
from solvergen.solver.training.events import Event, RateUsed, Updated

_LEFT_OUT = (RateUsed, Updated)  # every iteration has them; a display says what counts


def _now() -> datetime:
    return datetime.now(timezone.utc)


class JsonLines:
    """A listener that writes a line of JSON for every event that is worth one."""

    def __init__(self, sink: Sink, *, clock: Callable[[], datetime] = _now) -> None:
        self._sink = sink
        self._clock = clock

    def handle(self, event: Event) -> None:
        """Write it down."""
        if not isinstance(event, _LEFT_OUT):
            self._sink(record_of(event, self._clock()))

    def note(self, name: str, **fields: Any) -> None:
        """Write a line that is no event."""
        record = {"event": name, "time": self._clock().isoformat(), **fields}
        self._sink(json.dumps(_finite(record), allow_nan=False))


def record_of(event: Event, when: datetime) -> str:
    """The line of an event."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()
    record = {"event": name, "time": when.isoformat(), **dataclasses.asdict(event)}
    return json.dumps(_finite(record), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
