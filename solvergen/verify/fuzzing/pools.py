"""Ranges of hyperparameters, and prose, that specs are drawn from."""

from __future__ import annotations

from solvergen.verify.fuzzing.spec import Range

RANGES = (
    Range("0.1"), Range("1e-3", {"min": "0"}), Range("0.9", {"min": "0", "below": "1"}),
    Range("1e-8", {"above": "0"}), Range("0.5", {"min": "0", "max": "1"}),
    Range("2", {"min": "-3", "max": "3"}),
    Range("0"), Range("1"), Range("-0.5", {"above": "-1", "below": "1"}), Range("0.0", {"min": "0"}),
    Range("1e+2", {"min": "1e-3"}), Range("3E-1", {"max": ".5"}), Range("1.5"), Range("-2.", {"below": "-1"}),
    Range("0.30000000000000004", {"min": "0.3", "max": "0.4"}), Range("1e30"), Range("1e-40", {"min": "0"}),
    Range("5e-324", {"above": "0", "max": "1"}), Range("0x1F"), Range("+.25"),
)  # fmt: skip
"""Defaults with bounds, in many spellings, plain ones first."""

WHOLE_RANGES = (
    Range("3", {"min": "1"}), Range("2"), Range("1", {"min": "0", "max": "5"}), Range("-1", {"below": "4"}),
    Range("0"), Range("10", {"above": "9", "below": "2e1"}), Range("16777217", {"min": "1"}), Range("4.0"),
    Range("2", {"min": "1.5", "max": "64"}),
)  # fmt: skip
"""The same of whole numbers."""

PROSE = (
    "A rule.", "What it is", "learning rate", "", "déjà vu, ∑ β₁ 学習率 🙂", "it's \"quoted\" 'twice'",
    "a: b # c",
    "*/ /* // #include", '"""', "'''", "{{ x }} {% if %} {# #}", "back\\slash \\n \\", "100 %", "- dash",
    "true",
    "null", "1e-3", "x" * 200, "# hash", "a\nb", "trailing backslash \\", "??/ trigraph ??'", "@ ` ! & * | >",
    "~",
    "%s {0} ${x}", "tab\there", "  spaces  ", "[a, b] {c: d}", "ends with quote\"", "no\u00a0break",
)  # fmt: skip
"""Text with whatever could end a comment or a string, or mean something to YAML, Jinja or C."""
