"""The state spaces of a launch: the memory of each, made anew for each order and wave."""

from __future__ import annotations

from collections.abc import Sequence

from solvergen.runtime.ptx.machine.buffers import Buffer, joined
from solvergen.runtime.ptx.machine.clock import Clock
from solvergen.runtime.ptx.machine.kinds import Kind
from solvergen.runtime.ptx.machine.memory import Memory
from solvergen.runtime.ptx.machine.program import Program
from solvergen.runtime.ptx.machine.regions import Region, Regions

_WIDEST = 16


class Spaces:
    """``results``: the buffers that a launch may change, each with its place among the regions."""

    def __init__(self, program: Program, buffers: Sequence[Buffer], shared_nbytes: int) -> None:
        groups = joined(buffers, program.kernel.name)
        self._regions = Regions([group.region for group in groups])
        # Regions are ordered by address, and so are the groups.
        self._groups = groups
        self.results = [(i, g.buffers[0]) for i, g in enumerate(groups) if g.region.writable]
        self._initialised = all(b.written is None for g in groups for b in g.buffers)
        self._asks = any(i.opcode == "activemask" for i in program.kernel.instructions)
        dynamic = program.variables.dynamic
        shared = list(program.variables.shared)
        if dynamic is not None and shared_nbytes:
            shared.append(Region(dynamic.name, dynamic.address, shared_nbytes))
        self._shared = Regions(shared)
        self._local = Regions(program.variables.local)
        self.local_nbytes = self._local.nbytes if program.variables.local else 0
        self._kinds = {space: _kinds(program, space) for space in ("global", "shared", "local")}
        self._granules = {space: _granule(program, space) for space in ("global", "shared", "local")}

    @property
    def order_matters(self) -> bool:
        """Whether order may show without a race: by atomics, strong accesses, or since a thread asks who is
        there with it. Everything else that threads hand to one another waits for them."""
        if self._asks:
            return True
        strong = frozenset[Kind](("atomic", "strong read", "strong write"))
        return any(kinds & strong for kinds in self._kinds.values())

    def common(self, clock: Clock | None, backwards: bool) -> Memory:
        """Global and constant memory, with the buffers' contents."""
        memory = Memory(
            self._regions,
            granule=self._granules["global"],
            kinds=self._kinds["global"],
            clock=clock,
            initialised=self._initialised,
            backwards=backwards,
        )
        for index, group in enumerate(self._groups):
            contents = memory.contents(index)
            for buffer in group.buffers:
                begin = buffer.address - group.region.address
                contents[begin : begin + len(buffer.data)] = buffer.data
            if not self._initialised:
                # Only buffers that don't overlap may be written, so only those can lack values.
                memory.declare_written(index, group.buffers[0].written)
        return memory

    def own(self, blocks: int, threads: int, clock: Clock | None, backwards: bool) -> dict[str, Memory]:
        """The shared memory of some blocks, and the local memory of their threads."""
        memories = {}
        for space, regions, copies in (
            ("shared", self._shared, blocks),
            ("local", self._local, blocks * threads),
        ):
            memories[space] = Memory(
                regions,
                granule=self._granules[space],
                kinds=self._kinds[space],
                clock=clock if space == "shared" else None,
                initialised=False,
                copies=copies if regions.regions else 1,
                own=space == "shared",
                backwards=backwards,
            )
        return memories


def _kinds(program: Program, space: str) -> frozenset[Kind]:
    return frozenset(use.kind for use in program.uses if use.space in (None, space))


def _granule(program: Program, space: str) -> int:
    """Bytes of the narrowest access: threads that touch different granules aren't in one another's way."""
    return min([_WIDEST, *(use.nbytes for use in program.uses if use.space in (None, space))])
