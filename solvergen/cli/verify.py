"""``solvergen verify``: do all backends compute the same bits?"""

from __future__ import annotations


def verify() -> None:
    """Draw cases and compare the backends to the bit."""
