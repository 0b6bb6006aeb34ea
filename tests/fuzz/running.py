"""How long the fuzzers run and what they draw: a fixed choice by default, more when asked for.

SOLVERGEN_FUZZ=20 pytest tests/fuzz                  twenty times as many examples
SOLVERGEN_FUZZ_SEED=7 pytest tests/fuzz              other ones
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import hypothesis
import hypothesis.errors
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from solvergen.verify.seeding import by_seed_alone

BATCH = 20
"""Examples of one run of Hypothesis: later in a run it mostly varies what it has."""

SHRINKING_SECONDS = 40
"""How long a failure is made smaller: each try may compile kernels."""

_WANTED = os.environ.get("SOLVERGEN_FUZZ", "1")
FACTOR = float(_WANTED)
SEED = os.environ.get("SOLVERGEN_FUZZ_SEED", "0")
AGAIN = f"SOLVERGEN_FUZZ={_WANTED} SOLVERGEN_FUZZ_SEED={SEED}"
"""What draws the same again."""


def fuzz(body: Callable[..., None], *strategies: st.SearchStrategy[Any], examples: int) -> None:
    """Call ``body`` with drawn values, ``examples`` times (times ``SOLVERGEN_FUZZ``).

    The first failure is shrunk for a while and raised; what ``strategies`` drew stands beside it, and unless
    the time was too short, what ``body`` drew and noted.
    """
    left = max(1, round(examples * FACTOR))
    batch = 0
    while left > 0:
        impatient = _Impatient(body, strategies)
        test = hypothesis.given(st.data())(impatient.run)
        test = hypothesis.seed(f"{SEED}/{body.__qualname__}/{batch}")(test)
        test = hypothesis.settings(
            max_examples=min(BATCH, left),
            database=None,
            deadline=None,
            derandomize=False,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )(test)
        try:
            with by_seed_alone():
                test()
        except (_EnoughShrinking, hypothesis.errors.Flaky):
            # Flaky too: stopped before its draws, the last example draws less than one that began like it.
            if not impatient.stopped or impatient.smallest is None:
                raise
            shown, failure = impatient.smallest
            raise AssertionError(
                f"the smallest failure found in {SHRINKING_SECONDS} seconds, "
                f"by {AGAIN}: {failure}\nof: {shown}"
            ) from failure
        left -= BATCH
        batch += 1


class _EnoughShrinking(BaseException):
    """Hypothesis lets no other exception through: it would take one for a failure of the test."""


class _Impatient:
    """A test that ends Hypothesis's search for a smaller failure some time after the first.

    It may not let examples pass instead: an example that fails once and passes later, or draws less, is what
    Hypothesis calls flaky, and then it shows that in place of the failure.
    """

    def __init__(self, body: Callable[..., None], strategies: tuple[st.SearchStrategy[Any], ...]) -> None:
        self.body = body
        self.strategies = strategies
        self.until = float("inf")
        self.smallest: tuple[str, Exception] | None = None
        self.stopped = False

    def run(self, data: st.DataObject) -> None:
        if time.monotonic() > self.until:
            self.stopped = True
            raise _EnoughShrinking
        drawn = [data.draw(strategy) for strategy in self.strategies]
        try:
            self.body(*drawn, data)
        except Exception as failure:
            hypothesis.note(AGAIN)
            if self.smallest is None:
                self.until = time.monotonic() + SHRINKING_SECONDS
            shown = repr(drawn)
            if self.smallest is None or len(shown) <= len(self.smallest[0]):
                self.smallest = (shown, failure)
            raise
