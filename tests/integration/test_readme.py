"""Every command and every line of code in the README is run, and does what the README says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "docs/getting-started.md", "docs/runtime.md", "docs/wrappers.md"]


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, with the comments that stand right above it."""

    marks: tuple[str, ...]
    language: str
    text: str


def blocks(page: str) -> list[Block]:
    found = []
    marks: list[str] = []
    lines = iter((ROOT / page).read_text().splitlines())
    for line in lines:
        if comment := re.fullmatch(r"<!-- (.*) -->", line):
            marks.append(comment[1])
        elif line.startswith("```"):
            text = []
            for inner in lines:
                if inner == "```":
                    break
                text.append(inner)
            found.append(Block(tuple(marks), line[3:], "\n".join(text) + "\n"))
            marks = []
        elif line:
            marks = []
    return found


@pytest.fixture
def place(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder with examples/ in it, and an environment in which solvergen and python are this process's."""
    (tmp_path / "bin").mkdir()
    for name, arguments in (("python", '"$@"'), ("solvergen", '-m solvergen "$@"')):
        shim = tmp_path / "bin" / name
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}\n')
        shim.chmod(0o755)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return tmp_path, {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}


def run(script: str, place: tuple[Path, dict[str, str]]) -> str:
    folder, environment = place
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_run_by_somebody(page: str) -> None:
    for block in blocks(page):
        if block.language in ("yaml", "text"):
            continue
        assert block.language in ("bash", "python", "c"), block
        last = block.marks[-1] if block.marks else ""
        known = r"ci: (main|test)$|run$|run: walk$|run where torch is installed$|excerpt: walk$|not run: "
        assert re.match(known, last), block


@pytest.mark.parametrize("page", PAGES)
def test_the_python_blocks_work(page: str, place: tuple[Path, dict[str, str]]) -> None:
    code = "".join(
        block.text for block in blocks(page) if block.language == "python" and "run" in block.marks
    )
    assert code
    (place[0] / "page.py").write_text(code)
    run("python page.py", place)


def test_the_torch_block_trains_the_model(place: tuple[Path, dict[str, str]]) -> None:
    pytest.importorskip("torch")
    page = blocks("docs/getting-started.md")
    (block,) = [block for block in page if "run where torch is installed" in block.marks]
    (place[0] / "page.py").write_text(
        f"import torch\ntorch.manual_seed(0)\n{block.text}"
        "assert opt.t == 100\n"
        "assert loss < 0.1 * targets.var(), loss\n"
        "for name, p in model.named_parameters():\n"
        "    assert opt.params[name].ctypes.data == p.data_ptr()\n"
    )
    run("python page.py", place)


def test_the_torch_block_of_closures(place: tuple[Path, dict[str, str]]) -> None:
    pytest.importorskip("torch")
    (block,) = [block for block in blocks("docs/runtime.md") if "run where torch is installed" in block.marks]
    (place[0] / "page.py").write_text(
        f"{block.text}assert opt.step(closure) < loss\nassert opt.t == 2\nassert isinstance(loss, float)\n"
    )
    run("python page.py", place)


@pytest.mark.parametrize("page", PAGES)
def test_the_bash_blocks_work(page: str, place: tuple[Path, dict[str, str]]) -> None:
    script = "".join(
        block.text for block in blocks(page) if block.language == "bash" and "run" in block.marks
    )
    if script:
        run(script, place)


def test_the_walk_works(place: tuple[Path, dict[str, str]]) -> None:
    page = blocks("README.md")
    spec = next(block.text for block in page if block.language == "yaml")
    script = ""
    for block in page:
        for mark in block.marks:
            if mark.startswith("file: "):
                script += f"cat > {mark.split()[1]} <<'END'\n{spec}END\n"
        if "run: walk" in block.marks:
            script += block.text
    out = run(script, place)
    project = place[0] / "my_project"
    kernels = [
        (project / "my_optimizers" / "my_rule" / name).read_text() for name in ("kernel.c", "kernel.cu")
    ]
    for block in page:
        if "excerpt: walk" in block.marks:
            lines = [" ".join(line.split()) for line in block.text.splitlines()]
            assert lines
            for kernel in kernels:
                text = " ".join(kernel.split())
                assert " ".join(lines) in text
    assert out.count("test accuracy") >= 3
    accuracy = float(out.split("\ntest accuracy ")[1].split(",")[0])
    assert accuracy > 0.9
    assert "resumed after step 135\n" in out


def test_the_readme_lists_all_commands_and_exit_codes() -> None:
    from solvergen.cli.app import EPILOG, app

    text = " ".join((ROOT / "README.md").read_text().split())
    for command in app.registered_commands:
        assert f"`solvergen {command.name}" in text
    assert EPILOG in text


@pytest.mark.parametrize("page", sorted(p.relative_to(ROOT).as_posix() for p in ROOT.glob("docs/**/*.md")))
def test_excerpts_are_what_the_compiler_says(page: str) -> None:
    from solvergen.stages import show

    for block in blocks(page):
        for mark in block.marks:
            if found := re.fullmatch(r"excerpt: (\w+) (\w+)", mark):
                text = {" ".join(line.split("  #")[0].split()) for line in show_lines(show, *found.groups())}
                for line in block.text.splitlines():
                    assert " ".join(line.split()) in text, line


def show_lines(show: Callable[[Path, str], str], name: str, stage: str) -> list[str]:
    return show(ROOT / "specs" / f"{name}.yaml", stage).splitlines()


MARKDOWN = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


@pytest.mark.parametrize("page", sorted(p.relative_to(ROOT).as_posix() for p in MARKDOWN))
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", (ROOT / page).read_text()):
        if not target.startswith(("http://", "https://")):
            assert (ROOT / page).parent.joinpath(target).exists(), target


def test_files_that_pages_name_are_there() -> None:
    """Paths from the root of the repository; capital letters stand for a name that one chooses."""
    top = "solvergen|tests|benchmarks|docs|templates|specs|examples"
    path = re.compile(rf"(?<![\w/.])(?:{top})/[\w/.-]*\w")
    chosen = re.compile(r"[A-Z]{4}|nnn|/my_")
    missing = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")]
        for name in path.findall(page.read_text())
        if not chosen.search(name) and not (ROOT / name).exists()
    ]
    assert not missing
