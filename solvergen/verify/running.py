"""A run of an example as a user would do it: arrays on the backend, an optimizer, steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from solvergen.errors import NonfiniteGradient, StrayWrite
from solvergen.runtime.arrays import Array, HostArray
from solvergen.runtime.backends.base import Backend
from solvergen.runtime.buffers import address_of
from solvergen.runtime.optimizer import Optimizer
from solvergen.runtime.wrapping import WrappedOptimizer
from solvergen.verify.evaluations import gradient_at
from solvergen.verify.example import Example, Step
from solvergen.verify.poison import untouchable
from solvergen.verify.trace import Moment, Trace

MARGIN = 32
"""Elements before (besides its offset) and behind an array in its memory, which must stay as they are. A
whole number of cache lines in every type, so that the offset alone decides about alignment."""

LINE = 64
"""Bytes of a cache line. Memory of the host begins wherever the allocator has some."""


class Placed:
    """An array that lies inside a larger one of the backend's, with a pattern around it.

    It begins ``offset`` elements behind the beginning of a cache line.
    """

    def __init__(self, backend: Backend, what: str, contents: HostArray, offset: int) -> None:
        self._backend = backend
        self._what = what
        before, spare = MARGIN + offset, LINE // contents.itemsize
        host = np.zeros(before + contents.size + MARGIN + spare, contents.dtype)
        host.view(np.uint8)[:] = 0xA5  # in every type a number that no rule is likely to leave there
        self._whole = backend.upload(host)
        if isinstance(self._whole, np.ndarray):  # others begin at a line
            before += -address_of(self._whole) % LINE // contents.itemsize
        self._place = slice(before, before + contents.size)
        host[self._place] = contents.reshape(-1)
        self._host = host
        self.array = self._whole[self._place].reshape(contents.shape)
        backend.copy_in(self.array, contents)

    @property
    def margins(self) -> tuple[Array, Array]:
        """The memory before the array and behind it."""
        return self._whole[: self._place.start], self._whole[self._place.stop :]

    def rewrite(self, contents: HostArray) -> None:
        """Put other contents of the same shape and dtype in the same place."""
        self._host[self._place] = contents.reshape(-1)
        self._backend.copy_in(self.array, contents)

    def check_margins(self, step: int) -> HostArray:
        """Raise StrayWrite unless everything around the array is untouched; returns all of the memory."""
        now = self._backend.to_host(self._whole)
        around = (("before", slice(0, self._place.start)), ("behind", slice(self._place.stop, None)))
        for name, part in around:
            if now[part].tobytes() != self._host[part].tobytes():
                raise StrayWrite(f"step {step} wrote {name} {self._what}")
        return now

    def take_over(self) -> HostArray:
        """What the array holds now, which was written with good reason."""
        contents = self._backend.to_host(self.array)
        self._host[self._place] = contents.reshape(-1)
        return contents

    def check_unchanged(self, step: int) -> None:
        """Raise StrayWrite unless the array itself is untouched too."""
        if self.check_margins(step).tobytes() != self._host.tobytes():
            raise StrayWrite(f"step {step} wrote into {self._what}")


def run(optimizer: type[Optimizer], backend: Backend, example: Example) -> Trace:
    """What ``optimizer`` makes of ``example`` on ``backend``.

    Whatever the optimizer raises goes through, but for NonfiniteGradient under the policy that asks for
    it. Raises StrayWrite if memory around the arrays or a gradient was written.
    """
    params = [
        Placed(backend, f"parameter {tensor.name}", tensor.param, tensor.offset) for tensor in example.tensors
    ]
    made = _make(optimizer, backend, example, params)
    loaded = any(tensor.arrays or tensor.scalars for tensor in example.tensors)
    if example.start or example.shared or loaded:
        made.load_state_dict(_loaded(made.state_dict(), example))
    trace = [_moment(made, backend, example, "made")]
    lying: dict[int, Placed] = {}
    for number, step in enumerate(example.steps, start=1):
        if number > 1:
            for group, values in zip(made.groups, step.hyperparameters, strict=True):
                group.set(**values)
        placed = _Gradients(made, backend, example, step, lying)
        given = placed.next()
        with untouchable(part for array in (*params, *lying.values()) for part in array.margins):
            outcome = _step(made, given, placed)
        for array in (*params, *placed.all):
            array.check_margins(number)
        written = placed.written() if outcome == "applied" else {}
        trace.append(_moment(made, backend, example, outcome, written))
        for array in placed.all:
            array.check_unchanged(number)
    return tuple(trace)


def _make(optimizer: type[Optimizer], backend: Backend, example: Example, params: list[Placed]) -> Optimizer:
    """The optimizer over arrays that were placed, all settings given by group."""
    groups = []
    for index, group in enumerate(example.groups):
        members = {
            tensor.name: placed.array
            for tensor, placed in zip(example.tensors, params, strict=True)
            if tensor.group == index
        }
        settings: dict[str, Any] = {
            **example.steps[0].hyperparameters[index],
            **group.options,
            **group.multipliers,
        }
        if optimizer.definition.view == "blocks":
            settings["blocks"] = {
                tensor.name: tensor.blocks or "rows" for tensor in example.tensors if tensor.group == index
            }
        groups.append({"params": members, **settings})
    arguments: dict[str, Any] = {"backend": backend, "nonfinite": example.nonfinite}
    if issubclass(optimizer, WrappedOptimizer):
        # Their definition alone, every call of step an update: groups may differ in whatever is drawn.
        bare = type(optimizer.__name__, (Optimizer,), {"definition": optimizer.definition})
        made: Optimizer = bare(groups, hyperparameters={}, options={}, **arguments)
        return made
    return optimizer(groups, **arguments)


class _Gradients:
    """Places the gradients of a step, evaluation after evaluation. ``lying``: what is kept for the next."""

    def __init__(
        self,
        made: Optimizer,
        backend: Backend,
        example: Example,
        step: Step,
        lying: dict[int, Placed],
    ) -> None:
        self._made = made
        self._backend = backend
        self._example = example
        self._drawn = step
        self._lying = lying
        self._number = 0
        self.all: list[Placed] = list(lying.values())
        """Every array that the optimizer was given, and those of steps before."""

    def next(self) -> dict[str, Any]:
        """The gradients at the parameters as they are, on the backend."""
        self._number += 1
        given: dict[str, Any] = {}
        for index, (tensor, drawn) in enumerate(
            zip(self._example.tensors, self._drawn.gradients, strict=True)
        ):
            if drawn is None:
                given[tensor.name] = None
                continue
            gradient = drawn
            if self._number > 1:
                param = self._backend.to_host(self._made.params[tensor.name])
                gradient = gradient_at(self._number, drawn, param)
            kept = self._lying.get(index) if self._example.reuse else None
            if kept is not None and kept.array.dtype == gradient.dtype:
                kept.rewrite(gradient)
            else:
                what = f"the gradient of {tensor.name}"
                self._lying[index] = Placed(self._backend, what, gradient, self._drawn.offset)
                self.all.append(self._lying[index])
            given[tensor.name] = self._lying[index].array
        return given

    def written(self) -> dict[str, HostArray]:
        """What the step has left in gradients, of the tensors whose options say that it does."""
        definition = self._made.definition
        writing = {
            name
            for group in self._made.groups
            for name in group.names
            if "grad" in definition.buffers_written(**group.options)
        }
        return {
            tensor.name: self._lying[index].take_over()
            for index, tensor in enumerate(self._example.tensors)
            if tensor.name in writing and self._drawn.gradients[index] is not None
        }


def _step(made: Optimizer, gradients: Mapping[str, Any], later: _Gradients) -> str:
    """Make a step, of a rule with evaluations by a function that gives ``gradients`` first."""
    try:
        if not made.definition.evaluations:
            return "applied" if made.step(gradients) else "skipped"
        waiting = [gradients]
        before = dict(made.steps)
        made.step(lambda: (None, waiting.pop() if waiting else later.next()))
        some = any(gradient is not None for gradient in gradients.values())
        return "skipped" if some and dict(made.steps) == before else "applied"
    except NonfiniteGradient:
        if made.nonfinite != "raise":
            raise
        return "raised"


def _loaded(saved: Mapping[str, Any], example: Example) -> dict[str, Any]:
    """A state dict with the counts and states that ``example`` begins with."""
    tensors = dict(saved["tensors"])
    for tensor in example.tensors:
        kept = tensors[tensor.name]
        tensors[tensor.name] = {
            **kept,
            "t": example.start,
            "arrays": {**kept["arrays"], **tensor.arrays},
            "scalars": {**kept["scalars"], **tensor.scalars},
        }
    if "shared" not in saved:
        return {**saved, "tensors": tensors}
    shared = {name: example.shared.get(name, value) for name, value in saved["shared"].items()}
    return {**saved, "tensors": tensors, "shared": shared}


def _moment(
    made: Optimizer,
    backend: Backend,
    example: Example,
    outcome: str,
    written: Mapping[str, HostArray] | None = None,
) -> Moment:
    """What can be seen of the optimizer now, copied to the host. ``written``: by the step, of gradients."""
    arrays = [s.name for s in made.definition.reference_arrays]
    buffers: dict[str, dict[str, HostArray]] = {}
    scalars: dict[str, dict[str, float]] = {}
    state = made.state
    for tensor in example.tensors:
        name = tensor.name
        held = {s: state[s][name] for s in state if name in state[s]}
        buffers[name] = {
            # What belongs to lines comes as a copy on the host.
            s: backend.to_host(a) if s in made.definition.array_states else a
            for s, a in held.items()
            if s in arrays
        }
        buffers[name]["param"] = backend.to_host(made.params[name])
        if written is not None and name in written:
            buffers[name]["grad"] = written[name]
        scalars[name] = {s: value for s, value in held.items() if s not in arrays}
    counts = {tensor.name: made.steps[tensor.name] for tensor in example.tensors}
    return Moment(outcome, buffers, scalars, counts, dict(made.shared))
