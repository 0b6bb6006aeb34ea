"""What a backend is: one small protocol, and the plans that it is handed.

A backend owns its arrays' checks, the states' memory and the kernels. The ``Optimizer`` owns the
order of things, the counts, the scalars and the policies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

from solvergen.runtime.arrays import Array, HostArray
from solvergen.runtime.definition import Definition, Initial, Rank
from solvergen.runtime.spans import Spans


@dataclass(frozen=True, eq=False)
class TensorPlan:
    """One tensor of a launch. ``states`` has an entry for every array state of the definition, in
    order; None where the state doesn't exist under the options. ``carried`` has one for every array that the
    definition's kernels carry from pass to pass; none for the reference. ``blocks``: how many it falls
    into, for rules that see tensors so."""

    name: str
    param: Array
    shape: tuple[int, ...]
    states: tuple[Array | None, ...]
    carried: tuple[Array, ...] = ()
    blocks: int = 1


@dataclass(frozen=True, eq=False)
class LaunchPlan:
    """Tensors that one launch updates: equal dtypes and options, whatever their number and sizes.

    ``param_dtype`` and ``grad_dtype`` are names: float32, float64, bfloat16 or float16. ``owned`` is the
    memory of all parameters and states of the optimizer, those of other launches too: gradients may not
    overlap it.

    Of staged rules, ``positions`` has each tensor's place in the optimizer, by which the arrays of
    ``workspace`` are indexed.
    """

    definition: Definition
    options: Mapping[str, bool]
    param_dtype: str
    grad_dtype: str
    tensors: tuple[TensorPlan, ...]
    owned: Spans
    positions: tuple[int, ...] = ()
    workspace: Workspace | None = None

    @cached_property
    def written(self) -> tuple[Array, ...]:
        """All that an update may write and others can reach: parameters and states."""
        arrays = (array for tensor in self.tensors for array in (tensor.param, *tensor.states))
        return tuple(array for array in arrays if array is not None)

    @cached_property
    def passes(self) -> frozenset[int]:
        """The passes that are run under the options."""
        return frozenset(self.definition.active_passes(**self.options))

    @cached_property
    def reads_grad(self) -> bool:
        """Whether the update reads gradients. Rules that hold constraints don't: there gradients only say
        which tensors take part."""
        return "grad" in self.definition.buffers_read(**self.options)

    @cached_property
    def writes_grad(self) -> bool:
        """Whether the update leaves something in the gradients' buffers."""
        return "grad" in self.definition.buffers_written(**self.options)

    @cached_property
    def keeping_pass(self) -> int:
        """The pass that keeps the parameters as they were, of rules with evaluations."""
        return self.definition.keeping_pass(**self.options)[0]

    @cached_property
    def stages(self) -> frozenset[int]:
        """The stages that are run under the options."""
        return frozenset(self.definition.active_stages(**self.options))


@dataclass(frozen=True, eq=False)
class Step:
    """What one launch of a staged step is given.

    ``table`` and ``rows`` are those of ``Launcher.launch``. ``wide`` is what stages read, float64
    [n_rows, max(1, W)], with the same rows. ``total_size`` is the number of elements of all tensors that take
    part in the step, in whichever launch; ``leader`` is the position of the first of them. The arrays are the
    same ones in the next steps, filled anew, until tensors have changed their rows.
    """

    table: HostArray
    rows: HostArray
    wide: HostArray
    total_size: float
    leader: int


class Skip(Protocol):
    """Whether a step is left out, as a GPU knows it: launches do nothing if it is set."""

    def guard(self, launcher: BoundLauncher) -> None:
        """Have a launch of the same backend's do nothing if this is set, until it is released."""
        ...

    def is_set(self) -> bool:
        """Whether it is set. Waits until that is known."""
        ...


class Flags(Protocol):
    """Reads the flags that an optimizer's steps are given."""

    def read(self, flag: object) -> bool | Skip:
        """What ``flag`` says, or who will know. Waits for no GPU. Raises ArrayError for what is no flag."""
        ...


