"""The attributes of an optimizer: hyperparameters are some; unknown ones can't be read or assigned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from solvergen.errors import HyperparameterError, UnknownAttribute
from solvergen.runtime.definition import Definition, definition_of
from solvergen.runtime.groups import MULTIPLIERS
from solvergen.runtime.keywords import checked_constructor
from solvergen.runtime.naming import did_you_mean

if TYPE_CHECKING:
    from solvergen.runtime.optimizer import Optimizer


class Attributes:
    """A class whose subclasses give a ``definition``, the hyperparameters of which are attributes."""

    definition: ClassVar[Definition]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in cls.__dict__:
            checked_constructor(cls)  # not in __new__: subclasses pass on what they are given
        definition = cls.__dict__.get("definition")
        if definition is not None:
            for hyperparameter in definition.hyperparameters:
                setattr(cls, hyperparameter.name, _shared(hyperparameter.name, hyperparameter.doc))

    def __setattr__(self, name: str, value: Any) -> None:
        known = getattr(type(self), name, None)
        if isinstance(known, property) and known.fset is None:
            raise UnknownAttribute(f"{name} of {type(self).__name__} is read-only")
        if name.startswith("_") or isinstance(known, property):
            object.__setattr__(self, name, value)
        elif hasattr(type(self), name):
            raise UnknownAttribute(f"{name} of {type(self).__name__} can't be assigned")
        else:
            self._refuse(name)

    def __getattr__(self, name: str) -> Any:
        # Only called for names that aren't attributes. To a type checker every hyperparameter of an Optimizer
        # that isn't known more closely is one, so NoReturn would make what follows unreachable to it.
        if name.startswith("_"):
            raise AttributeError(name)
        self._refuse(name)

    def _refuse(self, name: str) -> NoReturn:
        definition = definition_of(type(self))
        if name in definition.option_names:
            raise UnknownAttribute(
                f"{name} is an option: it is compiled in and can't change; make a new "
                f"{definition.class_name} with {name}=... (read it as opt.options[{name!r}])"
            )
        if name in MULTIPLIERS:
            raise UnknownAttribute(f"{name} belongs to a group: opt.groups[i].{name}")
        from solvergen.runtime.wrappers import BROUGHT

        if name in BROUGHT:
            raise UnknownAttribute(
                f"{definition.class_name} has {name} only if it is made with "
                f"wrappers=Wrappers({BROUGHT[name]})"
            )
        public = [n for n in dir(type(self)) if not n.startswith("_")]
        raise UnknownAttribute(
            f"{definition.class_name} has no attribute {name!r}"
            + did_you_mean(name, dict.fromkeys([*definition.hyperparameter_names, *public]))
        )


def _shared(name: str, doc: str) -> property:
    """A hyperparameter of all groups as an attribute of the optimizer."""

    def read(self: Optimizer) -> float | int:
        values = [getattr(group, name) for group in self.groups]
        if any(value != values[0] for value in values):
            some = ", ".join([*map(repr, values[:4]), *["..."] * (len(values) > 4)])
            raise HyperparameterError(f"groups have different {name} ({some}); read opt.groups[i].{name}")
        result: float | int = values[0]
        return result

    def write(self: Optimizer, value: float | int) -> None:
        self.set(**{name: value})

    return property(read, write, doc=doc)
