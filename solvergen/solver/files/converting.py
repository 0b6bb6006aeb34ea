"""From one format to another, and from one optimizer's conventions to another's."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from solvergen.errors import SolverFileError
from solvergen.runtime.definition import Definition
from solvergen.solver.files.conventions import STATES
from solvergen.solver.files.conventions import convert as convert_history
from solvergen.solver.files.data import SolverStateData
from solvergen.solver.files.history import OF_CAFFE, SPEC_OF_TYPE
from solvergen.solver.files.names import SUFFIXES, format_of
from solvergen.solver.files.pair import write_model, write_state
from solvergen.solver.files.reading import kind_of, read_model, read_pair, read_state


@dataclass(frozen=True)
class Conventions:
    """From which rule's conventions to which other's a history goes (see ``conventions.convert``)."""

    before: str | None
    after: str
    lr: float | Sequence[float] | None = None
    momentum: float | None = None
    start_missing: bool = False


def convert(
    source: str,
    target: str,
    *,
    conventions: Conventions | None = None,
    alone: bool = False,
    force: bool = False,
) -> tuple[str, ...]:
    """Write what is in ``source`` to ``target``, in the format that its name says; what was done, in words.

    A state takes its model along, under the name that belongs to ``target``, unless ``alone``: it names the
    former model then.

    Raises:
        SolverFileError: one can't be read, the other can't be written or is there (and not ``force``).
    """
    _, kind = kind_of(source)
    if kind is None:
        raise SolverFileError(
            f"{source}: an optimizer's snapshot; models and solvers' states can be converted"
        )
    if kind == "model":
        if conventions is not None:
            raise SolverFileError(
                f"{source}: weights have no optimizer's conventions; give the solver's state"
            )
        _check_target(target, "model", force)
        write_model(target, read_model(source))
        return (f"{target}: the model of {source}",)
    _check_target(target, "state", force)
    state, model = (read_state(source), None) if alone else read_pair(source)
    lost = state.extra
    said: list[str] = []
    if conventions is not None:
        state, said = _carried(source, state, conventions)
    if model is not None:
        model_target = _model_of(target)
        _check_target(model_target, "model", force)
        digest = write_model(model_target, model)
        state = dataclasses.replace(state, learned_net=model_target, model_digest=digest)
        said.append(f"{model_target}: its model")
    if lost and format_of(target) != "SAFETENSORS":
        said.append(f"left out, since Caffe's files don't hold it: {', '.join(sorted(lost))}")
    write_state(target, state)
    return (f"{target}: the state of {source}", *said)


def _carried(source: str, state: SolverStateData, wanted: Conventions) -> tuple[SolverStateData, list[str]]:
    before = wanted.before or _spec_of(state)
    if before is None:
        raise SolverFileError(f"{source}: the file doesn't say of which optimizer it is: give --from")
    carried = convert_history(
        state.history,
        before,
        wanted.after,
        lr=wanted.lr,
        momentum=wanted.momentum,
        start_missing=wanted.start_missing,
    )
    # What else is there belongs to the former rule and would mislead the new one.
    changed = dataclasses.replace(state, history=carried.history, extra=_named(wanted.after))
    return changed, [f"{wanted.after}'s {text}" for text in carried.said]


def _named(spec: str) -> dict[str, Any]:
    """What a native state says about its rule."""
    definition: Definition = import_module(f"solvergen.optimizers.{spec}.schema").DEFINITION
    types = {known: name for name, known in SPEC_OF_TYPE.items()}
    return {
        "solver_type": types.get(spec, definition.class_name),
        "digest": definition.digest,
        "states": list(STATES[spec]),
    }


def _spec_of(state: SolverStateData) -> str | None:
    """The rule whose state it is, if the file says so; "SGD" and "Adam" are types of Caffe's and classes."""
    known, states = state.extra.get("solver_type"), state.extra.get("states")
    if not isinstance(known, str):
        return None
    caffes = SPEC_OF_TYPE.get(known)
    if caffes is not None and (states is None or list(states) == list(OF_CAFFE[caffes])):
        return caffes
    return known.lower()


def _model_of(target: str) -> str:
    """The name of the model that belongs to a state's name."""
    for model, state in SUFFIXES.values():
        if target.endswith(state):
            return target[: -len(state)] + model
    endings = ", ".join(state for _, state in SUFFIXES.values())
    raise SolverFileError(
        f"{target}: the state's model goes beside it, so the name must end in {endings}; "
        "or convert the state alone"
    )


def _check_target(target: str, kind: str, force: bool) -> None:
    form = format_of(target)
    model, state = SUFFIXES[form]
    if target.endswith(state if kind == "model" else model):
        raise SolverFileError(
            f"{target}: what is to be written there is a {kind}, the name says something else"
        )
    if os.path.lexists(target) and not force:
        raise SolverFileError(f"{target} is there already")
