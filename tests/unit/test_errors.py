"""Errors go from one process to another whole, as pickle and multiprocessing hand them back."""

from __future__ import annotations

import copy
import importlib
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import solvergen
from solvergen import errors
from solvergen.errors import Location, SolvergenError
from solvergen.solver.parameters.error import SolverParametersError, UnknownParameter, UnreadableParameters
from solvergen.solver.parameters.findings import Finding

PLACE = Location("s.yaml", 3, 1, 5)
FINDING = Finding(message="wrong", field="base_lr", hint="mend it", location=PLACE, source="base_lr: x")
EXAMPLES: dict[type[SolvergenError], SolvergenError] = {
    type(error): error
    for error in (
        errors.SpecError((errors.Diagnostic("SG001", "wrong", PLACE, hint="mend it"),)),
        errors.MissingLibrary("install it", name="h5py", path="here"),
        errors.OutputError("in the way", paths=("a", "b")),
        errors.KernelBuildError("failed", log="log", source="1 text"),
        errors.NativeBuildError("failed", log="log", command="cc", kept="folder"),
        errors.PtxError("unreadable", line=3, text=" mov"),
        errors.KernelFault("stray", kernel="k", line=3, block=1, thread=2, buffer="w"),
        errors.SnapshotMismatch("differs", ("a", "b")),
        errors.AgreementError("differs", {"w": 1}),
        errors.StaticError("spills", ["k"]),
        errors.NonfiniteGradient("not finite", ("w",)),
        SolverParametersError([FINDING, Finding(message="more")]),
        UnknownParameter([FINDING]),
        UnreadableParameters(2, "No such file or directory", "s.yaml"),
    )
}
"""One of each class that takes more than a text."""


def classes() -> Iterator[type[SolvergenError]]:
    """SolvergenError and all below it, wherever they are defined."""
    root = Path(solvergen.__file__).parent
    names, modules = {"SolvergenError"}, {"solvergen.errors"}
    texts = {path: path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
    more = True
    while more:
        more = False
        for path, text in texts.items():
            for name, bases in re.findall(r"^class (\w+)\(([^)]*)\):", text, re.MULTILINE):
                if name not in names and names & set(re.findall(r"\w+", bases)):
                    names.add(name)
                    modules.add(".".join(("solvergen", *path.relative_to(root).with_suffix("").parts)))
                    more = True
    for module in sorted(modules):
        for value in vars(importlib.import_module(module)).values():
            if isinstance(value, type) and issubclass(value, SolvergenError) and value.__module__ == module:
                yield value


CLASSES = tuple(classes())


def pickled(error: SolvergenError) -> Any:
    """What comes back of the error from a file or another process."""
    return pickle.loads(pickle.dumps(error))  # noqa: S301


def test_all_are_found() -> None:
    assert {SolvergenError, errors.UnknownArgument, *EXAMPLES} <= set(CLASSES)
    assert len(CLASSES) == len(set(CLASSES))


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("copied", [pickled, copy.copy, copy.deepcopy])
def test_a_copy_says_and_holds_the_same(cls: type[SolvergenError], copied: Any) -> None:
    error = EXAMPLES.get(cls) or cls("what went wrong")
    same = copied(error)
    assert type(same) is cls
    assert same.args == error.args
    assert str(same) == str(error)
    assert vars(same) == vars(error)
    for name in ("errno", "strerror", "filename", "msg", "name", "path"):  # those that Python keeps elsewhere
        assert getattr(same, name, None) == getattr(error, name, None)
