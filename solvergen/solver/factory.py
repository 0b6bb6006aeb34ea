"""Where nets come from on the command line: a function of the user's, named ``module:factory``."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solvergen.errors import SolvergenError
from solvergen.runtime.naming import listed, with_article

if TYPE_CHECKING:
    from solvergen.solver.net.protocol import Net
    from solvergen.solver.parameters.model import SolverParameters

ARGUMENTS = ("params", "phase", "source", "state")
_FORMS = "factory(), factory(phase) or factory(params, phase, source, state)"


class FactoryError(SolvergenError):
    """``--net`` names nothing that makes nets, or what it names failed."""


class Factory:
    """A user's function that makes nets, called with those of ``ARGUMENTS`` that it takes.

    ``notes`` are sentences about what it did besides.
    """

    def __init__(self, text: str, function: Callable[..., Any], notes: Sequence[str] = ()) -> None:
        self.text = text
        self.notes = list(notes)
        self._function = function
        self._names = _names(text, function)

    def make(self, phase: str, *, params: Any = None, source: Any = None, state: Any = None) -> Net:
        """A net for ``phase`` ("TRAIN" or "TEST").

        Raises:
            FactoryError: the function raised something, or what it returned isn't a net.
        """
        given: dict[str, Any] = {"params": params, "phase": phase, "source": source, "state": state}
        if isinstance(self._names, Mapping):
            positional, named = [], {name: given[key] for name, key in self._names.items()}
        else:
            positional, named = [given[key] for key in self._names], {}
        with _told(f"--net {self.text} failed for phase {phase}"), _in_place(self.text, self.notes):
            net = self._function(*positional, **named)
        missing = [name for name in ("forward", "forward_backward", "learnable") if not hasattr(net, name)]
        if missing:
            raise FactoryError(
                f"--net {self.text} returned {type(net).__name__}, which has no {', '.join(missing)}: "
                "it isn't a net (docs/solver.md says what one is; a torch module needs TorchNet around it)"
            )
        return net  # type: ignore[no-any-return]


def find_factory(text: str) -> Factory:
    """What ``module:factory`` names; modules of the current folder come first.

    Raises:
        FactoryError: says which part is missing.
    """
    module_name, colon, attribute = text.partition(":")
    if not (colon and module_name and attribute) or "/" in module_name or module_name.endswith(".py"):
        raise FactoryError(
            f"--net {text!r}: it is written module:factory, such as nets:make for make() in nets.py here"
        )
    here = _working_folder()
    if here is None:
        raise FactoryError(f"--net {text}: the working folder is gone: change to one that is there")
    if here not in sys.path:
        sys.path.insert(0, here)
    notes: list[str] = []
    with _told(f"--net {text}: {module_name} can't be imported"), _in_place(text, notes):
        try:
            found: Any = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            name = error.name
            if name is None or not (module_name == name or module_name.startswith(f"{name}.")):
                raise
            raise FactoryError(
                f"--net {text}: there is no module {name!r} in {here}, nor is one installed"
            ) from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise FactoryError(f"--net {text}: {module_name} has no {attribute!r}{_functions(found)}")
        found = getattr(found, part)
    if not callable(found):
        raise FactoryError(
            f"--net {text}: {attribute} is {with_article(type(found).__name__)}, not a function; "
            f"it may be {_FORMS}"
        )
    return Factory(text, found, notes)


def make_nets(factory: Factory, params: SolverParameters) -> tuple[Net, tuple[Net, ...]]:
    """The train net and the test nets that a solver's parameters ask for, ``random_seed`` first."""
    from solvergen.solver.training.seeding import seed_all

    seed_all(params.random_seed)
    train = factory.make("TRAIN", params=params, source=params.train_net_source, state=params.train_net_state)
    tests = tuple(
        factory.make("TEST", params=params, source=test.source, state=test.state)
        for test in params.test_net_sources
    )
    return train, tests


