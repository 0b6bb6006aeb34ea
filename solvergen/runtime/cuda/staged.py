"""A prepared launch of a staged rule: its tensors lie on one GPU, and its steps are several kernels.

A step uploads its tables once, before the first kernel, and gives all kernels to the current stream, as many
for one tensor as for thousands. It waits for nothing (see ``launch``).
"""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path

import numpy as np

from solvergen.errors import CompilerBug
from solvergen.runtime.backends.base import LaunchPlan, Step
from solvergen.runtime.buffers import narrowed
from solvergen.runtime.cuda.device import Kernel
from solvergen.runtime.cuda.kernels import LINE_STAGE, PASS, STAGE, Kernels
from solvergen.runtime.cuda.launch import Access, BoundTensors, FiniteSearch, TableSet
from solvergen.runtime.cuda.lines import DeviceLines, LineLaunch
from solvergen.runtime.cuda.reduction import Column, Reduction
from solvergen.runtime.cuda.skipping import CudaSkip
from solvergen.runtime.cuda.starting import Bound, Memory, Region, Starter
from solvergen.runtime.cuda.tables import MAX_BLOCKS, THREADS
from solvergen.runtime.cuda.workspace import CudaWorkspace
from solvergen.runtime.definition import RANKS, Rank
from solvergen.runtime.dtypes import compute_dtype, numpy_dtype
from solvergen.runtime.kernel_interface import CHUNK, chunk_table
from solvergen.runtime.ordering import CHUNK_TERMS


