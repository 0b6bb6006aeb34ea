"""Runs again what a replay file holds: does the backend still differ from the rule?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from solvergen.errors import HyperparameterError, ReplayError
from solvergen.runtime.backends.base import Backend
from solvergen.runtime.definition import Definition
from solvergen.runtime.dtypes import compute_dtype
from solvergen.runtime.groups import checked_multiplier
from solvergen.runtime.optimizer import Optimizer
from solvergen.runtime.wrapped_classes import wrapped_class
from solvergen.verify.agreement import disagreement_on
from solvergen.verify.arguments import checked_optimizer
from solvergen.verify.collect import shipped
from solvergen.verify.disagreement import Disagreement
from solvergen.verify.dtypes import PAIRS
from solvergen.verify.example import Example, Group, Tensor
from solvergen.verify.lines import counts_of_blocks, state_shape
from solvergen.verify.replaying.file import Replay, read_replay
from solvergen.verify.replaying.spec import optimizer_of
from solvergen.verify.settings import Space


def replay(
    source: str | os.PathLike[str] | Replay,
    optimizer: type[Optimizer] | None = None,
    backend: str | Backend | None = None,
) -> Disagreement | None:
    """Run the finding in the file ``source`` again. None if backend and rule agree on it now.

    ``optimizer``: None takes the rule as it was (``rule_of``). ``backend``: None takes the one of the file.
    Raises ReplayError if there is no such file, it isn't one, or the optimizer doesn't accept its run, and
    BackendUnavailable if the backend can't work here.
    """
    content = source if isinstance(source, Replay) else read_replay(source)
    if optimizer is None:
        with rule_of(content) as found:
            return replay(content, found, backend)
    checked_optimizer("replay", optimizer)
    example = accepted(optimizer.definition, content.example)
    return disagreement_on(optimizer, content.backend if backend is None else backend, example)


@contextmanager
def rule_of(content: Replay) -> Iterator[type[Optimizer]]:
    """The optimizer of a replay: the shipped one if it is the same rule, else its spec's text, compiled.

    Of use inside the ``with``. Raises ReplayError if the file has no text and none of the shipped is it.
    """
    same = shipped().get(content.optimizer.removeprefix("wrapped_"))
    is_wrapped = content.optimizer.startswith("wrapped_")
    if is_wrapped:
        same = None if same is None else wrapped_class(same)
    if same is not None and same.definition.digest == content.digest:
        yield same
    elif content.text is None or is_wrapped:
        raise ReplayError(
            f"the file doesn't hold the text of {content.spec!r:.80}; say where the spec is (--specs DIR), "
            "or give the optimizer's class to solvergen.verify.replay"
        )
    else:
        with optimizer_of(content.text, content.spec, content.optimizer, content.digest) as optimizer:
            yield optimizer


def accepted(definition: Definition, example: Example) -> Example:
    """``example``, with names in the definition's order, if the optimizer accepts all of it.

    Raises ReplayError that says what it doesn't accept.
    """
    try:
        groups = tuple(_group(definition, group) for group in example.groups)
        steps = tuple(
            replace(
                step, hyperparameters=tuple(_hyperparameters(definition, v) for v in step.hyperparameters)
            )
            for step in example.steps
        )
        space = Space(definition, ())
        options = [
            _options(space, group, [step.hyperparameters[index] for step in steps])
            for index, group in enumerate(groups)
        ]
        for index, tensor in enumerate(example.tensors):
            _check_tensor(definition, tensor, options[tensor.group])
            for step in steps:
                gradient = step.gradients[index]
                if gradient is not None and (tensor.param.dtype.name, gradient.dtype.name) not in PAIRS:
                    raise ValueError(
                        f"a {gradient.dtype} gradient for {tensor.name}, which is {tensor.param.dtype}"
                    )
        existing = {name for chosen in options for name in definition.active_state(**chosen)}
        for name in example.shared:
            if name not in existing or name not in definition.shared_states:
                raise ValueError(f"there is no shared state {name!r:.40} under these options")
    except (ValueError, HyperparameterError) as wrong:
        raise ReplayError(f"{definition.class_name} doesn't accept this run: {wrong}") from None
    return replace(example, groups=groups, steps=steps)


def _group(definition: Definition, group: Group) -> Group:
    if set(group.options) != set(definition.option_names):
        raise ValueError(f"its options are {', '.join(definition.option_names) or 'none'}")
    for option in definition.options:
        if option.default is not None and group.options[option.name] is None:
            raise ValueError(f"option {option.name} must be true or false")
    for name, value in group.multipliers.items():
        checked_multiplier(name, value)
    return replace(group, options={name: group.options[name] for name in definition.option_names})


def _hyperparameters(definition: Definition, values: Mapping[str, float]) -> dict[str, float]:
    if set(values) != set(definition.hyperparameter_names):
        raise ValueError(f"its hyperparameters are {', '.join(definition.hyperparameter_names) or 'none'}")
    return {name: values[name] for name in definition.hyperparameter_names}


def _options(space: Space, group: Group, values: Sequence[Mapping[str, float]]) -> dict[str, bool]:
    """The options in force for a group, whose hyperparameters are ``values`` step by step."""
    if not all(space.in_range(v) for v in values):
        raise ValueError("a hyperparameter is out of its range")
    options = space.resolved(group.options, values[0])
    if not all(space.accepts(group.options, v, options, group.multipliers) for v in values):
        raise ValueError("hyperparameters and options don't satisfy its constraints")
    return options


def _check_tensor(definition: Definition, tensor: Tensor, options: Mapping[str, bool]) -> None:
    active = definition.active_state(**options)
    compute = compute_dtype(tensor.param.dtype.name)
    ranks = {state.name: state.rank for state in definition.reference_arrays if not state.dtype}
    if tensor.blocks != 1 and (
        definition.view != "blocks" or tensor.blocks not in counts_of_blocks(tensor.shape, tensor.param.size)
    ):
        raise ValueError(f"{tensor.name} of shape {tensor.shape} falls into {tensor.blocks} blocks")
    for name, array in tensor.arrays.items():
        if name not in active or name not in ranks:
            raise ValueError(f"{tensor.name} has no state {name!r:.40} under its options")
        rank = ranks[name]
        dtype = compute if rank is None else np.dtype(np.float64)
        shape = (
            tensor.shape if rank is None else state_shape(definition.view, rank, tensor.shape, tensor.blocks)
        )
        if array.dtype != dtype:
            raise ValueError(f"state {name} of {tensor.name} is {array.dtype}, not {dtype}")
        if array.shape != shape:
            raise ValueError(f"{tensor.name} has shape {tensor.shape}, its {name:.40} {array.shape}")
    for name in tensor.scalars:
        if name not in active or name not in definition.all_scalar_states:
            raise ValueError(f"{tensor.name} has no scalar state {name!r:.40} under its options")
