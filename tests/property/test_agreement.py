"""Every shipped optimizer computes, on each backend of the host, the bits of its rule called directly.

``solvergen verify``, which CI runs too, draws twice as many runs.

The CUDA texts are among them as NVRTC compiles them (ptx); tests/unit/cuda has the host run them, and
tests/gpu a card.
"""

from __future__ import annotations

import pytest

from solvergen.verify import check_agreement
from solvergen.verify.dtypes import PAIRS
from tests.support.shipped import CLASSES, HOST_BACKENDS

EXAMPLES = {"numpy": 50, "cpu": 50, "ptx": 25}
"""Runs for a rule; the interpreter of ptx takes most of the time of all of them."""

each_optimizer = pytest.mark.parametrize("name", sorted(CLASSES))
each_backend = pytest.mark.parametrize("backend", HOST_BACKENDS)


@each_optimizer
@each_backend
def test_drawn_runs(name: str, backend: str) -> None:
    check_agreement(CLASSES[name], backends=(backend,), examples=EXAMPLES[backend])


@each_backend
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_every_mix_of_dtypes(pair: tuple[str, str], backend: str) -> None:
    """Adam has every kind of buffer; here each mix gets as many runs as all mixes together above."""
    check_agreement(CLASSES["adam"], backends=(backend,), examples=30, dtypes=[pair])
