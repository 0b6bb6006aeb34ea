"""Equation text cut into tokens, with every bound on size checked before anything is parsed.

What is not of the language (strings, subscripts, ``^``, ``2x``, other alphabets) is found here, where
the place is exact and the reason known. ``order.py`` then looks at how the tokens follow one another.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from solvergen.frontend.findings import Findings
from solvergen.spec.names import PYTHON_KEYWORDS

if TYPE_CHECKING:
    from solvergen.spec.model import Text

MAX_LENGTH = 4000
"""Characters of one equation."""
MAX_TOKENS = 1000
"""Names, numbers and operators of one equation."""
MAX_NUMBER = 400
"""Characters of one number: more digits than any double needs, few enough to convert at once."""

MAX_REFUSED = 10
"""Pieces of one equation that are complained about; one that is wrong all over need not be all listed."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBERISH = re.compile(r"(?:[0-9]|\.[0-9])(?:[eE][+-](?=[0-9])|[0-9A-Za-z_.])*")
_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_SPACE = re.compile(r"[ \t\r\n]+")
_OPERATOR = re.compile(r"\*\*|//|<=|>=|==|!=|[-+*/%<>=(),]")
_FOREIGN_OPERATOR = re.compile(
    r"(?:\*\*|//|<<|>>|[-+*/%&|^@])=(?!=)|===|!==|<=>|:=|->|=>|<>|<<|>>|&&|\|\||(?:\+\+|--)(?=\s*[),]|\s*\Z)|!(?!=)|[\^&|~?:@;]"
)
_STRING = re.compile(r"""("{3}|'{3}|"|')(?:\\.|(?!\1).)*(?:\1|\Z)""", re.DOTALL)
_LAMBDA = re.compile(r"lambda\b[\w\s,*=.]*:(?!=)")
_FOREIGN_WORD = re.compile(r"[^\W\d]\w*|[^\x00-\x7f]")

WORD_OPERATORS = frozenset({"and", "or", "not", "if", "else"})
_INSTEAD_OF_OPERATOR = {
    "^": "powers are written `**`",
    "&": "write `and` between conditions",
    "&&": "write `and` between conditions",
    "|": "write `or` between conditions, `abs(x)` for an absolute value",
    "||": "write `or` between conditions, `abs(x)` for an absolute value",
    "~": "write `not` before a condition",
    "!": "write `not` before a condition, `!=` for unequal",
    "?": "write `a if condition else b`, or `where(condition, a, b)`",
    ":": "write `a if condition else b`, or `where(condition, a, b)`",
    ":=": "an equation has one `=`, after its first name",
    "<>": "unequal is written `!=`",
    "===": "equal is written `==`",
    "!==": "unequal is written `!=`",
    "=>": "at least is written `>=`",
    "<<": "multiply by `2**n` instead",
    ">>": "divide by `2**n` instead",
    "@": "`*` multiplies elements; there is no matrix product",
    ";": "write each equation as an entry of its own under `update`",
    "++": "write `x = x + 1`",
    "--": "write `x = x - 1`",
}

_INSTEAD_OF_CHARACTER = {
    "\N{MINUS SIGN}": "-",
    "\N{EN DASH}": "-",
    "\N{EM DASH}": "-",
    "\N{MULTIPLICATION SIGN}": "*",
    "\N{MIDDLE DOT}": "*",
    "\N{DOT OPERATOR}": "*",
    "\N{DIVISION SIGN}": "/",
    "\N{DIVISION SLASH}": "/",
    "\N{LESS-THAN OR EQUAL TO}": "<=",
    "\N{GREATER-THAN OR EQUAL TO}": ">=",
    "\N{NOT EQUAL TO}": "!=",
    "\N{SQUARE ROOT}": "sqrt(...)",
    "\N{SUPERSCRIPT TWO}": "**2",
    "\N{SUPERSCRIPT THREE}": "**3",
    "\N{INFINITY}": "a number",
    "\N{LOGICAL AND}": "and",
    "\N{LOGICAL OR}": "or",
    "\N{NOT SIGN}": "not",
    "\N{LEFTWARDS ARROW}": "=",
    "\N{NO-BREAK SPACE}": "an ordinary space",
    "\N{ZERO WIDTH SPACE}": "nothing",
    "\N{BYTE ORDER MARK}": "nothing",
    "\N{FULLWIDTH EQUALS SIGN}": "=",
}

