"""Races: the marks of a few bits find what a log of every access would."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from solvergen.runtime.ptx.machine.clock import WARP, Clock
from solvergen.runtime.ptx.machine.faults import Violation
from solvergen.runtime.ptx.machine.kinds import Access, Kind
from solvergen.runtime.ptx.machine.marks import mark_of
from solvergen.runtime.ptx.machine.memory import Memory
from solvergen.runtime.ptx.machine.regions import Region, Regions
from solvergen.runtime.ptx.module import Instruction, Place

BLOCKS, THREADS = 2, 2 * WARP
BASE = 4096
KINDS: tuple[Kind, ...] = ("read", "constant read", "write", "strong read", "strong write", "atomic")


@dataclass(frozen=True)
class Touch:
    """Some threads, each with the word that it touches, do the same at the same time."""

    kind: Kind
    places: tuple[tuple[int, int], ...]
    wide: bool


@dataclass(frozen=True)
class Barrier:
    """All threads of a block, or of a warp of it, meet."""

    block: int
    warp: int | None


# Threads 0 and 1 share a warp, 33 is in another of their block, 64 and 97 are in another block.
threads = st.sampled_from([0, 1, 33, 64, 65, 97])
touches = st.builds(
    Touch,
    st.sampled_from(KINDS),
    st.lists(
        st.tuples(threads, st.integers(0, 3)), min_size=1, max_size=4, unique_by=lambda pair: pair[0]
    ).map(tuple),
    st.booleans(),
)
barriers = st.builds(Barrier, st.integers(0, BLOCKS - 1), st.sampled_from([None, 0, 1]))


def writes(kind: Kind) -> bool:
    return kind in ("write", "strong write", "atomic")


def strong(kind: Kind) -> bool:
    return kind in ("strong read", "strong write", "atomic")


def races(history: list[Touch | Barrier]) -> bool:
    """By the definition: two accesses of different threads to one word, one of them a write, not both strong,
    with no barrier between that both threads took part in. A constant read races with whatever is written."""
    log: list[tuple[int, int, int, Kind]] = []  # time, thread, word, kind
    met: list[tuple[int, int, int | None]] = []
    for time, event in enumerate(history):
        if isinstance(event, Barrier):
            met.append((time, event.block, event.warp))
            continue
        for thread, word in event.places:
            for part in (2 * word, 2 * word + 1) if event.wide else (2 * word,):
                for before, other, there, kind in log:
                    if there != part or not (writes(kind) or writes(event.kind)):
                        continue
                    if "constant read" in (kind, event.kind):
                        return True
                    if other == thread:
                        continue
                    if strong(kind) and strong(event.kind):
                        continue
                    same_block = other // THREADS == thread // THREADS
                    same_warp = same_block and other % THREADS // WARP == thread % THREADS // WARP
                    ordered = any(
                        before < moment < time
                        and same_block
                        and block == thread // THREADS
                        and (warp is None or (same_warp and warp == thread % THREADS // WARP))
                        for moment, block, warp in met
                    )
                    if not ordered:
                        return True
                log.append((time, thread, part, event.kind))
    return False


def found(history: list[Touch | Barrier]) -> bool:
    clock = Clock(BLOCKS, THREADS)
    memory = Memory(Regions([Region("x", BASE, 64)]), granule=4, kinds=KINDS, clock=clock, initialised=True)
    instruction = Instruction("ld", (), (), None, Place(1, "ld"))
    for event in history:
        if isinstance(event, Barrier):
            if event.warp is None:
                clock.block_barrier(np.array([event.block]))
            else:
                clock.warp_barrier(np.array([event.block * 2 + event.warp]))
            continue
        numbers = np.array([thread for thread, _ in event.places])
        addresses = np.array([BASE + 8 * word for _, word in event.places])
        access = Access(instruction, np.dtype("u4"), 2 if event.wide else 1, event.kind)
        try:
            if writes(event.kind):
                memory.store(access, addresses, None, mark_of(numbers), (np.zeros(1, "u4"),) * access.count)
            else:
                memory.load(access, addresses, None, mark_of(numbers))
        except Violation as violation:
            return violation.other is not None
    return False


def found_in_shared_memory(history: list[Touch | Barrier | None]) -> bool:
    """The same where each block has words of its own. None: all blocks meet."""
    clock = Clock(BLOCKS, THREADS)
    clock.begin(BLOCKS)
    regions = Regions([Region("x", BASE, 64)])
    memory = Memory(regions, granule=4, kinds=KINDS, clock=clock, initialised=True, copies=BLOCKS, own=True)
    instruction = Instruction("ld", (), (), None, Place(1, "ld"))
    for event in history:
        if event is None:
            clock.block_barrier(np.arange(BLOCKS))
            continue
        if isinstance(event, Barrier):
            if event.warp is None:
                clock.block_barrier(np.array([event.block]))
            else:
                clock.warp_barrier(np.array([event.block * 2 + event.warp]))
            continue
        numbers = np.array([thread for thread, _ in event.places])
        addresses = np.array([BASE + 8 * word for _, word in event.places])
        access = Access(instruction, np.dtype("u4"), 2 if event.wide else 1, event.kind)
        copies, marks = numbers // THREADS, mark_of(numbers)
        try:
            if writes(event.kind):
                memory.store(access, addresses, copies, marks, (np.zeros(1, "u4"),) * access.count)
            else:
                memory.load(access, addresses, copies, marks)
        except Violation as violation:
            return violation.other is not None
    return False


def apart(event: Touch) -> Touch:
    """The words of the second block are others than those of the first."""
    places = tuple((thread, word + 4 * (thread // THREADS)) for thread, word in event.places)
    return Touch(event.kind, places, event.wide)


@settings(max_examples=600, deadline=None)
@given(st.lists(st.one_of(touches, touches, touches, barriers, st.none()), max_size=10))
def test_so_they_do_in_shared_memory(history: list[Touch | Barrier | None]) -> None:
    logged: list[Touch | Barrier] = []
    for event in history:
        if event is None:
            logged += [Barrier(0, None), Barrier(1, None)]
        else:
            logged.append(apart(event) if isinstance(event, Touch) else event)
    assert found_in_shared_memory(history) == races(logged)


@settings(max_examples=600, deadline=None)
@given(st.lists(st.one_of(touches, touches, touches, barriers), max_size=8))
def test_marks_find_just_the_races_that_there_are(history: list[Touch | Barrier]) -> None:
    assert found(history) == races(history)


def test_a_barrier_of_one_warp_says_nothing_about_another() -> None:
    history: list[Touch | Barrier] = [
        Touch("read", ((0, 0), (1, 0)), False),
        Touch("read", ((33, 0),), False),
        Barrier(0, 0),
        Touch("write", ((0, 0),), False),
    ]
    assert races(history)
    assert found(history)
    assert not found([history[0], *history[2:]])
    assert not found([*history[:2], Barrier(0, None), history[3]])
