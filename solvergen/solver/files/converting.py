"""From one format to another, and from one optimizer's conventions to another's.

Everything is a model, a solver's state, or both on its way: what else there is (an optimizer's snapshot,
torch's files, which ``solvergen.adapters.torch_files`` knows) is made into that, and made of it.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from solvergen.errors import SolverFileError
from solvergen.runtime import snapshots
from solvergen.runtime.naming import listed
from solvergen.solver.files import optimizers, weights
from solvergen.solver.files.conventions import STATES
from solvergen.solver.files.conventions import convert as convert_history
from solvergen.solver.files.data import ModelData, SolverStateData
from solvergen.solver.files.file_names import SUFFIXES, Pair, format_of, is_of_torch
from solvergen.solver.files.history import OF_CAFFE, SPEC_OF_TYPE
from solvergen.solver.files.pair import write_model, write_pair_at, write_state
from solvergen.solver.files.parameter_names import learned, model_of, named
from solvergen.solver.files.reading import about, kind_of, read_model, read_pair, read_state
from solvergen.solver.files.request import Conventions, Form, Request, TorchFiles
from solvergen.solver.files.sharing import resolved

if TYPE_CHECKING:
    from solvergen.solver.choice import Chosen

_ENDINGS = (".caffemodel", ".solverstate", ".binaryproto", ".h5", ".hdf5", ".safetensors")
"""How files of the Solver's are called that ``convert`` writes."""

TORCH_PAIR = (".model.pt", ".optimizer.pt")


@dataclass(frozen=True, eq=False)
class _Found:
    """What a file holds, and what is to be said about it."""

    model: ModelData | None
    state: SolverStateData | None = None
    said: list[str] = field(default_factory=list)


def convert(source: str, target: str, wanted: Request | None = None) -> tuple[str, ...]:
    """Write what is in ``source`` to ``target``; what was done, in words.

    A state takes its model along, under the name that belongs to ``target``, unless ``alone``: it names the
    former model then. An optimizer's snapshot holds both.

    Raises:
        SolverFileError: one can't be read, the other can't be written or is there (and not ``force``).
    """
    wanted = wanted or Request()
    form: Form = wanted.form or ("torch" if is_of_torch(target) else "solver")
    found = _read(source, wanted)
    if wanted.shared and found.model is not None:
        with about(source, "can't be read"):
            found = dataclasses.replace(found, model=resolved(found.model, wanted.shared))
    if found.model is not None and (form != "solver" or format_of(target) != "HDF5"):
        _check_complete(found.model, source)
    if found.model is not None and form != "solver":
        with about(source, "can't be converted"):
            named(found.model)
    state, said = found.state, found.said
    if state is None:
        if wanted.conventions is not None:
            raise SolverFileError(
                f"{source}: weights have no optimizer's conventions; give the solver's state"
            )
        assert found.model is not None
        return (_write_model(target, found.model, form, wanted, source), *said)
    spec = wanted.spec or _spec_of(state) or _spec_chosen(wanted)
    if wanted.conventions is not None:
        state, carried = _carried(source, state, wanted.conventions, spec)
        said, spec = [*said, *carried], wanted.conventions.after
    if form == "optimizer":
        return _write_optimizer(source, target, state, found.model, spec, wanted, said)
    if form == "torch":
        return _write_torch(source, target, state, found.model, spec, wanted, said)
    return _write_solver(source, target, state, found.model, wanted, said)


def _check_complete(model: ModelData, source: str) -> None:
    """Raise for blobs that a file of Caffe's leaves out, without saying whose they are."""
    missing = [
        f"{layer.name}/{index}"
        for layer in model.layers
        for index, blob in enumerate(layer.blobs)
        if blob is None
    ]
    if missing:
        raise SolverFileError(
            f"{source}: {listed(missing)} in the model is another layer's, and Caffe's HDF5 doesn't say "
            f"whose: give --shared {missing[0]}=LAYER/NUMBER"
        )


def _read(source: str, wanted: Request) -> _Found:
    if is_of_torch(source):
        return _read_torch(source, wanted)
    if weights.is_plain(source):
        return _Found(model_of(weights.read(source)))
    _, kind = kind_of(source)
    if kind == "model":
        return _Found(read_model(source))
    if kind == "state":
        state, model = (read_state(source), None) if wanted.alone else read_pair(source)
        return _Found(model, state)
    state, model, said = optimizers.from_snapshot(snapshots.load(source), source)
    if wanted.alone:
        model = None
    return _Found(model, state, said)