class StagedCudaLauncher(BoundTensors):
    """Tensors of equal dtypes and options. See ``StagedLauncher``."""

    def __init__(self, plan: LaunchPlan, starter: Starter, kernels: Kernels, access: Access) -> None:
        """Compiles the kernels or takes them from the cache. Raises KernelBuildError."""
        super().__init__(plan, access)
        if not isinstance(plan.workspace, CudaWorkspace):
            raise CompilerBug("a staged launch has no workspace on its GPU")
        self.plan = plan
        self._workspace = plan.workspace
        self._starter = starter
        self._text = Path(plan.definition.folder) / "kernel.cu"
        passes = [(k, plan.definition.passes[k]) for k in sorted(plan.passes)]
        names = {("pass", k): PASS.format(k) for k, one in passes if one.walk != "none"}
        names |= {("stage", k): STAGE.format(k) for k in plan.stages if k in plan.definition.stages}
        names |= {
            (rank, k): LINE_STAGE.format(rank, k)
            for k, rank in plan.definition.line_stages
            if k in plan.stages
        }

        def load(*, skips: bool = False) -> dict[tuple[str, int], Kernel]:
            return {
                key: kernels.update(
                    starter.device,
                    plan.definition.folder,
                    plan.param_dtype,
                    plan.grad_dtype,
                    plan.options,
                    name,
                    skips=skips,
                )
                for key, name in names.items()
            }

        self._kernels = load()
        self._load_skipping = functools.cache(functools.partial(load, skips=True))
        chunks = chunk_table(self._sizes, CHUNK_TERMS)
        self.chunk_count = len(chunks)
        most = max((len(one.kinds) for _, one in passes), default=0)
        self._tables = Memory(
            starter.device,
            chunks=chunks,
            positions=np.array(plan.positions, np.int32),
            partials=self.chunk_count * most,
        )
        self._lines: tuple[DeviceLines, LineLaunch] | None = None
        if self._workspace.lines is not None:
            tables, reduce = self._workspace.lines, kernels.reduce(starter.device)
            self._lines = tables, LineLaunch(tables, starter, reduce, plan.positions, dict(passes))
        lengths = np.bincount(chunks["tensor"], minlength=len(plan.tensors))
        self._reductions = {
            k: Reduction(
                starter,
                kernels.reduce(starter.device),
                lengths,
                plan.positions,
                [Column(place, one.first + place, kind == "max_abs") for place, kind in enumerate(one.kinds)],
            )
            for k, one in passes
            if one.kinds
        }
        # Two a step, and two more for each evaluation in it: none waits for a step that is under way.
        self._sets = [TableSet(starter.device) for _ in range(2 + 2 * len(plan.definition.evaluations))]
        self._turn = 0
        self._search = FiniteSearch(starter.device, kernels, plan.grad_dtype)
        self._step: dict[str, Region] = {}

    def finite(self) -> bool:
        """Whether all bound gradients are finite. Reads them once and waits for the answer."""
        if not self.chunk_count:
            return True
        chunks = self._chunks.address
        return self._search(self._sets[self._turn], self._pointers[:, 1], chunks, self.chunk_count)

    def unless(self, skip: CudaSkip | None) -> None:
        """See ``BoundTensors``. The workspace's own kernels do nothing either."""
        super().unless(skip)
        self._starter.skip = self._workspace.starter.skip = None if skip is None else skip.region

    def release(self) -> None:
        """See ``BoundTensors``."""
        if self._skip is not None:
            self._skip.used()
            self.unless(None)
        super().release()

    def begin(self, step: Step) -> None:
        """Upload the step's tables, after those of the step before the last have been used."""
        self._turn = (self._turn + 1) % len(self._sets)
        tables = {
            "the table of pointers": self._pointers,
            "the table of rows": step.rows,
            "the table of scalars": step.table,
            "the table of wide scalars": step.wide,
        }
        addresses = self._sets[self._turn].fill(*tables.values())
        self._step = {
            name: Region(name, address, table.nbytes, table.itemsize)
            for (name, table), address in zip(tables.items(), addresses, strict=True)
        }

    def run_stage(self, stage: int) -> None:
        """Start the scalar work of all tensors, and that of their lines. Returns before it is done."""
        workspace, count = self._workspace, len(self._sizes)
        arguments: tuple[Region | np.generic, ...] = (
            self._step["the table of rows"],
            self._positions,
            self._step["the table of wide scalars"],
            workspace.totals(),
            workspace.over_all(),
            workspace.sizes(),
            np.float64(workspace.total_size),
            workspace.values(writable=True),
            workspace.states(writable=True),
            workspace.shared_now(),
            workspace.shared_new(),
            np.int64(workspace.leader),
            np.int64(count),
        )
        if self._lines is not None:
            arguments = (*arguments, self._lines[0].shapes())
        if ("stage", stage) in self._kernels:
            self._start("stage", stage, _blocks_for(count), arguments)
        for rank in RANKS:
            if (rank, stage) in self._kernels:
                self._run_line_stage(stage, rank)

    def _run_line_stage(self, stage: int, rank: Rank) -> None:
        """The scalar work of one rank's lines."""
        assert self._lines is not None
        workspace, (tables, launch) = self._workspace, self._lines
        arguments: list[Region | np.generic] = [
            self._step["the table of rows"],
            self._positions,
            self._step["the table of wide scalars"],
            workspace.totals(),
            workspace.over_all(),
            workspace.sizes(),
            np.float64(workspace.total_size),
            workspace.values(),
            workspace.states(),
            workspace.shared_now(),
            tables.shapes(),
        ]
        for read in dict.fromkeys(("matrices", rank)):
            own = read == rank
            arguments += [
                tables.totals(read),
                tables.values(read, writable=own),
                tables.states(read, writable=own),
            ]
        arguments += [launch.starts(rank), np.int64(len(self._sizes))]
        count = launch.line_count(rank)
        if count:
            self._start(rank, stage, _blocks_for(count), tuple(arguments))

    def run_pass(self, number: int) -> None:
        """Start a pass over all elements, and the reduction of its terms. Returns before they are done."""
        workspace = self._workspace
        one = self.plan.definition.passes[number]
        if one.walk == "flat":
            self._run_flat(number)
        elif one.walk == "tiles":
            self._run_tiles(number)
        if self._lines is not None:
            self._lines[1].reduce(number, workspace.totals(writable=True), workspace.reductions)

    def _run_tiles(self, number: int) -> None:
        """A pass that forms reductions of rows and columns."""
        assert self._lines is not None
        tables, launch = self._lines
        one = self.plan.definition.passes[number]
        if not launch.tile_count:
            return
        arguments = (
            self._step["the table of pointers"],
            self._step["the table of rows"],
            self._step["the table of scalars"],
            launch.tiles(),
            np.int64(launch.tile_count),
            self._positions,
            self._workspace.values(),
            *tables.read(),
            launch.offsets(),
            launch.row_partials(len(one.row_kinds), writable=True),
            launch.column_partials(len(one.column_kinds), writable=True),
        )
        self._start("pass", number, min(launch.tile_count, MAX_BLOCKS), arguments, bound=True)

    def _run_flat(self, number: int) -> None:
        """A pass over chunks, and the reduction of its terms."""
        workspace = self._workspace
        width = len(self.plan.definition.passes[number].kinds)
        nbytes = 8 * self.chunk_count * width
        partials = self._tables.region("partials", "the chunks' totals", writable=True)
        partials = Region(partials.name, partials.address, nbytes, 8, writable=True)
        if self.chunk_count:
            arguments = (
                self._step["the table of pointers"],
                self._step["the table of rows"],
                self._step["the table of scalars"],
                self._chunks,
                np.int64(self.chunk_count),
                self._positions,
                workspace.values(),
                partials,
                *(() if self._lines is None else self._lines[0].read()),
            )
            self._start("pass", number, min(self.chunk_count, MAX_BLOCKS), arguments, bound=True)
        if number in self._reductions:
            terms = Region(partials.name, partials.address, nbytes)
            self._reductions[number].run(terms, width, workspace.totals(writable=True), workspace.reductions)

    def put_back(self) -> None:
        """See ``KernelLauncher``. Waits for the GPU where parameters are narrower than their compute type."""
        device = self._starter.device
        dtype, wide = numpy_dtype(self.plan.param_dtype), compute_dtype(self.plan.param_dtype)
        for tensor, size in zip(self.plan.tensors, self._sizes.tolist(), strict=True):
            target, kept = map(self._access.address, (tensor.param, tensor.carried[0]))
            if not size:
                continue
            if dtype == wide:
                device.copy(target, kept, size * dtype.itemsize)
                continue
            values = np.empty(size, wide)
            device.download(values, kept)
            device.upload(target, narrowed(values, dtype).view(np.uint8))
            device.synchronize()  # the array goes away

    def _start(
        self,
        kind: str,
        number: int,
        blocks: int,
        arguments: tuple[Region | np.generic, ...],
        *,
        bound: bool = False,
    ) -> None:
        tensors = Bound(self.plan, self._gradients) if bound else None
        kernels = self._kernels
        if self._starter.skip is not None:
            kernels, arguments = self._load_skipping(), (*arguments, self._starter.skip)
        self._starter.start(kernels[kind, number], self._text, blocks, arguments, tensors)
        self._sets[self._turn].used()

    @property
    def _chunks(self) -> Region:
        region = self._tables.region("chunks", "the table of chunks")
        return Region(region.name, region.address, region.nbytes, CHUNK.itemsize)

    @property
    def _positions(self) -> Region:
        return self._tables.region("positions", "the table of positions")

    def __del__(self) -> None:
        # As of elementwise launches: page-locked memory isn't given back while the GPU still reads it.
        with contextlib.suppress(Exception):
            for tables in self._sets:
                tables.wait()


def _blocks_for(count: int) -> int:
    """Blocks of which each thread takes one of so many."""
    return min(-(-count // THREADS), MAX_BLOCKS)
