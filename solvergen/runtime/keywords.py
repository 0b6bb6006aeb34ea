"""Keywords that a call was given and its function doesn't take, said in our own terms."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

from solvergen.errors import UnknownArgument
from solvergen.runtime.naming import did_you_mean, quoted

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def stray(given: Iterable[str], function: Any) -> tuple[str | None, tuple[str, ...]]:
    """The first of the keywords ``given`` that ``function`` doesn't take, None if it may take them all; and
    those that it takes."""
    if not _says_all(function):
        return None, ()
    code = function.__code__
    known: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return next((name for name in given if name not in known), None), known


def _says_all(function: Any) -> bool:
    """Whether it is written in Python, and names every keyword that it takes."""
    code = getattr(function, "__code__", None)
    return code is not None and not code.co_flags & inspect.CO_VARKEYWORDS


def check_keywords(called: str, given: Iterable[str], function: Any, *, method: bool = False) -> None:
    """Raise UnknownArgument for a keyword that ``function`` doesn't take. ``method``: its first argument
    isn't the caller's to give."""
    name, known = stray(given, function)
    if name is not None:
        hint = did_you_mean(name, known[method:])
        raise UnknownArgument(f"{called} takes no argument {quoted(name)}{hint}")


def checked_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """``function``, which looks at its keywords before it is called. Its signature stays."""

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        check_keywords(function.__name__, kwargs, function)
        return function(*args, **kwargs)

    return checked


def checked_constructor(cls: type[T]) -> type[T]:
    """``cls`` itself, with an ``__init__`` put in the place of its own that looks at the keywords first. The
    signature stays. One that takes any keywords is left as it is: what it doesn't know it may pass on."""
    made: Any = cls.__init__
    if not _says_all(made):
        return cls

    @functools.wraps(made)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        check_keywords(cls.__name__, kwargs, made, method=True)
        made(self, *args, **kwargs)

    cls.__init__ = checked  # type: ignore[method-assign]
    return cls
