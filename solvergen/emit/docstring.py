"""What a generated class says of itself: the rule in words and equations, as a docstring."""

from __future__ import annotations

from solvergen.emit.equations import equation_lines
from solvergen.emit.prose import in_docstring, paragraph
from solvergen.spec.model import Counterpart, Reference, Spec, State

_PARAMS = """params: an array, a list of arrays, a mapping of names to arrays, or a list of groups (dicts with
a key params, hyperparameters of their own, lr_mult and decay_mult). Updated in place."""


_BLOCKS = """blocks: into how many equal, contiguous blocks parameters fall: a mapping of names to whole
numbers or to "rows" (one for each index of the first axis), or one of these for all; also a key of groups.
What isn't named is one block."""


def docstring_lines(spec: Spec, *, has_blocks: bool) -> list[str]:
    """The docstring of the class of ``spec``: equations, arguments, state, conventions, counterparts.

    ``has_blocks``: the constructor takes ``blocks``.
    """
    lines = [in_docstring(" ".join(spec.summary.split()))]
    for block in spec.description.split("\n\n"):
        if block.strip():
            lines += ["", *paragraph(block)]
    if spec.base:
        lines += ["", f"Derived from {spec.base}."]
    lines += ["", "The update, for each parameter (``t`` counts its updates, from 1)::", ""]
    lines += [f"    {in_docstring(line)}" for line in equation_lines(spec)]
    lines += ["", "Args:", *paragraph(_PARAMS, "    ", "    ")]
    for h in spec.hyperparameters:
        detail = h.range_text if h.doc or h.range_text else "any number"
        lines += paragraph(f"{h.name}: {_sentence(h.doc, detail)}", "    ", "    ")
    for o in spec.options:
        detail = f"by default: {o.default}" if o.is_derived else "" if o.doc else "True or False"
        lines += paragraph(f"{o.name}: {_sentence(o.doc, detail)}", "    ", "    ")
    lines += paragraph(_BLOCKS, "    ", "    ") if has_blocks else []
    lines += paragraph("backend: numpy, cpu, cuda, or auto: where the arrays live.", "    ", "    ")
    lines += paragraph(
        "nonfinite: what gradients with infinities or NaN do: propagate, skip (the step) or raise.",
        "    ",
        "    ",
    )
    lines += paragraph("wrappers: what wraps the update: clipping, accumulation and more.", "    ", "    ")
    if spec.state:
        lines += ["", "State:"]
        for state in spec.state:
            lines += paragraph(f"{state.name}: {_sentence(state.doc, _state(state))}", "    ", "    ")
    if spec.conventions:
        lines += ["", "Conventions:"]
        for convention in spec.conventions:
            lines += paragraph(f"- {convention}", "    ", "  ")
    if spec.counterparts:
        lines += ["", "Counterparts:"]
        for counterpart in spec.counterparts:
            text = f"{counterpart.name}: {counterpart_text(counterpart)}"
            lines += paragraph(text, "    ", "    ")
    if spec.references:
        lines += ["", "References:"]
        for reference in spec.references:
            lines += paragraph(citation(reference), "    ", "    ")
    return lines


def _sentence(doc: str, detail: str) -> str:
    doc = " ".join(doc.split()).rstrip(".")
    return f"{doc} ({detail})." if doc and detail else f"{doc or detail}."


_SHAPES = {
    "param": "shaped as the parameter, of its compute type",
    "scalar": "one float a parameter",
    "shared": "one float for the whole optimizer",
    "rows": "one float for each row: of the last two axes, by all axes before them",
    "columns": "one float for each column: of the last two axes, by all axes before them",
    "matrices": "one float for each matrix: for all axes before the last two",
    "leading": "one float for each index of the first axis",
    "trailing": "one float for each index of the last axis",
    "blocks": "one float for each block",
}


def _state(state: State) -> str:
    shape = _SHAPES[state.shape]
    init = state.init if isinstance(state.init, float) else str(state.init)
    parts = [shape, f"begins at {init}", f"only when {state.when}" if state.when else ""]
    parts.append("for the caller to read" if state.output else "")
    return "; ".join(part for part in parts if part)


def counterpart_text(c: Counterpart) -> str:
    """What another library calls the arguments, in sentences: ``beta1 is betas[0]. Without maximize.``"""
    maps = ", ".join(f"{ours} is {theirs}" for ours, theirs in c.maps)
    sentences = [f"{maps or 'the same names'}."]
    if c.lacks:
        sentences.append(f"Without {', '.join(c.lacks)}.")
    if c.note:
        sentences.append(f"{c.note.rstrip('.')}.")
    return " ".join(sentences)


def citation(r: Reference) -> str:
    """A publication on one line."""
    parts = [
        r.authors,
        f"{r.title} ({r.year})" if r.year else r.title,
        f"arXiv:{r.arxiv}" if r.arxiv else None,
    ]
    parts += [f"doi:{r.doi}" if r.doi else None, r.url, r.note]
    return ". ".join(p.rstrip(".") for p in parts if p) + "."
