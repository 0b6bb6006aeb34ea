"""``SolverParameters``: everything that Caffe's ``SolverParameter`` has, and what solvergen adds to it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from solvergen.errors import Location
from solvergen.runtime.keywords import stray
from solvergen.runtime.naming import quoted
from solvergen.solver.parameters.error import SolverParametersError, UnknownParameter
from solvergen.solver.parameters.findings import Finding, errors_of, warnings_of
from solvergen.solver.parameters.hints import meant
from solvergen.solver.parameters.kinds import (
    Convert,
    boolean,
    each,
    float32,
    hyperparameters,
    integer,
    one_of,
    settings,
    shortest,
    text,
)
from solvergen.solver.parameters.net_state import NetSource, NetState, TestNet, net_state
from solvergen.solver.parameters.per_parameter import WrongEntry, blocks, constraints

if TYPE_CHECKING:
    from solvergen.runtime.constraints import Constraint

Self = TypeVar("Self", bound="SolverParameters")

SOLVER_MODES = {"CPU": 0, "GPU": 1}
SNAPSHOT_FORMATS = {"HDF5": 0, "BINARYPROTO": 1, "SAFETENSORS": 1000}
SOLVER_TYPES = {"SGD": 0, "NESTEROV": 1, "ADAGRAD": 2, "RMSPROP": 3, "ADADELTA": 4, "ADAM": 5}
UPGRADED_TYPES = {
    "SGD": "SGD",
    "NESTEROV": "Nesterov",
    "ADAGRAD": "AdaGrad",
    "RMSPROP": "RMSProp",
    "ADADELTA": "AdaDelta",
    "ADAM": "Adam",
}
"""The old enum ``solver_type``, and the string ``type`` that took its place."""

_NO_LOCATIONS: Mapping[str, tuple[Location, ...]] = MappingProxyType({})


def _field(default: Any, convert: Convert) -> Any:
    # None in the constructor is: not given. What it then becomes stands in the metadata.
    return field(default=None, metadata={"convert": convert, "default": default})


def _number(default: float = 0.0) -> Any:
    return _field(float32(default), float32)


def _count(default: int = 0, bits: int = 32) -> Any:
    return _field(default, integer(bits))


@dataclass(frozen=True, kw_only=True, repr=False)
class SolverParameters:
    """What a solver is told. The attributes have Caffe's names and defaults, in the order of its fields.

    A field that Caffe has no default for is 0 (numbers, as in Caffe), None (strings and messages) or ()
    (repeated ones); ``has(name)`` says whether it was given. Giving None is giving nothing. Numbers that are
    float in Caffe are rounded to float32. From ``optimizer`` on the fields are solvergen's own.

    Raises SolverParametersError for values that a field can't have; whether they fit together is what
    ``check`` looks at.
    """

    train_net: str | None = _field(None, text)
    test_net: tuple[str, ...] = _field((), each(text))
    test_iter: tuple[int, ...] = _field((), each(integer(32)))
    test_interval: int = _count()
    base_lr: float = _number()
    display: int = _count()
    max_iter: int = _count()
    lr_policy: str | None = _field(None, text)
    gamma: float = _number()
    power: float = _number()
    momentum: float = _number()
    weight_decay: float = _number()
    stepsize: int = _count()
    snapshot: int = _count()
    snapshot_prefix: str | None = _field(None, text)
    snapshot_diff: bool = _field(False, boolean)
    solver_mode: str = _field("GPU", one_of(SOLVER_MODES))
    device_id: int = _count()
    test_compute_loss: bool = _field(False, boolean)
    random_seed: int = _count(-1, bits=64)
    train_net_param: str | None = _field(None, text)
    test_net_param: tuple[str, ...] = _field((), each(text))
    debug_info: bool = _field(False, boolean)
    net: str | None = _field(None, text)
    net_param: str | None = _field(None, text)
    train_state: NetState | None = _field(None, net_state)  # noqa: RUF009 - a field like the others
    test_state: tuple[NetState, ...] = _field((), each(net_state))
    snapshot_after_train: bool = _field(True, boolean)
    regularization_type: str = _field("L2", text)
    solver_type: str | None = _field(None, one_of(SOLVER_TYPES))
    delta: float = _number(1e-8)
    test_initialization: bool = _field(True, boolean)
    average_loss: int = _count(1)
    stepvalue: tuple[int, ...] = _field((), each(integer(32)))
    clip_gradients: float = _number(-1.0)
    iter_size: int = _count(1)
    snapshot_format: str = _field("BINARYPROTO", one_of(SNAPSHOT_FORMATS))
    rms_decay: float = _number(0.99)
    momentum2: float = _number(0.999)
    type: str = _field("SGD", text)
    layer_wise_reduce: bool = _field(True, boolean)
    weights: tuple[str, ...] = _field((), each(text))

    optimizer: str | None = _field(None, text)
    hyperparameters: Mapping[str, float | bool] = _field(MappingProxyType({}), hyperparameters)
    policy: Mapping[str, Any] | None = _field(None, settings)
    keep_snapshots: int | None = _field(None, integer(32))
    blocks: Mapping[str, int | str] = _field(MappingProxyType({}), blocks)
    constraints: Mapping[str, Constraint] = _field(MappingProxyType({}), constraints)

    source: Path | None = field(default=None, compare=False, repr=False)
    form: Literal["python", "prototxt", "yaml"] = field(default="python", compare=False, repr=False)
    locations: Mapping[str, tuple[Location, ...]] = field(
        default_factory=lambda: _NO_LOCATIONS, compare=False, repr=False
    )

    _given: frozenset[str] = field(default=frozenset(), init=False, compare=False, repr=False)

    def __new__(cls, **given: Any) -> Any:
        """Remembers which fields were given. Raises UnknownParameter for what is no field."""
        name, known = stray(given, cls.__init__)
        if name is not None:
            near = meant(name, [field for field in known if field in CONVERSIONS])
            raise UnknownParameter([Finding(message=f"no parameter {quoted(name)}; {near}")])
        self = object.__new__(cls)
        names = frozenset(name for name, value in given.items() if value is not None and name in CONVERSIONS)
        object.__setattr__(self, "_given", names)
        return self

    def __post_init__(self) -> None:
        wrong = []
        for name, convert in CONVERSIONS.items():
            value = getattr(self, name)
            if value is None:
                object.__setattr__(self, name, DEFAULTS[name])
                continue
            try:
                object.__setattr__(self, name, convert(value))
            except ValueError as error:
                key = error.key if isinstance(error, WrongEntry) else None
                wrong.append(self.finding(name, f"{name} {error}", key=key))
        if self.source is not None:
            object.__setattr__(self, "source", Path(self.source))
        if wrong:
            raise SolverParametersError(wrong)
        if self.solver_type is not None and "type" not in self._given:
            object.__setattr__(self, "type", UPGRADED_TYPES[self.solver_type])

    def __repr__(self) -> str:
        shown = (f"{name}={shortest(getattr(self, name))}" for name in self.given)
        return f"SolverParameters({', '.join(shown)})"

    def has(self, name: str) -> bool:
        """Whether the field was given, if only with its default."""
        return name in self._given

    @property
    def given(self) -> tuple[str, ...]:
        """The fields that were given, in Caffe's order."""
        return tuple(name for name in CONVERSIONS if name in self._given)

    def replaced(self: Self, **changes: Any) -> Self:
        """The same parameters but for ``changes``; a change to None takes the field back to not given."""
        for name in changes:
            if name not in CONVERSIONS:
                raise SolverParametersError(
                    [Finding(message=f"no parameter {quoted(name)}; {meant(name, CONVERSIONS)}")]
                )
        values = {name: getattr(self, name) for name in self.given}
        kept = {name: places for name, places in self.locations.items() if name not in changes}
        extra: dict[str, Any] = {"source": self.source, "form": self.form, "locations": kept}
        return type(self)(**{**values, **changes}, **extra)

    def __reduce__(self) -> Any:
        values = {name: _plain(getattr(self, name)) for name in self.given}
        extra = {"source": self.source, "form": self.form, "locations": dict(self.locations)}
        return _rebuilt, (type(self), {**values, **extra})

    # Where they come from.

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> SolverParameters:
        """What the file says, and sound: YAML by the endings .yaml and .yml, else prototxt.

        Raises:
            SolverParametersError: the file says something wrong, or Caffe would refuse it.
            UnreadableParameters: the file can't be read.
        """
        return cls.read(path).checked()

    @classmethod
    def from_prototxt(cls, path: str | os.PathLike[str]) -> SolverParameters:
        """What a prototxt file says, and sound. Raises as ``from_file``."""
        from solvergen.solver.parameters.prototxt import read_prototxt

        return read_prototxt(path).checked()

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> SolverParameters:
        """What a YAML file says, and sound. Raises as ``from_file``."""
        from solvergen.solver.parameters.yaml_form import read_yaml

        return read_yaml(path).checked()

    @classmethod
    def parse_prototxt(
        cls, text: str | bytes, path: str | os.PathLike[str] | None = None
    ) -> SolverParameters:
        """What a text in prototxt says, and sound; ``path``: the file that it is said to be of.

        Raises SolverParametersError.
        """
        from solvergen.solver.parameters.prototxt import parse_prototxt

        return parse_prototxt(text, path).checked()

    @staticmethod
    def read(path: str | os.PathLike[str]) -> SolverParameters:
        """What the file says, if every field in it has a value that it can have; ``check`` is yours to call.

        Raises as ``from_file``.
        """
        if Path(path).suffix.lower() in (".yaml", ".yml"):
            from solvergen.solver.parameters.yaml_form import read_yaml

            return read_yaml(path)
        from solvergen.solver.parameters.prototxt import read_prototxt

        return read_prototxt(path)

    # What there is to say about them.

    def check(self) -> list[Finding]:
        """Everything that Caffe refuses when it makes a solver of this (errors), and what surprises."""
        from solvergen.solver.parameters.checks import check

        return check(self)

    def checked(self: Self) -> Self:
        """Itself. Raises SolverParametersError with the errors that ``check`` finds."""
        errors = errors_of(self.check())
        if errors:
            raise SolverParametersError(errors)
        return self

    @property
    def warnings(self) -> tuple[str, ...]:
        """The sentences of the warnings that ``check`` finds."""
        return tuple(finding.sentence for finding in warnings_of(self.check()))

    def finding(self, name: str | None, message: str, *, key: Any = None, **more: Any) -> Finding:
        """A finding about the field ``name``, with its place if it comes from a file; ``key``: about this
        entry of it."""
        places = () if name is None else self.locations.get(f"{name}.{key}", self.locations.get(name, ()))
        place = next(iter(places), None)
        return Finding(message=message, field=name, location=place, **more)

    # The nets.

    @property
    def needs_net_field(self) -> bool:
        """Whether one of the fields must say what to train, as Caffe wants it: in prototxt. Elsewhere the net
        may be handed to the Solver without."""
        return self.form == "prototxt"

    @property
    def train_net_source(self) -> NetSource | None:
        """Where the net to train comes from: the first that is given of the four fields; None if none is."""
        from solvergen.solver.parameters.sources import train_net_source

        return train_net_source(self)

    @property
    def train_net_state(self) -> NetState:
        """TRAIN, the net's own state over it, and ``train_state`` over both."""
        from solvergen.solver.parameters.sources import train_net_state

        return train_net_state(self)

    @property
    def test_net_sources(self) -> tuple[TestNet, ...]:
        """The nets to test with in Caffe's order: inline ones, files, and ``net`` (or ``net_param``) last."""
        from solvergen.solver.parameters.sources import test_nets

        return test_nets(self)


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _rebuilt(cls: Any, values: dict[str, Any]) -> Any:
    return cls(**values)


CONVERSIONS: Mapping[str, Convert] = MappingProxyType(
    {entry.name: entry.metadata["convert"] for entry in fields(SolverParameters) if entry.metadata}
)
"""Every parameter, in Caffe's order and solvergen's after, and what makes values its own."""

DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {entry.name: entry.metadata["default"] for entry in fields(SolverParameters) if entry.metadata}
)

OWN = ("optimizer", "hyperparameters", "policy", "keep_snapshots", "blocks", "constraints")
"""Those that Caffe doesn't have."""