class BoundLauncher(Protocol):
    """A prepared launch: kernel loaded, tables of pointers and chunks built; gradients are bound to it."""

    def bind(self, gradients: Sequence[object]) -> bool:
        """Check quickly and remember one gradient for each tensor of the plan, in the plan's order.

        False if any is not exactly as planned (type, dtype, shape, C-contiguous, aligned, on the
        device, not overlapping the plan's ``owned`` memory), or if an array of ``written`` has been made
        read-only.
        Changes nothing that a caller can see.
        """
        ...

    def finite(self) -> bool:
        """Whether all bound gradients are finite. Only called where the policy asks for it."""
        ...

    def release(self) -> None:
        """Drop the references to the gradients, after the step."""
        ...


class Launcher(BoundLauncher, Protocol):
    """A launch of a rule that is elementwise."""

    def launch(self, table: HostArray, rows: HostArray) -> None:
        """Run the update in place.

        ``table``: [n_rows, max(1, n_scalars)], C-contiguous, what ``Backend.table`` asks for;
        ``rows``: int32 [n_tensors], each tensor's row of the table.
        """
        ...


class StagedLauncher(BoundLauncher, Protocol):
    """A launch of a staged rule (``Definition.is_staged``). Its backend's workspace runs it."""

    @property
    def plan(self) -> LaunchPlan:
        """What it was prepared for."""
        ...


class KernelLauncher(StagedLauncher, Protocol):
    """What ``KernelWorkspace`` runs: a launch of kernels."""

    def begin(self, step: Step) -> None:
        """Take over the step's tables and the gradients that are bound, which the calls that follow read.
        Runs nothing. Called again, with the same ``step``, when other gradients have been bound."""
        ...

    def run_stage(self, stage: int) -> None:
        """Run a stage for all tensors of the plan. Only called for those in ``plan.stages``."""
        ...

    def run_pass(self, number: int) -> None:
        """Run a pass over all elements of the plan's tensors, and reduce the terms that it forms to these
        tensors' rows of the workspace's totals. Only called for those in ``plan.passes``."""
        ...

    def put_back(self) -> None:
        """Overwrite the parameters with what ``plan.keeping_pass`` of this step has kept of them:
        ``carried[0]``. Only called for rules with evaluations, after that pass."""
        ...


class Workspace(Protocol):
    """What a staged rule keeps and computes beside the tensors, for all tensors of an optimizer: see
    ``solvergen.runtime.workspace``."""

    def read(self) -> tuple[HostArray, HostArray]:
        """Copies of the scalar states (float64 [n_tensors, n_device_states]) and of the shared ones (float64
        [n_shared_states]). Waits for the steps that are under way."""
        ...

    def write(self, states: HostArray, shared: HostArray) -> None:
        """Overwrite both: what ``read`` returns. Steps that are under way come first."""
        ...

    def read_lines(self) -> Mapping[Rank, HostArray]:
        """Copies of the states of lines: float64 [lines of all tensors, n_states] by rank, of rules with
        lines; empty for others. Waits for the steps that are under way."""
        ...

    def read_line_state(self, rank: Rank, lines: slice, column: int) -> HostArray:
        """A copy of one of these states, of some lines. Waits as ``read_lines`` does."""
        ...

    def write_lines(self, states: Mapping[Rank, HostArray]) -> None:
        """Overwrite them: what ``read_lines`` returns."""
        ...

    def take_back(self) -> None:
        """The last step has left everything as it was: the shared states are what they were before it."""
        ...

    def run(
        self,
        launches: Sequence[tuple[StagedLauncher, Step]],
        evaluate: Callable[[], None] | None = None,
    ) -> None:
        """Make a step of these launches, at least one, prepared by the workspace's own backend.

        ``evaluate``, for rules with evaluations, finds the gradients at the parameters as they are and binds
        them to the launches, or raises.

        Shared states take their new values at the very end: should anything be raised, they are as before.
        Of rules with evaluations, so are the parameters, and all else unless a launch itself fails after the
        last evaluation.
        """
        ...


