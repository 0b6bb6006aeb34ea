"""How large a spec may be. Far above any real one; there so that hostile files cost little."""

from __future__ import annotations

MAX_BYTES = 128 * 1024
"""Size of a spec file."""

MAX_DEPTH = 12
"""Nesting of YAML collections."""

MAX_VALUES = 10_000
"""YAML values in a file, keys included."""

MAX_NAME = 64
"""Characters of a name."""

MAX_TEXT = 4_000
"""Characters of one text: an equation, a condition, a docstring."""

MAX_WHOLE = 2.0**53
"""Up to here every whole number is a float64."""

MAX_HYPERPARAMETERS = 64
MAX_OPTIONS = 10  # the same as solvergen.ir.guards.MAX_OPTIONS, which this layer can't import
MAX_STATE = 32
MAX_STATEMENTS = 512
MAX_CONSTRAINTS = 64
MAX_STAGES = 32

MAX_BASES = 8
"""Specs in a chain in which each extends the next."""

MAX_DIAGNOSTICS = 100
"""Findings that are reported of one file; beyond them only their number is."""
