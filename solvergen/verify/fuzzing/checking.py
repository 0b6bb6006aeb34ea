"""The check for anybody's spec: its reference computes what its equations mean."""

from __future__ import annotations

import os

from solvergen.errors import AgreementError, VerificationError
from solvergen.spec.reader import read_specs
from solvergen.verify.agreement import EXAMPLES
from solvergen.verify.collect import built_from
from solvergen.verify.direct import run_directly
from solvergen.verify.drawing import each_example
from solvergen.verify.example import Example
from solvergen.verify.fuzzing.holding import Departure, Tally, first_departure
from solvergen.verify.fuzzing.rule import rule_of
from solvergen.verify.limits import Limits
from solvergen.verify.settings import space_of

SMALL = Limits(tensors=3, steps=3, elements=8)
"""Exact arithmetic takes its time for each element."""

MOST_OPEN = 0.5
"""Share of the values of one spec about which the evaluation may have nothing to say."""


def check_meaning(
    *specs: str | os.PathLike[str], examples: int = EXAMPLES, seed: int = 0, limits: Limits = SMALL
) -> Tally:
    """Hold the NumPy reference of every spec at ``specs`` to an evaluation of its equations apart from the
    compiler: another reader, other types, exact rational arithmetic and mpmath. For use in tests.

        def test_the_reference_is_the_rule():
            check_meaning("specs/my_optimizer.yaml")

    Returns how many values were held to the bit, within bounds, and not at all. Raises ``AgreementError``
    with the first value that isn't what it should be, ``SpecError`` if a spec is wrong, and
    ``VerificationError`` if comparisons that hang on unknown bits left most values open.
    """
    if not specs:
        raise VerificationError("check_meaning needs the path of a spec, or several")
    for path in specs:
        if not isinstance(path, str | os.PathLike):
            raise VerificationError(f"check_meaning needs paths of specs, not {path!r:.60}")
    total = Tally()
    with built_from(specs) as optimizers:
        for spec in read_specs(*specs):
            definition, rule, tally = optimizers[spec.name].definition, rule_of(spec), Tally()
            found: Departure | None = None

            def take(example: Example) -> bool:
                nonlocal found
                trace = run_directly(definition, example)  # noqa: B023 (called within this turn only)
                found = first_departure(rule, definition, example, trace, tally)  # noqa: B023
                return found is not None

            each_example(space_of(definition), take, examples=examples, seed=seed, limits=limits)
            if found is not None:
                raise AgreementError(f"{spec.path} doesn't compute what its equations mean: {found}", found)
            if tally.open > MOST_OPEN * tally.total:
                raise VerificationError(
                    f"{spec.path}: {tally.open} of {tally.total} values hang on comparisons that are "
                    "too close to call, so that little is shown; hold this rule to an oracle of its own"
                )
            total = total + tally
    return total
