"""What kernels' templates place, made by hand: the fields of a pass that a test has nothing to say about."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def pass_context(**fields: Any) -> SimpleNamespace:
    """A ``PassContext`` with these fields. Of the others it is the only pass of a rule without lines."""
    nothing: dict[str, Any] = dict.fromkeys(
        (
            "scalars",
            "values",
            "reductions",
            "row_values",
            "column_values",
            "matrix_values",
            "row_reductions",
            "column_reductions",
        ),
        (),
    )
    found = SimpleNamespace(
        **{
            "number": 0,
            "suffix": "",
            "reason": "by hand",
            "guard": None,
            "walk": "flat",
            "by_tiles": False,
            **nothing,
            **fields,
        }
    )
    found.line_values = (*found.row_values, *found.column_values, *found.matrix_values)
    found.forms_lines = found.walk == "tiles"
    return found
