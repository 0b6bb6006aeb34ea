"""Writing what matplotlib has drawn: whole or not at all, and the same figure as the same bytes."""

from __future__ import annotations

import io
import os
import warnings
from typing import Any

from solvergen.errors import SolvergenError
from solvergen.files import write_atomically
from solvergen.runtime.naming import printable, shortened

# No dates, which matplotlib would put there.
_METADATA: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def as_label(name: str) -> str:
    """A stranger's name as a picture shows it. Write it with ``parse_math=False``: a $ in it is a $."""
    return shortened(printable(name))


def write_figure(path: str | os.PathLike[str], figure: Any, kind: str, *, dpi: int | None = None) -> None:
    """Write a figure as a picture of this kind: svg, png or pdf.

    Raises:
        SolvergenError: matplotlib can't draw it.
        OSError: the file can't be written.
    """
    from matplotlib import rc_context

    data = io.BytesIO()
    # The salt makes names of an SVG's parts, which else are random. What matplotlib warns of can be seen in
    # the picture: letters that the font lacks, crowded axes.
    with rc_context({"svg.hashsalt": "solvergen"}), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            figure.savefig(data, format=kind, dpi=dpi or "figure", metadata=_METADATA.get(kind))
        except MemoryError:
            raise
        except Exception as error:  # numbers at the ends of their range lead to all kinds of them
            raise SolvergenError(f"{os.fspath(path)}: matplotlib can't draw this: {error}") from error
    try:
        write_atomically(path, data.getvalue())
    except OSError as error:  # which names the file under its first name
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