_KEYWORD_HINTS = {
    "lambda": "call it `lam`, or what it means: `weight_decay`",
    "True": "write a condition that holds, or leave the condition out",
    "False": "write a condition that does not hold, or leave the statement out",
    "None": "every value is a number or a condition",
    "in": "compare with `<`, `<=`, `==`, `>=`, `>`",
    "is": "compare with `==` or `!=`",
    "for": "equations are elementwise already: there are no loops",
    "while": "equations are elementwise already: there are no loops",
}


@dataclass(frozen=True)
class Token:
    """A piece of the text: ``kind`` is number, name, word (``and or not if else``), or operator."""

    kind: str
    text: str
    start: int
    end: int


def scan(text: Text, findings: Findings) -> tuple[Token, ...] | None:
    """The tokens of ``text``; None, with the reasons in ``findings``, if it isn't of the language."""
    source = text.text
    if len(source) > MAX_LENGTH:
        findings.add(
            "SG041",
            f"{len(source)} characters are too many for one equation; at most {MAX_LENGTH}",
            text,
            0,
            1,
            hint="name parts of it and compute them first",
        )
        return None
    if not source.strip():
        findings.add("SG040", "there is nothing here", text, 0, len(source), hint="write an expression")
        return None
    tokens: list[Token] = []
    refused = 0
    position = 0
    while position < len(source) and refused < MAX_REFUSED:
        if match := _SPACE.match(source, position):
            position = match.end()
            continue
        token, position, ok = _next(text, position, findings)
        refused += not ok
        if token is not None:
            tokens.append(token)
        if len(tokens) > MAX_TOKENS:
            findings.add(
                "SG041",
                f"more than {MAX_TOKENS} names, numbers and operators in one equation",
                text,
                0,
                1,
                hint="name parts of it and compute them first",
            )
            return None
    return None if refused else tuple(tokens)


def _next(text: Text, position: int, findings: Findings) -> tuple[Token | None, int, bool]:
    """The token at ``position`` (None if there is none), where to go on, and whether all was well."""
    source = text.text
    if match := _STRING.match(source, position):
        findings.add(
            "SG048",
            "a string in an equation",
            text,
            *match.span(),
            hint="values are numbers; names need no quotes",
        )
        return None, match.end(), False
    if match := _NUMBERISH.match(source, position):
        return _number(text, match, findings)
    if match := _NAME.match(source, position):
        end = match.end()
        if end < len(source) and source[end] in "\"'" and len(match[0]) <= 2:
            return _next(text, end, findings)  # the prefix of a string: f"...", rb'...'
        word = _FOREIGN_WORD.match(source, position)
        assert word is not None
        if word.end() > end and source[end] not in _INSTEAD_OF_CHARACTER:
            return _foreign_character(text, *word.span(), findings)
        return _word(text, match, findings)
    if match := _FOREIGN_OPERATOR.match(source, position):
        return _foreign_operator(text, match, findings)
    if match := _OPERATOR.match(source, position):
        return Token("operator", match[0], *match.span()), match.end(), True
    character = source[position]
    if character == ".":
        after = _NAME.match(source, position + 1)
        end = after.end() if after else position + 1
        findings.add(
            "SG050",
            f"`{source[position:end]}`: values have no attributes",
            text,
            position,
            end,
            hint="functions go by their bare names, such as sqrt(x)",
        )
        return None, end, False
    if character in "[]{}":
        message = (
            "there are no subscripts or lists in equations"
            if character in "[]"
            else "there are no braces in equations"
        )
        findings.add(
            "SG050",
            message,
            text,
            position,
            position + 1,
            hint="an equation speaks of one element at a time; group with ( )",
        )
        return None, position + 1, False
    word = _FOREIGN_WORD.match(source, position)
    return _foreign_character(text, position, word.end() if word else position + 1, findings)


