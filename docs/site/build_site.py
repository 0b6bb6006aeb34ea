"""Builds the documentation as a site: ``python docs/site/build_site.py``, with the extra ``docs``.

It gathers the repository's pages as they are and those made from specs and docstrings in OUT/source, lets
Sphinx build OUT/html, and checks all links. A warning is an error. The pages need no network and no server.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import links
import sphinx.cmd.build
from api import MODULES, api_index, api_page
from font import write_font
from pages import index_page, optimizer_page

import solvergen.optimizers
from solvergen.compiler import build

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

GUIDE = ("getting-started", "runtime", "wrappers", "snapshots", "solver", "cuda", "ptx")
LANGUAGE = ("spec-language", "language", "diagnostics")
INSIDE = ("architecture", "verification", "benchmarks", "performance")
"""Pages of docs/ by their place in the contents; any other comes last."""


def main() -> int:
    """Build, check, say where the site is. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="default: build/site")
    out = parser.parse_args().out.resolve()
    source, site = out / "source", out / "html"
    for folder in (source, site):
        shutil.rmtree(folder, ignore_errors=True)
    gather(source)
    write_font(source / "_font")
    static = f"html_static_path={HERE / 'static'},{source / '_font'}"
    options = ["-q", "-W", "--keep-going", "-c", str(HERE), "-d", str(out / "cache"), "-D", static]
    status = sphinx.cmd.build.main([*options, str(source), str(site)])
    if status:
        return int(status)
    faults = links.faults(site)
    print("\n".join([*faults, f"{len(faults)} faulty links" if faults else f"{site / 'index.html'}"]))
    return 1 if faults else 0


def gather(source: Path) -> None:
    """Write all pages below ``source``; those of the repository keep their places, so that links hold."""
    for page in sorted((*ROOT.glob("docs/*.md"), *ROOT.glob("docs/adr/*.md"))):
        _write(source / page.relative_to(ROOT), page.read_text(encoding="utf-8"))
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        _write(source / name, (ROOT / name).read_text(encoding="utf-8"))
    _write(source / "index.md", (ROOT / "README.md").read_text(encoding="utf-8") + contents())
    decisions = sorted(path.stem for path in ROOT.glob("docs/adr/0*.md"))
    with (source / "docs" / "adr" / "README.md").open("a", encoding="utf-8") as file:
        file.write(_toctree("", decisions))
    units = build([ROOT / "specs"]).units
    for unit in units:
        definition = getattr(solvergen.optimizers, unit.spec.class_name).definition
        _write(source / "optimizers" / f"{unit.spec.name}.md", optimizer_page(unit, definition))
    _write(source / "optimizers" / "index.md", index_page(units))
    _write(source / "api" / "index.md", api_index())
    for page_name, title, modules in MODULES:
        _write(source / "api" / f"{page_name}.md", api_page(title, modules))


def contents() -> str:
    """The table of contents, for the end of the first page."""
    placed = (*GUIDE, *LANGUAGE, *INSIDE, "optimizers")
    rest = sorted(path.stem for path in ROOT.glob("docs/*.md") if path.stem not in placed)
    docs = {title: [f"docs/{page}" for page in pages] for title, pages in (
        ("Guide", GUIDE), ("Specs", LANGUAGE), ("Inside", (*INSIDE, *rest)),
    )}  # fmt: skip
    return (
        _toctree("Optimizers", ["optimizers/index", "On one page <docs/optimizers>"])
        + "".join(_toctree(title, pages) for title, pages in docs.items())
        + _toctree("More", ["api/index", "docs/adr/README", "CONTRIBUTING", "CHANGELOG"])
    )


def _toctree(caption: str, pages: list[str]) -> str:
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "```{toctree}", *options, "", *pages, "```", ""])


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
