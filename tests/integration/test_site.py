"""The documentation as a site: no warnings, every page with all its parts, every link leads somewhere."""

from __future__ import annotations

import html
import importlib
import re
import runpy
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

import solvergen.optimizers
from solvergen.errors import MissingLibrary

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in ROOT.glob("specs/*.yaml"))

pytestmark = pytest.mark.site


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, ROOT / "docs" / "site" / "build_site.py", "--out", out]
    done = subprocess.run(command, cwd=out, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr
    return out / "html"


@pytest.fixture(scope="module")
def units():
    from solvergen.compiler import build

    return {unit.spec.name: unit for unit in build([ROOT / "specs"]).units}


def text_of(page: str) -> str:
    """What a reader sees, blanks and lines run together."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", page)).split())


def section(page: str, title: str) -> str:
    """The section of this heading."""
    found = re.search(rf"<section[^>]*>\s*<h2>{re.escape(title)}<.*?</section>", page, re.DOTALL)
    assert found, title
    return found[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_all_of_its_optimizer(site, units, name):
    unit = units[name]
    spec, page = unit.spec, (site / "optimizers" / f"{name}.html").read_text(encoding="utf-8")
    update = section(page, "The update")
    assert update.count('<div class="value') == len(unit.parsed.statements)
    assert update.count("<math") == 3 + 2 * len(unit.parsed.statements)
    guarded = [s.guard.text() for s in unit.parsed.statements if not s.guard.is_always]
    whens = re.findall(r'<div class="when">(.*?)</div>', update)
    assert {text_of(when) for when in whens} == {f"when {guard}" for guard in guarded}
    for h in spec.hyperparameters:
        row = (
            section(page, "Hyperparameters")
            .split(f'<span class="pre">{h.name}</span>', 1)[1]
            .split("</tr>")[0]
        )
        assert repr(h.default).removesuffix(".0") in text_of(row)
        assert h.range_text in text_of(row)
    for option in spec.options:
        assert f">{option.name}<" in section(page, "Options")
    for state in spec.state:
        assert f">{state.name}<" in section(page, "State")
    said = text_of(page)
    for convention in spec.conventions:
        assert plain(convention) in said
    for counterpart in spec.counterparts:
        elsewhere = text_of(section(page, "In other libraries"))
        assert counterpart.name in elsewhere
        assert all(theirs in elsewhere for _, theirs in counterpart.maps)
    for reference in spec.references:
        assert plain(reference.title) in said
        if reference.arxiv:
            assert f'href="https://arxiv.org/abs/{reference.arxiv}"' in page
        if reference.doi:
            assert f'href="https://doi.org/{reference.doi}"' in page
    both = page.split('<div class="side-by-side', 1)[1]
    numpy_code, cuda_code = re.findall(r"<pre>(.*?)</pre>", both, re.DOTALL)[:2]
    generated = ROOT / "generated" / name
    for code, file in ((numpy_code, "reference.py"), (cuda_code, "kernel.cu")):
        lines = [line.strip() for line in html.unescape(re.sub(r"<[^>]*>", "", code)).splitlines()]
        assert len(lines) >= len(unit.parsed.statements)
        text = (generated / file).read_text(encoding="utf-8")
        whole = "\n".join(line.strip() for line in text.splitlines())
        assert all(part in whole for part in parts(lines))


def parts(lines: list[str]) -> list[str]:
    """What the page shows of a file in one piece: between its own remarks on passes and stages."""
    own = re.compile(r"// (pass \d+: |stage \d+: |\w+ gathers )|$")
    groups = groupby(lines, key=lambda line: own.match(line) is not None)
    return ["\n".join(group) for remark, group in groups if not remark]


def plain(prose: str) -> str:
    """Prose as the site has it: with typographic apostrophes and quotation marks."""
    words = " ".join(prose.split())
    return re.sub(r'"([^"]*)"', "“\\1”", words).replace("'", "’")


def rows(part: str) -> list[list[str]]:
    """The cells of a table, below its head."""
    return [
        [text_of(cell) for cell in re.findall(r"<td>(.*?)</td>", row, re.DOTALL)]
        for row in re.findall(r"<tr[^>]*>(.*?)</tr>", part, re.DOTALL)
        if "<td>" in row
    ]


def test_bytes_are_those_that_one_counts_by_hand(site):
    page = (site / "optimizers" / "adam.html").read_text(encoding="utf-8")
    # param, grad and two states read; param and two states written. With bfloat16: 3 x 2 + 4 x 4.
    assert [row[-4:] for row in rows(section(page, "Memory traffic"))] == [
        ["28", "56", "22", "22"],
        ["36", "72", "30", "30"],
    ]
    assert [row[3:7] for row in rows(section(page, "State"))] == [["4", "8", "4", "4"]] * 3
    sgd = (site / "optimizers" / "sgd.html").read_text(encoding="utf-8")
    assert [row[-4:] for row in rows(section(sgd, "Memory traffic"))] == [
        ["12", "24", "6", "6"],
        ["20", "40", "14", "14"],
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_three_lines_run(units, name, tmp_path):
    from pages import usage

    file = tmp_path / "use.py"
    file.write_text("\n".join(usage(units[name].spec)))
    params, grads = [np.ones(3, np.float32)], [np.ones(3, np.float32)]
    given = {"params": params, "grads": grads, "closure": lambda: (0.0, grads)}
    scope = runpy.run_path(str(file), given)
    assert isinstance(scope["opt"], getattr(solvergen.optimizers, units[name].spec.class_name))
    assert scope["opt"].t == 1


def test_the_index_has_every_optimizer_once(site):
    page = (site / "optimizers" / "index.html").read_text(encoding="utf-8")
    article = page.split("<article", 1)[1].split("</article>")[0]
    found = re.findall(r'<td><p><a class="reference internal" href="(\w+)\.html"', article)
    assert sorted(found) == NAMES


def test_what_is_exported_is_on_the_pages_of_the_api(site):
    from api import MODULES, exported

    for page, _, modules in MODULES:
        text = (site / "api" / f"{page}.html").read_text(encoding="utf-8")
        for module in modules:
            try:
                found = importlib.import_module(module)
            except MissingLibrary:
                assert "Not on this page, which was built without it" in text
                continue
            for name in exported(found):
                assert f'id="{module}.{name}"' in text, (page, module, name)


def test_search_knows_the_pages(site):
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert all(f'"optimizers/{name}"' in index for name in NAMES)
    assert "adaptive" in index.lower()


def test_the_font_of_equations_is_there(site):
    from fontTools.ttLib import TTFont

    font = TTFont(site / "_static" / "STIXTwoMath.woff")
    assert "MATH" in font
    letters = {*map(ord, "azAZ09βθ∧¬√{|⌊"), 0x1D6FD, 0x1D703, 0x1D454}
    assert letters <= set(font.getBestCmap())
    assert (site / "_static" / "STIXTwoMath.woff").stat().st_size < 200_000
