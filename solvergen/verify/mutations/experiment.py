"""Runs mutants: each on the examples that verify draws, until one shows that something is wrong."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from solvergen.errors import KernelBuildError, VerificationError
from solvergen.files import write_atomically
from solvergen.runtime.cache_folder import CACHE_VARIABLE
from solvergen.runtime.definition import Definition
from solvergen.runtime.optimizer import Optimizer
from solvergen.verify.mutations.c_faults import faults_in_kernel
from solvergen.verify.mutations.conditions import active_lines, is_condition
from solvergen.verify.mutations.host_faults import FILE as HOST
from solvergen.verify.mutations.host_faults import faults_in_scalars
from solvergen.verify.mutations.isolation import Beat, each_isolated
from solvergen.verify.mutations.mutant import Mutant
from solvergen.verify.mutations.outcome import Outcome
from solvergen.verify.mutations.subject import Run, Subject, Variant
from solvergen.verify.mutations.tables import TableFault
from solvergen.verify.mutations.targets import Target
from solvergen.verify.running import run
from solvergen.verify.trace import first_difference

_RIGHT = "right"

PATIENCE = 120.0
"""Seconds without a compiled kernel or a finished example after which a mutant is held to never end."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """A subject on a target."""

    subject: Subject
    target: Target

    @cached_property
    def mutants(self) -> tuple[Mutant, ...]:
        """All of them: of the kernel, of the host program, of flags and of tables."""
        flags = [
            Mutant("flags", "flags", i, fault.before, " ".join(fault.after), 0, fault.before, 0)
            for i, fault in enumerate(self.target.flags)
        ]
        tables = [
            Mutant(
                "tables",
                "order" if fault.table == "order" else "tables",
                i,
                fault.table,
                fault.what,
                0,
                fault.table,
                0,
            )
            for i, fault in enumerate(self.tables)
        ]
        kernel = faults_in_kernel(self._kernel, self.target.file)
        return (*kernel, *faults_in_scalars(self.subject.text(HOST)), *flags, *tables)

    @cached_property
    def tables(self) -> tuple[TableFault, ...]:
        """The faults of what the runtime hands over."""
        return self.target.tables_of(self.subject.optimizer.definition)

    @cached_property
    def _kernel(self) -> str:
        return self.subject.text(self.target.file)

    @cached_property
    def _lines(self) -> dict[Variant, frozenset[int]]:
        """The lines of the kernel that take part, by variant."""
        return {v: active_lines(self._kernel, dict(v)) for v in self.subject.variants}

    @cached_property
    def _like(self) -> dict[Variant, Variant]:
        """For each variant the first one whose text is the same to the compiler, by lines and macros."""
        lines = self._kernel.splitlines()
        first: dict[Any, Variant] = {}
        found = {}
        for variant, active in self._lines.items():
            there = (line for number, line in enumerate(lines, start=1) if number in active)
            code = "\n".join(line for line in there if not is_condition(line))
            used = tuple((macro, value) for macro, value in variant if re.search(rf"\b{macro}\b", code))
            storage = tuple(entry for entry in variant if entry[0] in ("SG_PARAM", "SG_GRAD"))
            found[variant] = first.setdefault((active, used, storage), variant)
        return found

    def run(
        self, mutants: Sequence[Mutant], *, jobs: int = 1, patience: float = PATIENCE
    ) -> Iterator[Outcome]:
        """Try each of ``mutants`` in a process of its own; outcomes come as they are ready.

        Must be called by a process with one thread, which it forks. Compiled kernels are kept in a temporary
        folder. At the end the text as it is runs the examples that showed a fault; raises VerificationError
        if it isn't its rule there.
        """
        with tempfile.TemporaryDirectory(prefix="solvergen-mutations-") as folder:
            Path(folder, _RIGHT).mkdir()
            before = os.environ.get(CACHE_VARIABLE)
            os.environ[CACHE_VARIABLE] = folder
            try:
                yield from self._run(mutants, jobs, patience)
            finally:
                del os.environ[CACHE_VARIABLE]
                if before is not None:
                    os.environ[CACHE_VARIABLE] = before

    def _run(self, mutants: Sequence[Mutant], jobs: int, patience: float) -> Iterator[Outcome]:
        self._like  # noqa: B018 (once, and not in every process)

        def work(mutant: Mutant, beat: Beat) -> Any:
            started = time.perf_counter()
            outcome = _Trial(self, mutant, self.subject.runs, beat).outcome()
            return [*outcome, time.perf_counter() - started]

        showed: set[int] = set()
        for mutant, result, reason in each_isolated(work, mutants, jobs=jobs, patience=patience):
            outcome = Outcome(mutant, "noticed", reason) if reason else Outcome(mutant, *result)
            number = re.match(r"example (\d+)", outcome.how)
            showed |= {int(number.group(1))} if number is not None else set()
            yield outcome
        self._check([run for run in self.subject.runs if run.number in showed], patience)

    def _check(self, runs: Sequence[Run], patience: float) -> None:
        """Raise VerificationError unless the text as it is agrees on ``runs``: else no fault shows there."""

        def work(_: None, beat: Beat) -> Any:
            return _Trial(self, None, runs, beat).outcome()

        for _, result, reason in each_isolated(work, [None], jobs=1, patience=patience):
            if reason or result[0] != "survived":
                raise VerificationError(
                    f"{self.subject.name} on {self.target.name} is not its rule without any mutation: "
                    f"{reason or result[1]}"
                )


class _Trial:
    """One mutant (None: the text as it is), in a process of its own."""

    def __init__(
        self, experiment: Experiment, mutant: Mutant | None, runs: Sequence[Run], beat: Beat
    ) -> None:
        self._experiment = experiment
        self._mutant = mutant
        self._runs = runs
        self._beat = beat
        self._subject, self._target = experiment.subject, experiment.target
        self._known: dict[Variant, bool] = {}
        self._refused: set[Variant] = set()
        self._changed = mutant is None or mutant.file != "tables"
        warnings.simplefilter("ignore")

    def outcome(self) -> tuple[str, str, int]:
        """Verdict, reason, and how many examples were run."""
        mutant = self._mutant
        optimizer: type[Optimizer] = self._subject.optimizer
        with tempfile.TemporaryDirectory(prefix="solvergen-mutant-") as folder:
            if mutant is None:
                pass
            elif mutant.file == HOST:
                scalars = self._mutated_scalars(Path(folder))
                optimizer = _with(optimizer, scalars=scalars)
            elif mutant.file == "flags":
                # By the right flags, before they are wrong.
                for variant in set(self._experiment._like.values()):
                    self._right(variant)
                fault = self._target.flags[mutant.start]
                fault.apply(fault.before, fault.after)
            elif mutant.file == "tables":
                self._experiment.tables[mutant.start].apply(self._table_changed)
            else:
                Path(folder, self._target.file).write_text(self._text, encoding="utf-8")
                optimizer = _with(optimizer, folder=folder)
            return self._examined(optimizer)

    @cached_property
    def _text(self) -> str:
        """The kernel's text with the fault, if it is there."""
        right = self._experiment._kernel
        in_kernel = self._mutant is not None and self._mutant.file == self._target.file
        return self._mutant.applied(right) if self._mutant is not None and in_kernel else right

    def _examined(self, optimizer: type[Optimizer]) -> tuple[str, str, int]:
        backend = self._target.backend()
        left = list(self._runs)
        count = 0
        while left:
            # First what needs no kernel that isn't compiled yet, then what needs few.
            left.sort(key=lambda run: (len(self._alike(run) - self._known.keys()), run.elements))
            now = left.pop(0)
            if not self._differs(now):
                continue
            if self._alike(now) & self._refused:
                continue
            count += 1
            self._beat(f"example {now.number}")
            noticed = self._noticed(optimizer, backend, now)
            if noticed is not None:
                return "noticed", f"example {now.number}: {noticed}", count
        if self._refused:
            return "refused", "doesn't compile", count
        if self._in_kernel and not self._reaches(self._subject.variants):
            return "same code", "", count
        if not self._changed:
            return "same code", "changes no table", count
        drawn = frozenset().union(*(run.variants for run in self._subject.runs))
        reached = not self._in_kernel or self._reaches(drawn)
        return "survived", "" if reached else "no example reaches it", count

    @property
    def _in_kernel(self) -> bool:
        return self._mutant is not None and self._mutant.file in (self._target.file, "flags")

    def _alike(self, run: Run) -> frozenset[Variant]:
        """The kernels of a run, one for all that are the same to the compiler."""
        return frozenset(self._experiment._like[variant] for variant in run.variants)

    def _differs(self, run: Run) -> bool:
        """Whether any kernel of this run is another than it should be."""
        return not self._in_kernel or self._reaches(run.variants)

    def _reaches(self, variants: frozenset[Variant]) -> bool:
        """Whether any of these kernels is another. Looks at all, so that all that are refused are known."""
        others = [self._another(variant) for variant in variants]
        return any(others)

    def _another(self, variant: Variant) -> bool:
        """Whether this kernel is compiled to other code than without the fault."""
        variant = self._experiment._like[variant]
        if variant not in self._known:
            self._beat("compiling")
            self._known[variant] = self._is_another(variant)
        return self._known[variant]

    def _is_another(self, variant: Variant) -> bool:
        assert self._mutant is not None
        in_text = self._mutant.file == self._target.file
        if in_text and self._mutant.line not in self._experiment._lines[variant]:
            return False
        try:
            image = self._target.image(self._text, dict(variant))
        except KernelBuildError:
            self._refused.add(variant)
            return True
        return _digest(image) != self._right(variant)

    def _right(self, variant: Variant) -> str:
        """A digest of what the right text is compiled to by the right flags; trials share it."""
        path = Path(os.environ[CACHE_VARIABLE], _RIGHT, _digest(repr(variant).encode()))
        if not path.exists():
            self._beat("compiling the right text")
            digest = _digest(self._target.image(self._experiment._kernel, dict(variant)))
            write_atomically(path, digest.encode())
        return path.read_text(encoding="utf-8")

    def _table_changed(self) -> None:
        self._changed = True

    def _noticed(self, optimizer: type[Optimizer], backend: Any, now: Run) -> str | None:
        """What is wrong with a run; None if nothing is."""
        try:
            found = run(optimizer, backend, now.example)
        except Exception as error:
            return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        difference = first_difference(now.expected, found)
        if difference is None:
            return None
        return f"step {difference.step}, {difference.buffer} of {difference.tensor or 'all'}"

    def _mutated_scalars(self, folder: Path) -> Callable[..., Any]:
        """The function ``scalars`` of the mutated host program, imported as part of its package."""
        assert self._mutant is not None
        path = folder / HOST
        path.write_text(self._mutant.applied(self._subject.text(HOST)), encoding="utf-8")
        package = self._subject.optimizer.__module__
        function: Callable[..., Any] = _imported(f"{package}.mutated", path).scalars
        return function


def _with(optimizer: type[Optimizer], **changes: Any) -> type[Optimizer]:
    """``optimizer`` with another definition."""
    definition: Definition = replace(optimizer.definition, **changes)
    return type(optimizer.__name__, (optimizer,), {"definition": definition})


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _imported(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
