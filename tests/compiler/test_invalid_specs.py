"""Every kind of mistake that a spec can have: one invalid spec each, and exactly what is said of it.

A fixture begins with ``# expect: SG012 5:17``: code, line and column, several with commas between
them. A folder is a set of specs that don't go together; each of its files may have such a line.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from solvergen.frontend.resolve import analyse
from solvergen.spec.files import spec_files
from solvergen.spec.reader import check_folder, examine

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "invalid_specs"
FIXTURES = sorted(path for path in FOLDER.iterdir() if path.is_dir() or path.suffix == ".yaml")

WITHOUT_FIXTURE = {"SG001"}
"""Files that can't be read; tests/unit/spec/test_reader.py makes some."""


def expected(path):
    first = path.read_bytes().split(b"\n")[0].decode("ascii")
    listed = first.removeprefix("# expect: ").split(", ") if first.startswith("# expect: ") else []
    return [(path.name, *re.fullmatch(r"(SG\d{3}) (\d+):(\d+)", item).groups()) for item in listed]


def findings(path):
    """All diagnostics of all parts of the compiler that look at specs."""
    files, problem = spec_files(path)
    assert problem is None
    specs, found = [], []
    for file in files:
        spec, diagnostics = examine(file)
        found += diagnostics
        if spec is not None:
            specs.append(spec)
            found += analyse(spec).diagnostics
    return found + check_folder(specs)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_says_exactly_what_is_wrong(path):
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    wanted = [item for file in files for item in expected(file)]
    found = findings(path)
    places = [
        (Path(d.location.file).name, d.code, str(d.location.line), str(d.location.column)) for d in found
    ]
    assert sorted(places) == sorted(wanted), "\n".join(f"{d.location} {d.code} {d.message}" for d in found)
    assert path.name[:5] in {code for _, code, _, _ in wanted}


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_shows_the_line_and_covers_something_in_it(path):
    for diagnostic in findings(path):
        lines = Path(diagnostic.location.file).read_bytes().split(b"\n")
        line = lines[diagnostic.location.line - 1].decode("utf-8", errors="replace")
        place = diagnostic.location
        assert 1 <= place.column < place.end_column <= max(len(line), 1) + 1
        assert diagnostic.message
        assert not diagnostic.message.endswith(".")
        assert "\n" not in diagnostic.message
        # Only a file that isn't text has no line to show.
        assert diagnostic.source == line or diagnostic.code == "SG002"


def documented():
    table = (ROOT / "docs" / "diagnostics.md").read_text(encoding="utf-8")
    return re.findall(r"^\| (SG\d{3}) \|", table, flags=re.MULTILINE)


def test_every_code_is_documented_once_and_has_a_fixture():
    codes = documented()
    assert codes == sorted(set(codes))
    fixtures = {path.name[:5] for path in FIXTURES}
    assert fixtures | WITHOUT_FIXTURE == set(codes)


def test_every_code_in_the_compiler_is_documented():
    used = set()
    for part in ("spec", "frontend"):
        for module in (ROOT / "solvergen" / part).rglob("*.py"):
            used |= set(re.findall(r"\"(SG\d{3})\"", module.read_text(encoding="utf-8")))
    assert used == set(documented())
