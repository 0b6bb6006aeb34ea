"""Any of the Solver's files, or an optimizer's snapshot, for people to look at and to compare."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from solvergen.runtime import snapshots
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.blocks import BLOCKS
from solvergen.solver.files import weights
from solvergen.solver.files.data import ModelData, SolverStateData
from solvergen.solver.files.file_names import Format
from solvergen.solver.files.parameter_names import model_of
from solvergen.solver.files.reading import StrPath, kind_of, read_model, read_state

Kind = Literal["model", "state", "optimizer", "optimizer of torch"]
AnyFormat = Format | Literal["TORCH", "PLAIN_SAFETENSORS"]
"""The Solver's formats, and those of ``state_dict``s, whose arrays have names and no places."""

_TYPE = ".type"
"""What the names of facts about layers end in; a model's other facts have no dot in theirs."""

_EXTRA = "extra"

_LISTED = 16
"""The longest list that is shown item by item."""


@dataclass(frozen=True)
class Silence:
    """What a file of some format doesn't hold: facts of these names, types of layers, a state's ``extra``,
    arrays of whole numbers."""

    facts: frozenset[str] = frozenset()
    layer_types: bool = False
    extra: bool = False
    whole_numbers: bool = False

    def about_fact(self, name: str) -> bool:
        """Whether such a file can't hold the fact of this name."""
        return name in self.facts or (self.layer_types and name.endswith(_TYPE)) or self._about_extra(name)

    def about_array(self, name: str, array: HostArray) -> bool:
        """Whether such a file can't hold this array."""
        return self._about_extra(name) or (self.whole_numbers and array.dtype.kind in "biu")

    def _about_extra(self, name: str) -> bool:
        return self.extra and (name == _EXTRA or name.startswith(f"{_EXTRA}."))


# It has the layers with parameters, and so not their number.
_OF_STATE_DICTS = Silence(frozenset({"name", "layers"}), layer_types=True)
_SILENT_OF_MODELS: Mapping[AnyFormat, Silence] = {
    "BINARYPROTO": Silence(whole_numbers=True),
    "HDF5": Silence(frozenset({"name"}), layer_types=True, whole_numbers=True),
    "SAFETENSORS": Silence(whole_numbers=True),
    "TORCH": _OF_STATE_DICTS,
    "PLAIN_SAFETENSORS": _OF_STATE_DICTS,
}


@dataclass(frozen=True, eq=False)
class Contents:
    """What a file holds: ``facts`` are JSON's values by name, ``arrays`` all its arrays by name."""

    path: str
    format: AnyFormat
    kind: Kind
    facts: Mapping[str, Any]
    arrays: Mapping[str, HostArray]
    silent: Silence = Silence()
    names: Mapping[str, str] = field(default_factory=dict)
    """What the file itself calls arrays, which ``arrays`` has by their places; no two have one name."""

    def by_name(self) -> Mapping[str, HostArray]:
        """The arrays as the file calls them."""
        return {self.names.get(name, name): array for name, array in self.arrays.items()}


def contents(path: StrPath) -> Contents:
    """Read a file and verify what can be verified. Files of torch are read by ``adapters.torch_contents``.

    Raises ``SnapshotError``.
    """
    name = os.fsdecode(path)
    if weights.is_plain(name):
        return _of_weights(name)
    form, kind = kind_of(name)
    if kind == "model":
        return of_model(name, form, read_model(name))
    if kind == "state":
        return _of_state(name, form, read_state(name))
    return _of_optimizer(name, form)


def described(found: Contents) -> dict[str, Any]:
    """``found`` with numbers about its arrays instead of them; JSON's values only."""
    return {
        "path": found.path,
        "file_bytes": os.stat(found.path).st_size,
        "format": found.format,
        "kind": found.kind,
        **{name: _json(value) for name, value in found.facts.items()},
        "arrays": [{"name": name, **numbers_of(array)} for name, array in found.by_name().items()],
    }


def numbers_of(array: HostArray) -> dict[str, Any]:
    """Shape, dtype, the least, the greatest and the root mean square of the finite, how many aren't."""
    wide = np.asarray(array, np.float64)
    finite = wide[np.isfinite(wide)]
    with np.errstate(over="ignore"):
        rms = float(np.sqrt(np.mean(np.square(finite)))) if finite.size else None
    return {
        "shape": list(array.shape),
        "dtype": array.dtype.name,
        "min": float(finite.min()) if finite.size else None,
        "max": float(finite.max()) if finite.size else None,
        "rms": rms if rms is None or math.isfinite(rms) else None,
        "nonfinite": int(wide.size - finite.size),
    }


