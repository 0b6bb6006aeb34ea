"""One example: everything that a run of an optimizer depends on, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from solvergen.errors import VerificationError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.buffers import ARRAY_TYPES, type_name
from solvergen.runtime.dtypes import STORAGE_TYPES
from solvergen.runtime.naming import with_article


@dataclass(frozen=True, eq=False)
class Tensor:
    """A parameter before the first step.

    ``offset``: elements that lie before it in its memory, so that its address need not be aligned for
    vectors. ``group``: index of the parameter group that it belongs to. ``arrays`` and ``scalars``: states
    that are loaded before the first step, by name; those left out begin as the rule says. ``blocks``: how
    many it falls into, for rules that know some; 0 of a tensor whose first axis is empty, by that axis.
    """

    name: str
    param: HostArray
    offset: int
    group: int
    arrays: Mapping[str, HostArray] = field(default_factory=dict)
    scalars: Mapping[str, float] = field(default_factory=dict)
    blocks: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the parameter, its states and its gradients."""
        shape: tuple[int, ...] = self.param.shape
        return shape


@dataclass(frozen=True, eq=False)
class Group:
    """A parameter group.

    ``options``: as given to the constructor, None leaves a derived one to the rule. ``multipliers``:
    those that are given, of ``lr_mult`` and ``decay_mult``.
    """

    options: Mapping[str, bool | None]
    multipliers: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Step:
    """One call of ``step``.

    ``gradients`` has an entry for each tensor, None where it has no gradient; ``offset`` is that of all
    their memory. ``hyperparameters`` are those in force, one mapping for each group.
    """

    gradients: tuple[HostArray | None, ...]
    offset: int
    hyperparameters: tuple[Mapping[str, float], ...]


@dataclass(frozen=True, eq=False)
class Example:
    """A whole run.

    ``start``: the count of updates that every tensor has behind it before the first step here.
    ``nonfinite``: the policy. ``reuse``: gradients are written into the same memory at every step, as
    frameworks do, instead of into new arrays. ``shared``: states of the whole optimizer that are
    loaded before the first step.
    """

    groups: tuple[Group, ...]
    tensors: tuple[Tensor, ...]
    steps: tuple[Step, ...]
    start: int = 0
    nonfinite: str = "propagate"
    reuse: bool = False
    shared: Mapping[str, float] = field(default_factory=dict)


def check_arrays(example: Example) -> None:
    """Raise VerificationError unless parameters, states and gradients are arrays of a storage type, and
    steps have a gradient of each parameter's shape, or None. How they lie doesn't matter: runs copy them."""
    for tensor in example.tensors:
        _check(tensor.param, f"the parameter {tensor.name!r}")
        for name, array in tensor.arrays.items():
            _check(array, f"the state {name!r} of {tensor.name!r}")
    for number, step in enumerate(example.steps, start=1):
        if len(step.gradients) != len(example.tensors):
            raise VerificationError(
                f"step {number} has {len(step.gradients)} gradients, and the example {len(example.tensors)} "
                "parameters: None is for those without one"
            )
        for tensor, gradient in zip(example.tensors, step.gradients, strict=True):
            if gradient is None:
                continue
            what = f"the gradient of {tensor.name!r} in step {number}"
            _check(gradient, what)
            if gradient.shape != tensor.shape:
                raise VerificationError(
                    f"{what} has the shape {gradient.shape}, its parameter {tensor.shape}"
                )


def _check(array: object, what: str) -> None:
    if type(array) not in ARRAY_TYPES:
        raise VerificationError(f"{what} is {with_article(type_name(array))}, not a numpy.ndarray")
    checked: HostArray = array  # type: ignore[assignment]
    if checked.dtype.name not in STORAGE_TYPES or not checked.dtype.isnative:
        raise VerificationError(
            f"{what} has dtype {checked.dtype}; there can be {', '.join(STORAGE_TYPES)}, in the byte order "
            "of this machine"
        )
