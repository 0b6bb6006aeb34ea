"""The examples of one seed, drawn by Hypothesis in short runs and handed over one after another."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis.errors import HypothesisWarning

from solvergen.verify.arguments import check_limits, check_number, checked_dtypes
from solvergen.verify.dtypes import PAIRS
from solvergen.verify.example import Example
from solvergen.verify.limits import Limits
from solvergen.verify.seeding import by_seed_alone
from solvergen.verify.settings import Space
from solvergen.verify.storage import temporary_storage
from solvergen.verify.strategies import examples as draw_examples

BATCH = 10
"""Examples of one run of Hypothesis. From the eleventh on it mostly varies earlier ones by copying parts of
them, which suits a search for equal parts; here examples that have nothing in common show more."""


def each_example(
    space: Space,
    take: Callable[[Example], bool],
    *,
    examples: int,
    seed: int = 0,
    limits: Limits | None = None,
    dtypes: Sequence[tuple[str, str]] = PAIRS,
) -> None:
    """Draw ``examples`` examples and call ``take`` with each until it returns True.

    The same ``seed`` draws the same examples in every program. What ``take`` raises goes through.
    Raises VerificationError for arguments under which nothing would be drawn.
    """
    check_number("examples", examples)
    check_limits(limits)
    dtypes = checked_dtypes(dtypes)
    enough = False

    def examine(example: Example) -> None:
        nonlocal enough
        # Hypothesis can't be told to stop; what is left of a batch is drawn, and ignored.
        enough = enough or take(example)

    drawn = draw_examples(space, limits or Limits(), dtypes)
    for batch in range(-(-examples // BATCH)):
        # The function is made anew for each batch, since it keeps the seed that it was given.
        test = hypothesis.seed(f"{seed}/{batch}")(hypothesis.given(drawn)(lambda example: examine(example)))
        test = hypothesis.settings(
            max_examples=min(BATCH, examples - batch * BATCH),
            database=None,
            deadline=None,
            phases=(Phase.generate,),  # what is found is shrunk as data
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
        )(test)
        with temporary_storage(), by_seed_alone(), warnings.catch_warnings():
            # That an example is long to print, of one with which something was raised: it may hide what was.
            warnings.filterwarnings("ignore", "Generating overly large repr", HypothesisWarning)
            test()
        if enough:
            return
