"""A small dense net in NumPy, for tests and a quick start: no more.

Batches are taken in file order and wrap around; where they are is a number that can be set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from solvergen.solver.net.dense_data import inputs_from, labels_from, values_from
from solvergen.solver.net.error import NetError
from solvergen.solver.net.notes import Notes
from solvergen.solver.net.parameters import check_shared, collected
from solvergen.solver.net.protocol import (
    NOTHING_KEPT,
    Blob,
    LayerBlobs,
    LayerPass,
    Net,
    Output,
    Watching,
    loss_of,
)

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Param:
    """A parameter as a layer declares it. Two with one name are one parameter."""

    name: str | None = None
    lr_mult: float = 1.0
    decay_mult: float = 1.0


@dataclass(frozen=True)
class InnerProduct:
    """``x @ weights.T + bias``, with an activation behind it."""

    name: str
    num_output: int
    activation: Literal["relu", "tanh"] | None = None
    weights: Param = field(default=Param())
    bias: Param | None = field(default=Param())
    std: float | None = None
    """Of the normal distribution that weights (and the bias) begin with. None: the square root of 2/inputs
    for the weights, 0 for the bias."""


@dataclass(frozen=True)
class Sliced:
    """Each layer gets an equal part of the batch; the results are put together again."""

    name: str
    layers: tuple[InnerProduct, ...]


@dataclass(frozen=True, eq=False)
class _Step:
    """What a layer did in a pass: with which rows, what it saw and made, and under which names."""

    part: InnerProduct
    rows: slice
    x: Array
    y: Array
    bottom: str
    top: str


class DenseNet:
    """Inner products in a row, and a loss.

    Args:
        inputs: one row an example.
        targets: rows of numbers (``loss="euclidean"``: the squared distances' sum over twice the batch) or
            whole numbers (``loss="softmax"``: the mean of the negative logarithms of their probabilities).
        layers: from the inputs on.
        batch_size: rows in each pass.
        accuracy: put out the share of right answers too (``"softmax"`` alone).
        seed: of what parameters begin with.
        dtype: float32 or float64, of everything.
    """

    def __init__(
        self,
        inputs: Any,
        targets: Any,
        layers: Sequence[InnerProduct | Sliced],
        *,
        loss: Literal["euclidean", "softmax"] = "euclidean",
        batch_size: int,
        accuracy: bool = False,
        seed: int = 0,
        dtype: Any = np.float32,
        name: str = "dense",
    ) -> None:
        self.name = name
        if loss not in ("euclidean", "softmax"):
            raise NetError(f"loss must be 'euclidean' or 'softmax', not {loss!r}")
        self._inputs = inputs_from(inputs, dtype)
        self._loss, self._accuracy, self._batch_size = loss, accuracy, int(batch_size)
        if self._batch_size < 1:
            raise NetError(f"batch_size must be at least 1, not {batch_size}")
        self._layers = tuple(layers)
        self._rows = np.arange(self._batch_size)
        self._next = 0
        self._kept: list[int] | None = None
        self._notes: Notes | None = None
        self._outputs: tuple[Output, ...] = ()
        self._users: dict[str, tuple[Blob, ...]] = {}
        declared: dict[str, Blob] = {}
        rng = np.random.default_rng(seed)
        described = []
        width = self._inputs.shape[1]
        for layer in self._layers:
            parts = layer.layers if isinstance(layer, Sliced) else (layer,)
            if self._batch_size % len(parts):
                raise NetError(f"{layer.name}: {self._batch_size} rows can't be cut into {len(parts)} parts")
            for part in parts:
                blobs = _declare(part, width, rng, dtype, declared)
                self._users[part.name] = blobs
                described.append(LayerBlobs(part.name, "InnerProduct", blobs))
            width = parts[0].num_output
        count = len(self._inputs)
        softmax = loss == "softmax"
        self._targets = (
            labels_from(targets, count, width) if softmax else values_from(targets, dtype, count, width)
        )
        self.layers: tuple[LayerBlobs, ...] = tuple(described)
        self.learnable: tuple[Blob, ...] = collected(self.layers)

    def clear_diffs(self) -> None:
        """Set every gradient to zero."""
        for blob in self.learnable:
            blob.diff.fill(0)

    def forward(self) -> tuple[Output, ...]:
        """A pass over the next batch."""
        self._run()
        return self._outputs

    def forward_backward(self) -> float:
        """A pass over the next batch that adds to the gradients. Returns the loss."""
        if self._kept is not None:
            self._kept.append(self._next)
        return self._both()

    def _both(self) -> float:
        steps, gradient = self._run()
        if self._notes is not None and steps:
            self._notes.backward("loss", {steps[-1].top: gradient})
        for step in reversed(steps):
            gradient = self._back(step, gradient)
        return loss_of(self._outputs)

    def keep_batches(self) -> None:
        """Keep the batches of the passes from now on."""
        self._kept = []

    def pass_again(self) -> float:
        """Those passes again, at the parameters as they are now. Returns the sum of their losses."""
        if not self._kept:
            raise NetError(NOTHING_KEPT.format(name=self.name))
        left = self._next, self._outputs
        loss = 0.0
        try:
            for row in self._kept:
                self._next = row
                loss += self._both()
        finally:
            self._next, self._outputs = left
        return loss

    def watch(self, what: Watching | None) -> None:
        """Take note of what layers do in the passes from now on."""
        self._notes = None if what is None else Notes(what)

    def watched(self) -> tuple[LayerPass, ...]:
        """What was noted in the last pass: of the data, each layer and the loss."""
        return () if self._notes is None else self._notes.passes

    def outputs(self) -> tuple[Output, ...]:
        """What the last pass put out."""
        return self._outputs

    def position(self) -> Mapping[str, int]:
        """The row that the next batch begins with."""
        return {"row": self._next}

    def seek(self, position: Mapping[str, int]) -> None:
        """Begin the next batch with that row."""
        self._next = int(position["row"]) % len(self._inputs)

    def share_with(self, train: Net) -> None:
        """Use the arrays of ``train`` for the parameters that it has under the same names."""
        theirs = {blob.name: blob for blob in train.learnable}
        for blob in self.learnable:
            check_shared(blob.name, blob.data, theirs.get(blob.name, blob).data)
        for layer, blobs in self._users.items():
            self._users[layer] = tuple(theirs.get(blob.name, blob) for blob in blobs)
        self.layers = tuple(LayerBlobs(one.name, one.type, self._users[one.name]) for one in self.layers)
        self.learnable = tuple(theirs.get(blob.name, blob) for blob in self.learnable)

    def _run(self) -> tuple[list[_Step], Array]:
        """A pass: what each layer saw and made of it, and the gradient of the loss at the end."""
        notes = self._notes
        if notes is not None:
            notes.begin()
        rows = (self._rows + self._next) % len(self._inputs)
        self._next = (self._next + self._batch_size) % len(self._inputs)
        x, targets = self._inputs[rows], self._targets[rows]
        if notes is not None:
            notes.forward("data", {"data": x, "label": targets})
        steps: list[_Step] = []
        bottom = "data"
        for layer in self._layers:
            parts = layer.layers if isinstance(layer, Sliced) else (layer,)
            size = self._batch_size // len(parts)
            made = []
            for i, part in enumerate(parts):
                span = slice(i * size, (i + 1) * size)
                made.append(self._forth(part, x[span]))
                steps.append(_Step(part, span, x[span], made[-1], bottom, layer.name))
                if notes is not None:
                    notes.forward(part.name, {part.name: made[-1]})
            x = np.concatenate(made) if len(made) > 1 else made[0]
            bottom = layer.name
        gradient = self._lose(x, targets)
        if notes is not None:
            notes.forward("loss", {output.name: output.values for output in self._outputs})
        return steps, gradient

    def _forth(self, part: InnerProduct, x: Array) -> Array:
        weights, *bias = self._users[part.name]
        y: Array = x @ weights.data.T
        if bias:
            y += bias[0].data
        if part.activation == "relu":
            np.maximum(y, 0, out=y)
        elif part.activation == "tanh":
            np.tanh(y, out=y)
        return y

    def _back(self, step: _Step, gradient: Array) -> Array:
        """Adds to the gradients of the part's parameters; returns that of the whole batch before it."""
        part, rows, x, y = step.part, step.rows, step.x, step.y
        own = gradient[rows]
        if part.activation == "relu":
            own = own * (y > 0)
        elif part.activation == "tanh":
            own = own * (1 - y * y)
        weights, *bias = self._users[part.name]
        if weights.lr_mult:
            weights.diff[...] += own.T @ x
        if bias and bias[0].lr_mult:
            bias[0].diff[...] += own.sum(axis=0)
        before: Array = own @ weights.data
        if self._notes is not None:
            self._notes.backward(part.name, {} if step.bottom == "data" else {step.bottom: before})
        if len(before) == len(gradient):
            return before
        # One slice of several: they are walked from the last to the first, so the first completes the whole.
        if self._partial is None:
            self._partial = np.empty((len(gradient), before.shape[1]), before.dtype)
        self._partial[rows] = before
        if rows.start:
            return gradient
        whole, self._partial = self._partial, None
        return whole

    _partial: Array | None = None

    def _lose(self, x: Array, targets: Array) -> Array:
        """Sets the outputs; returns the gradient of the loss."""
        count = len(x)
        if self._loss == "euclidean":
            error = x - targets
            loss = np.asarray(np.sum(error * error) / np.asarray(2 * count, x.dtype), x.dtype)
            self._outputs = (Output("loss", loss.reshape(()), 1.0),)
            gradient: Array = error / np.asarray(count, x.dtype)
            return gradient
        shifted = x - x.max(axis=1, keepdims=True)
        logarithms = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        rows = np.arange(count)
        loss = np.asarray(-logarithms[rows, targets].mean(), x.dtype)
        self._outputs = (Output("loss", loss, 1.0),)
        if self._accuracy:
            right = np.asarray((x.argmax(axis=1) == targets).mean(), x.dtype)
            self._outputs = (Output("accuracy", right), *self._outputs)
        gradient = np.exp(logarithms)
        gradient[rows, targets] -= 1
        gradient /= count
        return gradient


def _declare(
    part: InnerProduct, width: int, rng: np.random.Generator, dtype: Any, declared: dict[str, Blob]
) -> tuple[Blob, ...]:
    """The blobs of a layer; those whose names are declared already are the same arrays again."""
    std = float(np.sqrt(2 / width)) if part.std is None else part.std
    wanted: list[tuple[Param, tuple[int, ...], float, str]] = [
        (part.weights, (part.num_output, width), std, "weights")
    ]
    if part.bias is not None:
        wanted.append((part.bias, (part.num_output,), part.std or 0.0, "bias"))
    blobs = []
    for index, (param, shape, deviation, default) in enumerate(wanted):
        name = param.name or f"{part.name}.{default}"
        data = np.asarray(rng.standard_normal(shape) * deviation, dtype)
        diff = np.zeros(shape, dtype)
        if name in declared:
            first = declared[name]
            if first.data.shape != shape:
                raise NetError(
                    f"layer {part.name!r} shares parameter {name!r} of {first.layer!r}, but with the shape "
                    f"{shape} instead of {first.data.shape}"
                )
            data, diff = first.data, first.diff
        blob = Blob(name, data, diff, float(param.lr_mult), float(param.decay_mult), part.name, index)
        declared.setdefault(name, blob)
        blobs.append(blob)
    return tuple(blobs)