def _read_torch(source: str, wanted: Request) -> _Found:
    torch = _torch(wanted, source)
    found = torch.read(source)
    if not torch.is_optimizer(found):
        return _Found(torch.model_from(found, source))
    beside = source.removesuffix(TORCH_PAIR[1]) + TORCH_PAIR[0]
    model = None
    if source.endswith(TORCH_PAIR[1]) and os.path.isfile(beside):
        model = torch.model_from(torch.read(beside), beside)
    spec = wanted.spec or (wanted.conventions.before if wanted.conventions is not None else None)
    state, said = torch.state_from(found, model, spec, wanted.iteration, source)
    return _Found(None if wanted.alone else model, state, said)


def _torch(wanted: Request, path: str) -> TorchFiles:
    if wanted.torch is None:
        raise SolverFileError(f"{path}: a file of torch's: hand over solvergen.adapters.torch_files")
    return wanted.torch()


def _write_model(target: str, model: ModelData, form: Form, wanted: Request, source: str) -> str:
    if form == "optimizer":
        raise SolverFileError(f"{source}: weights alone are no optimizer's snapshot; give the solver's state")
    if form == "torch":
        _check_free(target, wanted.force)
        if is_of_torch(target):
            _torch(wanted, target).write_model(target, model)
        elif target.lower().endswith(".safetensors"):
            weights.write(target, named(model))
        else:
            raise SolverFileError(f"{target}: torch's files end in .pt, .pth or .safetensors")
        return f"{target}: a state_dict with the weights of {source}"
    _check_target(target, "model", wanted.force)
    write_model(target, model)
    return f"{target}: the model of {source}"


def _write_optimizer(
    source: str,
    target: str,
    state: SolverStateData,
    model: ModelData | None,
    spec: str | None,
    wanted: Request,
    said: list[str],
) -> tuple[str, ...]:
    if spec is None:
        raise SolverFileError(f"{source}: the file doesn't say of which optimizer it is: give --from")
    _check_free(target, wanted.force)
    if target.endswith(tuple(ending for endings in SUFFIXES.values() for ending in endings)):
        raise SolverFileError(f"{target}: an optimizer's snapshot, and the name is that of a solver's file")
    optimizer, more = optimizers.optimizer_of(state, model, spec, chosen=wanted.chosen, source=source)
    snapshots.save(target, optimizer._snapshot(params=model is not None))
    return (f"{target}: a snapshot of {spec} for Optimizer.load, made from {source}", *said, *more)


def _write_torch(
    source: str,
    target: str,
    state: SolverStateData,
    model: ModelData | None,
    spec: str | None,
    wanted: Request,
    said: list[str],
) -> tuple[str, ...]:
    if spec is None:
        raise SolverFileError(f"{source}: the file doesn't say of which optimizer it is: give --from")
    if not is_of_torch(target):
        raise SolverFileError(f"{target}: torch's files of optimizers end in .pt or .pth")
    with_model = model is not None and not wanted.alone
    if with_model and not target.endswith(TORCH_PAIR[1]):
        raise SolverFileError(
            f"{target}: the model goes beside it, so the name must end in {TORCH_PAIR[1]}; or convert the "
            "state alone"
        )
    beside = target.removesuffix(TORCH_PAIR[1]) + TORCH_PAIR[0]
    _check_free(target, wanted.force)
    if with_model:
        _check_free(beside, wanted.force)
    torch = _torch(wanted, target)
    if wanted.chosen is not None:
        state, more = _with_settings(state, model, wanted.chosen, spec)
        said = [*said, *more, *optimizers.left_behind(wanted.chosen)]
    if with_model:
        said = [*said, f"{beside}: its model"]
    torch.write_optimizer(target, state, spec, model, beside if with_model else None)
    if "groups" not in state.extra:
        said = [*said, "hyperparameters are torch's defaults: --solver FILE gives others"]
    return (f"{target}: the state of {source} for torch's load_state_dict", *said)


