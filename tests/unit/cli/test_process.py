"""The command as a process: how fast it answers, what a terminal and a closed pipe make of it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-c", "from solvergen.cli import main; main()"]
ROOT = Path(__file__).parents[3]


def loaded_by(statement: str) -> set[str]:
    """Names of the modules that a fresh interpreter has after ``statement``."""
    code = f"import sys\n{statement}\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    return set(done.stderr.split())


def test_help_loads_none_of_the_compiler() -> None:
    help_ = "from solvergen.cli.app import run\nassert run(['--help']) == 0"
    heavy = {"sympy", "jinja2", "pydantic", "ruamel", "numpy", "hypothesis", "rich", "solvergen.compiler"}
    assert loaded_by(help_) & heavy == set()


def on_terminal(*arguments: str, env: dict[str, str] | None = None) -> tuple[int, str]:
    """Run the command with its output on a pseudo-terminal; exit code and everything printed."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "200", **(env or {})}
    if not env:
        environment.pop("NO_COLOR", None)
    child = subprocess.Popen(
        [*COMMAND, *arguments], stdin=slave, stdout=slave, stderr=slave, cwd=ROOT, env=environment
    )
    os.close(slave)
    text = b""
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:  # Linux says EIO when the other end is closed
            break
        if not chunk:
            break
        text += chunk
    os.close(master)
    return child.wait(60), text.decode()


def test_a_terminal_gets_colours_and_a_table() -> None:
    code, text = on_terminal("list", "--specs", "specs")
    assert code == 0
    assert "\x1b[" in text
    assert "Kingma 2015, arXiv:1412.6980" in text
    assert "bytes for each float32 parameter" in text
    assert "\t" not in text


def test_a_terminal_gets_findings_in_colour(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(
        "name: bad\nsummary: '[red]x[/red]'\nupdate:\n  - param = param - [lr]*grad\n"
    )
    code, text = on_terminal("check", str(tmp_path))
    assert code == 1
    assert "\x1b[1;31merror" in text
    assert "[lr]*grad" in text  # not read as markup
    assert "1 error" in text or "errors" in text


def test_no_color_is_respected() -> None:
    code, text = on_terminal("show", "adam", "--stage", "cpu", "--specs", "specs", env={"NO_COLOR": "1"})
    assert code == 0
    assert "\x1b[3" not in text
    assert "sg_kernel" in text


def test_a_closed_pipe_is_no_error() -> None:
    child = subprocess.Popen(
        [*COMMAND, "show", "adam", "--stage", "cuda"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    assert child.stderr.read() == b""
    child.stderr.close()
    child.wait(60)


@pytest.mark.parametrize("flag", ["-h", "--help", "--version"])
def test_help_and_version(flag: str) -> None:
    done = subprocess.run([*COMMAND, flag], capture_output=True, text=True, cwd=ROOT, check=True)
    assert "solvergen" in done.stdout
    assert done.stderr == ""
