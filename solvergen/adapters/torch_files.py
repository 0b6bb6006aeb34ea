"""torch's own files: a module's ``state_dict`` and an optimizer's, as ``torch.save`` writes them.

They are read by ``torch.load(..., weights_only=True)``, which builds tensors and plain values and runs
nothing else.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import stat
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from solvergen.errors import MissingLibrary, SolverFileError
from solvergen.runtime.naming import with_article

try:
    import torch
except ImportError as problem:
    raise MissingLibrary(
        f"files of torch need torch, which can't be imported ({problem}): pip install torch"
    ) from problem

from solvergen.adapters.torch_archives import check_file
from solvergen.adapters.torch_arrays import as_tensor
from solvergen.adapters.torch_tensors import Tensors, is_whole
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.snapshots.atomic import replacing
from solvergen.solver.files.data import ModelData, SolverStateData
from solvergen.solver.files.optimizers import definition_of_spec, solver_type
from solvergen.solver.files.parameter_names import learned, model_of, named, owned
from solvergen.solver.files.reading import about
from solvergen.solver.files.request import MOST_FOREIGN_UPDATES

_CLASSES = {
    "sgd": "SGD",
    "adagrad": "Adagrad",
    "rmsprop": "RMSprop",
    "adadelta": "Adadelta",
    "adam": "Adam",
    "adamw": "AdamW",
}
"""torch's optimizers whose states are those of the specs of these names."""

_STATES: dict[str, dict[str, str]] = {
    "sgd": {"momentum_buffer": "momentum_buffer"},
    "adagrad": {"state_sum": "sum"},
    "rmsprop": {"square_avg": "square_avg"},
    "adadelta": {"square_avg": "square_avg", "acc_delta": "acc_delta"},
    "adam": {"exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq"},
    "adamw": {"exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq"},
}
"""Our names of states, and torch's."""

_STATISTICS = (".running_mean", ".running_var", ".num_batches_tracked")


def write_model(path: str, model: ModelData) -> None:
    """Write a ``state_dict`` for a module's ``load_state_dict``. Raises SolverFileError."""
    _save({path: _module_dict(model)})


def _module_dict(model: ModelData) -> dict[str, Any]:
    return {name: _tensor(array) for name, array in named(model).items()}


