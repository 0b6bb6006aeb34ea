"""Spec files and folders of them, read into the model."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from solvergen.errors import Diagnostic, Location, SpecError
from solvergen.spec.build import build_spec
from solvergen.spec.characters import first_refused, refusal
from solvergen.spec.checks import check
from solvergen.spec.files import named_in, posix, shipped_folder, spec_files, unreadable
from solvergen.spec.forms import expand
from solvergen.spec.limits import MAX_BASES, MAX_BYTES, MAX_DIAGNOSTICS
from solvergen.spec.mend import mend
from solvergen.spec.model import Spec
from solvergen.spec.names import problem_with_spec_name
from solvergen.spec.source import Source
from solvergen.spec.structure import validate
from solvergen.spec.suggest import instead_of_key
from solvergen.spec.tree import Mapping, Scalar, parse_tree, shorten

_USABLE_DESPITE = frozenset({"SG013", "SG015", "SG024", "SG025"})
"""Findings about numbers: the equations can still be looked at, and complained about, as well."""

_MENDABLE = _USABLE_DESPITE | {
    "SG010",
    "SG011",
    "SG012",
    "SG014",
    "SG020",
    "SG021",
    "SG027",
    "SG028",
    "SG029",
}
"""Findings about the shape, too: what isn't as it should be is left out before looking further."""


def read_spec(path: str | os.PathLike[str]) -> Spec:
    """The spec in the file ``path``.

    Raises SpecError with everything that is wrong with it.
    """
    spec, diagnostics = examine(path)
    if spec is None or any(d.severity == "error" for d in diagnostics):
        raise SpecError(diagnostics)
    return spec


def read_specs(*paths: str | os.PathLike[str]) -> tuple[Spec, ...]:
    """The specs in ``paths``, by name. A folder stands for its ``*.yaml`` and ``*.yml``, not those below it.

    Raises SpecError with everything that is wrong with any of them, and if two want the same name or
    class name, or there is none. A file that is named twice is read once.
    """
    specs: list[Spec] = []
    diagnostics: list[Diagnostic] = []
    read: set[str] = set()
    for path in paths:
        files, problem = spec_files(path)
        if problem is not None:
            diagnostics.append(problem)
        for file in files:
            identity = os.path.realpath(file)
            if identity in read:
                continue
            read.add(identity)
            spec, found = examine(file)
            diagnostics += found
            if spec is not None:
                specs.append(spec)
    diagnostics += check_folder(specs)
    if any(d.severity == "error" for d in diagnostics):
        raise SpecError(tuple(diagnostics))
    return tuple(sorted(specs, key=lambda spec: spec.name))


def examine(path: str | os.PathLike[str]) -> tuple[Spec | None, tuple[Diagnostic, ...]]:
    """The spec in the file ``path`` as far as it can be made out, and every finding, in the file's order.

    There may be both: with some errors (a default outside its range, an unknown key) what the file
    means is clear enough to check its equations too; such a spec is for nothing else. Never raises for
    anything that is in the file.
    """
    return _examine(path, ())[:2]


_Examined = tuple[Spec | None, tuple[Diagnostic, ...], Mapping | None]


def _examine(path: str | os.PathLike[str], chain: tuple[str, ...]) -> _Examined:
    """As ``examine``, and the tree written out. ``chain``: the files that are derived from this one."""
    shown = posix(path)
    text, problem = _read_text(path, shown)
    if problem is not None:
        return None, (problem,), None
    source = Source.of(shown, text)
    tree, found = parse_tree(source)
    spec = None
    if tree is not None:
        whole = True
        if isinstance(tree, Mapping):
            tree, whole, of_form = expand(tree, source, lambda name: _base(name, path, chain))
            found += of_form
        document, structural = validate(tree, source)
        found += structural
        if isinstance(tree, Mapping):
            found += check(tree, source)
            errors = {d.code for d in found if d.severity == "error"}
            if not whole:
                pass  # what its equations would be isn't known
            elif document is not None and errors <= _USABLE_DESPITE:
                spec = build_spec(document, tree, source)
            elif errors <= _MENDABLE and "extends" not in tree.by_key:
                spec = mend(tree, source)
    return spec, _limited(_in_order(found)), tree if isinstance(tree, Mapping) else None


