"""Several optimizers under all of their options, for several types and capabilities, into one report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from solvergen.errors import BackendUnavailable, KernelBuildError, StaticError, VerificationError
from solvergen.runtime.cuda import nvrtc
from solvergen.runtime.definition import Definition
from solvergen.runtime.optimizer import Optimizer
from solvergen.verify.arguments import checked_dtypes, checked_optimizer, checked_optimizers
from solvergen.verify.collect import Optimizers
from solvergen.verify.dtypes import PAIRS
from solvergen.verify.settings import space_of
from solvergen.verify.static.capabilities import Capability, capability
from solvergen.verify.static.cpu import NativeMeasured, examine_native, why_not
from solvergen.verify.static.cuda import Measured, examine
from solvergen.verify.static.findings import Finding
from solvergen.verify.static.report import StaticReport, StaticRow

TARGETS = (75, 80, 90, 100, 120)
"""The compute capabilities that are looked at unless told otherwise: one of each generation since Turing."""

PARTS = ("cuda", "cpu")


@dataclass(frozen=True)
class _Job:
    """What is compiled at once: a row, or one for each kernel of a staged rule."""

    name: str
    definition: Definition
    options: Mapping[str, bool]
    param: str
    grad: str
    on: Capability | None  # None: the CPU


def settings_of(definition: Definition) -> tuple[dict[str, bool], ...]:
    """Every setting of the options that the constraints allow, derived ones decided."""
    space = space_of(definition)
    found: list[dict[str, bool]] = []
    for setting, hyperparameters in space.bases:
        options = space.resolved(setting, hyperparameters)
        if options not in found:
            found.append(options)
    return tuple(found)


def static_report(
    optimizers: Optimizers | Iterable[type[Optimizer]],
    *,
    capabilities: Sequence[int] = TARGETS,
    dtypes: Sequence[tuple[str, str]] = PAIRS,
    parts: Sequence[str] = PARTS,
    bandwidth: float | None = None,
    compiler: nvrtc.Nvrtc | None = None,
    progress: Callable[[str, int, int], None] = lambda name, done, total: None,
) -> StaticReport:
    """Look at the kernels of optimizers without running them.

    Args:
        optimizers: classes by name (``shipped``, ``optimizers_in``, ``built_from``), or by themselves.
        capabilities: compute capabilities, 90 for 9.0.
        dtypes: pairs of the parameter's and the gradient's storage type.
        parts: ``cuda``, ``cpu`` or both.
        bandwidth: of memory in GB/s, for times; otherwise that of a card of each capability.
        compiler: for CUDA; otherwise the one that the runtime would use.
        progress: is told what is done, how many are, and of how many.

    Returns:
        A row a kernel. What can't be looked at here, for want of a compiler, is in ``not_run``.

    Raises:
        VerificationError: there is no such part, pair of types or capability; something is no optimizer.
    """
    optimizers = checked_optimizers("static_report", optimizers)
    parts, dtypes = _checked_parts(parts), checked_dtypes(dtypes)
    if not isinstance(capabilities, Iterable):
        raise VerificationError(f"capabilities are numbers, as [90] for 9.0, not {capabilities!r:.60}")
    capabilities = tuple(capabilities)
    if "cuda" in parts and not capabilities:
        raise VerificationError("capabilities names none, so no kernel of cuda would be looked at")
    targets = [capability(number) for number in dict.fromkeys(capabilities)]
    not_run: dict[str, str] = {}
    if "cuda" in parts:
        try:
            compiler = compiler or nvrtc.load()
        except BackendUnavailable as reason:
            not_run["cuda"] = str(reason)
        else:
            _check_known(compiler, targets)
    if "cpu" in parts and (why := why_not()):
        not_run["cpu"] = why
    runnable = [part for part in parts if part not in not_run]
    jobs = list(_jobs(optimizers, targets, dtypes, runnable))
    rows: list[StaticRow] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        waiting: list[Future[tuple[StaticRow, ...]]] = [
            pool.submit(_rows, job, compiler, bandwidth) for job in jobs
        ]
        try:
            for done, (job, future) in enumerate(zip(jobs, waiting, strict=True)):
                progress(job.name, done, len(jobs))
                rows += future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return StaticReport(tuple(rows), not_run)


def check_static(
    optimizer: type[Optimizer],
    *,
    capabilities: Sequence[int] = TARGETS,
    dtypes: Sequence[tuple[str, str]] = PAIRS,
    parts: Sequence[str] = PARTS,
    compiler: nvrtc.Nvrtc | None = None,
) -> StaticReport:
    """For tests: look at an optimizer's kernels without running them. Arguments as ``static_report``'s.

    Raises:
        StaticError: a kernel isn't as it must be (an ``AssertionError``, too), with every finding.
        VerificationError: something can't be looked at here.
    """
    name = checked_optimizer("check_static", optimizer).definition.name
    report = static_report(
        {name: optimizer}, capabilities=capabilities, dtypes=dtypes, parts=parts, compiler=compiler
    )
    for part, reason in report.not_run.items():
        raise VerificationError(f"the static checks of {part} can't be done here: {reason}")
    if not report.ok:
        text = "\n\n".join(f"{row}\n{finding}" for row in report.failures for finding in row.findings)
        raise StaticError(text, report)
    return report


def _checked_parts(parts: object) -> tuple[str, ...]:
    if isinstance(parts, str) or not isinstance(parts, Iterable):
        raise VerificationError(f"parts are a sequence of {' and '.join(PARTS)}, not {parts!r:.60}")
    asked = tuple(parts)
    if not asked:
        raise VerificationError("parts names none, so nothing would be looked at")
    for part in asked:
        if part not in PARTS:
            raise VerificationError(f"there are static checks of {' and '.join(PARTS)}, not of {part!r:.60}")
    return asked


def _check_known(compiler: nvrtc.Nvrtc, targets: Sequence[Capability]) -> None:
    for on in targets:
        if on.number not in compiler.capabilities:
            known = ", ".join(map(str, compiler.capabilities))
            raise VerificationError(f"{compiler} doesn't compile for {on}; it knows {known}")


def _jobs(
    optimizers: Optimizers,
    targets: Sequence[Capability],
    dtypes: Sequence[tuple[str, str]],
    parts: Sequence[str],
) -> Iterator[_Job]:
    for name, optimizer in optimizers.items():
        definition = optimizer.definition
        for options in settings_of(definition):
            for param, grad in dtypes:
                places: list[Capability | None] = [*targets] if "cuda" in parts else []
                for on in [*places, *([None] if "cpu" in parts else [])]:
                    yield _Job(name, definition, options, param, grad, on)


def _rows(job: _Job, compiler: nvrtc.Nvrtc | None, bandwidth: float | None) -> tuple[StaticRow, ...]:
    measured: tuple[Measured | NativeMeasured | None, ...] = (None,)
    problems: tuple[Finding, ...] = ()
    try:
        if job.on is None:
            measured = (examine_native(job.definition, job.options, job.param, job.grad),)
        else:
            assert compiler is not None
            measured = examine(compiler, job.definition, job.options, job.param, job.grad, job.on)
    except KernelBuildError as problem:
        problems = (Finding("compilation", str(problem)),)
    speed, card = 0.0, ""
    if job.on is not None:
        speed = job.on.card.bandwidth if bandwidth is None else bandwidth
        card = job.on.card.name if bandwidth is None else ""
    target = "cpu" if job.on is None else str(job.on)
    return tuple(
        StaticRow(
            job.name,
            job.options,
            job.param,
            job.grad,
            target,
            one,
            problems if one is None else one.findings,
            speed,
            card,
        )
        for one in measured
    )
