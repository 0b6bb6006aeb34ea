"""Equations as MathML, which browsers set without any script."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping

from latex2mathml.converter import convert

from solvergen.frontend.latex import expression_latex, names_latex
from solvergen.ir.program import Assign, Program

# A word in upright letters comes as one element a letter; as one element it is one word to readers, too.
_LETTER = r'<mi mathvariant="normal">(?:[^<&]|&#x[0-9A-F]+;)</mi>'
_WORD = re.compile(rf"{_LETTER}(?:{_LETTER})+")
# So that a function stands at its arguments; an operator would keep a distance.
_FUNCTION = re.compile(r"<mo>((?!mod)[a-z]+)</mo>")
_TAG = re.compile(r"<[^>]*>")


def math(latex: str, *, display: bool = False) -> str:
    """``latex`` as a ``<math>`` element, on one line."""
    text = convert(latex, display="block" if display else "inline")
    text = _FUNCTION.sub(r"<mi>\1</mi>", text)
    return _WORD.sub(lambda word: f"<mi>{_TAG.sub('', word[0])}</mi>", text)


def symbols(program: Program) -> dict[str, str]:
    """What each name of ``program`` is in its equations: name to LaTeX."""
    return names_latex(symbol.name for symbol in program.symbols)


def equations(program: Program) -> str:
    """The update as a block of HTML without empty lines: an equation a row, and when each applies."""
    names = symbols(program)
    return "\n".join(['<div class="equations">', *_rows(program.statements, names), "</div>"])


def _rows(statements: Iterable[Assign], names: Mapping[str, str]) -> Iterable[str]:
    guard = None
    for statement in statements:
        if statement.guard != guard and not statement.guard.is_always:
            yield f'<div class="when">when {statement.guard.text(name="<code>{}</code>")}</div>'
        guard = statement.guard
        kind = "always" if guard.is_always else "sometimes"
        target = math(names[statement.target])
        value = math(expression_latex(statement.value, names), display=True)
        written = html.escape(" ".join((statement.source or "").split()))
        yield f'<div class="target {kind}" title="{written}">{target} <span class="arrow">←</span></div>'
        yield f'<div class="value {kind}" title="{written}">{value}</div>'