def differences(a: Contents, b: Contents, *, rtol: float = 0.0, atol: float = 0.0) -> Iterator[str]:
    """Everything that differs, one sentence each. Without tolerances bits count (but not a NaN's).

    What one of the formats doesn't hold is no difference.
    """
    if a.kind != b.kind:
        yield f"{a.path} is {_one(a.kind)}, {b.path} {_one(b.kind)}"
        return
    silent = [a.silent, b.silent]
    if a.format != b.format:
        silent.append(Silence(frozenset({"learned_net"})))  # of the model in the same format
    for name in dict.fromkeys([*a.facts, *b.facts]):
        if any(one.about_fact(name) for one in silent):
            continue
        if _is_one_and_plain(name, a, b):
            continue  # compared with the arrays
        if name not in a.facts or name not in b.facts:
            yield f"{name} is only in {a.path if name in a.facts else b.path}"
        elif not _equal(a.facts[name], b.facts[name]):
            yield f"{name}: {a.facts[name]!r} and {b.facts[name]!r}"
    for name, of_a, of_b in _matched(a, b):
        if of_a is not None and of_b is not None:
            yield from _unlike(name, of_a, of_b, rtol, atol)
        elif _is_one_and_plain(name, a, b):
            yield from _unlike_plain(name, a, b, rtol, atol)
        elif of_a is not None and not b.silent.about_array(name, of_a):
            yield f"{name} is only in {a.path}"
        elif of_b is not None and not a.silent.about_array(name, of_b):
            yield f"{name} is only in {b.path}"


def _matched(a: Contents, b: Contents) -> Iterator[tuple[str, HostArray | None, HostArray | None]]:
    """The arrays of two files that are to be alike, and what only one of them has.

    Names say which is which where both files have some, else places do.
    """
    placed = {name: place for place, name in b.names.items()}
    pairs = {place: placed[name] for place, name in a.names.items() if name in placed}
    taken = set(pairs.values())
    left = dict.fromkeys(place for place in b.arrays if place not in taken)
    for place in a.arrays:
        if place not in pairs and place in left and not (place in a.names and place in b.names):
            pairs[place] = place
            del left[place]
    both_name = bool(a.names and b.names)
    for place, array in a.arrays.items():
        name = a.names.get(place, place) if both_name else place
        yield name, array, b.arrays[pairs[place]] if place in pairs else None
    for place in left:
        yield b.names.get(place, place) if both_name else place, None, b.arrays[place]


def _is_one_and_plain(name: str, a: Contents, b: Contents) -> bool:
    """Whether one of two optimizers of torch has it as an array without axes, the other as a plain value."""
    return a.kind == "optimizer of torch" and any(
        name in x.facts and name in y.arrays and y.arrays[name].ndim == 0 for x, y in ((a, b), (b, a))
    )


def _unlike_plain(name: str, a: Contents, b: Contents, rtol: float, atol: float) -> Iterator[str]:
    """An array of one number in one file, a plain value in the other, which has no dtype."""
    values = [found.arrays[name].item() if name in found.arrays else found.facts[name] for found in (a, b)]
    if not all(isinstance(value, int | float) for value in values):
        yield f"{name}: {values[0]!r} and {values[1]!r}"
        return
    try:
        x, y = (np.array(value, np.float64) for value in values)
    except OverflowError:  # a whole number beyond all of them
        yield f"{name}: {values[0]!r} and {values[1]!r}"
        return
    yield from _unlike(name, x, y, rtol, atol)


def _one(kind: Kind) -> str:
    return f"an {kind}" if kind.startswith("o") else f"a {kind}"


def _unlike(name: str, a: HostArray, b: HostArray, rtol: float, atol: float) -> Iterator[str]:
    if a.shape != b.shape:
        yield f"{name}: the shapes {a.shape} and {b.shape}"
        return
    if a.dtype != b.dtype:
        yield f"{name}: {a.dtype.name} and {b.dtype.name}"
    if a.dtype.kind in "biu" and b.dtype.kind in "biu":
        if unequal := int((a != b).sum()):
            yield f"{name}: {unequal} of {a.size} numbers differ"
        return
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(x - y)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        if rtol == atol == 0:
            near = same & (np.isnan(x) | (np.signbit(x) == np.signbit(y)))
        else:
            near = same | (distance <= atol + rtol * np.abs(y))
    if near.all():
        return
    finite = distance[np.isfinite(distance)]
    greatest = f"at most {finite.max():.6g} apart" if finite.size else "none of them finite in both"
    yield f"{name}: {int((~near).sum())} of {near.size} numbers differ, {greatest}"


