"""Drawing a schedule, with matplotlib."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from solvergen.errors import SolvergenError
from solvergen.runtime.naming import listed, quoted
from solvergen.solver.pictures import as_label, write_figure
from solvergen.solver.policies.schedule import Schedule

KINDS = ("svg", "png", "pdf")


def draw_schedule(path: str | os.PathLike[str], drawn: Schedule, title: str) -> None:
    """Write the curve of rates to an .svg, .png or .pdf file, whole or not at all.

    Raises:
        SolvergenError: matplotlib isn't installed, or the file's name says no kind of picture.
        OSError: the file can't be written.
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise SolvergenError(f"{os.fspath(path)}: pictures are {listed(KINDS)}, not {quoted(kind)}")
    figure, axes = _figure()
    iterations, rates = zip(*drawn.points, strict=True)
    axes.plot(iterations, rates, drawstyle="steps-post" if drawn.constant else "default", linewidth=1.5)
    axes.set_xlabel("iteration")
    axes.set_ylabel("learning rate")
    axes.set_title(as_label(title), fontsize="medium", parse_math=False)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0, top=_top(rates))
    axes.grid(alpha=0.3)
    write_figure(path, figure, kind)


def _figure() -> tuple[Any, Any]:
    try:
        import matplotlib  # noqa: F401
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SolvergenError(
            f"a picture is drawn with matplotlib, which can't be used here ({error}): "
            'pip install "solvergen[solver]"'
        ) from None
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    return figure, figure.add_subplot()


def _top(rates: Sequence[float]) -> float | None:
    finite = [rate for rate in rates if rate - rate == 0]
    highest = max(finite, default=0.0)
    return highest * 1.05 if highest > 0 else None
