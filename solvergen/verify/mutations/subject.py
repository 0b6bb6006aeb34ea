"""What mutants are made of and measured by: an optimizer, and the runs that verify draws for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path

from solvergen.runtime.kernel_interface import update_defines
from solvergen.runtime.optimizer import Optimizer
from solvergen.verify.agreement import EXAMPLES
from solvergen.verify.direct import run_directly
from solvergen.verify.drawing import each_example
from solvergen.verify.dtypes import PAIRS
from solvergen.verify.example import Example
from solvergen.verify.settings import Space, space_of
from solvergen.verify.trace import Trace

Variant = tuple[tuple[str, int], ...]
"""The macros of one kernel, sorted: its dtypes and options."""


@dataclass(frozen=True, eq=False)
class Run:
    """An example, what the rule makes of it, and the kernels that it needs."""

    number: int
    example: Example
    expected: Trace
    variants: frozenset[Variant]
    elements: int


@dataclass(frozen=True, eq=False)
class Subject:
    """An optimizer with the examples of one seed, drawn and run by the rule once for all mutants."""

    optimizer: type[Optimizer]
    space: Space
    runs: tuple[Run, ...]

    @property
    def name(self) -> str:
        """The name of its spec."""
        return self.optimizer.definition.name

    def text(self, file: str) -> str:
        """A file of the optimizer's folder."""
        return Path(self.optimizer.definition.folder, file).read_text(encoding="utf-8")

    @cached_property
    def variants(self) -> frozenset[Variant]:
        """All kernels that there are: every mix of dtypes under every setting of the options."""
        settings = [self.space.resolved(setting, base) for setting, base in self.space.bases]
        return frozenset(_variant(*pair, options) for pair, options in product(PAIRS, settings))


def subject(optimizer: type[Optimizer], *, examples: int = EXAMPLES, seed: int = 0) -> Subject:
    """Draw the examples that ``find_disagreement`` would draw, and run the rule on each."""
    space = space_of(optimizer.definition)
    drawn: list[Example] = []

    def take(example: Example) -> bool:
        drawn.append(example)
        return False

    each_example(space, take, examples=examples, seed=seed)
    runs = [
        Run(
            number,
            example,
            run_directly(optimizer.definition, example),
            _variants(space, example),
            sum(tensor.param.size for tensor in example.tensors),
        )
        for number, example in enumerate(drawn, start=1)
    ]
    return Subject(optimizer, space, tuple(runs))


def _variants(space: Space, example: Example) -> frozenset[Variant]:
    """The kernels that an example launches: of tensors that have a gradient."""
    first = example.steps[0].hyperparameters
    options = [space.resolved(group.options, first[i]) for i, group in enumerate(example.groups)]
    return frozenset(
        _variant(tensor.param.dtype.name, gradient.dtype.name, options[tensor.group])
        for step in example.steps
        for tensor, gradient in zip(example.tensors, step.gradients, strict=True)
        if gradient is not None
    )


def _variant(param: str, grad: str, options: Mapping[str, bool]) -> Variant:
    return tuple(sorted(update_defines(param, grad, options).items()))
