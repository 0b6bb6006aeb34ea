"""Mutants that compute the same bits although their code is another, each with the reason."""

from __future__ import annotations

import re
from dataclasses import dataclass

from solvergen.verify.mutations import Mutant

_KERNELS = r"kernel\.cu?"


@dataclass(frozen=True)
class Equivalent:
    """``file`` and ``line`` are patterns for the file and for some of the line; the fault puts what ``after``
    matches in the place of what ``before`` matches. ``specs``: a pattern for those in which it is so.
    ``changed``: one for some of the line with the fault, where the same stands in it several times.
    ``function``: one for the function of ``kernel.c`` that it stands in."""

    file: str
    line: str
    before: str
    after: str
    reason: str
    specs: str = r".*"
    changed: str = r""
    function: str = r".*"

    def covers(self, mutant: Mutant, spec: str) -> bool:
        """Whether it speaks of this mutant of the spec."""
        return (
            re.fullmatch(self.specs, spec) is not None
            and re.fullmatch(self.file, mutant.file) is not None
            and re.search(self.line, mutant.source) is not None
            and re.search(self.changed, mutant.changed) is not None
            and re.fullmatch(self.function, mutant.function) is not None
            and re.fullmatch(self.before, mutant.before, re.DOTALL) is not None
            and re.fullmatch(self.after, mutant.after, re.DOTALL) is not None
        )


_PAYLOAD = "another payload of NaN, and any NaN is like any other"
_STORED = "the parameter is only stored afterwards, and a store rounds too"
_SLOWER = (
    "elements are taken one by one where words could be: the same bits (tests/unit/cuda count the words)"
)
_WITH_STATE = r"adam|lion|caffe_adadelta|everything|selections"
_NUMBERED = "lanes are numbered from another element: halving pairs the same ones"
_EVEN = "addresses and their distances are even"
_SINGLE = r"\(lambda x: float\(__import__\(\"numpy\"\)\.float32\(x\)\)\)\(.*\)"
_ROUNDED_LATE = "what float32 rounds of t is so large that this is the same"
_HALVES = "halves and ones, which float32 holds"
_SAME_THERE = "at the boundary both formulas give the same bits"

