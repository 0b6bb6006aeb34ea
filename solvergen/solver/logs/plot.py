"""Drawing a log's curves: losses, other outputs, the learning rate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solvergen.errors import SolvergenError
from solvergen.solver.logs.reading import LogError
from solvergen.solver.pictures import as_label, write_figure

if TYPE_CHECKING:
    from solvergen.solver.logs.curves import Curve, NetCurves, TrainingLog

FORMATS = ("png", "svg", "pdf")

_LARGEST = 1e100
"""What is beyond isn't drawn: axes that reach there can't be divided."""
_MOST_NAMED = 20
"""How many curves of a panel have their names in it."""


def check_drawing(path: Path) -> None:
    """Raise LogError if a picture at ``path`` can't be drawn: another ending, or matplotlib is missing."""
    if path.suffix[1:].lower() not in FORMATS:
        raise LogError(f"{path}: a picture is a file that ends in .{', .'.join(FORMATS)}")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as problem:
        raise LogError(f"drawing needs matplotlib ({problem}): pip install 'solvergen[solver]'") from problem


def draw(path: Path, log: TrainingLog) -> None:
    """Write the curves as PNG, SVG or PDF by the path's ending; a panel each for losses, other outputs, lr.

    The train net's single outputs that have a loss weight are left out: their sum, smoothed, is drawn.

    Raises:
        LogError: another ending, no matplotlib, or a file that can't be written.
    """
    check_drawing(path)
    from matplotlib.figure import Figure

    losses = [("train", log.loss), *_test_outputs(log, losses=True)]
    others = [*_named("train", log.train, losses=False), *_test_outputs(log, losses=False)]
    panels = {"loss": losses, "output": others, "learning rate": [("lr", log.rate)]}
    shown = {
        title: kept for title, curves in panels.items() if (kept := [(n, c) for n, c in curves if len(c)])
    }
    figure = Figure(figsize=(8, 1 + 2.4 * len(shown)), layout="constrained")
    all_axes = figure.subplots(len(shown), 1, squeeze=False, sharex=True)[:, 0]
    for axes, (title, curves) in zip(all_axes, shown.items(), strict=True):
        for name, curve in curves:
            _draw_curve(axes, name, curve)
        axes.set_ylabel(title)
        if title != "learning rate":
            _name_curves(axes)
        axes.spines[["top", "right"]].set_visible(False)
        _choose_scale(axes, [value for _, curve in curves for value in curve.values])
    all_axes[-1].set_xlabel("iteration")
    figure.suptitle(as_label(log.path.name), fontsize=9, parse_math=False)
    try:
        write_figure(path, figure, path.suffix[1:].lower(), dpi=120)
    except OSError as error:
        raise LogError(f"{path}: {error.strerror or error}") from error
    except SolvergenError as error:
        raise LogError(str(error)) from error


def _named(prefix: str, net: NetCurves, *, losses: bool) -> Iterator[tuple[str, Curve]]:
    for name, curve in net.outputs.items():
        if (name in net.losses) is losses:
            yield f"{prefix}: {name}", curve


def _test_outputs(log: TrainingLog, *, losses: bool) -> Iterator[tuple[str, Curve]]:
    for number, net in log.tests.items():
        prefix = "test" if len(log.tests) == 1 else f"test #{number}"
        yield from _named(prefix, net, losses=losses)


def _draw_curve(axes: Any, name: str, curve: Curve) -> None:
    marker = "o" if len(curve) <= 30 else None
    shown = [value if abs(value) < _LARGEST else math.nan for value in curve.values]
    axes.plot(curve.iterations, shown, label=as_label(name), linewidth=1.2, marker=marker, markersize=3)


def _name_curves(axes: Any) -> None:
    """A legend; of many curves it has the first."""
    handles, labels = axes.get_legend_handles_labels()
    more = len(labels) - _MOST_NAMED
    legend = axes.legend(
        handles[:_MOST_NAMED],
        labels[:_MOST_NAMED],
        fontsize=8,
        title=f"and {more} more" if more > 0 else None,
        title_fontsize=8,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def _choose_scale(axes: Any, values: list[float]) -> None:
    """Logarithmic where the values span more than a linear axis shows."""
    finite = [value for value in values if 0 < value < float("inf")]
    if len(finite) == len(values) and max(finite) > 50 * min(finite):
        axes.set_yscale("log")
