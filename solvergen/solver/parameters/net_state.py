"""Where a net comes from, and in what state it is: Caffe's ``NetState`` and how three of them merge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from solvergen.runtime.naming import quoted
from solvergen.solver.parameters.hints import meant
from solvergen.solver.parameters.kinds import each, integer, one_of, text

Phase = Literal["TRAIN", "TEST"]
PHASES = {"TRAIN": 0, "TEST": 1}


@dataclass(frozen=True, kw_only=True)
class NetState:
    """The state that a net's layers are included or left out by. None and () are: not given.

    Caffe takes a phase that nobody gave for TEST, and a level for 0; ``merged`` gives every net its phase.
    """

    phase: Phase | None = None
    level: int | None = None
    stage: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, convert in (("phase", one_of(PHASES)), ("level", integer(32)), ("stage", each(text))):
            value = getattr(self, name)
            if value is not None:
                try:
                    object.__setattr__(self, name, convert(value))
                except ValueError as error:
                    raise ValueError(f"{name} {error}") from None

    def merged_with(self, other: NetState | None) -> NetState:
        """Protobuf's merge: what ``other`` gives takes the place of what is here; its stages are added."""
        if other is None:
            return self
        return NetState(
            phase=self.phase if other.phase is None else other.phase,
            level=self.level if other.level is None else other.level,
            stage=self.stage + other.stage,
        )


def net_state(value: Any) -> NetState:
    """A state, from a mapping of its fields too. Raises ValueError."""
    if isinstance(value, NetState):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a state (phase, level, stage), not {quoted(value)}")
    known = [field.name for field in fields(NetState)]
    for key in value:
        if key not in known:
            raise ValueError(f"has the unknown field {quoted(key)}; {meant(key, known)}")
    return NetState(**value)


def merged(phase: Phase, of_net: NetState | None, of_solver: NetState | None) -> NetState:
    """The state of a net that is made for ``phase``: its own over that, and the solver's over both."""
    state = NetState(phase=phase, level=0).merged_with(of_net).merged_with(of_solver)
    return state


SourceKind = Literal["net", "net_param", "train_net", "train_net_param", "test_net", "test_net_param"]


@dataclass(frozen=True)
class NetSource:
    """Which field says what the net is: by the path of a file, or by a text in the solver's own file.

    The text is what stands between the braces, character by character: it isn't ours to run.
    """

    kind: SourceKind
    path: str | None = None
    text: str | None = None


@dataclass(frozen=True)
class TestNet:
    """A net to test with: where it comes from, its state, and how many batches a test takes."""

    __test__ = False  # pytest, which collects classes with such names

    source: NetSource
    state: NetState
    iterations: int
