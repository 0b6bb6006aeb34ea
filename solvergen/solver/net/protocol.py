"""What the Solver needs of a net: named parameters, passes that accumulate gradients, and outputs.

Nets aren't what solvergen makes: ``dense`` has a small one in NumPy, ``solvergen.adapters.torch_net`` makes
one of any ``torch.nn.Module``, and anything with these attributes will do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from solvergen.solver.net.error import NetError


@dataclass(frozen=True)
class LayerPass:
    """What a layer did in a pass: names of blobs with the mean magnitudes of their numbers, and seconds."""

    layer: str
    tops: Mapping[str, float] = field(default_factory=dict)
    """Of what it put out."""
    bottoms: Mapping[str, float] = field(default_factory=dict)
    """Of the gradients of what it was given; those that need none aren't there."""
    forward: float = 0.0
    backward: float = 0.0


Watching = Literal["magnitudes", "seconds"]

NOTHING_KEPT = (
    "the net {name!r} has no passes to make again: keep_batches() comes first, then forward_backward()"
)
"""What ``pass_again`` says where there were none."""


@dataclass(eq=False)
class Blob:
    """A parameter: its array, the array its gradients are summed in, and its multipliers.

    Both arrays are live and of the same shape; whoever changes them changes them in place. On a GPU they are
    CuPy's, or any other that the backend takes.
    """

    name: str
    data: Any
    diff: Any
    lr_mult: float = 1.0
    decay_mult: float = 1.0
    layer: str = ""
    """The layer that owns it."""
    index: int = 0
    """Its place among the parameters of that layer, from 0."""

    def __setattr__(self, name: str, value: Any) -> None:
        # ``blob.diff += x`` assigns the same array again; another one would have no effect on the optimizer.
        if name in self.__dict__ and self.__dict__[name] is not value:
            how = f"is changed in place: blob.{name}[...] = ..." if name in ("data", "diff") else "stays"
            raise NetError(f"{name} of {self.name!r} {how}")
        object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False)
class LayerBlobs:
    """A layer as model files have it. A parameter that another layer owns is named here again."""

    name: str
    type: str
    blobs: tuple[Blob, ...]


@dataclass(frozen=True, eq=False)
class Output:
    """An output of a forward pass, and what its sum is multiplied by in the loss (0: not in it)."""

    name: str
    values: np.ndarray[Any, Any]
    loss_weight: float = 0.0


@runtime_checkable
class Net(Protocol):
    """What is trained, or tested."""

    name: str

    @property
    def learnable(self) -> Sequence[Blob]:
        """Every parameter once, in the order of the history; the same objects each time."""
        ...

    @property
    def layers(self) -> Sequence[LayerBlobs]:
        """Every layer, in order, for model files."""
        ...

    def clear_diffs(self) -> None:
        """Set every gradient to zero."""
        ...

    def forward(self) -> Sequence[Output]:
        """A pass over the next batch."""
        ...

    def forward_backward(self) -> float:
        """A pass over the next batch that adds to the gradients. Returns the loss: the outputs' weighted
        sum."""
        ...

    def outputs(self) -> Sequence[Output]:
        """What the last pass put out."""
        ...


@runtime_checkable
class Seekable(Protocol):
    """A net whose data can be set to where it was, so that a resumed run sees the same batches."""

    def position(self) -> Any:
        """Where the data are: anything that JSON can hold."""
        ...

    def seek(self, position: Any) -> None:
        """Go back there."""
        ...


@runtime_checkable
class Seedable(Protocol):
    """A net that draws random numbers."""

    def seed(self, seed: int) -> None:
        """Begin the random numbers anew."""
        ...

    def rng_state(self) -> Mapping[str, Any]:
        """Where they are: anything that JSON can hold, and NumPy arrays."""
        ...

    def set_rng_state(self, state: Mapping[str, Any]) -> None:
        """Go back there."""
        ...


@runtime_checkable
class Sharing(Protocol):
    """A test net that can use the arrays of the train net."""

    def share_with(self, train: Net) -> None:
        """From now on, use the parameters of ``train`` where names agree."""
        ...


@runtime_checkable
class Repeatable(Protocol):
    """A net that can make passes again, for rules that evaluate the gradient several times in a step."""

    def keep_batches(self) -> None:
        """Keep what ``forward_backward`` sees from now on, and forget what was kept before."""
        ...

    def pass_again(self) -> float:
        """Make the passes since ``keep_batches`` again, at the parameters as they are now.

        They see the same batches and the same random numbers, and add to the gradients. Whatever else a pass
        changes (outputs, running means, where data and random numbers are) stays as the first passes left it.
        Returns the sum of their losses. Raises NetError if there were none.
        """
        ...


@runtime_checkable
class Watchable(Protocol):
    """A net that can tell what each of its layers did, for ``debug_info`` and ``solvergen time``."""

    def watch(self, what: Watching | None) -> None:
        """Take note of magnitudes or of times in the passes from now on; None: of nothing."""
        ...

    def watched(self) -> Sequence[LayerPass]:
        """What was noted in the last pass, in the order in which layers went forward."""
        ...


def is_real(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of this type hold real numbers: NumPy's own, or narrow ones such as bfloat16."""
    return dtype.kind in "biuf" or (dtype.kind == "V" and dtype.type is not np.void)


def loss_of(outputs: Sequence[Output]) -> float:
    """The sum of the outputs that have a loss weight, each times it."""
    return float(sum(float(np.sum(o.values)) * o.loss_weight for o in outputs if o.loss_weight))
