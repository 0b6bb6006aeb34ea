"""Interleaved rounds: every contender has its turn in every round, in an order that turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvergen.bench.sizes import Size
from solvergen.runtime.arrays import HostArray

WARM_UP = 2
"""Rounds that don't count: kernels are compiled, memory is mapped, caches and clocks settle."""


@dataclass(frozen=True)
class Contender:
    """Something that is timed.

    ``receive(gradients)`` is called before each step and isn't timed: it makes of new NumPy arrays what
    ``step`` takes. ``step(received)`` is timed, and returns when the work is done.
    """

    name: str
    step: Callable[[Any], object]
    receive: Callable[[list[HostArray]], Any]


@dataclass(frozen=True)
class Schedule:
    """``rounds`` that count, each of ``steps`` steps of every contender."""

    rounds: int
    steps: int


def schedule_for(size: Size, factor: float = 1.0) -> Schedule:
    """Rounds and steps that take about a second a contender: fewer where a step moves much."""
    if size.total >= 1 << 22:
        rounds, steps = 15, 1
    elif size.total >= 1 << 18:
        rounds, steps = 40, 5
    else:
        rounds, steps = 60, 10
    return Schedule(max(3, round(rounds * factor)), steps)


def interleave(
    contenders: Mapping[str, Contender],
    size: Size,
    schedule: Schedule,
    draw: Callable[[], list[HostArray]],
    on_round: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, HostArray]:
    """Seconds of each step, ``[rounds, steps]`` by contender.

    ``draw`` gives the numbers of the gradients; every step gets new arrays with them, as from a framework.
    ``on_round`` is told how many of the rounds are done, those that warm up included.
    """
    source = draw()
    names = list(contenders)
    times = {name: np.zeros((schedule.rounds, schedule.steps)) for name in names}
    total = WARM_UP + schedule.rounds
    for number in range(total):
        on_round(number, total)
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            contender = contenders[name]
            for step in range(schedule.steps):
                received = contender.receive([array.copy() for array in source])
                begin = time.perf_counter()
                contender.step(received)
                seconds = time.perf_counter() - begin
                if number >= WARM_UP:
                    times[name][number - WARM_UP, step] = seconds
    on_round(total, total)
    return times
