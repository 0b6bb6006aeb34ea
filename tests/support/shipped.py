"""The optimizers in ``generated/``, by the names of their specs."""

from __future__ import annotations

from typing import Any

import pytest

import generated
from solvergen.verify import why_unavailable

CLASSES: dict[str, Any] = {
    cls.definition.name: cls for cls in (getattr(generated, name) for name in sorted(generated.__all__))
}
"""Name of the spec -> class."""

ELEMENTWISE = {name: cls for name, cls in CLASSES.items() if not cls.definition.is_staged}
"""Those whose update is one kernel. Kernels with barriers can't run one thread after the other, so not on the
host."""


def _or_skipped(backend: str) -> Any:
    reason = why_unavailable(backend)
    return pytest.param(backend, marks=pytest.mark.skipif(reason is not None, reason=str(reason)))


HOST_BACKENDS = ("numpy", _or_skipped("cpu"), _or_skipped("ptx"))
"""Backends of the host, for ``parametrize``: skipped, saying why, are cpu where there is no C compiler, and
ptx where there is no NVRTC."""


def stepped(optimizer: Any, gradients: Any) -> None:
    """A step by these gradients; where they are evaluated again, by the same wherever the parameters are."""
    optimizer.step((lambda: (None, gradients)) if optimizer.definition.evaluations else gradients)