def _base(
    name: Scalar, path: str | os.PathLike[str], chain: tuple[str, ...]
) -> tuple[Mapping | None, list[Diagnostic]]:
    """The tree of the spec that the one at ``path`` extends, written out; or why it can't be."""
    folder, wanted = Path(path).parent, name.text.text.strip()
    chain = (*chain, os.path.realpath(path))
    if problem_with_spec_name(wanted) is not None:
        return None, [_about(name, "SG033", f"there is no spec '{shorten(wanted)}'", _known_bases(folder))]
    places = [named_in(place, wanted) for place in (folder, shipped_folder())]
    # A spec may have the name of the one that it extends: then it is that which comes with solvergen.
    files = [file for file in places if file is not None and os.path.realpath(file) != chain[-1]]
    if not files and any(place is not None for place in places):
        return None, [_about(name, "SG034", f"'{wanted}' extends itself")]
    if not files:
        message = f"there is no spec '{wanted}' beside this one, and none comes with solvergen"
        return None, [_about(name, "SG033", message, _known_bases(folder, wanted))]
    file = files[0]
    if os.path.realpath(file) in chain:
        return None, [_about(name, "SG034", f"'{wanted}' extends, over others, this spec again")]
    if len(chain) >= MAX_BASES:
        return None, [_about(name, "SG034", f"more than {MAX_BASES} specs extend one another")]
    spec, found, tree = _examine(file, chain)
    errors = [d for d in found if d.severity == "error"]
    if errors:
        circle = next((d for d in errors if d.code == "SG034"), None)
        if circle is not None:
            return None, [_about(name, "SG034", circle.message)]
        first = errors[0]
        hint = f"{first.location}: {first.code}: {first.message}"
        return None, [_about(name, "SG035", f"'{wanted}' has mistakes of its own", hint)]
    assert spec is not None
    return tree, []


def _known_bases(folder: Path, wanted: str = "") -> str | None:
    names = {
        Path(file).stem
        for place in (folder, shipped_folder())
        for file in spec_files(place)[0]
        if place.is_dir()
    }
    near = instead_of_key(wanted, sorted(names)) if wanted else None
    return f"did you mean '{near}'?" if near is not None else "a spec is named by its file, without .yaml"


def _about(node: Scalar, code: str, message: str, hint: str | None = None) -> Diagnostic:
    return Diagnostic(code, message, node.location, hint, node.text.source.line_of(node.location))


def check_folder(specs: Iterable[Spec]) -> list[Diagnostic]:
    """No two specs may generate the same module or the same class."""
    found = []
    names: dict[str, Spec] = {}
    classes: dict[str, Spec] = {}
    for spec in specs:
        if "name" in spec.incomplete:
            continue  # it has none to clash with, and has been complained about
        same_name = names.setdefault(spec.name, spec)
        same_class = classes.setdefault(spec.class_name, spec)
        if same_name is not spec:
            found.append(_clash(spec, f"the name '{spec.name}' is already that of {same_name.path}", "name"))
        elif same_class is not spec:
            message = f"the class name '{spec.class_name}' is already that of {same_class.path}"
            found.append(_clash(spec, message, "class_name"))
    return found


def _clash(spec: Spec, message: str, key: str) -> Diagnostic:
    hint = f"give one of the two another '{key}'"
    return Diagnostic("SG023", message, spec.location, hint, spec.line_of(spec.location))


def _read_text(path: str | os.PathLike[str], shown: str) -> tuple[str, Diagnostic | None]:
    """The text of a file, or what keeps it from being one."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            return "", unreadable(shown, "this is a folder, not a spec file")
        if not stat.S_ISREG(mode):
            return "", unreadable(shown, "this is not a regular file")
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return "", unreadable(shown, "there is no such file")
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return "", unreadable(shown, f"the file can't be read: {reason}")
    if len(data) > MAX_BYTES:
        problem = Diagnostic(
            "SG003",
            f"the file is larger than {MAX_BYTES // 1024} KiB",
            Location(shown, 1, 1, 2),
            "a spec is a page of text; is this the right file?",
        )
        return "", problem
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", errors="replace")
        message = f"the byte 0x{data[error.start]:02x} is not UTF-8"
        return "", _bad_character(shown, before, message, "save the file as UTF-8")
    offset = first_refused(text)
    if offset is not None:
        return "", _bad_character(shown, text[:offset], refusal(text[offset]), "remove it")
    return text, None


def _bad_character(shown: str, before: str, message: str, hint: str) -> Diagnostic:
    lines = Source.of(shown, before).lines
    column = len(lines[-1]) + 1
    return Diagnostic("SG002", message, Location(shown, len(lines), column, column + 1), hint)


def _in_order(found: list[Diagnostic]) -> list[Diagnostic]:
    return sorted(found, key=lambda d: (d.location.line, d.location.column, d.code, d.message))


def _limited(found: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The findings; of very many the first, and a last one that says how many more there are."""
    if len(found) <= MAX_DIAGNOSTICS:
        return tuple(found)
    place = found[MAX_DIAGNOSTICS].location
    rest = f"and {len(found) - MAX_DIAGNOSTICS:,} more findings from here on"
    last = Diagnostic("SG003", rest, place, "correct the first ones and look again")
    return (*found[:MAX_DIAGNOSTICS], last)
