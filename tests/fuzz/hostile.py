"""Files that nobody would call specs, and some that nearly are: strategies for bytes."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import strategies as st

from solvergen.verify.fuzzing.names import AWKWARD
from solvergen.verify.fuzzing.strategies import specs
from solvergen.verify.fuzzing.yaml_text import yaml_of
from tests.fuzz.built import styles

ROOT = Path(__file__).parents[2]
SOUND = tuple(
    path.read_bytes()
    for folder in ("specs", "tests/support/specs")
    for path in sorted((ROOT / folder).glob("*.yaml"))
)

TOKENS = (
    "\t", "\n", "\r", "\x00", "\x1b", "\x7f", "\\", "'", "\"", ":", ";", ",", ".", "-", "+", "*", "/", "%",
    "(", ")", "[", "]", "{", "}", "<", ">", "=", "!", "&", "|", "?", "@", "`", "#", "~", "^", "$", "_", "0",
    "1", ": ", " #", "- ", "---\n", "...\n", "? ", "!!python/object:os.system ", "!!binary ", "&a ", "*a ",
    "<<: *a\n", "%YAML 1.1\n---\n", "%TAG ! tag:x,2000:\n---\n", "|\n", ">-\n  ", "|9\n", "\\u0000",
    "\\uD800", "\\x41", "''", "\"\"", "true", "false", "null", ".nan", ".inf", "-.inf", "1e400", "1e-400",
    "0x1F", "0o17", "1_000", "1:30", "+1", "1.", "9" * 400, "999999999999999999999999999999", "1e308", "-0",
    "-0.0", "5e-324", "2020-01-01", "yes", "on", "no", "param", "grad", "t", "scalar", "name", "default",
    "min", "max", "above", "below", "integer", "init", "shape", "when", "do", "that", "message", "doc",
    "hyperparameters", "options", "state", "constraints", "update", "summary", "class_name", "reference",
    "url", "lambda", "import", "__import__('os')", "exec", "None", "True", "if", "else", "and", "or", "not",
    "where(", "sqrt(", "pow(", "sum(", "clip(", "max(", "**", "//", "<=", "==", "!=", ":=", "->", "1/0",
    "0**-1", "9**9**9", "2**2147483648", "x - x", "t/0", "0.9**1000000000", "1.0000001**1000000000", "\xe9",
    "\u03b2", "\u202e", "\ufeff", "\U0001f642", "\xa0", "\u2028", "\ud7ff", "\uffff", "\u0301", "\xb2",
    "\uff58", "e\u0301", "sum(grad)", "norm2(", "dot(grad, ", ", all)", "all", "max_abs(param, all)",
    "mean(norm1(", "count_nonzero(lr)", "shared", "{init: 0, shape: shared}",
)  # fmt: skip
"""What YAML, Python, C or the language might trip over."""

_token = st.one_of(
    st.sampled_from(TOKENS),
    st.sampled_from(AWKWARD.split()),
    st.text(max_size=6),
    st.floats().map(repr),
    st.integers(-(2**70), 2**70).map(str),
)
_near = st.integers(0, 1 << 17)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A sound spec with some mistakes made in its bytes."""
    base = draw(st.one_of(st.sampled_from(SOUND), st.builds(yaml_of, specs(), styles).map(_encoded)))
    for _ in range(draw(st.sampled_from((1, 1, 1, 2, 3, 6)))):
        base = draw(_one_mistake(base))
    return base[: 1 << 18]


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@st.composite
def _one_mistake(draw: st.DrawFn, data: bytes) -> bytes:
    kinds = ("word", "word", "word", "insert", "delete", "line", "repeat", "byte", "indent", "cut")
    kind = draw(st.sampled_from(kinds))
    at = draw(_near) % (len(data) + 1)
    if kind == "word":
        words = data.split(b" ")
        index = draw(_near) % len(words)
        others = st.one_of(_token.map(_encoded), st.sampled_from(words))
        return b" ".join([*words[:index], draw(others), *words[index + 1 :]])
    if kind == "insert":
        return data[:at] + _encoded(draw(_token)) + data[at:]
    if kind == "delete":
        return data[:at] + data[at + draw(st.sampled_from((1, 1, 2, 3, 10, 50))) :]
    if kind == "repeat":
        piece = data[at : at + draw(st.sampled_from((1, 2, 5, 20, 100)))]
        return data[:at] + piece * draw(st.sampled_from((2, 3, 10, 200, 3000))) + data[at:]
    if kind == "byte":
        return data[:at] + draw(st.binary(min_size=1, max_size=4)) + data[at + 1 :]
    if kind == "cut":
        return data[:at]
    lines = data.split(b"\n")
    here = draw(_near) % len(lines)
    if kind == "indent":
        line = lines[here]
        changed = draw(st.sampled_from((b" " + line, b"\t" + line, line[1:], line.strip())))
        return b"\n".join([*lines[:here], changed, *lines[here + 1 :]])
    # Lines from elsewhere, with or instead of the one that is here.
    other = draw(_near) % len(lines)
    moved = lines[other : other + draw(st.integers(0, 2))]
    return b"\n".join([*lines[:here], *moved, *lines[here + draw(st.integers(0, 1)) :]])


