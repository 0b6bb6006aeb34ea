"""Specs given as text, compiled and held to what they mean."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st

from solvergen.runtime.backends.base import Backend
from solvergen.runtime.optimizer import Optimizer
from solvergen.spec.model import Spec
from solvergen.spec.reader import read_spec
from solvergen.verify.agreement import disagreement_on
from solvergen.verify.collect import built_from
from solvergen.verify.direct import run_directly
from solvergen.verify.dtypes import PAIRS
from solvergen.verify.example import Example
from solvergen.verify.fuzzing.holding import Tally, first_departure
from solvergen.verify.fuzzing.rule import Rule, rule_of
from solvergen.verify.fuzzing.style import Style
from solvergen.verify.limits import Limits
from solvergen.verify.settings import Space, space_of
from solvergen.verify.strategies import examples

styles = st.integers(0, 2**32 - 1).map(Style)
"""Ways to write a spec down."""

SMALL = Limits(tensors=3, steps=3, elements=8)
"""For the evaluation in exact arithmetic, which takes its time for each element."""

WIDER = Limits(tensors=4, steps=2, elements=300)
"""For backends: vectors and their rests."""


@contextmanager
def spec_file(text: str) -> Iterator[Path]:
    """A file that holds ``text``, byte by byte."""
    if currently_in_test_context():
        note(text)
    with tempfile.TemporaryDirectory(prefix="solvergen-fuzz-") as folder:
        path = Path(folder, "rule.yaml")
        path.write_bytes(text.encode("utf-8"))
        yield path


@dataclass(frozen=True)
class Built:
    """One spec, compiled and imported."""

    path: Path
    spec: Spec
    rule: Rule
    optimizer: type[Optimizer]
    space: Space


@contextmanager
def built(text: str) -> Iterator[Built]:
    """The optimizer of the spec ``text``, for as long as the context lasts."""
    with spec_file(text) as path, built_from([path]) as optimizers:
        (optimizer,) = optimizers.values()
        spec = read_spec(path)
        yield Built(path, spec, rule_of(spec), optimizer, space_of(optimizer.definition))


def hold_to_meaning(found: Built, example: Example, tally: Tally) -> None:
    """The reference computes what the equations mean, by an evaluation apart from the compiler."""
    definition = found.optimizer.definition
    departure = first_departure(found.rule, definition, example, run_directly(definition, example), tally)
    assert departure is None, str(departure)


def hold_to_reference(found: Built, backend: Backend, example: Example) -> None:
    """A backend computes the bits of the reference."""
    disagreement = disagreement_on(found.optimizer, backend, example)
    assert disagreement is None, disagreement.describe()


def draw_example(
    data: st.DataObject, found: Built, limits: Limits, pairs: Sequence[tuple[str, str]] = PAIRS
) -> Example:
    """A whole run of the optimizer."""
    return data.draw(examples(found.space, limits, pairs))
