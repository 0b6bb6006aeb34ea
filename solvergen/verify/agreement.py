"""The search for a disagreement: examples drawn by Hypothesis; one that is found is shrunk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from solvergen.errors import AgreementError, VerificationError
from solvergen.runtime.backends.base import Backend
from solvergen.runtime.definition import Definition
from solvergen.runtime.optimizer import Optimizer
from solvergen.verify.arguments import checked_optimizer
from solvergen.verify.direct import run_directly
from solvergen.verify.disagreement import Disagreement
from solvergen.verify.drawing import each_example
from solvergen.verify.dtypes import PAIRS
from solvergen.verify.equation import Equation, equation_of
from solvergen.verify.example import Example
from solvergen.verify.limits import Limits
from solvergen.verify.machines import machine, why_unavailable
from solvergen.verify.reproducer import how_to_reproduce
from solvergen.verify.running import run
from solvergen.verify.settings import Space, space_of
from solvergen.verify.shrinking import shrunk
from solvergen.verify.trace import Difference, first_difference

EXAMPLES = 100
"""How many examples are run unless told otherwise."""


def disagreement_on(
    optimizer: type[Optimizer], backend: str | Backend, example: Example
) -> Disagreement | None:
    """Run one example and compare it, step by step, with the rule called directly.

    ``example`` must be one that the optimizer accepts. None if all bits are the same. Raises
    ``BackendUnavailable`` if the backend can't work here.
    """
    definition, place = optimizer.definition, machine(backend)

    def finding(**what: Any) -> Disagreement:
        return Disagreement(definition, optimizer.__module__, place.name, example, **what)

    expected = run_directly(definition, example)
    try:
        found = run(optimizer, place, example)
    except Exception as error:  # whatever it is, the rule has a result and the backend none
        return finding(error=f"{type(error).__name__}: {error}")
    difference = first_difference(expected, found)
    if difference is None:
        return None
    return finding(difference=difference, equation=_equation(definition, example, difference))


def _equation(definition: Definition, example: Example, difference: Difference) -> Equation | None:
    """The equation that a buffer's value after a step comes from."""
    tensor = next((t for t in example.tensors if t.name == difference.tensor), None)
    if tensor is None or difference.step == 0:
        return None
    setting = example.groups[tensor.group].options
    options = Space(definition, ()).resolved(setting, example.steps[0].hyperparameters[tensor.group])
    return equation_of(definition, difference.buffer, options)


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

    The same ``seed`` draws the same examples in the same program (Hypothesis also draws numbers that it
    finds in the modules that are loaded). ``dtypes`` are pairs of the storage
    types of a parameter and its gradient. ``on_example`` is told how many examples have been run, also
    between the tries of shrinking; what it raises ends the search.
    Raises ``VerificationError`` if the optimizer can't be made under any setting, ``BackendUnavailable``
    if the backend can't work here.
    """
    definition = optimizer.definition
    space = space_of(definition)
    place = machine(backend)
    count = 0
    found: Disagreement | None = None

    def examine(example: Example) -> bool:
        nonlocal count, found
        count += 1
        if on_example is not None:
            on_example(min(count, examples))
        found = disagreement_on(optimizer, place, example)
        return found is not None

    def examine_again(example: Example) -> Disagreement | None:
        if on_example is not None:
            on_example(min(count, examples))
        return disagreement_on(optimizer, place, example)

    each_example(space, examine, examples=examples, seed=seed, limits=limits, dtypes=dtypes)
    return None if found is None else shrunk(found, examine_again, space)


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
    for backend in backends:
        found = find_disagreement(
            optimizer, backend, examples=examples, seed=seed, limits=limits, dtypes=dtypes
        )
        if found is not None:
            raise AgreementError(f"{found.describe()}\n\n{how_to_reproduce(found)}", found)
