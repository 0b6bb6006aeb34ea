"""Specs with which the fuzzers have found faults: each stays in order, in every way that is tested there."""

from __future__ import annotations

from pathlib import Path

import pytest

from solvergen import stages
from solvergen.verify import find_disagreement, why_unavailable
from solvergen.verify.drawing import each_example
from solvergen.verify.fuzzing.holding import Tally
from tests.fuzz.built import SMALL, built, hold_to_meaning

FOUND = sorted(Path(__file__).with_name("found").glob("*.yaml"))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_the_reference_computes_what_it_means(path: Path) -> None:
    tally = Tally()
    with built(path.read_text(encoding="utf-8")) as found:

        def hold(example: object) -> bool:
            hold_to_meaning(found, example, tally)  # type: ignore[arg-type]
            return False

        each_example(found.space, hold, examples=30, limits=SMALL)
    assert tally.exact + tally.bounded > 0


@pytest.mark.parametrize(
    "backend", [name for name in ("numpy", "cpu", "ptx") if why_unavailable(name) is None]
)
@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_backends_agree(path: Path, backend: str) -> None:
    with built(path.read_text(encoding="utf-8")) as found:
        disagreement = find_disagreement(found.optimizer, backend, examples=3 if backend == "ptx" else 10)
    assert disagreement is None, disagreement.describe()


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_every_stage_can_be_shown(path: Path) -> None:
    for stage in stages.STAGES:
        assert stages.show(path, stage)