def _with_settings(
    state: SolverStateData, model: ModelData | None, chosen: Chosen, spec: str
) -> tuple[SolverStateData, list[str]]:
    """The state with the hyperparameters of a solver file, in one group, and what is to be said of it."""
    before, said = chosen.optimizer_class.definition.name, []
    names = state.extra.get("parameters")
    if not names:
        states = len(optimizers.history_names_of(optimizers.definition_of_spec(spec))) or 1
        names = [] if model is None else list(learned(model, len(state.history) // states))
    values = dict(chosen.hyperparameters)
    values |= _renamed(values, SYNONYMS_OF.get(before, {}))
    if _is_l1(chosen.options, values):
        values.pop(_COUPLED)
        said = [_L1_STAYS.format(spec)]
    group = {
        "members": names,
        "hyperparameters": values,
        "options": {**chosen.options, **_carried_options(before, spec)},
        "multipliers": {},
    }
    return dataclasses.replace(state, extra={**state.extra, "groups": [group]}), said


def _write_solver(
    source: str,
    target: str,
    state: SolverStateData,
    model: ModelData | None,
    wanted: Request,
    said: list[str],
) -> tuple[str, ...]:
    _check_target(target, "state", wanted.force)
    lost = state.extra
    if model is not None:
        model_target = _model_of(target)
        _check_target(model_target, "model", wanted.force)
        write_pair_at(Pair(state.iter, model_target, target), model, state)
        said = [*said, f"{model_target}: its model"]
    else:
        write_state(target, state)
    if lost and format_of(target) != "SAFETENSORS":
        said = [*said, f"left out, since Caffe's files don't hold it: {', '.join(sorted(lost))}"]
    return (f"{target}: the state of {source}", *said)


def _carried(
    source: str, state: SolverStateData, wanted: Conventions, spec: str | None
) -> tuple[SolverStateData, list[str]]:
    before = wanted.before or spec
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
    kept, more = _kept(state, before, wanted.after)
    extra = {**_named(wanted.after), **kept}
    changed = dataclasses.replace(state, history=carried.history, extra=extra)
    return changed, [*(f"{wanted.after}'s {text}" for text in carried.said), *more]


SYNONYMS_OF: dict[str, dict[str, str]] = {
    "caffe_adam": {"momentum": "beta1", "momentum2": "beta2", "delta": "eps"},
    "caffe_adadelta": {"momentum": "rho", "delta": "eps"},
    "caffe_adagrad": {"delta": "eps"},
    "caffe_rmsprop": {"rms_decay": "alpha", "delta": "eps"},
}
"""What other rules call the hyperparameters of Caffe's."""

_COUPLED = "weight_decay"


def _renamed(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names[name]: value for name, value in values.items() if name in names}


def _kept(state: SolverStateData, before: str, after: str) -> tuple[dict[str, Any], list[str]]:
    """What of a state holds for another rule with the same parameters, too, and what is to be said of it."""
    kept: dict[str, Any] = {}
    said: list[str] = []
    if "parameters" in state.extra:
        kept["parameters"] = state.extra["parameters"]
    definition = optimizers.definition_of_spec(after)
    if "counts" in state.extra and not any(one.shape != "param" for one in definition.state):
        kept |= {"counts": state.extra["counts"], "scalars": {}, "lines": {}, "shared": {}}
    groups = state.extra.get("groups")
    if groups is None:
        return kept, said
    synonyms = {
        **SYNONYMS_OF.get(before, {}),
        **{new: old for old, new in SYNONYMS_OF.get(after, {}).items()},
    }
    made = []
    for group in groups:
        values = {**group["hyperparameters"], **_renamed(group["hyperparameters"], synonyms)}
        if (before == "adamw") != (after == "adamw"):  # the one decays by itself, the other by gradients
            values.pop(_COUPLED, None)
        if _is_l1(group["options"], values) and "l1" not in definition.option_names:
            values.pop(_COUPLED)
            said = [_L1_STAYS.format(after)]
        own = {name: value for name, value in values.items() if name in definition.hyperparameter_names}
        made.append({**group, "hyperparameters": own, "options": _carried_options(before, after)})
    return {**kept, "groups": made}, said


_L1_STAYS = "weight_decay stays behind: it is of L1, and that of {} of L2"


def _is_l1(options: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Whether there is a decay, and by signs."""
    return bool(options.get("l1") and values.get(_COUPLED))


def _carried_options(before: str, after: str) -> dict[str, bool]:
    """torch has Nesterov's momentum as an option of its SGD."""
    return {"nesterov": True} if (before, after) == ("caffe_nesterov", "sgd") else {}


def _named(spec: str) -> dict[str, Any]:
    """What a native state says about its rule."""
    definition = optimizers.definition_of_spec(spec)
    return {
        "solver_type": optimizers.solver_type(definition),
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
    return optimizers.spec_of_class(known)


def _spec_chosen(wanted: Request) -> str | None:
    """The rule of the solver file that is given, unless that is of the rule that the state is to become."""
    if wanted.chosen is None:
        return None
    spec = wanted.chosen.optimizer_class.definition.name
    return None if wanted.conventions is not None and wanted.conventions.after == spec else spec


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
    if is_of_torch(target):
        raise SolverFileError(f"{target}: .pt and .pth are torch's files; the Solver's have other endings")
    # To read, Caffe takes all else for binaryproto.
    if not target.endswith(_ENDINGS) and form != "SAFETENSORS":
        raise SolverFileError(f"{target}: its ending says no format; there are {', '.join(_ENDINGS)}")
    if target.endswith(state if kind == "model" else model):
        raise SolverFileError(
            f"{target}: what is to be written there is a {kind}, the name says something else"
        )
    _check_free(target, force)


def _check_free(target: str, force: bool) -> None:
    if os.path.lexists(target) and not force:
        raise SolverFileError(f"{target} is there already")
