"""One finding: a backend that computes something else than the rule, and on what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvergen.runtime.definition import Definition
from solvergen.runtime.equations import Equation
from solvergen.verify.bits import hexadecimal, show
from solvergen.verify.example import Example, Tensor
from solvergen.verify.trace import Difference

ELEMENTS_SHOWN = 12
"""Arrays up to this size are printed whole."""


@dataclass(frozen=True, eq=False)
class Disagreement:
    """Where ``backend`` first leaves the rule of ``definition`` on ``example``.

    ``module`` is the one of the optimizer's class. Exactly one of ``difference`` and ``error`` is there: an
    ``error`` is what the backend raised where the rule has a result. ``equation`` is the last one that
    assigns the buffer of the difference, if that is one of the rule's.
    """

    definition: Definition
    module: str
    backend: str
    example: Example
    difference: Difference | None = None
    error: str | None = None
    equation: Equation | None = None

    @property
    def optimizer(self) -> str:
        """Name of the optimizer's class."""
        return self.definition.class_name

    @property
    def spec(self) -> str:
        """Path of its spec, as it was given to the compiler."""
        return self.definition.spec

    @property
    def headline(self) -> str:
        """The finding in one line."""
        if self.difference is None:
            return f"{self.backend} raises {(self.error or '').splitlines()[0]}"
        d = self.difference
        where = "after making it" if d.step == 0 else f"after step {d.step}"
        if d.buffer == "outcome":
            return f"step {d.step} was {d.found}, should have been {d.expected}"
        place = f"{d.buffer} of {d.tensor}" if d.tensor else d.buffer
        if d.index is not None:
            place += f" at {list(d.index)}"
        return f"{place} {where}: {_plain(d.found)}, should be {_plain(d.expected)}{self._distance}"

    @property
    def _distance(self) -> str:
        d = self.difference
        if d is None or d.ulps is None:
            return ""
        if d.ulps == 0:
            return " (signs of zero differ)"
        return f" ({d.ulps} ulp)" if d.ulps < 10**6 else f" ({d.ulps:.3e} ulp)"

    def __str__(self) -> str:
        return self.describe()

    def describe(self) -> str:
        """The whole finding over several lines: the first difference, and all that leads to it."""
        lines = [f"{self.optimizer} ({self.spec}) on backend {self.backend} is not its rule:", ""]
        lines += self._finding()
        example = self.example
        lines += ["", f"nonfinite: {example.nonfinite}"]
        if example.start:
            lines.append(f"updates before the first step: {example.start}")
        for name, value in example.shared.items():
            lines.append(f"shared state {name} begins = {value!r}")
        for index, group in enumerate(example.groups):
            title = f"group {index}: " if len(example.groups) > 1 else ""
            values = {**example.steps[0].hyperparameters[index], **group.multipliers, **group.options}
            lines.append(f"{title}{_settings(values)}")
        lines += self._tensor_lines()
        lines += self._step_lines()
        return "\n".join(lines)

    def _finding(self) -> list[str]:
        d = self.difference
        if d is None:
            return [f"  raised    {self.error}"]
        if d.buffer == "outcome":
            return [f"  step {d.step}", f"  expected  {d.expected}", f"  found     {d.found}"]
        step = "before the first step" if d.step == 0 else f"step {d.step} of {len(self.example.steps)}"
        place = f"  {step}, tensor {d.tensor}, buffer {d.buffer}"
        if not d.tensor:
            place = f"  {step}, shared state {d.buffer}"
        if d.index is not None:
            place += f", element {list(d.index)}"
        lines = [
            place,
            f"  expected  {_number(d.expected)}",
            f"  found     {_number(d.found)}{self._distance}",
        ]
        if self.equation is not None:
            lines.append(f"  equation  {self.equation}")
        if d.count > 1:
            lines.append(f"  {d.count} of {d.size} elements of this buffer differ")
        return lines

    def _tensor_lines(self) -> list[str]:
        lines = []
        for index, tensor in enumerate(self.example.tensors):
            types = {g.dtype.name for g in self._gradients(index) if g is not None} or {"none"}
            text = f"tensor {tensor.name}: {tensor.param.dtype.name} {tensor.shape}"
            text += f" in {tensor.blocks} blocks" if tensor.blocks != 1 else ""
            text += f", gradient {'/'.join(sorted(types))}"
            if len(self.example.groups) > 1:
                text += f", group {tensor.group}"
            if tensor.offset:
                text += f", {tensor.offset} elements into its memory"
            lines.append(f"{text}{self._contents(tensor, tensor.param)}")
            for name, array in tensor.arrays.items():
                lines.append(f"tensor {tensor.name}: {name} begins{self._contents(tensor, array)}")
            for name, value in tensor.scalars.items():
                lines.append(f"tensor {tensor.name}: {name} begins = {value!r}")
        return lines

    def _step_lines(self) -> list[str]:
        lines = []
        for number, step in enumerate(self.example.steps, start=1):
            if number > 1 and step.hyperparameters != self.example.steps[number - 2].hyperparameters:
                for index, values in enumerate(step.hyperparameters):
                    lines.append(f"step {number}: hyperparameters of group {index}: {_settings(values)}")
            for tensor, gradient in zip(self.example.tensors, step.gradients, strict=True):
                if gradient is None:
                    lines.append(f"step {number}: {tensor.name} has no gradient")
                else:
                    lines.append(
                        f"step {number}: gradient of {tensor.name}{self._contents(tensor, gradient)}"
                    )
        return lines

    def _gradients(self, index: int) -> list[Any]:
        return [step.gradients[index] for step in self.example.steps]

    def _contents(self, tensor: Tensor, array: Any) -> str:
        """A small array whole; of a larger one the element at which the runs part."""
        if array.size <= ELEMENTS_SHOWN:
            values = ", ".join(hexadecimal(v) for v in array.reshape(-1))
            return f" = [{values}]" if array.ndim else f" = {values}"
        d = self.difference
        if d is not None and d.tensor == tensor.name and d.index is not None and has_element(array, d.index):
            return f", there {hexadecimal(array[d.index])}"
        return ""

    def as_json(self) -> dict[str, Any]:
        """The finding as plain data, without the arrays."""
        d, equation = self.difference, self.equation
        return {
            "headline": self.headline,
            "report": self.describe(),
            "error": self.error,
            "difference": None
            if d is None
            else {
                "step": d.step,
                "tensor": d.tensor,
                "buffer": d.buffer,
                "index": None if d.index is None else list(d.index),
                "expected": _plain(d.expected),
                "found": _plain(d.found),
                "expected_hex": hexadecimal(d.expected) if _is_number(d.expected) else None,
                "found_hex": hexadecimal(d.found) if _is_number(d.found) else None,
                "ulps": d.ulps,
                "count": d.count,
                "size": d.size,
                "equation": None if equation is None else {"text": equation.text, "place": equation.place},
            },
        }


def has_element(array: Any, index: tuple[int, ...]) -> bool:
    """Whether there is such an element; an index may be one of a state of lines."""
    return len(index) == array.ndim and all(i < n for i, n in zip(index, array.shape, strict=True))


def _settings(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _is_number(value: Any) -> bool:
    return isinstance(value, (float, np.generic))


def _plain(value: Any) -> str:
    return str(value)


def _number(value: Any) -> str:
    return show(value) if _is_number(value) else str(value)
