"""The update of a Solver: one fused step of a generated optimizer over the net's parameters.

Clipping, normalising by ``iter_size``, decay and the rule itself are in it, in Caffe's order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from solvergen.runtime.optimizer import Optimizer
from solvergen.runtime.wrappers import PREFIX, Wrappers
from solvergen.solver.net.protocol import Blob
from solvergen.solver.training.fitting_parameters import numbers_of_blocks

if TYPE_CHECKING:
    from solvergen.solver.choice import Choice
    from solvergen.solver.parameters.model import SolverParameters


_NOTHING = "<nothing>"
"""The tensor of an optimizer whose net has no parameters: it never gets a gradient."""


class Update:
    """The optimizer over a net's parameters, and what the Solver asks of it."""

    def __init__(
        self,
        params: SolverParameters,
        choice: Choice,
        learnable: Sequence[Blob],
        *,
        backend: Any,
        keep_update: bool,
    ) -> None:
        self._blobs = tuple(learnable)
        cls = choice.optimizer_class
        self.definition = cls.definition
        """Of the rule itself, without what surrounds it."""
        wrappers = choice.wrappers
        if keep_update:
            wrappers = replace(wrappers or Wrappers(order="caffe"), write_update=True)
        self.blocks = numbers_of_blocks(params, self._blobs)
        """Into how many blocks parameters fall, of those that fall into several."""
        self.optimizer: Optimizer = choice.make(
            _groups(self._blobs, cls.definition.hyperparameter_names, params)
            or {_NOTHING: np.zeros(0, np.float32)},
            backend=backend if self._blobs or backend != "cuda" else "numpy",
            wrappers=wrappers,
            **({"blocks": self.blocks} if self.blocks else {}),
        )
        self.evaluates = bool(cls.definition.evaluations)
        """Whether a step evaluates the gradient again, at other parameters."""
        self._has_rate = "lr" in cls.definition.hyperparameter_names
        self._rate: float | None = None
        self._gradients = {blob.name: blob.diff for blob in self._blobs} or {_NOTHING: None}
        names = [name for name in self.optimizer.state if not name.startswith(PREFIX)]
        definition = self.optimizer.definition
        self.array_states = tuple(name for name in names if name in definition.array_states)
        """The states that have the parameters' shapes, in the order of the rule."""
        self.scalar_states = tuple(name for name in names if name in definition.all_scalar_states)
        """Those that are a number for each parameter."""
        self.line_states = tuple(
            name for name in names if name not in (*self.array_states, *self.scalar_states)
        )
        """Those that are a number for each row, column or other line of a parameter."""
        shared = (name for name in self.optimizer.shared if not name.startswith(PREFIX))
        self.beside_history = (*self.scalar_states, *self.line_states, *shared)
        """All that Caffe's files have no place for."""

    def apply(self, rate: float, evaluate: Callable[[], object]) -> None:
        """Update every parameter by the gradients that are there.

        A rule that wants them anew calls ``evaluate``, which overwrites them by those at the parameters as
        they are then.
        """
        if rate != self._rate and self._has_rate:
            self.optimizer.set(lr=rate)
            self._rate = rate
        if not self.evaluates:
            self.optimizer.step(self._gradients)
            return
        there = True

        def closure() -> tuple[None, Mapping[str, Any]]:
            nonlocal there
            if not there:
                evaluate()
            there = False
            return None, self._gradients

        self.optimizer.step(closure)

    @property
    def counts(self) -> dict[str, int]:
        """How often each parameter was updated."""
        return {blob.name: self.optimizer.steps[blob.name] for blob in self._blobs}

    @property
    def groups(self) -> list[dict[str, Any]]:
        """The groups of parameters: who is in them, and their settings without those of wrappers."""
        return [
            {
                "members": list(group.names),
                "hyperparameters": {n: float(v) for n, v in group.hyperparameters.items() if _is_own(n)},
                "options": {name: value for name, value in group.options.items() if _is_own(name)},
                "multipliers": dict(group.multipliers),
            }
            for group in (self.optimizer.groups if self._blobs else ())
        ]

    def beside(self, states: Sequence[str]) -> dict[str, dict[str, Any]]:
        """These states of every parameter, which aren't in the history."""
        return {name: {b.name: self.optimizer.state[name][b.name] for b in self._blobs} for name in states}

    @property
    def history(self) -> tuple[Any, ...]:
        """The states of all parameters, live: one state of each, then the next state of each, as in Caffe's
        files. States that are one number each aren't among them."""
        found = []
        for state in self.array_states:
            found += [self.optimizer.state[state][blob.name] for blob in self._blobs]
        return tuple(found)

    def clip_norm(self) -> float:
        """The norm of all gradients that the last step held against ``clip_gradients``."""
        norm: float = self.optimizer.clip_norm
        return norm


def _is_own(name: str) -> bool:
    return not name.startswith(PREFIX)


def _groups(
    blobs: Sequence[Blob], hyperparameters: Sequence[str], params: SolverParameters
) -> list[dict[str, Any]]:
    """A group for each pair of multipliers."""
    found: dict[tuple[float, float], dict[str, Any]] = {}
    for blob in blobs:
        found.setdefault((blob.lr_mult, blob.decay_mult), {})[blob.name] = blob.data
    groups = []
    for (lr_mult, decay_mult), arrays in found.items():
        group: dict[str, Any] = {"params": arrays}
        if lr_mult != 1:
            group["lr_mult"] = lr_mult
        # Nothing to multiply: Caffe doesn't look at decay_mult without weight_decay either.
        if decay_mult != 1 and (params.weight_decay or "weight_decay" in hyperparameters):
            group["decay_mult"] = decay_mult
        groups.append(group)
    return groups


def set_state(
    optimizer: Optimizer,
    arrays: Mapping[str, Mapping[str, Any]],
    counts: Mapping[str, int],
    scalars: Mapping[str, Mapping[str, float]],
    shared: Mapping[str, float],
) -> None:
    """Put states back: arrays (those of lines, too) and scalars by state and parameter, counts by parameter.

    Raises OptimizerError or SnapshotMismatch, with nothing changed, for what doesn't fit.
    """
    state = optimizer.state_dict()
    for name, tensor in state["tensors"].items():
        if name == _NOTHING:
            continue
        tensor["t"] = counts[name]
        tensor["arrays"] = {**tensor["arrays"], **{s: arrays[s][name] for s in arrays}}
        tensor["scalars"] = {**tensor["scalars"], **{s: scalars[s][name] for s in scalars}}
    if "shared" in state:
        state["shared"] = {**state["shared"], **shared}
    optimizer.load_state_dict(state)
