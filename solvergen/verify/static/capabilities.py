"""What multiprocessors of each compute capability hold, and cards that have them.

The numbers are those of NVIDIA's CUDA C++ Programming Guide (its table of technical specifications) and of
its occupancy calculator (how registers and shared memory are handed out); bandwidths are of data sheets.
"""

from __future__ import annotations

from dataclasses import dataclass

from solvergen.errors import VerificationError

WARP = 32
_REGISTERS = 65536  # of a multiprocessor, of every capability here
_REGISTER_UNIT = 256  # a warp's registers are handed out in such numbers
_WARP_UNIT = 4  # registers lie in four parts, each of a fourth of the warps
_SHARED_UNIT = 128


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU. ``bandwidth``: of its memory, in GB/s (1e9 bytes), as its data sheet says."""

    name: str
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Capability:
    """A compute capability, 90 for 9.0, and what one of its multiprocessors holds at once.

    ``shared``: bytes; ``reserved``: bytes of shared memory that the system takes of each block. ``card``: one
    that has it.
    """

    number: int
    threads: int
    blocks: int
    shared: int
    reserved: int
    card: Card

    def __str__(self) -> str:
        return f"sm_{self.number}"


CAPABILITIES: dict[int, Capability] = {
    c.number: c
    for c in (
        Capability(75, 1024, 16, 64 * 1024, 0, Card("T4", 320)),
        Capability(80, 2048, 32, 164 * 1024, 1024, Card("A100 80 GB SXM", 2039)),
        Capability(86, 1536, 16, 100 * 1024, 1024, Card("RTX 3090", 936)),
        Capability(87, 1536, 16, 164 * 1024, 1024, Card("Jetson AGX Orin", 204.8)),
        Capability(89, 1536, 24, 100 * 1024, 1024, Card("L40S", 864)),
        Capability(90, 2048, 32, 228 * 1024, 1024, Card("H200", 4800)),
        Capability(100, 2048, 32, 228 * 1024, 1024, Card("B200", 8000)),
        Capability(103, 2048, 32, 228 * 1024, 1024, Card("B300", 8000)),
        Capability(110, 1536, 24, 228 * 1024, 1024, Card("Jetson AGX Thor", 273)),
        Capability(120, 1536, 24, 100 * 1024, 1024, Card("RTX 5090", 1792)),
        Capability(121, 1536, 24, 100 * 1024, 1024, Card("DGX Spark", 273)),
    )
}
"""Every capability that is known, by its number."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How many blocks of a kernel a multiprocessor holds at once, and what keeps it from more.

    ``share``: of the threads that it could hold, from 0 to 1.
    """

    blocks: int
    threads: int
    share: float
    limit: str


def capability(number: int) -> Capability:
    """The capability of that number, 90 for 9.0.

    Raises:
        VerificationError: none is known.
    """
    found = CAPABILITIES.get(number)
    if found is None:
        known = ", ".join(map(str, CAPABILITIES))
        raise VerificationError(f"verify doesn't know compute capability {number}; it knows {known}")
    return found


def occupancy(on: Capability, *, threads: int, registers: int, shared: int) -> Occupancy:
    """The theoretical occupancy of a kernel.

    Args:
        on: the capability.
        threads: of a block.
        registers: of a thread.
        shared: bytes of shared memory of a block, static and dynamic.
    """
    warps = -(-threads // WARP)
    of_a_warp = -(-registers * WARP // _REGISTER_UNIT) * _REGISTER_UNIT
    warps_by_registers = (
        _REGISTERS // of_a_warp // _WARP_UNIT * _WARP_UNIT if of_a_warp else on.threads // WARP
    )
    of_a_block = -(-(shared + on.reserved) // _SHARED_UNIT) * _SHARED_UNIT
    limits = {
        "threads": on.threads // WARP // warps,
        "blocks": on.blocks,
        "registers": warps_by_registers // warps,
        "shared memory": on.shared // of_a_block if of_a_block else on.blocks,
    }
    limit = min(limits, key=lambda name: limits[name])
    blocks = limits[limit]
    return Occupancy(blocks, blocks * warps * WARP, blocks * warps * WARP / on.threads, limit)