@contextlib.contextmanager
def blaming_the_net(text: str) -> Iterator[None]:
    """Errors of the user's code come out of the block as FactoryError, which says where; ours as they are."""
    try:
        yield
    except SolvergenError:
        raise
    except BaseException as error:
        if _is_the_nets(error) and not _is_asked_for(error):
            raise FactoryError(f"--net {text}: the net failed: {told(error)}") from error
        raise


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """What the user's code raises in the block comes out as FactoryError, after ``what``; ours as it is."""
    try:
        yield
    except SolvergenError:
        raise
    except BaseException as error:
        if _is_asked_for(error):
            raise
        raise FactoryError(f"{what}: {told(error)}") from error


def _is_asked_for(error: BaseException) -> bool:
    """Whether it was asked for from outside: Ctrl-C, or a signal, which our handlers turn into SystemExit."""
    if isinstance(error, SystemExit):
        return not is_foreign(traceback.extract_tb(error.__traceback__)[-1].filename)
    return isinstance(error, KeyboardInterrupt)


@contextlib.contextmanager
def _in_place(text: str, notes: list[str]) -> Iterator[None]:
    """The working folder, from which the paths of snapshots and logs count, stays what it was."""
    before = _working_folder()
    try:
        yield
    finally:
        after = _working_folder()
        if before is not None and after != before and os.path.isdir(before):
            os.chdir(before)
            notes.append(
                f"--net {text} changed the working folder to {after or 'one that is gone'}: it is {before} "
                "again, from which relative paths count"
            )


def _working_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def _is_the_nets(error: BaseException) -> bool:
    """Whether an error went through lines of the user's, or came out of the library that an adapter calls."""
    # Not the first two: the context manager's, and that of the block itself.
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)[2:]]
    if not files:
        return False
    if any(is_foreign(file) and not _is_library(file) for file in files):
        return True
    adapters = str(Path(__file__).parents[1] / "adapters")
    return _is_library(files[-1]) and any(file.startswith(adapters) for file in files)


def told(error: BaseException) -> str:
    """What an error of the user's code says, and where: the last line of theirs, else of a library."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SystemExit):
        text = f"it called sys.exit({'' if error.code is None else repr(error.code)})"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_foreign(frame.filename)]
    frames = [frame for frame in frames if not _is_library(frame.filename)] or frames
    return f"{text} ({frames[-1].filename}:{frames[-1].lineno})" if frames else text


def _is_library(filename: str) -> bool:
    paths = sysconfig.get_paths()
    return filename.startswith((paths["stdlib"], paths["purelib"], paths["platlib"]))


def is_foreign(filename: str) -> bool:
    """Whether a frame's file is neither ours nor Python's importing machinery."""
    own = str(Path(__file__).parents[1])
    return not filename.startswith((own, "<frozen"))


def _names(text: str, function: Callable[..., Any]) -> Mapping[str, str] | tuple[str, ...]:
    """Which of ``ARGUMENTS`` a function gets: by its parameters' names, else by their number."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a callable without a signature
        return ()
    named = {p.name: p.name for p in parameters if p.name in ARGUMENTS and p.kind is not p.POSITIONAL_ONLY}
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        named = {name: name for name in ARGUMENTS}
    needed = [
        p
        for p in parameters
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.name not in named
    ]
    if not needed:
        return named
    if not named and all(p.kind is not p.KEYWORD_ONLY for p in needed):
        if len(needed) == 1:
            return ("phase",)
        if len(needed) == len(ARGUMENTS):
            return ARGUMENTS
    unknown = ", ".join(p.name for p in needed)
    raise FactoryError(f"--net {text}: nothing is known to give its argument {unknown}; it may be {_FORMS}")


def _functions(module: Any) -> str:
    names = [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == getattr(module, "__name__", None)
    ]
    are = "functions are" if len(names) > 1 else "only function is"
    return f"; its {are} {listed(names)}" if names else ""
