"""Occupancy, against numbers worked out by hand from the published limits."""

from __future__ import annotations

import pytest

from solvergen.errors import VerificationError
from solvergen.verify.static.capabilities import CAPABILITIES, capability, occupancy
from solvergen.verify.static.matrix import TARGETS


@pytest.mark.parametrize(
    ("number", "threads", "registers", "shared", "blocks", "limit"),
    [
        # 32 registers: 1024 a warp, 64 warps: as many as fit.
        (90, 256, 32, 0, 8, "threads"),
        # 33 are handed out as 40: 1280 a warp, 51 warps, in fours 48.
        (90, 256, 33, 0, 6, "registers"),
        (90, 256, 40, 0, 6, "registers"),
        # 41 as 48: 1536 a warp, 42 warps, in fours 40.
        (90, 256, 41, 0, 5, "registers"),
        (90, 256, 64, 0, 4, "registers"),
        (90, 256, 255, 0, 1, "registers"),
        # 1024 threads of 65 registers: 72 a thread, 2304 a warp, 28 warps; a block has 32.
        (90, 1024, 65, 0, 0, "registers"),
        (75, 256, 64, 0, 4, "threads"),
        (75, 256, 65, 0, 3, "registers"),
        (86, 256, 40, 0, 6, "threads"),
        (120, 256, 40, 0, 6, "threads"),
        (120, 32, 16, 0, 24, "blocks"),
        (75, 32, 16, 0, 16, "blocks"),
        # 228 KB, of which each block costs 1 KB more than it asks for.
        (90, 256, 32, 56 * 1024, 4, "shared memory"),
        (90, 256, 32, 56 * 1024 + 1, 3, "shared memory"),
        (75, 128, 32, 32 * 1024, 2, "shared memory"),
        # A block of 33 threads takes two warps.
        (90, 33, 32, 0, 32, "threads"),
    ],
)
def test_occupancy(number: int, threads: int, registers: int, shared: int, blocks: int, limit: str) -> None:
    on = capability(number)
    found = occupancy(on, threads=threads, registers=registers, shared=shared)
    assert (found.blocks, found.limit) == (blocks, limit)
    resident = blocks * -(-threads // 32) * 32
    assert found.threads == resident
    assert found.share == resident / on.threads


def test_every_target_is_known() -> None:
    assert set(TARGETS) <= set(CAPABILITIES)
    for number, found in CAPABILITIES.items():
        assert found.number == number
        assert found.threads % 32 == 0
        assert found.card.bandwidth > 0


def test_others_are_not() -> None:
    with pytest.raises(VerificationError, match="doesn't know compute capability 70; it knows 75, 80, 86"):
        capability(70)
