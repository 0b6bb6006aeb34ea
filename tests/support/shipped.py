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

_NO_CPU = why_unavailable("cpu")

HOST_BACKENDS = (
    "numpy",
    pytest.param("cpu", marks=pytest.mark.skipif(_NO_CPU is not None, reason=str(_NO_CPU))),
)
"""Backends of the host, for ``parametrize``: cpu is skipped, saying why, where there is no C compiler."""
