"""Everything that specs say of their optimizers, as one Markdown page."""

from __future__ import annotations

from collections.abc import Iterator

from solvergen.compiler import Paths, build
from solvergen.emit.docstring import citation
from solvergen.emit.equations import equation_lines
from solvergen.spec.model import Spec
from solvergen.summary import Summary, summary_of

_ABSENT = "–"

_INTRODUCTION = """\
# The optimizers

Generated from the specs by `solvergen list --markdown`: edit the specs, not this page. *State* is the
number of bytes that an optimizer keeps for each float32 parameter under its default options, *moved* the
number that an update reads and writes. Each section has the equations of an optimizer, its arguments and
states with their defaults, the conventions it follows, and what its arguments are called in other
libraries.
"""


def catalogue(paths: Paths) -> str:
    """The page about all specs at ``paths``: a table of them, and a section for each. Raises SpecError."""
    units = build(paths).units
    pairs = [(unit.spec, summary_of(unit)) for unit in units]
    lines = [*_INTRODUCTION.splitlines(), "", *_index(pairs)]
    for spec, summary in pairs:
        lines += ["", *_section(spec, summary)]
    return "\n".join(lines) + "\n"


def _index(pairs: list[tuple[Spec, Summary]]) -> Iterator[str]:
    yield "| | | state | moved | counterparts |"
    yield "| --- | --- | --- | --- | --- |"
    for spec, summary in pairs:
        elsewhere = ", ".join(f"`{c.name}`" for c in spec.counterparts)
        link = f"[{spec.class_name}](#{spec.name})"
        costs = f"{summary.state_bytes} | {summary.moved_bytes}"
        yield f"| {link} | {cell(spec.summary)} | {costs} | {elsewhere} |"


_SHAPES = {
    "param": "state",
    "scalar": "one number for each parameter",
    "shared": "one number for all parameters",
} | {
    "rows": "one number for each row",
    "columns": "one number for each column",
    "matrices": "one number for each matrix",
    "leading": "one number for each index of the first axis",
    "trailing": "one number for each index of the last axis",
    "blocks": "one number for each block",
}


def _section(spec: Spec, summary: Summary) -> Iterator[str]:
    yield f"## {spec.name}"
    yield ""
    yield f"`from solvergen.optimizers import {spec.class_name}` · {plain(spec.summary)}"
    for paragraph in spec.description.split("\n\n"):
        if paragraph.strip():
            yield ""
            yield plain(paragraph)
    if spec.base:
        yield ""
        yield f"Derived from `{spec.base}`."
    yield ""
    yield "```"
    yield from equation_lines(spec)
    yield "```"
    yield ""
    yield "| | default | | |"
    yield "| --- | --- | --- | --- |"
    for h in spec.hyperparameters:
        default = repr(h.default).removesuffix(".0")
        yield f"| `{h.name}` | {default} | {h.range_text} | {cell(h.doc)} |"
    for option in spec.options:
        default = f"`{option.default}`" if option.is_derived else str(option.default).lower()
        yield f"| `{option.name}` | {default} | option | {cell(option.doc)} |"
    for state in spec.state:
        when = f" when `{state.when}`" if state.when else ""
        shape = _SHAPES[state.shape]
        begins = repr(state.init).removesuffix(".0") if isinstance(state.init, float) else f"`{state.init}`"
        yield f"| `{state.name}` | {begins} | {shape}{when} | {cell(state.doc)} |"
    if spec.conventions:
        yield ""
        yield from (f"* {plain(convention)}" for convention in spec.conventions)
    if spec.counterparts:
        yield ""
        yield from counterparts_table(spec)
    if spec.references:
        yield ""
        yield from (f"* {plain(citation(reference))}" for reference in spec.references)


def counterparts_table(spec: Spec) -> Iterator[str]:
    """What each name is elsewhere, a column a library, and what there is to say of each."""
    yield f"| here | {' | '.join(f'`{c.name}`' for c in spec.counterparts)} |"
    yield "| --- |" + " --- |" * len(spec.counterparts)
    names = [h.name for h in spec.hyperparameters] + [o.name for o in spec.options if not o.is_derived]
    for name in names:
        cells = [
            _ABSENT if name in c.lacks else f"`{dict(c.maps).get(name, name)}`" for c in spec.counterparts
        ]
        yield f"| `{name}` | {' | '.join(cells)} |"
    notes = [c for c in spec.counterparts if c.note]
    if notes:
        yield ""
        yield from (f"* `{c.name}`: {plain(c.note or '').rstrip('.')}." for c in notes)


def plain(prose: str) -> str:
    """Prose on one line, with nothing in it that Markdown would take for its own."""
    words = " ".join(prose.split())
    return "".join(f"\\{c}" if c in r"\`*<[]" else c for c in words)


def cell(prose: str) -> str:
    """Prose for a cell of a table."""
    return plain(prose).replace("|", "\\|")
