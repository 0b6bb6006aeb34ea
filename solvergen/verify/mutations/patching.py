"""Puts something wrong in the place of something right, in this process for good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def put(owner: Any, name: str, wrong: Any) -> None:
    """Let ``owner.name``, a module's or a class's, be ``wrong``."""
    assert hasattr(owner, name)
    setattr(owner, name, wrong)


def put_around(owner: Any, name: str, change: Callable[[Any], Any]) -> None:
    """Let the function ``owner.name`` return what ``change`` makes of its result."""
    right = getattr(owner, name)
    put(owner, name, lambda *arguments, **named: change(right(*arguments, **named)))
