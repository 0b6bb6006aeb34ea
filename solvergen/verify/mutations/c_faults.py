"""All faults of a kernel's text: each expression's, and those of buffers, rows, loops, chunks and vectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from solvergen.verify.mutations import c_expressions as expressions
from solvergen.verify.mutations.c_expressions import Edit
from solvergen.verify.mutations.c_tokens import Tokens
from solvergen.verify.mutations.mutant import Mutant, at

_BODY = re.compile(r"sg_(?:run|update)(?:_\d+)?")
_STAGE = re.compile(r"sg_(?:(?:rows|columns|matrices)_)?stage_\d+")
_LINES = re.compile(r"sg_(?:placed|owner|advance|span_bits|row_total|row|column|matrix)")
"""Functions that say where lines are, or reduce along them."""
_OF_LINES = re.compile(
    r"sg_(?:geometry|shapes|offsets|tiles?|row_\w+|column_\w+|matrix_\w+|here|across|down|width)\b"
)
"""What tells a line of text that does."""
_HINT = re.compile(r"__builtin_prefetch|\bSG_AHEAD\b")
"""What is fetched beforehand: it computes nothing."""
_NOT_OF_ELEMENTS = re.compile(r"\bsg_lanes_\d+\[|\bsg_lines\.")
"""Sums and addresses: no processor flushes doubles or whole numbers that stand beside elements."""
_KERNEL = re.compile(r"sg_(?:kernel|head|(?:pass|head|aligned|walk)_\d+)")
_REDUCING = ("sg_taken", "sg_halve", "sg_term", "sg_next", "sg_larger", "sg_first_row")
_VECTORS = ("sg_load", "sg_store")
_CONVERSIONS = ("sg_to_bf16", "sg_from_bf16", "sg_to_f16", "sg_from_f16", "sg_widen", "sg_narrow")
# They say how bits and pointers are named in C and in CUDA, and compute nothing.
_LEFT_ALONE = ("sg_bits", "sg_from_bits", "sg_bits32", "sg_from_bits32", "sg_global", "sg_round_param")

Source = Callable[[Tokens, int], Iterator[Edit]]
MakeEdit = Callable[[str, int, int, str], Mutant]

_ANYWHERE: tuple[Source, ...] = (
    expressions.operators,
    expressions.numbers,
    expressions.operands,
    expressions.branches,
)
_IN_UPDATE = (expressions.grouping, expressions.contraction, expressions.flush, expressions.neighbours)

_LOAD = re.compile(r"= (sg_\w+_load\(.*\)|sg_lanes_\w+\[sg_k\]);")
_STORE = re.compile(r"(sg_\w+_store|sg_store)\(.*\);|sg_lanes_\w+\[sg_k\] = \w+;")
_ROW = re.compile(r"= (sg_row(?:\[\d+\]|\.\w+));")
_VALUE = re.compile(r"const (?:sg_real|int|double) (\w+) = (.*);$")
_CHANGED = re.compile(r"(\w+?)_(?:new|next)(?:_\d+)?$")

_RULES: tuple[tuple[str, str, str | Callable[[re.Match[str]], str]], ...] = (
    # Kind, what stands there, what a wrong compiler might have put there.
    ("chunks", r" \+ (?:chunk->|sg_this\.)start\b", ""),
    ("chunks", r"\b(?:chunk->|sg_this\.)start\b", r"(\g<0> + 1)"),
    ("chunks", r"\b(?:chunk->|sg_this\.)count\b", r"(\g<0> - 1)"),
    ("chunks", r"\b(?:chunk->|sg_this\.)count\b", r"(\g<0> + 1)"),
    ("chunks", r"\b(?:chunk->|sg_this\.)tensor\b", r"(\g<0> > 0 ? \g<0> - 1 : 0)"),
    ("chunks", r"= first_chunk;", "= first_chunk + 1;"),
    ("chunks", r"= blockIdx\.x;", "= 0;"),
    ("bounds", r"\+= (?:gridDim|blockDim)\.x\b", "+= 1"),
    ("bounds", r"= threadIdx\.x;", "= 0;"),
    ("bounds", r"\? sg_head : sg_count;", "? sg_head : 0;"),
    ("lanes", r"\b(words?)\.x\b", r"\1.y"),
    ("lanes", r"\b(words?)\.y\b", r"\1.x"),
    ("lanes", r"\b(words?)\.z\b", r"\1.w"),
    ("lanes", r"\b(words?)\.w\b", r"\1.z"),
    ("lanes", r"(make_\w+)\(([^,()]*), ([^,()]*)", r"\1(\3, \2"),
    ("lanes", r"(?<=\], )(low|high)(?=\);)", lambda m: "high" if m.group(1) == "low" else "low"),
    ("reduction", r", sg_lane = 0\)", ")"),
    ("reduction", r"\+ sg_lane\b(?=,)", ""),
    ("reduction", r"(?m)^ *SG_HALVE\(lanes, operation, (?:128|16|2)\); *\\\n", ""),
    ("reduction", r"operation\(lanes\[0\], lanes\[1\]\)", "lanes[0]"),
    ("reduction", r"(sg_lanes_\d+\[sg_i\]) = \1 \+ (\(.*\));", r"\1 = sg_larger(\1, \2);"),
    ("reduction", r"(sg_lanes_\d+\[sg_i\]) = \1 \+ (\(.*\));", r"\1 = sg_i == 0 ? \1 : \1 + \2;"),
    ("reduction", r"(sg_lanes_\d+\[sg_i\]) = sg_larger\(\1, (.*)\);", r"\1 = \1 + (\2);"),
    ("reduction", r"(sg_lanes_\d+)\[sg_i\](?= = )", r"\1[sg_i ^ 1]"),
    ("reduction", r"sg_total_sum(?=\(sg_lanes)", "sg_total_larger"),
    ("reduction", r"sg_total_larger(?=\(sg_lanes)", "sg_total_sum"),
    ("reduction", r"sg_partials\[[^\]]*\] = sg_[^;]*;", ";"),
    ("reduction", r"\bsg_lanes\[sg_i\] = 0\.0;", ";"),
    ("reduction", r"sg_sqrt64\((sg_(?:totals|over_all)\[\d+\])\)", r"(\1)"),
    ("reduction", r"(sg_(?:totals|over_all)\[\d+\]) / sg_(?:total_)?size\b", r"\1"),
    ("reduction", r"(sg_(?:totals|over_all)\[\d+\])(?= / sg_(?:total_)?size\b)", r"(double)(float)\1"),
    ("reduction", r"sg_i % SG_LANES \* SG_ROW \+ sg_i / SG_LANES", "sg_i / SG_LANES + sg_i % SG_LANES"),
    ("reduction", r"\(sg_thread - sg_behind\) & ", "sg_thread & "),
    ("reduction", r"sg_half > 0;", "sg_half > 1;"),
    ("reduction", r"sg_half = SG_THREADS / 2;", "sg_half = SG_THREADS / 4;"),
    ("reduction", r"sg_halve<sg_max_abs>", "sg_halve<sg_sum>"),
    ("reduction", r"sg_halve<sg_(?!max_abs)\w+>", "sg_halve<sg_max_abs>"),
    ("reduction", r"sg_taken<sg_(?:sum|mean|norm2)>", "sg_taken<sg_norm1>"),
    ("reduction", r"sg_taken<sg_(?:norm1|max_abs|count_nonzero)>", "sg_taken<sg_sum>"),
    ("reduction", r"\bsg_(?:sum|mean|norm2)::sg_term\b", "sg_norm1::sg_term"),
    ("reduction", r"\bsg_(?:norm1|max_abs|count_nonzero)::sg_term\b", "sg_sum::sg_term"),
    ("reduction", r"\bsg_max_abs::sg_next\b", "sg_sum::sg_next"),
    ("reduction", r"\bsg_(?!max_abs)\w+::sg_next\b", "sg_max_abs::sg_next"),
    ("stage", r"if \(sg_position == (?:stage->leader|sg_leader)\) ", ""),
    ("stage", r"sg_position == (?=stage->leader|sg_leader)", "sg_position != "),
    ("stage", r"sg_(?:values|states|shared_new)\[\d+\] = \w+;", ";"),
    ("float32 scalar", r"(sg_(?:values|states|shared_new)\[\d+\]) = (\w+);", r"\1 = (double)(float)\2;"),
    ("lines", r"(?<=#define SG_TILE_ROWS )64\b", "32"),
    ("lines", r"(?<=#define SG_TILE_COLUMNS )SG_THREADS", "(SG_THREADS / 2)"),
    ("lines", r"sg_row_partial\[[^;]*\] = sg_total;", ";"),
    ("lines", r"sg_column_partial\[\d+\] = sg_\w+;", ";"),
    ("lines", r"\bsg_geometry\[1\]", "sg_geometry[2]"),
    ("lines", r"\bsg_geometry\[2\]", "sg_geometry[1]"),
    ("lines", r"\bsg_this\.rows\b", "(sg_this.rows - 1)"),
    ("lines", r"\bsg_this\.columns\b", "(sg_this.columns - 1)"),
    ("lines", r"\bsg_row_total<sg_max_abs(?=[,>])", "sg_row_total<sg_sum"),
    ("lines", r"\bsg_row_total<sg_(?!max_abs)\w+(?=[,>])", "sg_row_total<sg_max_abs"),
    ("lines", r"sg_apart > 0;", "sg_apart > 1;"),
    ("lines", r"sg_upper \? sg_low : sg_high", "sg_low"),
    ("lines", r"(?<=\{)sg_row_computed, sg_column_computed", "sg_column_computed, sg_row_computed"),
    ("lines", r"\bsg_(?:row|column|matrix)_(?:values|states)\[\d+\] = \w+;", ";"),
    ("barriers", r"__syncthreads\(\);", ";"),
    ("option", r"(?m)^#if (SG_OPTION_\w+)$", r"#if !\1"),
)


def faults_in_kernel(text: str, file: str) -> list[Mutant]:
    """Every fault of the kernel ``text``, in the order of the text; ``file`` is kernel.c or kernel.cu.

    Inside the language's own functions, such as ``exp``, values aren't contracted or regrouped one by one: in
    a term of a thousandth of the result that changes one result in thousands, and compilers do it everywhere
    or nowhere ("flags").
    """
    tokens = Tokens(text)
    faults = (*_by_token(tokens, file), *_by_line(tokens, file), *_by_rule(text, file))
    found = {(*mutant.key, mutant.start): mutant for mutant in faults if not _HINT.search(mutant.source)}
    return sorted(found.values(), key=lambda m: (m.start, m.kind, m.after))


def _by_token(tokens: Tokens, file: str) -> Iterator[Mutant]:
    for i, token in enumerate(tokens):
        function = token.function
        if not function.startswith("sg_") or function in _LEFT_ALONE:
            continue
        sources: tuple[Source, ...] = _ANYWHERE
        if _BODY.fullmatch(function):
            sources += _IN_UPDATE
        if _STAGE.fullmatch(function):
            sources += (expressions.grouping,)
        if not _KERNEL.fullmatch(function) and function not in (*_VECTORS, *_CONVERSIONS):
            sources += (expressions.calls,)
        edits: list[Edit] = [edit for source in sources for edit in source(tokens, i)]
        line = _line(tokens.text, token.start)
        for name, first, last, after in edits:
            kind = _kind(name, function, line)
            if name == "flush" and _NOT_OF_ELEMENTS.search(line):
                continue
            if file == "kernel.cu":  # where fma is a function without further ado
                after = after.replace("__builtin_fma", "fma")
            if kind == name or name not in ("flush", "contraction"):  # addresses are no floats
                yield expressions.mutant(tokens, file, kind, (name, first, last, after))


def _kind(kind: str, function: str, line: str) -> str:
    """What a fault is called where it stands."""
    if function in _VECTORS:
        return "lanes"
    if function in _CONVERSIONS:
        return "conversion"
    if function in _REDUCING or "sg_partials" in line:
        return "reduction"
    if _LINES.fullmatch(function):
        return "lines"
    if _KERNEL.fullmatch(function):
        if _OF_LINES.search(line):
            return "lines"
        if re.search(r"buffers\[|sg_buffers, \d", line):
            return "chunks" if kind != "constant" else "buffer"
        if "sg_values[" in line:
            return "row"
        return "chunks" if re.search(r"chunks?\b|tensor|start", line) else "bounds"
    if _STAGE.fullmatch(function):
        # Which tensors there are, and where what they have lies: the rest is the rule's own.
        if _OF_LINES.search(line) and "const sg_i64" in line:
            return "lines"
        return "stage" if "sg_i" in line or "sg_position" in line or "sg_shared" in line else kind
    if not _BODY.fullmatch(function):
        return "functions"
    if line.lstrip().startswith("for (") or "sg_first" in line:
        return "bounds"
    return "row" if _ROW.search(line) else kind


def _by_line(tokens: Tokens, file: str) -> Iterator[Mutant]:
    """Faults of the lines of each update and stage: values, loads, stores, buffers, scalars."""
    text = tokens.text
    places: dict[str, list[int]] = {}
    for token in tokens:
        if _BODY.fullmatch(token.function) or _STAGE.fullmatch(token.function):
            places.setdefault(token.function, []).extend((token.start, token.end))
    for function, found in places.items():
        start = text.rfind("\n", 0, min(found)) + 1
        # Names of pointers stand before the body of a C function.
        before = text.rfind(function, 0, start)
        yield from _in_body(text, file, before, start, max(found))


def _in_body(text: str, file: str, before: int, start: int, end: int) -> Iterator[Mutant]:
    names = _declared(text[start:end])
    always = [name for name in names if not names[name]]
    pointers = list(dict.fromkeys(re.findall(r"\bsg_(?!lanes_)\w+_at\b", text[before:end])))
    lanes = list(dict.fromkeys(re.findall(r"\bsg_lanes_\w+\b", text[start:end])))
    position = start
    for line in text[start:end].splitlines(keepends=True):
        code = line.partition("//")[0]

        def edit(kind: str, first: int, last: int, after: str, here: int = position) -> Mutant:
            return at(text, file, kind, here + first, here + last, after)

        load, store = _LOAD.search(code), _STORE.search(code)
        row, value = _ROW.search(code), _VALUE.search(code)
        if load is not None:
            yield edit("load", *load.span(1), "(sg_real)0.0")
        elif row is not None:
            yield edit("float32 scalar", *row.span(1), f"(float){row.group(1)}")
        elif store is not None:
            yield edit("store", *store.span(), ";")
            yield from _stale(edit, code, store.span(), always, "store")
        elif value is not None and value.group(1) in names:
            known = always[: always.index(value.group(1))] if value.group(1) in always else always
            yield from _stale(edit, code, value.span(2), known, "variable")
        elif re.search(r"\bsg_load\(.*\);", code):
            yield edit("load", len(code) - len(code.lstrip()), len(code.rstrip()), ";")
        for family in (pointers, lanes):
            for match in re.finditer(r"\bsg_\w+\b", code):
                if match.group() in family and "sg_real sg_lanes" not in code and "restrict" not in code:
                    other = family[family.index(match.group()) - 1]
                    yield edit("buffer", *match.span(), other)
        position += len(line)


def _stale(edit: MakeEdit, code: str, span: tuple[int, int], known: list[str], kind: str) -> Iterator[Mutant]:
    """Each value in a part of a line exchanged for the one declared before it, and for its old one."""
    for match in re.finditer(r"\b[A-Za-z_]\w*\b", code[span[0] : span[1]]):
        name = match.group()
        if name.startswith("sg_") or name not in known:
            continue
        first, last = span[0] + match.start(), span[0] + match.end()
        others = {known[known.index(name) - 1]}
        old = _CHANGED.fullmatch(name)
        if old is not None and old.group(1) in known:
            others.add(old.group(1))
        for other in sorted(others - {name}):
            yield edit(kind, first, last, other)


def _declared(body: str) -> dict[str, bool]:
    """The values that the update declares, in order, and whether an option guards them."""
    names: dict[str, bool] = {}
    depth = 0
    for line in body.splitlines():
        depth += line.startswith("#if") - line.startswith("#endif")
        match = re.search(r"const (?:sg_real|int|double) (\w+) =", line)
        if match is not None and not match.group(1).startswith("sg_"):
            names[match.group(1)] = depth > 0
    return names


def _by_rule(text: str, file: str) -> Iterator[Mutant]:
    for kind, pattern, after in _RULES:
        for match in re.finditer(pattern, text):
            changed = after(match) if callable(after) else match.expand(after)
            yield at(text, file, kind, match.start(), match.end(), changed)


def _line(text: str, position: int) -> str:
    end = text.find("\n", position)
    return text[text.rfind("\n", 0, position) + 1 : len(text) if end < 0 else end]
