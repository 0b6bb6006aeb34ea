"""What happens when a gradient isn't finite.

``propagate`` (the default) computes on, as IEEE arithmetic has it. ``skip`` and ``raise`` look at every
gradient before anything changes, which costs a pass over the gradients, and on a GPU a synchronisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from solvergen.errors import HyperparameterError, NonfiniteGradient
from solvergen.runtime.backends.base import Backend
from solvergen.runtime.naming import listed

POLICIES = ("propagate", "skip", "raise")


def checked_policy(policy: Any) -> str:
    """``policy`` if there is such a one. Raises HyperparameterError."""
    if policy not in POLICIES:
        raise HyperparameterError(f"nonfinite must be 'propagate', 'skip' or 'raise', not {policy!r:.60}")
    result: str = policy
    return result


def raise_nonfinite(backend: Backend, names: Sequence[str], gradients: Sequence[object]) -> NoReturn:
    """Say which gradients aren't finite."""
    with np.errstate(all="ignore"):
        found = tuple(
            name
            for name, gradient in zip(names, gradients, strict=True)
            if gradient is not None and not np.isfinite(backend.to_host(gradient)).all()
        )
    raise NonfiniteGradient(
        f"the gradient of {listed(found)} is not finite; nothing was changed "
        "(nonfinite='skip' leaves such steps out, 'propagate' computes on)",
        found,
    )