def of_model(path: str, form: AnyFormat, model: ModelData) -> Contents:
    """The contents of a model."""
    facts: dict[str, Any] = {"name": model.name, "layers": len(model.layers)}
    arrays: dict[str, HostArray] = {}
    names: dict[str, str] = {}
    seen: dict[str, int] = {}
    for layer in model.layers:
        label = layer.name
        while label + _TYPE in facts:  # of a layer of the same name, or of one that is called "name (2)"
            seen[layer.name] = seen.get(layer.name, 1) + 1
            label = f"{layer.name} ({seen[layer.name]})"
        facts[label + _TYPE] = layer.type
        for index, blob in enumerate(layer.blobs):
            if blob is not None:
                arrays[f"{label}/{index}"] = blob
        for index, diff in enumerate(layer.diffs or ()):
            arrays[f"{label}/{index} diff"] = diff
        for index, name in enumerate(layer.names or ()):
            names |= {f"{label}/{index}": name, f"{label}/{index} diff": f"{name} diff"}
    names = _distinct(names, arrays)
    return Contents(path, form, "model", facts, arrays, _SILENT_OF_MODELS[form], names)


def _distinct(names: Mapping[str, str], arrays: Mapping[str, HostArray]) -> dict[str, str]:
    """The names of arrays that are there, without those that are another array's, too."""
    called = Counter(names.get(place, place) for place in arrays)
    return {place: name for place, name in names.items() if place in arrays and called[name] == 1}


def with_whole_numbers(model: Contents, besides: Mapping[str, HostArray]) -> Contents:
    """A model with arrays that have no place in a layer, under their names."""
    arrays, names = dict(model.arrays), dict(model.names)
    for name, array in besides.items():
        place = name
        while place in arrays:  # something is called as a place is
            place += " (whole numbers)"
        arrays[place], names[place] = array, name
    return replace(model, arrays=arrays, names=_distinct(names, arrays))


def _of_weights(path: str) -> Contents:
    arrays = weights.read(path, whole=True)
    whole = {name: array for name, array in arrays.items() if array.dtype.kind in "biu"}
    real = {name: array for name, array in arrays.items() if name not in whole}
    return with_whole_numbers(of_model(path, "PLAIN_SAFETENSORS", model_of(real)), whole)


def _of_state(path: str, form: Format, state: SolverStateData) -> Contents:
    facts: dict[str, Any] = {
        "iter": state.iter,
        "current_step": state.current_step,
        "learned_net": state.learned_net,
    }
    arrays: dict[str, HostArray] = {f"history/{i}": array for i, array in enumerate(state.history)}
    _flatten(_EXTRA, state.extra, facts, arrays)
    silence = Silence(extra=form != "SAFETENSORS")
    return Contents(path, form, "state", facts, arrays, silence, _distinct(_names_of_history(state), arrays))


def _names_of_history(state: SolverStateData) -> dict[str, str]:
    """What a native state says about whose its arrays are."""
    states, parameters = (state.extra.get(key, ()) for key in ("states", "parameters"))
    if len(states) * len(parameters) != len(state.history):
        return {}
    called = (f"{parameter} {name}" for name in states for parameter in parameters)
    return {f"history/{index}": name for index, name in enumerate(called)}


def _of_optimizer(path: str, form: Format) -> Contents:
    data = snapshots.load(path)
    facts: dict[str, Any] = {"spec": data.spec, "class": data.class_name, "digest": data.digest}
    arrays: dict[str, HostArray] = {}
    facts |= {f"shared.{name}": value for name, value in data.shared.items()}
    facts["frozen"] = list(data.frozen)
    has_blocks = any(kind == BLOCKS for _, kind in data.schema)
    for index, group in enumerate(data.groups):
        facts[f"group {index}"] = list(group.members)
        for what in (group.hyperparameters, group.options, group.multipliers):
            facts |= {f"group {index}.{name}": value for name, value in what.items()}
    for tensor in data.tensors:
        facts[f"{tensor.name}.t"] = tensor.t
        if has_blocks:
            facts[f"{tensor.name}.{BLOCKS}"] = tensor.blocks
        for name, value in data.constraints.get(tensor.name, {}).items():
            key = name if name == "constraint" else f"constraint.{name}"
            facts[f"{tensor.name}.{key}"] = value
        facts |= {f"{tensor.name}.{name}": value for name, value in tensor.scalars.items()}
        if tensor.param is not None:
            arrays[tensor.name] = tensor.param
        arrays |= {f"{tensor.name} {name}": array for name, array in tensor.arrays.items()}
    return Contents(path, form, "optimizer", facts, arrays)


def _flatten(name: str, value: Any, facts: dict[str, Any], arrays: dict[str, HostArray]) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            _flatten(f"{name}.{key}", item, facts, arrays)
    elif isinstance(value, list | tuple) and not (len(value) > _LISTED and all(map(_is_plain, value))):
        for index, item in enumerate(value):
            _flatten(f"{name}.{index}", item, facts, arrays)
    elif isinstance(value, np.ndarray):
        arrays[name] = value
    elif isinstance(value, np.generic):
        facts[name] = value.item()
    else:
        facts[name] = value


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | bytes)


def _equal(a: Any, b: Any) -> bool:
    """Whether two facts are the same; a NaN is, whatever holds it."""
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return bool(a == b)


def _json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    return value
