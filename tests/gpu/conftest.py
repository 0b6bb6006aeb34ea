"""What runs on the card. Needs the runtime, ``generated/``, NumPy, CuPy, NVRTC, hypothesis and pytest.

pytest -m gpu tests/gpu
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from solvergen.runtime.backends.cuda import CudaBackend
from solvergen.runtime.cuda import device as devices

HERE = __name__.rsplit(".", 1)[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is marked ``gpu``, and skipped where there is none, with the reason."""
    problem = devices.unavailable()
    for item in items:
        if getattr(item, "module", None) is not None and item.module.__name__.startswith(HERE):  # type: ignore[attr-defined]
            item.add_marker(pytest.mark.gpu)
            if problem is not None:
                item.add_marker(pytest.mark.skip(reason=problem))


@dataclass(frozen=True)
class Gpu:
    """Moves arrays between the host and a card without a kernel of CuPy's, so bits stay as they are."""

    backend: CudaBackend
    number: int = 0

    def array(self, host: np.ndarray, *, offset: int = 0) -> Any:
        """A ``cupy.ndarray`` of these elements that begins ``offset`` bytes after a 256-byte boundary."""
        import cupy

        device = devices.device(self.number)
        memory = device.allocate(max(1, host.nbytes) + offset)
        array = cupy.ndarray(host.shape, host.dtype, memptr=memory + offset)
        self.backend.copy_in(array, host)
        return array

    def host(self, array: Any) -> np.ndarray:
        """A copy on the host."""
        return self.backend.to_host(array)


@pytest.fixture(scope="session")
def backend() -> CudaBackend:
    return CudaBackend()


@pytest.fixture(scope="session")
def gpu(backend: CudaBackend) -> Gpu:
    return Gpu(backend)
