"""A derived optimizer built, or found in the cache, and imported.

A package lies in a folder ``<key>.<SHA-256 of its manifest>`` of the cache. It is put there whole, by one
rename, and read back only if every file is what the manifest says. The key is a digest of all that decides
what it is: the specs, those that they may be derived from, and the compiler.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from solvergen import output
from solvergen.deriving.request import Request
from solvergen.errors import Diagnostic, OptimizerError, OutputError, SpecError, SpecWarning
from solvergen.output.manifest import digest
from solvergen.output.paths import MANIFEST
from solvergen.rebuild import compiler_state, digests_of_specs
from solvergen.runtime.cache_folder import CacheFolder, open_cache, private_cache
from solvergen.runtime.callers import level_of_program
from solvergen.runtime.importing import import_package
from solvergen.spec.files import named_in, shipped_folder, spec_files

if TYPE_CHECKING:
    from solvergen.runtime.optimizer import Optimizer

KIND = "derived"
FORMAT = 2

_lock = threading.RLock()


def built(request: Request) -> type[Optimizer]:
    """The class that ``request`` asks for. Raises SpecError, OptimizerError."""
    with _lock:  # of two threads that ask for the same, one builds
        key = _key(request)
        module = sys.modules.get(_module_name(key))
        if module is None:
            cache = open_cache(KIND)
            folder = _find(cache, key) or _find(private_cache(KIND), key) or _build(request, cache, key)
            module = import_package(_module_name(key), folder)
        (name,) = module.__all__
        found: type[Optimizer] = getattr(module, name)
        return found


def _key(request: Request) -> str:
    """A digest of all that decides what the package is."""
    try:
        folders = [folder for folder in (request.folder, shipped_folder()) if folder is not None]
        decisive = {
            "format": FORMAT,
            "compiler": compiler_state(),
            "texts": request.texts,
            "bases": [digests_of_specs(folder) for folder in folders],
        }
    except (OSError, ValueError) as problem:
        raise OptimizerError(f"derive can't read what {request.base!r} is derived from: {problem}") from None
    return hashlib.sha256(json.dumps(decisive).encode("ascii")).hexdigest()


def _module_name(key: str) -> str:
    return f"solvergen_derived_{key[:32]}"


def _find(cache: CacheFolder, key: str) -> Path | None:
    """The folder of the package, if it is whole; what isn't is removed."""
    for folder in sorted(cache.path.glob(f"{key}.*")):
        if output.standing(folder, folder.name.partition(".")[2]) is not None:
            return folder
        _remove(folder)
    return None


def _remove(path: Path) -> None:
    """Make way, whatever lies there, if that can be."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def _build(request: Request, cache: CacheFolder, key: str) -> Path:
    """Compile the package and put it into the cache, or where that can't be written into a folder of this
    process."""
    artifacts = _compiled(request)
    try:
        return _put(cache, key, artifacts)
    except (OSError, OutputError):
        try:
            return _put(private_cache(KIND), key, artifacts)
        except OSError as problem:
            raise OptimizerError(f"a derived optimizer can't be written anywhere: {problem}") from problem


def _put(cache: CacheFolder, key: str, artifacts: dict[str, str]) -> Path:
    """Write the package whole."""
    made = cache.path / f"tmp-{secrets.token_hex(8)}"
    try:
        made.mkdir(mode=0o700)
        output.write(made, artifacts)
        target = cache.path / f"{key}.{digest((made / MANIFEST).read_bytes())}"
        with contextlib.suppress(OSError):  # another process was first, with the same
            os.rename(made, target)
        if not target.is_dir():
            raise OSError(f"{target} can't be made")
        return target
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _compiled(request: Request) -> dict[str, str]:
    """The texts of the package. Raises SpecError, which speaks of what ``derive`` was given."""
    from solvergen.compiler import build

    with _written(request) as folder:
        try:
            compiled = build([_place(folder, request.name)])
        except SpecError as problem:
            told = tuple(_told(found, request, folder) for found in problem.diagnostics)
            raise SpecError(told) from None
        for finding in (_told(found, request, folder) for found in compiled.warnings):
            message = f"{finding.location}: {finding.code}: {finding.message}"
            warnings.warn(message, SpecWarning, stacklevel=level_of_program())
        return compiled.artifacts


@contextlib.contextmanager
def _written(request: Request) -> Iterator[Path]:
    """The specs as files, among copies of those that stand beside the base."""
    with tempfile.TemporaryDirectory(prefix="solvergen-") as scratch:
        folder = Path(scratch, KIND)
        folder.mkdir()
        if request.folder is not None:
            for file in spec_files(request.folder)[0]:
                shutil.copyfile(file, folder / Path(file).name)
        for name, text in request.texts:
            path = _place(folder, name)
            if path.exists():
                raise OptimizerError(
                    f"there is a spec {path.name} beside {request.base!r}: give the derived one another "
                    "name, derive(..., name=...)"
                )
            if name == request.name and request.named_after is not None:
                text += _class_name(folder, request.named_after)
            path.write_text(text, encoding="utf-8")
        yield folder


def _class_name(folder: Path, base: str) -> str:
    """The line of a spec that calls its class after the base's; nothing where that can't be read, which is
    said of the whole spec."""
    from solvergen.spec.reader import examine

    path = named_in(folder, base) or named_in(shipped_folder(), base)
    spec = None if path is None else examine(path)[0]
    return "" if spec is None else f"class_name: {spec.class_name}Derived\n"


def _place(folder: Path, name: str) -> Path:
    if not name.isidentifier():
        raise OptimizerError(f"name of derive must be a name as specs have them, not {name!r:.60}")
    return folder / f"{name}.yaml"


def _told(found: Diagnostic, request: Request, folder: Path) -> Diagnostic:
    """A finding without the place where the specs were written."""
    ours = {f"{folder.as_posix()}/{name}.yaml" for name, _ in request.texts}
    file = found.location.file
    shown = f"derive({request.base!r})" if file in ours else file

    def plain(text: str | None) -> str | None:
        return None if text is None else text.replace(folder.as_posix(), str(request.folder))

    return found._replace(
        location=found.location._replace(file=plain(shown) or shown),
        message=plain(found.message) or found.message,
        hint=plain(found.hint),
    )
