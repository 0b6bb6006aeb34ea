"""Does a snapshot fit an optimizer? Everything that differs is found before anything is changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from solvergen.errors import HyperparameterError, SnapshotMismatch
from solvergen.runtime.definition import RANK_OF_SHAPE, Definition
from solvergen.runtime.dtypes import STORAGE_TYPES
from solvergen.runtime.groups import checked_multiplier, checked_value, effective
from solvergen.runtime.lines import shape_of_kind
from solvergen.runtime.naming import listed, nearest, quoted
from solvergen.runtime.snapshots.consistency import check
from solvergen.runtime.state import GroupData, SnapshotData, TensorData

_MOST_LINES = 10
"""Lines that one kind of difference may fill; how many more there are is said."""


_KINDS = {
    "param": "shaped as its parameter",
    "scalar": "a scalar",
    "shared": "one number for all tensors",
    **{kind: f"one number for each of its {RANK_OF_SHAPE[kind]} ({kind})" for kind in RANK_OF_SHAPE},
    "blocks": "one number for each of its blocks",
}


@dataclass(frozen=True)
class TensorLayout:
    """A parameter of the optimizer: ``dtype`` is its storage type, ``blocks`` how many it falls into."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    blocks: int = 1


@dataclass(frozen=True, eq=False)
class Restoration:
    """What to set: one entry for each group and each tensor of the optimizer, in the optimizer's order.

    ``warnings`` say what the caller should hear about a snapshot that fits all the same.
    """

    groups: tuple[GroupData, ...]
    tensors: tuple[TensorData, ...]
    warnings: tuple[str, ...]


def match(
    data: SnapshotData,
    definition: Definition,
    groups: Sequence[GroupData],
    tensors: Sequence[TensorLayout],
    *,
    hyperparameters: bool = True,
    source: str = "the snapshot",
) -> Restoration:
    """Compare a snapshot with an optimizer as it is, and say what restoring it would set.

    Tensors are matched by name and groups by their members, in any order. Shapes, dtypes, options and
    the states that exist must agree. Hyperparameters and multipliers are taken from the snapshot; those
    that the snapshot doesn't know keep their values, and all do where ``hyperparameters`` is False.
    Nothing is changed here.

    A snapshot that was written under another version of the spec fits where the same states exist, and
    is reported in ``warnings``. ``source`` names the snapshot in messages.

    Raises:
        SnapshotMismatch: it doesn't fit; ``differences`` has everything.
        SnapshotError: ``data`` contradicts itself (it didn't come from a file).
    """
    check(data)
    older = data.digest != definition.digest
    differences: list[str] = []
    changes: list[str] = []  # of the spec; harmless where its digest says that it is another version
    if data.spec != definition.name:
        differences.append(
            f"it is of the optimizer {quoted(data.spec)} (class {quoted(data.class_name)}), "
            f"this one is {definition.name!r} (class {definition.class_name})"
        )
    differences += _tensors(data, tensors)
    if data.spec != definition.name:  # that states and options differ then goes without saying
        raise SnapshotMismatch(_title(source) + ":", tuple(differences))
    pairs = _paired(data, groups)
    if len(pairs) < len(groups):
        if not differences:
            differences += _partition(data, groups)
        # Only to say more about what differs: this snapshot won't be restored.
        pairs = list(zip(data.groups, groups, strict=False))
    differences += _states(data, definition, pairs)
    restored: list[GroupData] = []
    for index, (theirs, ours) in enumerate(pairs):
        where = f"group {index}: " if len(groups) > 1 else ""
        options = list(_options(theirs, ours))
        differences += (where + text for text in options)
        changes += (where + text for text in _spec_changes(theirs, ours))
        group = _merged(theirs, ours) if hyperparameters else ours
        differences += (where + text for text in _invalid(group, definition, bool(options)))
        restored.append(group)
    if not older:
        differences += changes
    if differences:
        title = _title(source)
        if older:
            title += f" ({_versions(data, definition)})"
        raise SnapshotMismatch(title + ":", tuple(differences))
    warnings = []
    if older:
        text = f"{source} was loaded although {_versions(data, definition)}: the state is the same"
        warnings.append("; ".join([text, *changes]))
    by_name = {tensor.name: tensor for tensor in data.tensors}
    return Restoration(tuple(restored), tuple(by_name[tensor.name] for tensor in tensors), tuple(warnings))