class RowWork(Protocol):
    """What is done with some rows of tensors, for gradients that are given by rows."""

    def taken(self, whole: Array, places: HostArray, part: Array | None = None) -> Array:
        """The rows ``places`` of ``whole``: in ``part``, or in an array of their own."""
        ...

    def put(self, whole: Array, places: HostArray, part: Array) -> None:
        """Overwrite the rows ``places`` of ``whole``, each named once."""
        ...

    def summed(self, rows: Array, which: HostArray, count: int) -> Array:
        """``count`` rows in the compute type: the n-th is 0 plus, one after the other, those of ``rows`` for
        which ``which`` is n."""
        ...


class Backend(Protocol):
    """Where arrays live and what runs the update."""

    name: str
    table: Literal["kernel", "reference"]
    """What the rows of a launch's table hold. "kernel": the columns of ``Definition.table``, rounded to
    the compute type. "reference": scalar states, hyperparameters and t, in float64."""

    def adopt(self, name: str, array: object) -> Array:
        """Check a parameter (kind, dtype, contiguity, writability, alignment, device) and return the
        array to keep. Raises ``ArrayError``."""
        ...

    def dtype_of(self, array: Array) -> str:
        """Name of the storage type: float32, float64, bfloat16, float16; else the array's own name."""
        ...

    def span_of(self, array: Array) -> tuple[int, int]:
        """The addresses ``[start, end)`` that the array covers; equal where it is empty."""
        ...

    def allocate(self, param: Array, init: Initial, dtype: str | None = None) -> Array:
        """A state array: the parameter's shape, its compute type (or ``dtype``), filled with ``init``."""
        ...

    def upload(self, host: HostArray) -> Array:
        """A new array where the backend's arrays live (if that is several GPUs, on the first), with the
        elements of ``host``."""
        ...

    def to_host(self, array: Array) -> HostArray:
        """A copy as a NumPy array of the same dtype. Also of gradients, of whatever kind ``check_gradient``
        passes."""
        ...

    def copy_in(self, array: Array, host: HostArray) -> None:
        """Overwrite ``array`` with ``host``, which has the same shape and dtype."""
        ...

    def check_gradient(self, name: str, param: Array, gradient: object) -> None:
        """The slow, exact check. Raises ``ArrayError`` that says what is wrong (shape, dtype, device,
        layout). Whether it overlaps what the optimizer owns is the caller's to check, and whether all that
        is to be written still can be."""
        ...

    def flags(self, params: Sequence[Array]) -> Flags:
        """What reads the flags that steps of an optimizer over these parameters are given. Raises
        ``ArrayError`` where the parameters lie too far apart for that: on several GPUs."""
        ...

    def read_rows(self, what: str, param: Array, indices: object, rows: object) -> tuple[HostArray, Array]:
        """What a gradient by rows says: its indices on the host, and its rows where ``param`` lives.

        Raises ArrayError that begins with ``what`` unless they are arrays that the backend can read. Shapes,
        dtypes and numbers are the caller's to check.
        """
        ...

    def rows(self, param: Array) -> RowWork:
        """What works on rows of ``param`` and its states."""
        ...

    def workspace(
        self, definition: Definition, params: Sequence[Array], blocks: Sequence[int] | None = None
    ) -> Workspace:
        """The workspace of an optimizer whose rule is staged, over all its parameters in order. They fall
        into so many ``blocks`` each, one by default. The states in it are the caller's to write. Raises
        ``ArrayError`` where the parameters lie too far apart for that: on several GPUs."""
        ...

    def prepare(self, plan: LaunchPlan) -> Launcher | StagedLauncher:
        """Compile or load the kernel and build its tables. Called once a plan, kept by the caller. A
        ``StagedLauncher`` if the plan's definition is staged, a ``Launcher`` otherwise."""
        ...