def write_optimizer(
    path: str, state: SolverStateData, spec: str, model: ModelData | None, beside: str | None = None
) -> None:
    """Write a ``state_dict`` for the ``load_state_dict`` of the optimizer of torch that ``spec`` means, and
    the module's ``beside`` it: both or neither.

    Raises:
        SolverFileError: torch has no such optimizer, or the state doesn't say what its parameters are.
    """
    if spec not in _CLASSES:
        raise SolverFileError(
            f"{path}: torch has no optimizer with the states of {spec}; with --to they can be rewritten for "
            f"one of {', '.join(_CLASSES)}"
        )
    states = _STATES[spec]
    names = state.extra.get("parameters")
    if not names:
        if model is None:
            raise SolverFileError(f"{path}: without its model nothing says what the parameters are")
        names = list(learned(model, len(state.history) // len(states)))
    ours = state.extra.get("states", list(states))
    if list(ours) != list(states) or len(state.history) != len(names) * len(states):
        raise SolverFileError(
            f"{path}: {spec} with {len(names)} parameters has {len(names) * len(states)} arrays "
            f"({', '.join(states)}), and this has {len(state.history)}: with --to it can be rewritten; where "
            "two layers share a parameter, --shared LAYER/NUMBER=LAYER/NUMBER says so"
        )
    of_state = {
        name: dict(zip(names, state.history[i * len(names) : (i + 1) * len(names)], strict=True))
        for i, name in enumerate(states)
    }
    groups = state.extra.get("groups") or [
        {"members": names, "hyperparameters": {}, "options": {}, "multipliers": {}}
    ]
    order = [name for group in groups for name in group["members"]]
    counts = state.extra.get("counts", dict.fromkeys(names, state.iter))
    entries = {}
    for index, name in enumerate(order):
        entry: dict[str, Any] = {} if spec == "sgd" else {"step": torch.tensor(float(counts[name]))}
        for mine, theirs in states.items():
            entry[theirs] = _tensor(of_state[mine][name])
        entries[index] = entry
    files = {path: {"state": entries, "param_groups": _param_groups(spec, groups)}}
    if beside is not None and model is not None:
        files[beside] = _module_dict(model)
    _save(files)


def _param_groups(spec: str, groups: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """As torch has them: its own class says which settings there are."""
    cls = getattr(torch.optim, _CLASSES[spec])
    made = []
    index = 0
    for group in groups:
        empty = torch.nn.Parameter(torch.zeros(1))
        settings = dict(cls([empty], lr=1e-3).state_dict()["param_groups"][0])
        values = {**group["hyperparameters"], **group["options"]}
        multipliers = group["multipliers"]
        betas = tuple(values.pop(name, old) for name, old in zip(
            ("beta1", "beta2"), settings.get("betas", (0.0, 0.0)), strict=True
        ))  # fmt: skip
        if "betas" in settings:
            settings["betas"] = betas
        settings |= {name: value for name, value in values.items() if name in settings}
        settings["lr"] *= multipliers.get("lr_mult", 1.0)
        settings["weight_decay"] *= multipliers.get("decay_mult", 1.0)
        count = len(group["members"])
        settings["params"] = list(range(index, index + count))
        settings["param_names"] = list(group["members"])
        index += count
        made.append(settings)
    return made


def read(path: str) -> dict[str, Any]:
    """What ``torch.save`` wrote, if it is tensors and plain values in a dict. Raises SolverFileError."""
    with about(path, "can't be read"), warnings.catch_warnings():
        # What torch warns of is how it works inside, or follows as an error.
        warnings.simplefilter("ignore")
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise SolverFileError("a folder" if os.path.isdir(path) else "not a regular file")
        check_file(path)
        try:
            found = torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            raise SolverFileError(
                "it holds more than tensors and plain values, and isn't read, since that could run any "
                "program: save a state_dict"
            ) from error
        except (OSError, MemoryError):
            raise
        except Exception as error:  # torch says anything of a file that is cut short or foreign
            told = _first_line(error)
            if "weights_only" in told:  # advice to run what is in the file
                told = "damaged or foreign"
            raise SolverFileError(f"torch can't read it: {told}") from error
        if not isinstance(found, Mapping):
            raise SolverFileError(f"{with_article(type(found).__name__)}, not a state_dict")
        if odd := [key for key in found if not isinstance(key, str)]:
            raise SolverFileError(f"it has the key {odd[0]!r:.60}, and a state_dict has names")
        return dict(found)


def is_optimizer(found: Mapping[str, Any]) -> bool:
    """Whether it is an optimizer's ``state_dict``, and not a module's."""
    return set(found) == {"state", "param_groups"}


def model_from(found: Mapping[str, Any], source: str, tensors: Tensors | None = None) -> ModelData:
    """The model of a module's ``state_dict``: its floating tensors. Raises SolverFileError.

    Args:
        tensors: the file's; None: nobody else reads some.
    """
    if odd := [name for name, value in found.items() if not isinstance(value, torch.Tensor)]:
        inside = [name for name in odd if isinstance(found[name], Mapping)]
        hint = f": save {' or '.join(map(repr, inside))} alone" if inside else ""
        raise SolverFileError(
            f"{source}: {odd[0]!r} is {with_article(type(found[odd[0]]).__name__)}, not a tensor{hint}"
        )
    tensors = tensors or Tensors()
    named_arrays = {}
    for name, tensor in found.items():
        if is_whole(tensor):
            continue
        if not tensor.is_floating_point():
            raise SolverFileError(f"{source}: {name!r} is {tensor.dtype}; models hold real floating numbers")
        # Tied parameters are one array again.
        named_arrays[name] = tensors.array(tensor, f"{source}: {name!r}")
    return model_of(named_arrays)


def state_from(
    found: Mapping[str, Any], model: ModelData | None, spec: str | None, iteration: int | None, source: str
) -> tuple[SolverStateData, list[str]]:
    """A solver's state of an optimizer's ``state_dict``, and what is to be said about it.

    Args:
        model: of the same moment: it names the parameters where the file doesn't.
        spec: whose state it is; None: what its entries say.
        iteration: how many updates were made; None: what the file counts.

    Raises:
        SolverFileError: entries that no optimizer of solvergen's has, or parameters that aren't the model's.
    """
    groups, entries, indices = parts_of(found, source)
    said: list[str] = []
    spec = spec or _spec_of(entries, groups, source)
    if spec not in _STATES:
        raise SolverFileError(f"{source}: torch's states are known of {', '.join(_STATES)}, not of {spec}")
    names = _names(groups, indices, model, source)
    states = _STATES[spec]
    shapes = _shapes(names, indices, entries, states, model, source)
    tensors = Tensors()
    history = [
        _state_array(tensors, entries.get(index, {}).get(theirs), shape, f"{source}: {theirs} of {name!r}")
        for theirs in states.values()
        for name, index, shape in zip(names, indices, shapes, strict=True)
    ]
    counts = {
        name: _step(entries.get(index, {}), f"{source}: step of {name!r}")
        for name, index in zip(names, indices, strict=True)
    }
    if iteration is None:
        iteration = max(counts.values(), default=0)
        if spec == "sgd":
            said.append("iter is 0: torch's SGD doesn't count; --iter N says how many updates there were")
    if spec == "sgd":
        counts = dict.fromkeys(names, iteration)
    definition = definition_of_spec(spec)
    extra: dict[str, Any] = {
        "solver_type": solver_type(definition),
        "digest": definition.digest,
        "states": list(states),
        "parameters": names,
        "counts": counts,
        "scalars": {},
        "lines": {},
        "shared": {},
        "groups": [
            _group(group, [names[indices.index(index)] for index in group["params"]], definition, source)
            for group in groups
        ],
    }
    return SolverStateData(iter=iteration, history=tuple(history), extra=extra), said


def parts_of(
    found: Mapping[str, Any], source: str
) -> tuple[list[Mapping[str, Any]], dict[Any, Mapping[str, Any]], list[Any]]:
    """The groups, the entries by the parameters' numbers, and these numbers in order."""
    groups, entries = found["param_groups"], found["state"]
    sound = (
        isinstance(groups, list)
        and all(isinstance(group, Mapping) and isinstance(group.get("params"), list) for group in groups)
        and isinstance(entries, Mapping)
        and all(isinstance(entry, Mapping) for entry in entries.values())
    )
    indices = [index for group in groups for index in group["params"]] if sound else []
    if not sound or not indices or not all(type(index) is int for index in indices):
        raise SolverFileError(f"{source}: not as torch's optimizers write their state_dict")
    if len(set(indices)) != len(indices):
        raise SolverFileError(f"{source}: a parameter is in two groups")
    return groups, dict(entries), indices


def given_names(groups: Sequence[Mapping[str, Any]], source: str) -> list[str] | None:
    """The names of the parameters of all groups, in their order; None where a group doesn't name its own.

    Raises SolverFileError for names that aren't one for each.
    """
    if not all("param_names" in group for group in groups):
        return None
    for group in groups:
        given = group["param_names"]
        if not (isinstance(given, list | tuple) and all(isinstance(name, str) for name in given)):
            raise SolverFileError(f"{source}: param_names must be a list of names")
        if len(given) != len(group["params"]):
            raise SolverFileError(f"{source}: {len(given)} names for {len(group['params'])} parameters")
    names = [name for group in groups for name in group["param_names"]]
    if len(set(names)) != len(names):
        raise SolverFileError(f"{source}: two parameters of one name")
    return names


def _step(entry: Mapping[str, Any], what: str) -> int:
    try:
        found = int(float(entry.get("step", 0)))
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise SolverFileError(f"{what} is no number of updates: {error}") from error
    if not 0 <= found <= MOST_FOREIGN_UPDATES:
        raise SolverFileError(f"{what} is no number of updates: {found}")
    return found


def _spec_of(
    entries: Mapping[Any, Mapping[str, Any]], groups: Sequence[Mapping[str, Any]], source: str
) -> str:
    keys = {key for entry in entries.values() for key, value in entry.items() if value is not None}
    for spec, states in _STATES.items():
        if keys - {"step"} == set(states.values()):
            return _adam_or_adamw(groups, source) if spec == "adam" else spec
    told = ", ".join(sorted(map(str, keys))) or "nothing"
    raise SolverFileError(
        f"{source}: states of {told}; known are those of {', '.join(_STATES)} (without amsgrad, centered and "
        "RMSprop's momentum): give --from"
    )


def _adam_or_adamw(groups: Sequence[Mapping[str, Any]], source: str) -> str:
    """Which of those with Adam's states: they decay otherwise, and RAdam steps otherwise."""
    if any("betas" in group and "amsgrad" not in group for group in groups):
        raise SolverFileError(f"{source}: Adam's states, and settings that aren't Adam's: give --from")
    decoupled = {group.get("decoupled_weight_decay") for group in groups}
    if decoupled == {True}:
        return "adamw"
    # Before torch 2.7 neither said it; without decay they are the same.
    if decoupled == {False} or not any(group.get("weight_decay") for group in groups):
        return "adam"
    raise SolverFileError(f"{source}: of Adam or of AdamW, which it doesn't say: give --from adam or adamw")


def _names(
    groups: Sequence[Mapping[str, Any]],
    indices: Sequence[Any],
    model: ModelData | None,
    source: str,
) -> list[str]:
    given = given_names(groups, source)
    if given is not None:
        return given
    if model is None:
        raise SolverFileError(
            f"{source}: it numbers its parameters, and only the model knows their names: put the module's "
            "state_dict beside it (X.model.pt beside X.optimizer.pt)"
        )
    found = [name for name in owned(model) if not name.endswith(_STATISTICS)]
    if len(found) != len(indices):
        raise SolverFileError(
            f"{source}: it is of {len(indices)} parameters, and the module's state_dict has {len(found)}"
        )
    # torch numbers them as the optimizer got them: here, as the module has them.
    by_place = dict(zip(sorted(indices), found, strict=True))
    return [by_place[index] for index in indices]


def _shapes(
    names: Sequence[str],
    indices: Sequence[Any],
    entries: Mapping[Any, Mapping[str, Any]],
    states: Mapping[str, str],
    model: ModelData | None,
    source: str,
) -> list[tuple[int, ...]]:
    params = {} if model is None else owned(model)
    shapes = []
    for name, index in zip(names, indices, strict=True):
        held = [entries.get(index, {}).get(theirs) for theirs in states.values()]
        shape = next((tuple(value.shape) for value in held if isinstance(value, torch.Tensor)), None)
        known = params[name].shape if name in params else None
        if shape is None:
            shape = known
        if shape is None:
            raise SolverFileError(f"{source}: nothing says what shape {name!r} has")
        if known is not None and known != shape:
            raise SolverFileError(
                f"{source}: state {index} has the shape {shape}, and {name!r} of the module {known}: was the "
                "optimizer given the parameters in another order?"
            )
        shapes.append(shape)
    return shapes


def _group(group: Mapping[str, Any], members: list[str], definition: Any, source: str) -> dict[str, Any]:
    given = dict(group)
    betas = group.get("betas")
    if isinstance(betas, tuple | list) and len(betas) == 2:
        given |= {"beta1": betas[0], "beta2": betas[1]}
    own = {name: _setting(given[name]) for name in definition.hyperparameter_names if name in given}
    for name, value in own.items():
        if value is None or not math.isfinite(value):
            raise SolverFileError(f"{source}: {name} of a group is {_told(given[name])}, not a number")
    return {
        "members": members,
        "hyperparameters": own,
        "options": {
            name: value
            for name, value in group.items()
            if name in definition.option_names and isinstance(value, bool)
        },
        "multipliers": {},
    }


def _told(value: Any) -> str:
    """A setting that isn't a number in words; not every tensor can be written out."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of {value.dtype} and the shape {tuple(value.shape)}"
    return f"{value!r:.60}" if isinstance(value, int | float | str) else with_article(type(value).__name__)


def _setting(value: Any) -> float | None:
    """A number of a group, which may be a tensor of one; None: it is something else."""
    try:
        return float(value) if isinstance(value, int | float | torch.Tensor) else None
    except (OverflowError, RuntimeError, ValueError, TypeError):
        return None


def _state_array(tensors: Tensors, value: Any, shape: tuple[int, ...], what: str) -> HostArray:
    if value is None:
        return np.zeros(shape, np.float32)  # never updated
    if not isinstance(value, torch.Tensor) or tuple(value.shape) != shape:
        raise SolverFileError(f"{what} isn't a tensor of the shape {shape}")
    return tensors.array(value, what)


def _tensor(array: HostArray) -> torch.Tensor:
    return as_tensor(np.array(array, order="C"))


def _save(files: Mapping[str, Mapping[str, Any]]) -> None:
    """Write these files, all or none: the first gets its name last."""
    with contextlib.ExitStack() as stack:
        for path, content in files.items():
            stack.enter_context(about(path, "can't be written"))
            temporary = stack.enter_context(replacing(path))
            with open(temporary, "wb") as opened:
                target = _Target(opened)
                try:
                    torch.save(dict(content), target)
                except RuntimeError as error:
                    if target.error is not None:  # which torch calls an unexpected position
                        raise target.error from error
                    raise SolverFileError(f"torch can't write it: {_first_line(error)}") from error


class _Target:
    """A file for ``torch.save`` that remembers what the system said."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        """Write all of it, or raise OSError."""
        try:
            return self._file.write(data)
        except OSError as error:
            self.error = error
            raise

    def flush(self) -> None:
        """Hand it to the system."""
        self._file.flush()


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
