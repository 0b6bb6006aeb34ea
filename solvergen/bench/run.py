"""Optimizers, sizes, contenders: one result for each optimizer at each size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvergen.bench.contenders import Draw, ours, traffic_limit
from solvergen.bench.peers import PEERS as _PEERS
from solvergen.bench.result import LIMIT, Result, measured
from solvergen.bench.sizes import Size
from solvergen.bench.timing import Contender, interleave, schedule_for
from solvergen.bench.traffic import bytes_per_element
from solvergen.errors import BackendUnavailable, BenchmarkError
from solvergen.runtime import native
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.dtypes import numpy_dtype
from solvergen.runtime.optimizer import Optimizer
from solvergen.spec.model import Counterpart

BACKENDS = ("cpu", "numpy")
"""Backends that are timed here. For a GPU there is benchmarks/gpu.py, which times by events of its stream."""

PEERS = tuple(_PEERS)
"""Other libraries that are timed where a spec names a counterpart in them."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a benchmark is: ``done`` of ``total`` rounds of this optimizer at this size, the
    ``position``-th of ``runs`` such runs."""

    optimizer: str
    size: Size
    done: int
    total: int
    position: int
    runs: int


@dataclass(frozen=True)
class Entry:
    """An optimizer to time: its class, settings that differ from its defaults, its counterparts."""

    optimizer: type[Optimizer]
    settings: Mapping[str, Any]
    counterparts: Sequence[Counterpart] = ()

    @property
    def title(self) -> str:
        """Its name with its settings, as on a command line."""
        text = ",".join(
            f"{name}={str(value).lower() if isinstance(value, bool) else f'{value:g}'}"
            for name, value in self.settings.items()
        )
        return self.optimizer.definition.name + (f":{text}" if text else "")


def benchmark(
    entries: Sequence[Entry],
    sizes: Sequence[Size],
    *,
    backends: Sequence[str] = ("cpu",),
    peers: Sequence[str] = PEERS,
    dtype: str = "float32",
    factor: float = 1.0,
    progress: Callable[[Progress], None] = lambda at: None,
) -> Iterator[Result]:
    """Time each entry at each size, and give out each result when it is there.

    ``dtype`` is that of parameters and gradients. ``factor`` times the usual number of rounds is run.
    What can't be timed (a library that isn't installed, a rule that it hasn't) is in ``Result.left_out``.
    Raises BackendUnavailable if one of ``backends`` doesn't work here, HyperparameterError for settings
    that an optimizer refuses, BenchmarkError for a name that isn't known.
    """
    for name, known in [*((b, BACKENDS) for b in backends), *((p, PEERS) for p in peers)]:
        if name not in known:
            raise BenchmarkError(f"{name!r:.60} can't be timed; there are {', '.join(known)}")
    if not backends:
        raise BenchmarkError(f"no backend to time; there are {', '.join(BACKENDS)}")
    runs = [(entry, size) for entry in entries for size in sizes]
    for position, (entry, size) in enumerate(runs, start=1):

        def on_round(
            done: int, total: int, entry: Entry = entry, size: Size = size, p: int = position
        ) -> None:
            progress(Progress(entry.title, size, done, total, p, len(runs)))

        yield _one(entry, size, backends, peers, dtype, factor, on_round)


def _one(
    entry: Entry,
    size: Size,
    backends: Sequence[str],
    peers: Sequence[str],
    dtype: str,
    factor: float,
    on_round: Callable[[int, int], None],
) -> Result:
    draw = _drawing(size, dtype)
    probe = entry.optimizer(np.zeros(1, numpy_dtype(dtype)), backend="numpy", **entry.settings)
    options = dict(probe.options)
    values = {**{h: getattr(probe, h) for h in probe.definition.hyperparameter_names}, **options}
    contenders: dict[str, Contender] = {}
    left_out: list[tuple[str, str]] = []

    def add(contender: Contender) -> None:
        contenders[contender.name] = contender

    reason = native.available()
    if reason is None:
        add(traffic_limit(entry.optimizer, options, draw))
    else:
        left_out.append((LIMIT, reason))
    for backend in backends:
        try:
            add(ours(entry.optimizer, entry.settings, backend, draw))
        except BackendUnavailable as unavailable:
            left_out.append((backend, str(unavailable)))
    timed = [backend for backend in backends if backend in contenders]
    if not timed:
        raise BackendUnavailable("; ".join(why for _, why in left_out))
    for peer in peers:
        counterpart = next((c for c in entry.counterparts if c.library == peer), None)
        if counterpart is None:
            left_out.append((peer, "its spec names no counterpart there"))
            continue
        try:
            add(_PEERS[peer](counterpart, values, draw, _threads()))
        except BenchmarkError as problem:
            left_out.append((peer, str(problem)))
    times = interleave(contenders, size, schedule_for(size, factor), draw, on_round)
    return Result(
        optimizer=probe.definition.name,
        settings=entry.title.partition(":")[2],
        size=size,
        dtype=dtype,
        bytes_per_element=bytes_per_element(probe.definition, options, dtype, dtype),
        measured=measured(times, timed[0]),
        left_out=tuple(left_out),
    )


def _drawing(size: Size, dtype: str) -> Draw:
    """Standard normal numbers. The same ones again and again: their values decide nothing about time."""
    element = numpy_dtype(dtype)
    one = np.random.default_rng(1).standard_normal(size.elements, dtype=np.float32).astype(element)

    def draw() -> list[HostArray]:
        return [one.copy() for _ in range(size.tensors)]

    return draw


def _threads() -> int:
    if native.available() is not None:
        return 1
    from solvergen.runtime.native.threads import thread_count

    return thread_count()
