"""The search for a disagreement: examples drawn by Hypothesis; one that is found is shrunk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from solvergen.errors import AgreementError, VerificationError
from solvergen.runtime.backends.base import Backend
from solvergen.runtime.definition import Definition
from solvergen.runtime.equations import Equation, equation_of, program_order
from solvergen.runtime.optimizer import Optimizer
from solvergen.verify.arguments import checked_optimizer
from solvergen.verify.direct import options_of, positions_of, run_directly
from solvergen.verify.disagreement import Disagreement
from solvergen.verify.drawing import each_example
from solvergen.verify.dtypes import PAIRS
from solvergen.verify.example import Example, Tensor, check_arrays
from solvergen.verify.limits import Limits
from solvergen.verify.machines import machine, why_unavailable
from solvergen.verify.replaying.reproducer import how_to_reproduce
from solvergen.verify.running import run
from solvergen.verify.settings import space_of
from solvergen.verify.shrinking import shrunk
from solvergen.verify.trace import Difference, Trace, first_difference

EXAMPLES = 100
"""How many examples are run unless told otherwise."""


def disagreement_on(
    optimizer: type[Optimizer], backend: str | Backend, example: Example, expected: Trace | None = None
) -> Disagreement | None:
    """Run one example and compare it, step by step, with the rule called directly.

    ``example`` must be one that the optimizer accepts. ``expected``: what the rule makes of it, where that
    is known already. None if all bits are the same. Raises ``BackendUnavailable`` if the backend can't work
    here, ``VerificationError`` for an example of arrays that no optimizer takes.
    """
    check_arrays(example)
    definition, place = optimizer.definition, machine(backend)

    def finding(**what: Any) -> Disagreement:
        return Disagreement(definition, optimizer.__module__, place.name, example, **what)

    expected = run_directly(definition, example) if expected is None else expected
    try:
        found = run(optimizer, place, example)
    except Exception as error:  # whatever it is, the rule has a result and the backend none
        return finding(error=f"{type(error).__name__}: {error}")
    difference = first_difference(
        expected, found, program_order(definition) if definition.is_staged else None
    )
    if difference is None:
        return None
    return finding(difference=difference, equation=equation_behind(definition, example, difference))


def equation_behind(definition: Definition, example: Example, difference: Difference) -> Equation | None:
    """The equation that the value of a difference comes from; None if it isn't one of the rule's."""
    tensor = next((t for t in example.tensors if t.name == difference.tensor), None)
    if difference.buffer in definition.shared_states:
        tensor = _speaker(example, difference)
    if tensor is None or difference.step == 0:
        return None
    return equation_of(definition, difference.buffer, options_of(definition, example, tensor))


def _speaker(example: Example, difference: Difference) -> Tensor | None:
    """The tensor that spoke for the optimizer in the step of a difference: the first that took part."""
    gradients = example.steps[max(difference.step, 1) - 1].gradients
    taking_part = [i for i in positions_of(example.tensors) if gradients[i] is not None]
    return example.tensors[taking_part[0]] if taking_part else None


@dataclass
class Searched:
    """How far the search on one backend is, the one at ``position`` among those given, from 0.

    ``examples``: how many were run; the last one showed the disagreement, if there is one, which is shrunk
    when the search has ended. ``seconds``: of its own, without what all backends share.
    """

    backend: Backend
    position: int = 0
    examples: int = 0
    seconds: float = 0.0
    disagreement: Disagreement | None = None


def search(
    optimizer: type[Optimizer],
    backends: Sequence[Backend],
    *,
    examples: int = EXAMPLES,
    seed: int = 0,
    limits: Limits | None = None,
    dtypes: Sequence[tuple[str, str]] = PAIRS,
    on_example: Callable[[Searched], None] = lambda at: None,
    one_is_enough: bool = False,
) -> tuple[Searched, ...]:
    """Draw examples and run each on every backend that has no disagreement yet, and by the rule once.

    ``on_example`` is told before each run, also between the tries of shrinking; what it raises ends the
    search. ``one_is_enough`` ends it at the first disagreement. Otherwise as ``find_disagreement``.
    """
    definition = optimizer.definition
    space = space_of(definition)
    searched = tuple(Searched(backend, position) for position, backend in enumerate(backends))

    def run_on(at: Searched, example: Example, expected: Trace | None = None) -> Disagreement | None:
        on_example(at)
        started = time.perf_counter()
        try:
            return disagreement_on(optimizer, at.backend, example, expected)
        finally:
            at.seconds += time.perf_counter() - started

    def examine(example: Example) -> bool:
        expected = run_directly(definition, example)
        for at in searched:
            if at.disagreement is None:
                at.examples = min(at.examples + 1, examples)
                at.disagreement = run_on(at, example, expected)
                if at.disagreement is not None and one_is_enough:
                    return True
        return all(at.disagreement is not None for at in searched)

    each_example(space, examine, examples=examples, seed=seed, limits=limits, dtypes=dtypes)
    for at in searched:
        if at.disagreement is not None:
            at.disagreement = shrunk(at.disagreement, partial(run_on, at), space)
    return searched


def find_disagreement(
    optimizer: type[Optimizer],
    backend: str | Backend,
    *,
    examples: int = EXAMPLES,
    seed: int = 0,
    limits: Limits | None = None,
    dtypes: Sequence[tuple[str, str]] = PAIRS,
    on_example: Callable[[int], None] | None = None,
) -> Disagreement | None:
    """Draw examples until one shows a disagreement, and return it shrunk; None if none does.

    The same ``seed`` draws the same examples in every program. ``dtypes`` are pairs of the storage
    types of a parameter and its gradient. ``on_example`` is told how many examples have been run, also
    between the tries of shrinking; what it raises ends the search.
    Raises ``VerificationError`` if the optimizer can't be made under any setting, ``BackendUnavailable``
    if the backend can't work here.
    """

    def tell(at: Searched) -> None:
        if on_example is not None:
            on_example(at.examples)

    (searched,) = search(
        optimizer,
        [machine(backend)],
        examples=examples,
        seed=seed,
        limits=limits,
        dtypes=dtypes,
        on_example=tell,
    )
    return searched.disagreement


def check_agreement(
    optimizer: type[Optimizer],
    backends: Sequence[str | Backend] = ("numpy", "cpu"),
    *,
    examples: int = EXAMPLES,
    seed: int = 0,
    limits: Limits | None = None,
    dtypes: Sequence[tuple[str, str]] = PAIRS,
) -> None:
    """Hold every backend to the bits of the optimizer's NumPy reference. For use in tests.

    Examples have several tensors of all shapes, values and dtypes, run for up to four steps under
    settings that the optimizer accepts. Parameters, states and counts are compared after each step.

        def test_backends_agree():
            check_agreement(MyOptimizer, backends=("numpy", "cpu"), examples=200)

    Raises ``AgreementError``, an ``AssertionError`` too, with the smallest example that was found, code to
    run it again and the path of a replay file; and ``VerificationError`` if a backend can't be used here,
    the optimizer can't be made, or the arguments aren't an optimizer class and backends.
    """
    __tracebackhide__ = True  # pytest shows the finding, and not how it was found
    checked_optimizer("check_agreement", optimizer)
    if isinstance(backends, str):
        names = tuple(name.strip() for name in backends.split(",")[:10])
        raise VerificationError(
            f"backends must be a sequence of names, as backends={names}, not the string {backends!r:.60}"
        )
    if not isinstance(backends, Iterable):
        raise VerificationError(f"backends must be a sequence of names, not {backends!r:.60}")
    backends = tuple(backends)
    if not backends:
        raise VerificationError("backends names none, so nothing would be compared")
    for backend in backends:
        reason = why_unavailable(backend)
        if reason is not None:
            raise VerificationError(f"backend {backend} can't be verified here: {reason}")
    searched = search(
        optimizer,
        [machine(backend) for backend in backends],
        examples=examples,
        seed=seed,
        limits=limits,
        dtypes=dtypes,
        one_is_enough=True,
    )
    for found in (at.disagreement for at in searched):
        if found is not None:
            raise AgreementError(f"{found.describe()}\n\n{how_to_reproduce(found)}", found)