def _number(text: Text, match: re.Match[str], findings: Findings) -> tuple[Token | None, int, bool]:
    written, (start, end) = match[0], match.span()
    if len(written) > MAX_NUMBER:
        findings.add(
            "SG041",
            f"a number of {len(written)} characters; at most {MAX_NUMBER}",
            text,
            start,
            end,
            hint="write it with an exponent: 1e300",
        )
        return None, end, False
    if not _NUMBER.match(written):
        return _malformed(text, written, start, end, findings)
    if re.match(r"0[0-9]+\Z", written):
        hint = f"write {written.lstrip('0') or '0'}"
        findings.add(
            "SG045", f"`{written}`: a whole number doesn't begin with 0", text, start, end, hint=hint
        )
        return None, end, False
    value = float(written)
    if value == float("inf"):
        findings.add(
            "SG046",
            f"`{written}` is too large for a double",
            text,
            start,
            end,
            hint="the largest is about 1.8e308",
        )
        return None, end, False
    if value == 0 and re.search(r"[1-9]", re.split("[eE]", written)[0]):
        findings.add(
            "SG046",
            f"`{written}` is too small for a double: it would be 0",
            text,
            start,
            end,
            hint="the smallest is about 4.9e-324",
        )
        return None, end, False
    return Token("number", written, start, end), end, True


def _malformed(text: Text, written: str, start: int, end: int, findings: Findings) -> tuple[None, int, bool]:
    glued = re.match(r"((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)([A-Za-z_][A-Za-z0-9_]*)\Z", written)
    hint: str | None
    if re.match(r"0[xXoObB]", written):
        message, hint = f"`{written}`: numbers are decimal", "write it in decimal"
        with contextlib.suppress(ValueError):
            hint = f"write {int(written, 0)}"
    elif re.fullmatch(r"[0-9_.eE+-]+", written) and "_" in written:
        message, hint = f"`{written}`: no underscores in numbers", f"write {written.replace('_', '')}"
    elif glued and glued[2] in ("j", "J"):
        message, hint = (
            f"`{written}`: there are no complex numbers",
            f"write {glued[1]}*j for a product with a name j",
        )
    elif glued and glued[2] in ("f", "F", "l", "L", "d", "u"):
        message, hint = (
            f"`{written}`: numbers have no suffix",
            f"write {glued[1]}; an element's type decides how it is computed",
        )
    elif glued:
        findings.add(
            "SG047",
            f"an operator is missing in `{written}`",
            text,
            start,
            end,
            hint=f"write {glued[1]}*{glued[2]}",
        )
        return None, end, False
    else:
        message, hint = f"`{written}` is not a number", "write it like 0.5, 3 or 1e-8"
    findings.add("SG045", message, text, start, end, hint=hint)
    return None, end, False


def _word(text: Text, match: re.Match[str], findings: Findings) -> tuple[Token | None, int, bool]:
    word, (start, end) = match[0], match.span()
    if word in WORD_OPERATORS:
        return Token("word", word, start, end), end, True
    if function := _LAMBDA.match(text.text, start):
        message, hint = "there are no functions of one's own in equations", "write the expression itself"
        findings.add("SG049", message, text, *function.span(), hint=hint)
        return None, function.end(), False
    if word in PYTHON_KEYWORDS:
        message = f"`{word}` is a reserved word and can't be a name"
        findings.add("SG049", message, text, start, end, hint=_KEYWORD_HINTS.get(word, "choose another name"))
        return None, end, False
    return Token("name", word, start, end), end, True


def _foreign_operator(text: Text, match: re.Match[str], findings: Findings) -> tuple[None, int, bool]:
    operator, (start, end) = match[0], match.span()
    hint = _INSTEAD_OF_OPERATOR.get(operator)
    if hint is None and operator.endswith("="):
        hint = f"write it out: x = x {operator[:-1]} ..."
    findings.add("SG044", f"there is no operator `{operator}`", text, start, end, hint=hint)
    return None, end, False


def _foreign_character(text: Text, start: int, end: int, findings: Findings) -> tuple[None, int, bool]:
    written = text.text[start:end]
    instead = _INSTEAD_OF_CHARACTER.get(written[0])
    hint: str | None
    if instead is not None:
        end, written = start + 1, written[0]
        hint = f"write {instead}"
    elif written.isascii():
        hint = "comments belong in the YAML, outside the quotes" if written == "#" else None
    else:
        hint = "names are of the letters A to Z, a to z, digits and _; spell Greek letters out: beta1"
    shown = written if written.isprintable() else f"U+{ord(written[0]):04X}"
    findings.add("SG043", f"`{shown}` can't stand in an equation", text, start, end, hint=hint)
    return None, end, False
