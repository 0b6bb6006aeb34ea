"""Which optimizer classes a command line means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from solvergen.cli import specs

if TYPE_CHECKING:
    from solvergen.verify.collect import Optimizers


@contextmanager
def optimizers(folder: Path | None, *, wrap: bool = False) -> Iterator[Optimizers]:
    """The optimizers of the specs meant; the shipped ones as they are, others compiled on the spot, ``wrap``:
    with the wrapped ones beside them."""
    from solvergen.verify import built_from, shipped

    source = specs.folder_or_shipped(folder)
    if source == specs.shipped():
        yield shipped()
    else:
        with built_from([source], wrap=wrap) as found:
            yield found


def selected(found: Optimizers, names: Sequence[str], folder: Path) -> Optimizers:
    """Those asked for, all if ``names`` is empty; a usage error for a name that isn't there."""
    from solvergen.verify import VerificationError, select

    try:
        return select(found, names)
    except VerificationError as unknown:
        raise typer.BadParameter(f"{unknown}{specs.elsewhere(folder)}", param_hint="'NAMES'") from None
