"""Which nets a solver is made of, in Caffe's order, each with its merged state."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from solvergen.runtime.naming import quoted
from solvergen.solver.parameters.error import MOST_BYTES
from solvergen.solver.parameters.net_state import NetSource, NetState, SourceKind, TestNet, merged

if TYPE_CHECKING:
    from solvergen.solver.parameters.model import SolverParameters

TRAIN_FIELDS: tuple[SourceKind, ...] = ("net", "net_param", "train_net", "train_net_param")
"""The fields that say what to train: Caffe wants exactly one of them."""


def train_net_source(params: SolverParameters) -> NetSource | None:
    """The net to train, None if no field says which."""
    for kind in ("train_net_param", "train_net", "net_param", "net"):
        if params.has(kind):
            return _source(kind, getattr(params, kind))
    return None


def train_net_state(params: SolverParameters) -> NetState:
    """The state of the net to train."""
    return merged("TRAIN", own_state(train_net_source(params)), params.train_state)


def test_nets(params: SolverParameters) -> tuple[TestNet, ...]:
    """The nets to test with; one of ``net`` or ``net_param`` for each ``test_iter`` that is left."""
    sources = [_source("test_net_param", text) for text in params.test_net_param]
    sources += [_source("test_net", path) for path in params.test_net]
    if is_generic(params):
        left = len(params.test_iter) - len(sources)
        generic: SourceKind = "net_param" if params.has("net_param") else "net"
        sources += [_source(generic, getattr(params, generic))] * left
    states: tuple[NetState | None, ...] = params.test_state or (None,) * len(sources)
    return tuple(
        TestNet(source, merged("TEST", own_state(source), state), iterations)
        for source, state, iterations in zip(sources, states, params.test_iter, strict=False)
    )


def is_generic(params: SolverParameters) -> bool:
    """Whether what is trained is also tested, once for every ``test_iter`` that no other test net takes."""
    if params.has("net") or params.has("net_param"):
        return True
    return not params.needs_net_field and not any(map(params.has, TRAIN_FIELDS))


def own_state(source: NetSource | None) -> NetState | None:
    """The state that a net's own text gives it. None if it gives none, and where the text can't be had or
    read: ``unread`` says which."""
    try:
        return _stated(source)
    except (OSError, ValueError):
        return None


def unread(source: NetSource) -> str | None:
    """Why a net's own state isn't known; None where it is."""
    try:
        _stated(source)
    except FileNotFoundError:
        return f"there is no file {quoted(source.path)} (seen from the working folder, as Caffe does)"
    except OSError as error:
        return f"{quoted(source.path)} can't be read ({error.strerror})"
    except ValueError as error:
        return f"{quoted(source.path)} {error}"
    return None


def _stated(source: NetSource | None) -> NetState | None:
    """Raises OSError, and ValueError for what isn't protobuf's text."""
    if source is None or (source.path is None and source.text is None):
        return None
    if source.text is not None:
        written = source.text
    else:
        written = _text_of(source.path or "")
    if "state" not in written:
        return None
    from solvergen.solver.parameters.prototxt import state_in_net

    return state_in_net(written)


def _text_of(path: str) -> str:
    """The text of a net's file. Raises OSError, and ValueError for what can't be one: it may be anything,
    since it is for whoever makes the net."""
    if "\0" in path:
        raise ValueError("can't be a path: it holds a NUL character")
    if not stat.S_ISREG(os.stat(path).st_mode):  # reading a pipe would take it from whom it is meant for
        raise ValueError("is a folder" if os.path.isdir(path) else "isn't a regular file")
    with open(path, "rb") as file:
        found = file.read(MOST_BYTES + 1)
    if len(found) > MOST_BYTES:
        raise ValueError(f"has more than {MOST_BYTES >> 20} MiB")
    return found.decode("utf-8", "surrogateescape")


def _source(kind: SourceKind, value: str | None) -> NetSource:
    return NetSource(kind, text=value) if kind.endswith("_param") else NetSource(kind, path=value)