def _title(source: str) -> str:
    return f"{source} does not fit this optimizer; nothing was changed"


def _versions(data: SnapshotData, definition: Definition) -> str:
    return (
        f"it was written under another version of the spec {definition.name!r} "
        f"(digest {data.digest[:12]}, here {definition.digest[:12]})"
    )


def _tensors(data: SnapshotData, tensors: Sequence[TensorLayout]) -> Iterator[str]:
    """Names, shapes and dtypes of the parameters, and dtypes of their states."""
    theirs = {tensor.name: tensor for tensor in data.tensors}
    ours = {tensor.name: tensor for tensor in tensors}
    if missing := ours.keys() - theirs.keys():
        yield f"{_count(missing, 'tensor')} of this optimizer not in it: {listed(sorted(missing))}"
    if extra := theirs.keys() - ours.keys():
        yield f"{_count(extra, 'tensor')} in it that this optimizer does not have: {listed(sorted(extra))}"
    yield from _capped(_shapes_and_dtypes(theirs, ours, dict(data.schema)))


def _shapes_and_dtypes(
    theirs: Mapping[str, TensorData], ours: Mapping[str, TensorLayout], kinds: Mapping[str, str]
) -> Iterator[str]:
    for name in sorted(theirs.keys() & ours.keys()):
        there, here = theirs[name], ours[name]
        if there.shape != here.shape:
            yield f"tensor {quoted(name)} has the shape {there.shape} in it, {here.shape} here"
        if there.dtype != here.dtype:
            yield f"tensor {quoted(name)} is {there.dtype} in it, {here.dtype} here"
            continue
        # Files say it where it matters to a state.
        if "blocks" in kinds.values() and there.blocks != here.blocks:
            yield (
                f"tensor {quoted(name)} falls into {there.blocks} blocks in it, {here.blocks} here: "
                f"construct it with blocks={{{quoted(name)}: {there.blocks}}}"
            )
        compute = STORAGE_TYPES[here.dtype].compute
        for state, array in sorted(there.arrays.items()):
            due = "float64" if kinds[state] in RANK_OF_SHAPE else compute
            if array.dtype.name != due:
                yield f"state {state!r} of tensor {quoted(name)} is {array.dtype.name} in it, {due} here"
            elif array.shape != shape_of_kind(kinds[state], there.shape, there.blocks):
                yield f"state {state!r} of tensor {quoted(name)} has the shape {array.shape} in it"


def _paired(data: SnapshotData, groups: Sequence[GroupData]) -> list[tuple[GroupData, GroupData]]:
    """The snapshot's group and ours, for each of ours that has the same members there."""
    theirs = {frozenset(group.members): group for group in data.groups}
    members = [frozenset(group.members) for group in groups]
    return [(theirs[m], group) for m, group in zip(members, groups, strict=True) if m in theirs]


def _partition(data: SnapshotData, groups: Sequence[GroupData]) -> Iterator[str]:
    theirs = {frozenset(group.members) for group in data.groups}

    def lines() -> Iterator[str]:
        for index, group in enumerate(groups):
            if frozenset(group.members) not in theirs:
                there = [i for i, g in enumerate(data.groups) if not set(g.members).isdisjoint(group.members)]
                yield (
                    f"group {index} here has {listed(sorted(group.members))}; in it they are in "
                    + ", ".join(f"group {i} with {listed(sorted(data.groups[i].members))}" for i in there[:3])
                )

    yield from _capped(lines())


def _states(
    data: SnapshotData, definition: Definition, pairs: Sequence[tuple[GroupData, GroupData]]
) -> Iterator[str]:
    """States that exist there or here and not in the other, and states of another kind."""
    there = dict(data.schema)
    here = {state.name: state.shape for state in definition.state}
    tensors = {tensor.name: tensor for tensor in data.tensors}
    surplus: set[str] = set()
    lacking: set[str] = set()
    shared = {name for name, kind in here.items() if kind == "shared"}
    expected: set[str] = set()  # of the shared states: those that exist in any group
    for theirs, ours in pairs:
        active = set(definition.active_state(**ours.options)) - definition.copies.keys()
        expected |= active & shared
        for member in theirs.members:
            held = {*tensors[member].arrays, *tensors[member].scalars}
            surplus |= held - active
            lacking |= active - shared - held
    surplus |= data.shared.keys() - expected
    lacking |= expected - data.shared.keys()
    other_kind = {state for state in there.keys() & here.keys() if there[state] != here[state]}
    removed, added = sorted(surplus - here.keys()), sorted(lacking - there.keys())
    for state in removed:
        yield f"state {quoted(state)} ({there[state]}) is no longer in the spec{_renamed(state, added)}"
    for state in added:
        yield f"state {state!r} ({here[state]}) was added to the spec{_renamed(state, removed)}"
    for state in sorted(surplus & here.keys() - other_kind):
        yield f"state {state!r} exists in it, not here: {_because(pairs)}"
    for state in sorted(lacking & there.keys() - other_kind):
        yield f"state {state!r} exists here, not in it: {_because(pairs)}"
    for state in sorted(other_kind):
        yield f"state {state!r} is {_KINDS[there[state]]} in it, {_KINDS[here[state]]} here"