EQUIVALENT = (
    Equivalent(
        _KERNELS,
        r"param_new = sg_round_param\(",
        r"sg_round_param\(.*\)",
        r"\(.*\)",
        _STORED,
        r"(?!selections).*",
    ),
    Equivalent(
        r"scalars\.py",
        r" = 1\.0 if .* else 0\.0$",
        r"1\.0",
        r"2\.0",
        "a condition, which kernels compare with 0",
        changed=r" = 2\.0 if ",
    ),
    Equivalent(
        r"scalars\.py",
        r"^\s*(?:wide = \()?\w+ if .* else 0\.0,",
        r"0\.0",
        r"1\.0",
        "an entry of the row that kernels don't read under this option",
    ),
    # Scalars that float32 holds.
    Equivalent(r"scalars\.py", r"^\s*\w+ = 1\.0$", r"1\.0", _SINGLE, "float32 holds 1"),
    Equivalent(r"scalars\.py", r" = 1\.0 if .*\bt == 1\.0.* else 0\.0$", r"t", _SINGLE, "t is 1 or isn't"),
    *(
        Equivalent(r"scalars\.py", line, before, _SINGLE, reason, r"everything")
        for line, before, reason in (
            (r" = minimum\(t / 10\.0, 1\.0\)$", r"t", _ROUNDED_LATE),
            (r"\* exp\(-t / 1000\.0\) \*", r"t", _ROUNDED_LATE),
            (r"\bsign\(cycle\) - 0\.5\b", r"1\.0 \+ absolute\(.*\)|sign\(cycle\) - 0\.5", _HALVES),
            (
                r"\(floor_t_over_period, 1\.0 \+ period\)$",
                r"1\.0 \+ period",
                "lost in the sum unless cycle is small, "
                "and beyond 2**24, where float32 rounds the period, it isn't",
            ),
        )
    ),
    # Rounding to bfloat16 and float16.
    Equivalent(_KERNELS, r" quiet = ", r"0x40u", r"0x3fu", _PAYLOAD),
    Equivalent(_KERNELS, r"\? 0x7e00u : bounded", r"0x7e00u", r"0x7dffu", _PAYLOAD),
    Equivalent(_KERNELS, r"magnitude < 0x400u \? tiny", r"<", r"<=", _SAME_THERE),
    Equivalent(_KERNELS, r"magnitude < 0x38800000u \? tiny", r"<", r"<=", _SAME_THERE),
    Equivalent(_KERNELS, r"magnitude < 0x38800000u \? tiny", r"0x38800000u", r"0x387fffffu", _SAME_THERE),
    Equivalent(_KERNELS, r"magnitude >= 0x47800000u", r">=", r">", _SAME_THERE),
    Equivalent(_KERNELS, r"magnitude >= 0x47800000u", r"0x47800000u", r"0x477fffffu", _SAME_THERE),
    Equivalent(
        r"kernel\.c",
        r"sg_from_bits32\(magnitude\) \+ 0\.5f\) - 0x3f000000u",
        r"-",
        r"\+",
        "what is added or subtracted has no bits below the sixteenth, and only those are stored",
    ),
    *(
        Equivalent(
            r"kernel\.cu",
            r"const sg_u32 shift = exponent > 112u \? 14u : exponent < 101u \? 25u",
            before,
            after,
            "the shift is the same there, or what it shifts isn't used, or nothing is left either way",
        )
        for before, after in (
            (r">", r">="),
            (r"112u", r"111u"),
            (r"14u", r"13u"),
            (r"<", r"<="),
            (r"101u", r"100u"),
            (r"14u : exponent < 101u \? 25u", r"exponent < 101u \? 25u : \(14u\)"),
        )
    ),
    Equivalent(
        r"kernel\.c",
        r"int64_t sg_end = sg_first_row\(",
        r"[01]|\+| \+ chunk->start|chunk->start|sg_param|sg_grad",
        r"[01]|-|\(chunk->start \+ 1\)||sg_\w+",
        _NUMBERED,
    ),
    Equivalent(r"kernel\.c", r"const int64_t before = .* % SG_LINE\) / itemsize;", r"-", r"", _NUMBERED),
    Equivalent(
        r"kernel\.c",
        r"return before \? before : SG_LANES;",
        r"before : SG_LANES",
        r"SG_LANES : \(before\)",
        "the first row has all lanes, or none and the second has them",
    ),
    *(
        Equivalent(
            r"kernel\.c",
            r"for \(int64_t sg_begin = 0; sg_begin < chunk->count;",
            before,
            after,
            "behind a row that ends with the chunk there is one more: it begins and ends there",
            changed=r"; sg_begin (?:<= chunk->count|< \(chunk->count \+ 1\));",
        )
        for before, after in ((r"<", r"<="), (r"chunk->count", r"\(chunk->count \+ 1\)"))
    ),
    *(
        Equivalent(
            r"kernel\.c",
            r"\(sg_end < chunk->count \? sg_end : chunk->count\)",
            before,
            after,
            "where both are equal it doesn't matter which is chosen",
            changed=r"\(sg_end (?:<= chunk->count|< \(chunk->count \+ 1\)) \?",
        )
        for before, after in ((r"<", r"<="), (r"chunk->count", r"\(chunk->count \+ 1\)"))
    ),
    Equivalent(
        r"kernel\.c",
        r"\(sg_end < chunk->count \? sg_end : chunk->count\)",
        r"chunk->count",
        r"\(chunk->count - 1\)",
        "a last element with a row of its own is taken by the row before, too: nothing is stored here, and "
        "what is added lies behind the lanes (AddressSanitizer sees it)",
        r"lamb",
        r"\(sg_end < \(chunk->count - 1\) \?",
        r"sg_pass_0",
    ),
    Equivalent(
        r"kernel\.c",
        r"sg_l < \d \* SG_LANES; \+\+sg_l\)",
        r"<",
        r"<=",
        "a zero is written behind the lanes, where the stack holds nothing yet (AddressSanitizer sees it)",
    ),
    # Lines: short rows may be taken together, and are each by itself all the same.
    *(
        Equivalent(
            r"kernel\.c",
            r"const int64_t sg_together = ",
            before,
            after,
            "as many rows are taken together, or others: the terms of each are the same",
        )
        for before, after in (
            (r"<=", r"<"),
            (r"2", r"1"),
            (r"SG_TILE_COLUMNS / 2", r"2 / SG_TILE_COLUMNS"),
        )
    ),
    Equivalent(
        r"kernel\.c",
        r"const int64_t sg_rows = sg_geometry\[1\];",
        r"sg_geometry\[1\]|1",
        r"sg_geometry\[2\]|0",
        "it is multiplied with the number of the matrix, of which there is one",
        r"rowwise_adagrad",
    ),
    Equivalent(
        _KERNELS,
        r"const double larger = a > b \? a : b;",
        r">",
        r">=",
        "they are absolute values, of which equal ones have equal bits",
    ),
    *(
        Equivalent(
            r"kernel\.cu",
            r"int sg_span_bits\(const int sg_words\)",
            before,
            after,
            "a row has more threads than words, and lanes without words are +0.0 as those without threads",
            changed=changed,
        )
        for before, after, changed in (
            (r">", r">=", r""),
            (r"16", r"15", r""),
            (r"1", r"0", r""),
            (r"-", r"\+", r"sg_words \+ 1"),
        )
    ),
    Equivalent(
        r"tables",
        r"^chunks$",
        r"chunks",
        r"each begins one element early",
        "no total of a tensor is taken, and an element is computed alike in every chunk",
        r"sm3|rowwise_adagrad",
    ),
    Equivalent(
        r"kernel\.c",
        r"^\s*\(sg_grad \*\)buffers\[1\] \+ sg_at,",
        r"1",
        r"0",
        "this pass reads no gradients",
        r"reductions",
        function=r"sg_pass_3",
    ),
    *(
        Equivalent(
            r"kernel\.c",
            r"^\s*sg_kept = sg_width > SG_KEPT \? -1 : sg_first_column;",
            before,
            after,
            "values of columns that are kept are rounded once more; those of wide matrices are in any case",
        )
        for before, after in ((r"sg_width > SG_KEPT", r"SG_KEPT > sg_width"), (r">", r">="))
    ),
    # Norms of lamb.
    Equivalent(
        r"scalars\.py",
        r"^\s*wide = \(max_grad_norm_above_zero if clip_grad_norm else",
        r"clip_grad_norm",
        r"max_grad_norm",
        "it is 0 where no norm is taken, and where it is 0 so is the entry",
        r"lamb",
    ),
    Equivalent(
        _KERNELS,
        r"const double max_grad_norm_above_zero = ",
        r"0",
        r"1",
        "max_grad_norm itself, which is never below 0, and is compared with 0",
        r"lamb",
    ),
    Equivalent(
        _KERNELS,
        r"sg_max64\(norm2_grad_all / max_grad_norm, 1\.0\)",
        r"sg_max64\(.*\)",
        r"sg_max64\(1\.0, .*\)",
        "the larger one is the same, and NaN if there is one; neither is a zero",
        r"lamb",
    ),
    Equivalent(
        _KERNELS,
        r"const double ratio_next = sg_min64\(ratio, 1\.0\)",
        r"sg_min64\(.*\)",
        r"sg_min64\(1\.0, .*\)",
        "the smaller one is the same, and NaN if there is one; the ratio is no -0.0",
        r"lamb",
    ),
    # Where the words of a chunk begin.
    Equivalent(r"kernel\.cu", r"return \(sg_address & 15u\) == 0", r"15u", r"14u", _EVEN),
    Equivalent(r"kernel\.cu", r"const int sg_head = ", r"15u", r"14u", _EVEN),
    Equivalent(r"kernel\.cu", r"return \(sg_address & 15u\) == 0", r"&", r"\|", _SLOWER),
    Equivalent(r"kernel\.cu", r"return \(sg_address & 15u\) == 0", r"0", r"1", _SLOWER),
    Equivalent(r"kernel\.cu", r"sg_u64 sg_address = 0;", r"0", r"1", _SLOWER),
    Equivalent(r"kernel\.cu", r"const int sg_head = ", r"/", r"\*", _SLOWER),
    Equivalent(r"kernel\.cu", r"const int sg_head = ", r"-", r"", _SLOWER),
    Equivalent(r"kernel\.cu", r"const int sg_head = ", r"\(int\)\(-re.*", r"\(int\)sizeof .*", _SLOWER),
    Equivalent(
        r"kernel\.cu",
        r"sg_head < sg_count \? sg_head",
        r"<",
        r"<=",
        "where both are equal it doesn't matter which is returned",
    ),
    Equivalent(r"kernel\.cu", r"sg_head < sg_count \? sg_head", r"sg_head < sg_count", r".*", _SLOWER),
    Equivalent(
        r"kernel\.cu",
        r"sg_head\(sg_at, sg_this\.count\)",
        r"sg_this\.count",
        r"\(sg_this\.count [-+] 1\)",
        _SLOWER,
    ),
    Equivalent(
        r"kernel\.cu",
        r"const int sg_words = \(sg_this\.count - sg_head_count\)",
        r"sg_this\.count",
        r"\(sg_this\.count - 1\)",
        _SLOWER,
    ),
    Equivalent(
        r"kernel\.cu",
        r"sg_address \|= .*sg_param_at",
        r"\|=",
        r"&=",
        "a state begins where its parameter does, and is looked at too",
        _WITH_STATE,
    ),
    Equivalent(
        r"kernel\.cu",
        r"sg_address \|= .*sg_(?!grad_)\w+_at \+ sg_head\)",
        r"\+",
        r"-",
        "at worst slower: a state begins where its parameter does, and the other is looked at rightly",
        _WITH_STATE,
    ),
)


def reason_of(mutant: Mutant, spec: str) -> str | None:
    """Why a mutant of the spec computes the same; None if it isn't known to."""
    return next((known.reason for known in EQUIVALENT if known.covers(mutant, spec)), None)
