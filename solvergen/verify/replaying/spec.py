"""The text of the spec that an optimizer was made from, found again by its digest."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from solvergen.errors import ReplayError, SpecError

if TYPE_CHECKING:
    from solvergen.runtime.definition import Definition
    from solvergen.runtime.optimizer import Optimizer

LEVELS = 4
"""So many folders above a package are looked into for its specs."""


def spec_text(definition: Definition) -> str | None:
    """The text of the spec file that means what ``definition`` does, or None if none is found.

    Looked for under the path that the definition remembers (a folder and a name): here, beside the
    package and above it, and among the specs that come with solvergen.
    """
    # Only here, so that verifying a package needs nothing of the compile half.
    import solvergen
    from solvergen.frontend.transforms import transformed
    from solvergen.spec.reader import read_spec

    path = PurePosixPath(definition.spec)
    package = Path(definition.folder)
    shipped = Path(solvergen.__file__).parent / "_data" / "specs"
    places = [Path(path), *(parent / path for parent in package.parents[:LEVELS]), shipped / path.name]
    for place in places:
        try:
            if transformed(read_spec(place))[0].digest == definition.digest:
                return place.read_text(encoding="utf-8-sig")
        except (SpecError, OSError, ValueError):
            continue
    return None


@contextmanager
def optimizer_of(text: str, path: str, name: str, digest: str) -> Iterator[type[Optimizer]]:
    """The optimizer ``name`` of a spec's text, compiled on the spot, of use inside the ``with``.

    ``path``: what the spec is called in what is printed; its last two parts are kept. Raises ReplayError
    unless the text is that of a spec of this name and digest.
    """
    from solvergen.verify.collect import built_from

    parts = PurePosixPath(path).parts[-2:]
    if not parts or any(part in ("", "/", ".", "..") for part in parts):
        raise ReplayError(f"{path!r:.80} is not the path of a spec")
    with tempfile.TemporaryDirectory(prefix="solvergen-replay-") as folder:
        file = Path(folder, *parts)
        try:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        except (OSError, ValueError) as problem:
            raise ReplayError(f"the spec {path!r:.80} can't be written to be compiled: {problem}") from None
        try:
            with built_from([file]) as optimizers:
                optimizer = optimizers.get(name)
                if optimizer is None or optimizer.definition.digest != digest:
                    raise ReplayError("the spec's text isn't the one that the digest and the name are of")
                yield optimizer
        except SpecError as wrong:
            first = wrong.diagnostics[0]
            raise ReplayError(
                f"the spec's text doesn't compile: line {first.location.line}: {first.code}: {first.message}"
            ) from None
