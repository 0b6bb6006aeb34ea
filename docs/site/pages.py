"""A page for each optimizer, made from its spec and from what was generated from it, and their index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import code_blocks
from costs import DTYPES, Cost, costs, state_bytes
from kinds import by_kind
from mathematics import equations, math, symbols

from solvergen.catalogue import cell, counterparts_table, plain
from solvergen.emit.unit import Unit
from solvergen.frontend.parse import is_gradient
from solvergen.runtime.definition import Definition
from solvergen.spec.model import Hyperparameter, Option, Reference, Spec, State
from solvergen.summary import Summary, summary_of


def optimizer_page(unit: Unit, definition: Definition) -> str:
    """The page of one optimizer, in Markdown."""
    spec = unit.spec
    names = symbols(unit.parsed)
    parts = (
        _head(spec),
        _use(spec),
        _update(unit, names),
        _choices(spec, names),
        _memory(spec, definition, names),
        _list("Conventions", [plain(convention) for convention in spec.conventions]),
        _counterparts(spec),
        _list("References", [reference(r) for r in spec.references]),
        _code(unit),
    )
    return "\n".join(line for part in parts for line in part) + "\n"


def index_page(units: tuple[Unit, ...]) -> str:
    """All optimizers by kind, in Markdown."""
    units_by_name = {unit.spec.name: unit for unit in units}
    lines = [
        "# Optimizers",
        "",
        "State and moved are bytes for each float32 parameter under the default options: what the optimizer",
        "keeps, and what an update reads and writes. [One page with all of them](../docs/optimizers.md).",
    ]
    for kind, names in by_kind(sorted(units_by_name)):
        lines += ["", f"## {kind}", "", "| | | state | moved | source |", "| --- | --- | --- | --- | --- |"]
        lines += [_index_row(units_by_name[name].spec, summary_of(units_by_name[name])) for name in names]
        lines += ["", "```{toctree}", ":hidden:", "", *names, "```"]
    return "\n".join(lines) + "\n"


def _index_row(spec: Spec, summary: Summary) -> str:
    link = f"[{spec.class_name}]({spec.name}.md)"
    costs_ = f"{summary.state_bytes} | {summary.moved_bytes}"
    source = cell(summary.source.split(",")[0])
    if spec.references and (address := _address(spec.references[0])):
        source = f"[{source}](<{address}>)"
    return f"| {link} | {cell(spec.summary)} | {costs_} | {source} |"


def _address(r: Reference) -> str | None:
    """Where a publication is to be read."""
    if r.arxiv:
        return f"https://arxiv.org/abs/{r.arxiv}"
    return f"https://doi.org/{r.doi}" if r.doi else r.url


def _head(spec: Spec) -> Iterator[str]:
    yield from ("---", "hide-toc: true", "---", "", f"# {spec.class_name}", "")
    yield plain(spec.summary)
    for paragraph in spec.description.split("\n\n"):
        if paragraph.strip():
            yield ""
            yield plain(paragraph)
    if spec.base:
        yield ""
        yield f"Derived from `{spec.base}`."


def usage(spec: Spec) -> tuple[str, str, str]:
    """How it is used, in three lines of Python with ``params`` and ``grads``."""
    first = spec.hyperparameters[:1]
    arguments = "".join(f", {h.name}={_number(h.default)}" for h in first)
    return (
        f"from solvergen.optimizers import {spec.class_name}",
        f"opt = {spec.class_name}(params{arguments})  # arrays in a list or a mapping, or groups of them",
        "opt.step(closure)  # in place; closure() returns the loss and the gradients at params as they are"
        if any(is_gradient(statement.equation) for statement in spec.update)
        else "opt.step(grads)  # in place; grads laid out as params",
    )


def _use(spec: Spec) -> Iterator[str]:
    yield ""
    yield "```python"
    yield from usage(spec)
    yield "```"


def _update(unit: Unit, names: Mapping[str, str]) -> Iterator[str]:
    theta, gradient, t = (math(names[name]) for name in ("param", "grad", "t"))
    yield from ("", "## The update", "")
    yield f"For each parameter {theta} with the gradient {gradient}; {t} counts its updates, from 1."
    yield from ("", equations(unit.parsed), "")


def _choices(spec: Spec, names: Mapping[str, str]) -> Iterator[str]:
    if spec.hyperparameters:
        yield from ("## Hyperparameters", "")
        yield "| | default | range | |"
        yield "| --- | --- | --- | --- |"
        yield from (_hyperparameter(h, names) for h in spec.hyperparameters)
    if spec.options:
        yield from ("", "## Options", "")
        yield "Fixed when an optimizer is made; what is off costs nothing."
        yield ""
        yield "| | default | |"
        yield "| --- | --- | --- |"
        yield from (_option(o) for o in spec.options)
    if spec.constraints:
        yield ""
        yield from (f"* {plain(constraint.message)}" for constraint in spec.constraints)


def _hyperparameter(h: Hyperparameter, names: Mapping[str, str]) -> str:
    range_ = h.range_text or "any"
    return f"| {_named(h.name, names)} | {_number(h.default)} | {range_} | {cell(h.doc)} |"


def _named(name: str, names: Mapping[str, str]) -> str:
    """A name, and what stands for it in equations if that is something else."""
    latex = names.get(name, "")
    return f"`{name}`" if latex.startswith(r"\mathrm") or not latex else f"`{name}` {math(latex)}"


def _option(option: Option) -> str:
    default = f"`{option.default}`" if option.is_derived else str(option.default).lower()
    return f"| `{option.name}` | {default} | {cell(option.doc)} |"


def _memory(spec: Spec, definition: Definition, names: Mapping[str, str]) -> Iterator[str]:
    yield from ("", "## State", "")
    if spec.state:
        yield "Bytes for each parameter, by the parameter's type."
        yield ""
        yield f"| | begins at | there when | {' | '.join(DTYPES)} | |"
        yield "| --- | --- | --- |" + " --- |" * len(DTYPES) + " --- |"
        yield from (_state(state, names) for state in spec.state)
    else:
        yield "None."
    yield from ("", "## Memory traffic", "")
    yield "Bytes that an update reads and writes for each parameter, with gradients of the parameter's type."
    yield ""
    yield f"| options | reads | writes | {' | '.join(DTYPES)} |"
    yield "| --- | --- | --- |" + " --- |" * len(DTYPES)
    yield from (_traffic(cost) for cost in costs(definition))


def _state(state: State, names: Mapping[str, str]) -> str:
    init = _number(state.init) if isinstance(state.init, float) else f"`{state.init}`"
    when = f"`{state.when}`" if state.when else "always"
    widths = " | ".join("8 a tensor" if state.is_scalar else str(state_bytes(dtype)) for dtype in DTYPES)
    doc = cell(state.doc + (" (for the caller to read)" if state.output else ""))
    return f"| {_named(state.name, names)} | {init} | {when} | {widths} | {doc} |"


def _traffic(cost: Cost) -> str:
    reads, writes = (", ".join(f"`{name}`" for name in names) for names in (cost.read, cost.written))
    setting = " ".join(f"`{option}`" for option in cost.changed) or "defaults"
    return f"| {setting} | {reads} | {writes} | {' | '.join(map(str, cost.moved))} |"


def _counterparts(spec: Spec) -> Iterator[str]:
    if spec.counterparts:
        yield from ("", "## In other libraries", "")
        yield "What each name here is there; – where there is none."
        yield ""
        yield from counterparts_table(spec)


def _list(title: str, entries: list[str]) -> Iterator[str]:
    if entries:
        yield from ("", f"## {title}", "")
        yield from (f"* {entry}" for entry in entries)


def reference(r: Reference) -> str:
    """A publication in Markdown, with links."""
    title = f"*{plain(r.title)}*"
    parts = [
        plain(r.authors) if r.authors else "",
        f"{title} ({plain(r.year)})" if r.year else title,
        f"[arXiv:{r.arxiv}](https://arxiv.org/abs/{r.arxiv})" if r.arxiv else "",
        f"[doi:{plain(r.doi)}](<https://doi.org/{r.doi}>)" if r.doi else "",
        f"<{r.url}>" if r.url else "",
        plain(r.note) if r.note else "",
    ]
    return ". ".join(part.rstrip(".") for part in parts if part) + "."


def _code(unit: Unit) -> Iterator[str]:
    name = unit.spec.name
    yield from ("", "## NumPy and CUDA", "")
    yield "The same update twice: the reference, and the lines of the kernel that each thread runs for an"
    yield f"element (all of it: `solvergen show {name} --stage numpy`, `--stage cuda`)."
    yield ""
    yield "::::{container} side-by-side"
    for language, title, lines in (
        ("python", "NumPy", code_blocks.reference(unit)),
        ("cuda", "CUDA", code_blocks.kernel(unit)),
    ):
        yield from (":::{container} side", f"```{{code-block}} {language}", f":caption: {title}", "")
        yield from lines
        yield from ("```", ":::")
    yield "::::"
    host = code_blocks.host(unit)
    if host:
        yield ""
        yield "Scalars are computed on the host, in float64, once a step for each distinct set of values:"
        yield from ("", "```python", *host, "```")


def _number(value: float) -> str:
    return repr(float(value)).removesuffix(".0")
