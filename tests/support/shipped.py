"""The optimizers in ``generated/``, by the names of their specs."""

from __future__ import annotations

from typing import Any

import generated

CLASSES: dict[str, Any] = {
    cls.definition.name: cls for cls in (getattr(generated, name) for name in sorted(generated.__all__))
}
"""Name of the spec -> class."""

HOST_BACKENDS = ("numpy", "cpu")
"""Backends that run wherever the tests do."""
