"""``solvergen bench``: how fast is each rule, beside what memory allows and beside other libraries?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from solvergen.cli import signals, specs
from solvergen.cli.console import print_json, print_table, progress
from solvergen.cli.optimizers import optimizers, selected
from solvergen.errors import BenchmarkError

if TYPE_CHECKING:
    from solvergen.bench import Entry, Progress, Result
    from solvergen.runtime.definition import Definition
    from solvergen.verify.collect import Optimizers

HEADS = ("optimizer", "size", "contender", "median ms", "fastest ms", "x limit", "x ours")
NUMBERS = HEADS[3:]


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAMES",
            help="Optimizers to time, settings after a colon: adam adam:amsgrad=true,eps=1e-6. Default: all",
            show_default=False,
        ),
    ] = None,
    folder: specs.Folder = None,
    sizes: Annotated[
        str, typer.Option("--sizes", metavar="LIST", help="[TENSORSx]ELEMENTS; k is 1,024 and M 1,048,576.")
    ] = "50x320k,300x3333",
    peers: Annotated[
        str,
        typer.Option(
            "--peers", metavar="LIST", help="Other libraries to compare with, if installed, or none."
        ),
    ] = "torch,optax",
    backends: Annotated[
        str, typer.Option("--backends", metavar="LIST", help="Our backends: cpu, numpy.")
    ] = "cpu",
    dtype: Annotated[
        str, typer.Option("--dtype", metavar="DTYPE", help="float32, float64, bfloat16 or float16.")
    ] = "float32",
    rounds: Annotated[
        float,
        typer.Option(
            "--rounds", metavar="FACTOR", min=0.01, max=1000, help="Multiplies the number of rounds."
        ),
    ] = 1.0,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE", help="Also draw a chart: .png, .svg or .pdf."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print conditions and results as JSON.")] = False,
) -> None:
    """Time optimizers as a user calls them: opt.step(gradients) with new arrays each step.

    Each is timed in turns with its traffic limit (the same bytes moved, no arithmetic) and with its
    counterparts in other libraries. Only ratios within a run mean anything.
    """
    from solvergen.bench import benchmark, conditions, parse_sizes
    from solvergen.runtime.dtypes import STORAGE_TYPES

    if dtype not in STORAGE_TYPES:
        raise specs.unknown("dtype", dtype, tuple(STORAGE_TYPES), hint="'--dtype'")
    _check_picture(picture)
    results: list[Result] = []
    try:
        asked = parse_sizes(sizes)
        with optimizers(folder) as found, progress("timing") as bar, signals.held() as stop_if_asked:
            chosen = _chosen(found, names or [], specs.folder_or_shipped(folder))

            def tell(at: Progress) -> None:
                stop_if_asked()
                bar(
                    f"{at.optimizer} {at.size.text}",
                    (at.position - 1) * at.total + at.done,
                    at.runs * at.total,
                )

            results.extend(
                benchmark(
                    chosen,
                    asked,
                    backends=_list(backends),
                    peers=[] if peers.strip() == "none" else _list(peers),
                    dtype=dtype,
                    factor=rounds,
                    progress=tell,
                )
            )
    except BenchmarkError as wrong:
        raise typer.BadParameter(str(wrong)) from None
    about = conditions()
    if as_json:
        print_json({"conditions": about, "results": [result.as_json() for result in results]})
    else:
        _print(results, about)
    if picture is not None:  # last: what was measured is not lost with a picture that can't be drawn
        from solvergen.bench.picture import draw

        draw(picture, results, about)


def _check_picture(picture: Path | None) -> None:
    """Before minutes are spent on figures that can't be drawn."""
    from solvergen.bench.picture import FORMATS, check_drawing

    if picture is None:
        return
    check_drawing()
    if picture.suffix[1:].lower() not in FORMATS:
        raise typer.BadParameter(
            f"a picture is a file that ends in .{', .'.join(FORMATS)}", param_hint="'--picture'"
        )
    if picture is not None and not picture.absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {str(picture.parent)!r}", param_hint="'--picture'")


def _list(text: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _chosen(found: Optimizers, names: Sequence[str], folder: Path) -> list[Entry]:
    """What is meant by ``names``: optimizers with settings, and what their specs say of counterparts."""
    from solvergen.bench import Entry
    from solvergen.spec.reader import read_specs

    counterparts = {spec.name: spec.counterparts for spec in read_specs(folder)}
    entries = []
    for text in names or list(found):
        name, _, settings = text.partition(":")
        for key, optimizer in selected(found, [name], folder).items():
            values = _settings(settings, text)
            _check_names(values, optimizer.definition, text)
            entries.append(Entry(optimizer, values, counterparts[key]))
    return entries


def _check_names(values: Mapping[str, Any], definition: Definition, whole: str) -> None:
    known = (*definition.hyperparameter_names, *definition.option_names)
    for name in values:
        if name not in known:
            raise typer.BadParameter(
                f"{whole!r:.80}: {definition.name} has no setting {name!r:.40}; it has {', '.join(known)}",
                param_hint="'NAMES'",
            )


def _settings(text: str, whole: str) -> dict[str, Any]:
    """``a=1,b=true`` as values."""
    values: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        before, equals, value = part.partition("=")
        name, value = before.strip(), value.strip()
        if name in values:
            raise typer.BadParameter(f"{whole!r:.80} gives {name} twice", param_hint="'NAMES'")
        try:
            given = {"true": True, "false": False}.get(value) if equals else None
            values[name] = float(value) if given is None else given
        except ValueError:
            raise typer.BadParameter(
                f"{whole!r:.80}: settings are written name=number or name=true, separated by commas",
                param_hint="'NAMES'",
            ) from None
    return values


def _print(results: Sequence[Result], about: dict[str, str]) -> None:
    rows = []
    for result in results:
        title = result.optimizer + (f":{result.settings}" if result.settings else "")
        for each in result.measured:
            rows.append(
                (
                    title,
                    result.size.text,
                    each.name,
                    f"{each.median_ms:.3f}",
                    f"{each.fastest_ms:.3f}",
                    "" if each.to_limit is None else f"{each.to_limit:.2f}",
                    "" if each.to_ours is None else f"{each.to_ours:.2f}",
                )
            )
    print_table(HEADS, rows, numbers=NUMBERS)
    for key, value in about.items():
        print(f"{key}: {value}")
    for why in dict.fromkeys(
        f"{name} was left out of {r.optimizer}: {reason}" for r in results for name, reason in r.left_out
    ):
        print(why)
