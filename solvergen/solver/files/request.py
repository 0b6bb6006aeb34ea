"""What a conversion is asked for, and by whom it reads files of torch's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from solvergen.solver.files.data import ModelData, SolverStateData
from solvergen.solver.files.sharing import Place

if TYPE_CHECKING:
    from solvergen.solver.choice import Chosen

MOST_FOREIGN_UPDATES = 2**31 - 1
"""That are counted in files of other programs: Caffe's ``iter`` is an int32."""

Form = Literal["solver", "optimizer", "torch"]


@dataclass(frozen=True)
class Conventions:
    """From which rule's conventions to which other's a history goes (see ``conventions.convert``)."""

    before: str | None
    after: str
    lr: float | Sequence[float] | None = None
    momentum: float | None = None
    start_missing: bool = False


class TorchFiles(Protocol):
    """``solvergen.adapters.torch_files``, which whoever has files of torch hands over."""

    def read(self, path: str) -> dict[str, Any]:
        """What ``torch.save`` wrote, of tensors and plain values."""
        ...

    def is_optimizer(self, found: Mapping[str, Any]) -> bool:
        """Whether it is an optimizer's ``state_dict``."""
        ...

    def model_from(self, found: Mapping[str, Any], source: str) -> ModelData:
        """The model of a module's ``state_dict``."""
        ...

    def state_from(
        self,
        found: Mapping[str, Any],
        model: ModelData | None,
        spec: str | None,
        iteration: int | None,
        source: str,
    ) -> tuple[SolverStateData, list[str]]:
        """The state of an optimizer's ``state_dict``, and what is to be said about it."""
        ...

    def write_model(self, path: str, model: ModelData) -> None:
        """Write a module's ``state_dict``."""
        ...

    def write_optimizer(
        self, path: str, state: SolverStateData, spec: str, model: ModelData | None, beside: str | None = None
    ) -> None:
        """Write an optimizer's ``state_dict``, and the module's ``beside`` it: both or neither."""
        ...


@dataclass(frozen=True)
class Request:
    """What is wanted beside source and target.

    ``form``: what the target is; None: a file of torch's by its ending, else the Solver's. ``spec``: whose
    state it is, where the file doesn't say. ``chosen``: of the solver file that gives hyperparameters.
    ``iteration``: how many updates there were, where the file doesn't say. ``shared``: whose the blobs are
    that layers share, where a file of Caffe's doesn't say.
    """

    form: Form | None = None
    conventions: Conventions | None = None
    alone: bool = False
    force: bool = False
    spec: str | None = None
    chosen: Chosen | None = None
    iteration: int | None = None
    shared: Mapping[Place, Place] = field(default_factory=dict)
    torch: Callable[[], TorchFiles] | None = None
