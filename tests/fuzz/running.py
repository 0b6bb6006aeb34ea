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
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

BATCH = 20
"""Examples of one run of Hypothesis: later in a run it mostly varies what it has."""

SHRINKING_SECONDS = 40
"""How long a failure is made smaller: each try may compile kernels."""

_WANTED = os.environ.get("SOLVERGEN_FUZZ", "1")
FACTOR = 20.0 if _WANTED == "long" else float(_WANTED)
SEED = os.environ.get("SOLVERGEN_FUZZ_SEED", str(time.time_ns()) if _WANTED == "long" else "0")


def fuzz(body: Callable[..., None], *strategies: st.SearchStrategy[Any], examples: int) -> None:
    """Call ``body`` with drawn values, ``examples`` times (times ``SOLVERGEN_FUZZ``).

    The first failure is shrunk for a while and raised; what ``hypothesis.note`` was told shows it.
    """
    left = max(1, round(examples * FACTOR))
    batch = 0
    while left > 0:
        test = hypothesis.given(st.data())(_Impatient(body, strategies).run)
        test = hypothesis.seed(f"{SEED}/{body.__qualname__}/{batch}")(test)
        test = hypothesis.settings(
            max_examples=min(BATCH, left),
            database=None,
            deadline=None,
            derandomize=False,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )(test)
        test()
        left -= BATCH
        batch += 1


class _Impatient:
    """A test of which, some time after its first failure, only the smallest found so far fails."""

    def __init__(self, body: Callable[..., None], strategies: tuple[st.SearchStrategy[Any], ...]) -> None:
        self.body = body
        self.strategies = strategies
        self.until = float("inf")
        self.smallest: tuple[str, Exception] | None = None

    def run(self, data: st.DataObject) -> None:
        drawn = [data.draw(strategy) for strategy in self.strategies]
        shown = repr(drawn)
        if time.monotonic() > self.until and self.smallest is not None and shown != self.smallest[0]:
            return
        try:
            self.body(*drawn, data)
        except Exception as failure:
            hypothesis.note(f"SOLVERGEN_FUZZ_SEED={SEED}")
            if self.smallest is None:
                self.until = time.monotonic() + SHRINKING_SECONDS
            self.smallest = (shown, failure)
            raise