def _because(pairs: Iterable[tuple[GroupData, GroupData]]) -> str:
    names = {
        name
        for theirs, ours in pairs
        for name in theirs.options.keys() & ours.options.keys()
        if theirs.options[name] != ours.options[name]
    }
    return f"other options ({listed(sorted(names))}, below)" if names else "under the same options"


def _renamed(state: str, candidates: Sequence[str]) -> str:
    """A guess at what a state is called in the other version."""
    near = nearest(state, candidates)
    if near is None and len(candidates) == 1:
        near = candidates[0]
    return f" (renamed? the other version has {quoted(near)})" if near is not None else ""


def _options(theirs: GroupData, ours: GroupData) -> Iterator[str]:
    for name in sorted(theirs.options.keys() & ours.options.keys()):
        there, here = theirs.options[name], ours.options[name]
        if there != here:
            yield f"option {name!r} is {there} in it, {here} here: construct it with {name}={there}"


def _spec_changes(theirs: GroupData, ours: GroupData) -> Iterator[str]:
    """Hyperparameters and options that only one version of the spec has."""
    for kind, there, here in (
        ("hyperparameter", theirs.hyperparameters, ours.hyperparameters),
        ("option", theirs.options, ours.options),
        ("multiplier", theirs.multipliers, ours.multipliers),
    ):
        for name in sorted(there.keys() - here.keys()):
            yield f"{kind} {quoted(name)} ({there[name]!r} in it) no longer exists"
        for name in sorted(here.keys() - there.keys()):
            yield f"{kind} {name!r} is not in it and keeps {here[name]!r}"


def _merged(theirs: GroupData, ours: GroupData) -> GroupData:
    """Ours, with the snapshot's hyperparameters and multipliers."""

    def values(there: Mapping[str, float], here: Mapping[str, float]) -> dict[str, float]:
        return {name: there.get(name, value) for name, value in here.items()}

    return GroupData(
        members=ours.members,
        hyperparameters=values(theirs.hyperparameters, ours.hyperparameters),
        options=ours.options,
        multipliers=values(theirs.multipliers, ours.multipliers),
    )


def _invalid(group: GroupData, definition: Definition, other_options: bool) -> Iterator[str]:
    """What this version of the spec doesn't allow."""
    out_of_range = False
    for hyperparameter in definition.hyperparameters:
        try:
            checked_value(hyperparameter, group.hyperparameters[hyperparameter.name])
        except HyperparameterError as error:
            out_of_range = True
            yield f"hyperparameter in it: {error}"
    for name, value in group.multipliers.items():
        try:
            checked_multiplier(name, value)
        except HyperparameterError as error:
            out_of_range = True
            yield f"multiplier in it: {error}"
    if not out_of_range:
        try:
            effective(group.hyperparameters, group.multipliers)
        except HyperparameterError as error:
            yield f"its hyperparameters are not allowed here: {error}"
    if not out_of_range and not other_options:  # the constraints may rely on either
        message = definition.constraints(**group.hyperparameters, **group.options)
        if message is not None:
            yield f"its hyperparameters are not allowed here: {message}"


def _capped(lines: Iterable[str]) -> Iterator[str]:
    """The first lines, and how many more there are."""
    more = 0
    for index, line in enumerate(lines):
        if index < _MOST_LINES:
            yield line
        else:
            more += 1
    if more:
        yield f"and {more} more of this kind"


def _count(names: Iterable[object], what: str) -> str:
    number = sum(1 for _ in names)
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