_SPEC = """name: rule
summary: S.
hyperparameters:
  lr: {default: 0.1}
options:
  o: {}
state:
  m: {init: 0}
  s: {init: 1, shape: shared}
update:
"""
_END = "  - {when: o, do: m = m + lr}\n  - s = s + norm2(grad, all)\n  - param = param - s*m*grad\n"

_pieces = st.one_of(
    st.sampled_from(
        (
            "lr",
            "grad",
            "param",
            "m",
            "s",
            "sum(grad)",
            "norm2(m, all)",
            "dot(",
            ", all)",
            "t",
            "o",
            "x",
            "2",
            "0.5",
            "(",
            ")",
            ",",
            "+",
            "-",
            "*",
            "/",
            "**",
            " ",
            "<",
        )
    ),
    _token,
)
_NESTED = (
    "(",
    "-",
    "not ",
    "+",
    "sqrt(",
    "where(o, ",
    "max(lr, ",
    "2**",
    "lr if o else ",
    "(lr, ",
    "[",
    "{",
    "((lr)*",
    "lr<",
    "t%",
    "norm2(grad*",
    "sum(param - mean(",
    "dot(grad, ",
)
_soup = st.one_of(
    st.lists(_pieces, max_size=25).map("".join),
    st.lists(_pieces, max_size=40).map(" ".join),
    st.tuples(
        st.sampled_from(_NESTED),
        st.sampled_from((1, 7, 9, 49, 51, 99, 101, 1000, 3900)),
        st.sampled_from(("", "lr", "grad")),
        st.sampled_from(("", ")", ", 1)", "]")),
    ).map(lambda parts: (parts[0] * parts[1] + parts[2] + parts[3] * parts[1])[:5000]),
)


@st.composite
def hostile_equations(draw: st.DrawFn) -> bytes:
    """A spec that is sound but for the texts of its equations, conditions and initial values."""
    text = _SPEC
    for _ in range(draw(st.integers(1, 3))):
        soup = draw(_soup)
        kind = draw(st.integers(0, 3))
        if kind == 0:
            text += f"  - {_quoted('x = ' + soup)}\n"
        elif kind == 1:
            text += f"  - {_quoted(soup)}\n"
        elif kind == 2:
            text += f"  - {{when: {_quoted(soup)}, do: x = lr}}\n"
        else:
            text = text.replace("init: 0", f"init: {_quoted(soup)}")
    return _encoded(text + _END)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


_keys = st.one_of(
    st.sampled_from([t for t in TOKENS if t.isidentifier()]), _token, st.none(), st.integers(-3, 3)
)
_leaves = st.one_of(_token, st.none(), st.booleans(), st.integers(), st.floats())
_values: st.SearchStrategy[object] = st.deferred(
    lambda: st.one_of(
        _leaves, _leaves, st.lists(_values, max_size=4), st.lists(st.tuples(_keys, _values), max_size=4)
    )
)


def _flow(value: object) -> str:
    """Any value as YAML's flow style; pairs are mappings, whose keys may come twice."""
    if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(item)}" for key, item in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, float):
        return {"nan": ".nan", "inf": ".inf", "-inf": "-.inf"}.get(repr(value), repr(value))
    return json.dumps(value) if isinstance(value, str) and not value.isidentifier() else str(value).lower()


@st.composite
def wrong_shapes(draw: st.DrawFn) -> bytes:
    """YAML whose keys are a spec's, with anything below them."""
    text = ""
    for key in (
        "name",
        "summary",
        "hyperparameters",
        "options",
        "state",
        "constraints",
        "references",
        "update",
    ):
        kind = draw(st.integers(0, 5))
        if kind == 0:
            continue
        plain = {
            "name": "rule",
            "summary": "S.",
            "hyperparameters": "{lr: {default: 0.1}}",
            "update": "[param = lr*grad]",
        }
        text += f"{key}: {_flow(draw(_values)) if kind < 4 else plain.get(key, '{}')}\n"
    return _encoded(text)


BOMBS = (
    b"[" * 100_000,
    b"{a: " * 30_000,
    b"- " * 60_000,
    b"? " * 60_000,
    b"a: &a [1]\nb: *a\n",
    b"&a [*a]",
    b"x: " + b"'" * 100_000,
    b"name: " + b"a" * 130_000,
    b"\n" * 131_000,
    b"#" * 131_000,
    b"- x\n" * 30_000,
    b"a:\n" * 40_000,
    b"!" * 100_000,
    b"---\n" * 30_000,
    b"\xff\xfe" + "name: rule".encode("utf-16-le"),
    b"\xef\xbb\xbf" * 1000,
    b"\x00" * 1000,
    b"\r" * 100_000,
    b"".join(b" " * i + b"a:\n" for i in range(400)),
    b"".join(b"k%d: 1\n" % i for i in range(12_000)),
    b"'" + b"''" * 60_000,
    b'"' + b"\\x41" * 30_000 + b'"',
    b"update:\n" + b"  - x = lr\n" * 10_000,
    b"|" * 131_072,
    b"a: |\n" + b"  x\n" * 30_000,
    b"hyperparameters:\n" + b"".join(b"  h%d: {default: 1}\n" % i for i in range(4000)),
    b"&" * 131_000,
    b"%" * 131_000,
    b"update: [" + b"{when: a, do: [" * 3000,
    b"update:\n  - " + b"x = 1 " * 20_000,
    b"x: 1e" + b"9" * 100_000,
    b"x: " + b"9" * 100_000,
)
"""Files that take long, or much, if one isn't careful."""
