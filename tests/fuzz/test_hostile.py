"""Whatever a file holds, the compiler says what is wrong with it, soon, and in little memory."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import note
from hypothesis import strategies as st

from tests.fuzz.bounded import Worker
from tests.fuzz.hostile import BOMBS, hostile_equations, mutated, wrong_shapes
from tests.fuzz.running import fuzz

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="limits of memory are those of Linux (RLIMIT_AS, /proc)"
)

SECONDS = 10.0
"""Of the processor's time, for one file; a page of text takes a hundredth of it."""

DOCUMENTED = frozenset(
    re.findall(r"SG\d{3}", (Path(__file__).parents[2] / "docs/diagnostics.md").read_text(encoding="utf-8"))
)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as found:
        yield found


def _examine(worker: Worker, data: bytes) -> dict[str, Any]:
    note(repr(data))
    found = worker.examine(data)
    assert "failure" not in found, found["failure"]
    assert found["seconds"] < SECONDS
    assert set(found["codes"]) <= DOCUMENTED
    assert found["valid"] or found["codes"]
    return found


@pytest.mark.parametrize(
    ("files", "examples"),
    [(mutated, 300), (hostile_equations, 400), (wrong_shapes, 300)],
    ids=["mutated", "equations", "shapes"],
)
def test_a_finding_and_never_a_traceback(worker: Worker, files: Any, examples: int) -> None:
    count, valid, codes = 0, 0, set[str]()

    def examined(data: bytes, rest: st.DataObject) -> None:
        nonlocal count, valid
        found = _examine(worker, data)
        count, valid = count + 1, valid + found["valid"]
        codes.update(found["codes"])

    examined.__qualname__ += f"/{files.__name__}"
    fuzz(examined, files(), examples=examples)
    # Most files are wrong, in many ways; what is still valid has gone through the whole compiler.
    assert valid < 0.8 * count
    assert len(codes) >= 10, codes


@pytest.mark.parametrize("number", range(len(BOMBS)), ids=lambda i: f"{i}-{BOMBS[i][:12]!r}")
def test_what_asks_for_much_is_refused(worker: Worker, number: int) -> None:
    found = worker.examine(BOMBS[number])
    assert "failure" not in found, found["failure"]
    assert found["codes"]
    assert not found["valid"]
    assert found["seconds"] < SECONDS
