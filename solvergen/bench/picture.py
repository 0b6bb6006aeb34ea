"""A chart of a benchmark: how many times its traffic limit each contender takes."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from solvergen.bench.result import LIMIT, Result
from solvergen.errors import BenchmarkError
from solvergen.files import write_atomically

FORMATS = ("png", "svg", "pdf")
_COLOURS = ("#1b6ca8", "#e07b39", "#7a5195", "#5c8a3a", "#b23a48", "#888888")


def check_drawing() -> None:
    """Raise BenchmarkError, which says what to install, if there is nothing to draw with."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as problem:
        raise BenchmarkError(
            f"drawing needs matplotlib ({problem}): pip install 'solvergen[examples]'"
        ) from problem


def draw(path: Path, results: Sequence[Result], about: Mapping[str, str]) -> None:
    """Write a bar chart, a panel for each size, as PNG, SVG or PDF by the path's ending.

    Raises BenchmarkError without matplotlib, for another ending, or without a limit to compare with.
    """
    kind = path.suffix[1:].lower()
    if kind not in FORMATS:
        raise BenchmarkError(f"{path}: a picture is a file that ends in .{', .'.join(FORMATS)}")
    shown = [result for result in results if result.of(LIMIT) is not None]
    if not shown:
        raise BenchmarkError("there is nothing to draw: no result has a traffic limit to compare with")
    check_drawing()
    from matplotlib.figure import Figure

    sizes = list(dict.fromkeys(result.size for result in shown))
    heights = [0.5 + 0.22 * sum(len(r.measured) for r in shown if r.size == size) for size in sizes]
    figure = Figure(figsize=(9, 1.2 + sum(heights)), layout="constrained")
    panels = figure.subplots(len(sizes), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, size in zip(panels, sizes, strict=True):
        names, values, colours = _bars([result for result in shown if result.size == size])
        places = range(len(names))
        axes.barh(places, values, color=colours)
        axes.set_yticks(places, names, fontsize=7)
        axes.invert_yaxis()
        axes.axvline(1.0, color="black", linewidth=0.8)
        if max(values) > 20:
            axes.set_xscale("log")
        for place, value in zip(places, values, strict=True):
            axes.annotate(f" {value:.2f}", (value, place), va="center", fontsize=7)
        axes.set_title(f"{size.tensors} x {size.elements:,} elements, {shown[0].dtype}", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.1)
    panels[-1].set_xlabel("times the traffic limit (median of rounds; less is faster)", fontsize=8)
    figure.suptitle("; ".join(f"{key} {value}" for key, value in about.items()), fontsize=6)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=150)
    write_atomically(path, buffer.getvalue())


def _bars(results: Sequence[Result]) -> tuple[list[str], list[float], list[str]]:
    names, values, colours = [], [], []
    kinds: dict[str, str] = {}
    for result in results:
        for each in result.measured:
            if each.name == LIMIT or each.to_limit is None:
                continue
            kind = each.name.split(" ")[0]
            kinds.setdefault(kind, _COLOURS[min(len(kinds), len(_COLOURS) - 1)])
            title = result.optimizer + (f":{result.settings}" if result.settings else "")
            names.append(f"{title}  {each.name}")
            values.append(each.to_limit)
            colours.append(kinds[kind])
    return names, values, colours
