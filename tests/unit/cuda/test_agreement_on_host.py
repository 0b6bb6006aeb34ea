"""``verify``'s drawn runs against the CUDA text on the host: whole optimizers, as a user steps them."""

from __future__ import annotations

import pytest

from solvergen.verify import find_disagreement
from tests.support import cuda_host
from tests.support.shipped import ELEMENTWISE

pytestmark = pytest.mark.skipif(cuda_host.missing() is not None, reason=str(cuda_host.missing()))


def agree(name: str, examples: int) -> None:
    disagreement = find_disagreement(ELEMENTWISE[name], cuda_host.HostCudaBackend(), examples=examples)
    assert disagreement is None, str(disagreement)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_drawn_runs(name: str) -> None:
    agree(name, 8)


@pytest.mark.slow
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_many_drawn_runs(name: str) -> None:
    agree(name, 150)
