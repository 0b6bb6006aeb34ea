"""Every error that solvergen raises on purpose, in one tree.

``SolvergenError`` is the root. Below it, mistakes of the user's (a spec, an argument, a file) are
kept apart from ``CompilerBug``, which says that solvergen itself is wrong. This module imports
nothing but the standard library, since both halves of the package use it.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Location(NamedTuple):
    """A stretch of one line of a file. Lines and columns count from 1, ``end_column`` is exclusive."""

    file: str
    line: int
    column: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class SolvergenError(Exception):
    """Root of all errors that solvergen raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Python would call the class with ``args``, and classes here make those from other arguments.
        reduced: Any = super().__reduce__()
        cls, arguments, *attributes = reduced
        return _rebuilt, (cls, arguments), *attributes


def _rebuilt(cls: type[SolvergenError], arguments: tuple[Any, ...]) -> SolvergenError:
    """The error with these ``args``, without its own ``__init__``; attributes are set after."""
    error = cls.__new__(cls, *arguments)
    super(SolvergenError, error).__init__(*arguments)
    return error


class CompilerBug(SolvergenError):
    """An invariant of the compiler was broken: never the user's fault."""


class Diagnostic(NamedTuple):
    """One finding about a spec.

    ``code`` is stable (``SG012``); ``hint`` says what to do; ``source`` is the line of the file
    that ``location`` points into, kept so that a report can show it with a caret.
    """

    code: str
    message: str
    location: Location
    hint: str | None = None
    source: str | None = None
    severity: str = "error"  # or "warning"


class SpecError(SolvergenError):
    """A spec is wrong. ``diagnostics`` holds every finding, in the order of the file."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        self.diagnostics = diagnostics
        super().__init__("\n".join(map(_told, diagnostics)))


def _told(found: Diagnostic) -> str:
    hint = "" if found.hint is None else f" ({found.hint})"
    return f"{found.location}: {found.code}: {found.message}{hint}"


class SpecWarning(UserWarning):
    """A spec that was derived while a program runs is right, but probably not what was meant."""


class NotExpressible(SolvergenError):
    """SymPy came to something that the language of equations has no words for."""


class MissingLibrary(SolvergenError, ImportError):
    """A library that solvergen doesn't bring isn't installed; the text says which, and what to do."""


class OutputError(SolvergenError):
    """Generated files can't be written where they were asked for. ``paths`` names the files in the way."""

    def __init__(self, message: str, *, paths: tuple[str, ...] = ()) -> None:
        self.paths = paths
        super().__init__(message)


class BackendUnavailable(SolvergenError):
    """A backend was asked for that can't work here; the text says what to install."""


class KernelBuildError(SolvergenError):
    """A kernel did not compile or load. ``log`` is the compiler's output, ``source`` its numbered text."""

    def __init__(self, message: str, *, log: str = "", source: str = "") -> None:
        self.log = log
        self.source = source
        super().__init__("\n".join(part for part in (message, log.strip(), source) if part))


class NativeBuildError(KernelBuildError):
    """The C compiler refused a kernel. ``command`` is what was run, ``kept`` the folder with the source."""

    def __init__(self, message: str, *, log: str, command: str, kept: str) -> None:
        self.command = command
        self.kept = kept
        super().__init__(f"{message}\n  command: {command}\n  source kept in: {kept}", log=log)


class PtxError(SolvergenError):
    """PTX that the interpreter can't run: text that it can't read, or an instruction that it doesn't know.

    ``line`` counts the text's lines from 1 (0: not one line's fault), ``text`` is the line.
    """

    def __init__(self, message: str, *, line: int = 0, text: str = "") -> None:
        self.line = line
        self.text = text
        where = f"PTX line {line}: " if line else ""
        super().__init__(f"{where}{message}" + (f"\n  {text.strip()}" if text else ""))


class KernelFault(SolvergenError):
    """A kernel did what it must not: a stray, misaligned, uninitialised or racing access, a barrier that not
    all threads reach, a shuffle with absent lanes, results that depend on the order of threads.

    The text names kernel, instruction, source line, thread and buffer; the attributes hold what is known.
    """

    def __init__(
        self,
        message: str,
        *,
        kernel: str,
        instruction: str = "",
        line: int = 0,
        source_line: int = 0,
        block: int | None = None,
        thread: int | None = None,
        buffer: str = "",
    ) -> None:
        self.kernel = kernel
        self.instruction = instruction
        self.line = line
        self.source_line = source_line
        self.block = block
        self.thread = thread
        self.buffer = buffer
        super().__init__(message)


class CacheWarning(UserWarning):
    """Compiled kernels can't be kept from one process to the next."""


class SnapshotError(SolvergenError):
    """A snapshot can't be written or read; the text names the file and says what to do."""


class SnapshotMismatch(SnapshotError):
    """A sound snapshot doesn't fit the optimizer. ``differences`` holds everything that differs."""

    def __init__(self, message: str, differences: tuple[str, ...]) -> None:
        self.differences = differences
        super().__init__("\n".join([message, *(f"  - {difference}" for difference in differences)]))


class SnapshotWarning(UserWarning):
    """A snapshot was loaded or written, but something about it isn't as it looks; the text says what.

    For example it was written under another version of the spec.
    """


class SolverFileError(SnapshotError):
    """A file of the Solver's (a model or a solver's state) can't be read, written or used."""


class VerificationError(SolvergenError):
    """verify can't do what it was asked for: no such optimizer or backend, or no choice that is valid."""


class ReplayError(VerificationError):
    """A run can't be written to a file, or what a file holds can't be run again; the text says why."""


class BenchmarkError(SolvergenError):
    """A benchmark can't be run as it was asked for, or one of its contenders can't; the text says why."""


class StrayWrite(SolvergenError):
    """A step wrote into a gradient, or into memory around its arrays."""


class AgreementError(SolvergenError, AssertionError):
    """A backend computes other bits than the reference. ``disagreement`` is the finding as data."""

    def __init__(self, message: str, disagreement: object) -> None:
        self.disagreement = disagreement
        super().__init__(message)


class StaticError(SolvergenError, AssertionError):
    """A compiled kernel isn't as it must be. ``report`` holds every kernel that was looked at."""

    def __init__(self, message: str, report: object) -> None:
        self.report = report
        super().__init__(message)


class OptimizerError(SolvergenError):
    """An optimizer is used in a way that can't work; the text says what to do instead."""


class HyperparameterError(OptimizerError, ValueError):
    """A hyperparameter, multiplier or option has a value that isn't allowed."""


class ArrayError(OptimizerError, ValueError):
    """A parameter or gradient can't be used as it is, or gradients aren't laid out as the parameters."""


class NonfiniteGradient(OptimizerError, ArithmeticError):
    """A gradient isn't finite and the policy is ``"raise"``. ``names`` are the tensors concerned."""

    def __init__(self, message: str, names: tuple[str, ...]) -> None:
        self.names = names
        super().__init__(message)


class UnknownAttribute(OptimizerError, AttributeError):
    """An optimizer or a group has no attribute of this name, or it can't be assigned."""


class UnknownArgument(OptimizerError, TypeError):
    """A call was given a keyword that its function or class doesn't take."""


class UnknownName(OptimizerError, KeyError):
    """No tensor, state or option of this name."""

    def __str__(self) -> str:
        return str(self.args[0])


class BackendWarning(UserWarning):
    """``backend="auto"`` uses a slower backend than it would if something were installed."""
