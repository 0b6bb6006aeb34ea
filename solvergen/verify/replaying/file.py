"""A finding as a file: JSON, plain data, every bit of the run that shows it, and the spec's text.

Written whole or not at all, under a name that rule, backend and run decide, so that what is found again is
in the same file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import solvergen
from solvergen.errors import CacheWarning, ReplayError
from solvergen.files import write_atomically
from solvergen.runtime.cache_folder import open_cache
from solvergen.runtime.snapshots import strict_json
from solvergen.verify.disagreement import Disagreement
from solvergen.verify.example import Example
from solvergen.verify.replaying.data import example_data, example_from, mapping, text
from solvergen.verify.replaying.spec import spec_text

FORMAT = "solvergen replay 1"
FOLDER_VARIABLE = "SOLVERGEN_REPLAY_DIR"
MAX_BYTES = 256 << 20
"""Of a replay file; a run of the default limits has some megabytes at most."""


@dataclass(frozen=True, eq=False)
class Replay:
    """What a replay file holds.

    ``optimizer`` is the spec's name; ``spec``, ``digest`` and ``text`` are its path as it is printed, the
    fingerprint of what it means, and its text (None where that wasn't found); ``backend`` is a name.
    """

    optimizer: str
    spec: str
    digest: str
    text: str | None
    backend: str
    example: Example


def write_replay(finding: Disagreement, folder: str | os.PathLike[str] | None = None) -> Path:
    """Write ``finding`` to a file of its own and return the path.

    ``folder`` (made if need be): if None, ``$SOLVERGEN_REPLAY_DIR``, else ``replays`` in the folder in which
    kernels are kept. Raises ReplayError if that can't be written.
    """
    definition = finding.definition
    data = {
        "format": FORMAT,
        "solvergen": solvergen.__version__,
        "optimizer": definition.name,
        "spec": {
            "path": definition.spec,
            "digest": definition.digest,
            "text": spec_text(definition),
        },
        "backend": finding.backend,
        "finding": finding.as_json(),
        "example": example_data(finding.example),
    }
    encoded = (json.dumps(data, indent=1, ensure_ascii=True, allow_nan=False) + "\n").encode("ascii")
    if len(encoded) > MAX_BYTES:
        raise ReplayError(f"the run has {len(encoded)} bytes, too many for a replay file")
    # What an error says may differ from run to run (addresses, for one); what leads to it doesn't.
    run = json.dumps([definition.digest, finding.backend, data["example"]], sort_keys=True)
    key = hashlib.sha256(run.encode()).hexdigest()[:12]
    backend = re.sub(r"[^A-Za-z0-9_]", "_", finding.backend)[:20]
    try:
        target = _folder(folder) / f"{definition.name}-{backend}-{key}.json"
        write_atomically(target, encoded)
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename else ""
        raise ReplayError(f"no replay file could be written: {where}{problem.strerror or problem}") from None
    except ValueError as problem:  # a NUL in the path
        raise ReplayError(f"no replay file could be written to {folder!r:.80}: {problem}") from None
    return target


def _folder(given: str | os.PathLike[str] | None) -> Path:
    chosen = given if given is not None else os.environ.get(FOLDER_VARIABLE)
    if not chosen:
        with warnings.catch_warnings():
            # What it says is about kernels; the path that is printed tells where the file is.
            warnings.simplefilter("ignore", CacheWarning)
            return open_cache("replays").path
    folder = Path(chosen)
    folder.mkdir(parents=True, exist_ok=True)
    return folder.absolute()


def read_replay(path: str | os.PathLike[str]) -> Replay:
    """What the file ``path`` holds. Raises ReplayError, which says where, if it isn't a replay file."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as problem:  # ValueError: a NUL in the path
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else problem
        raise ReplayError(f"{_shown(path)}: {reason}") from None
    try:
        if len(data) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES >> 20} MiB")
        return _decoded(strict_json.parse(data))
    except (ValueError, OverflowError) as wrong:
        raise ReplayError(f"{_shown(path)} is not a replay file: {wrong}") from None


def _decoded(content: object) -> Replay:
    data = mapping("the file", content)
    if data.get("format") != FORMAT:
        raise ValueError(f"its format is {data.get('format')!r:.40}, not {FORMAT!r}")
    keys = ("format", "solvergen", "optimizer", "spec", "backend", "finding", "example")
    data = mapping("the file", data, keys)
    spec = mapping("spec", data["spec"], ("path", "digest", "text"))
    return Replay(
        optimizer=_name("optimizer", data["optimizer"]),
        spec=text("spec.path", spec["path"]),
        digest=text("spec.digest", spec["digest"]),
        text=None if spec["text"] is None else text("spec.text", spec["text"]),
        backend=_name("backend", data["backend"]),
        example=example_from(data["example"]),
    )


def _name(where: str, data: Any) -> str:
    name = text(where, data)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", name):
        raise ValueError(f"{where}: {name!r:.40} is not a name")
    return name


def _shown(path: str | os.PathLike[str]) -> str:
    name = os.fspath(path)
    return name if name.isprintable() else repr(name)
