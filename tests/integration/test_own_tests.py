"""The test that docs/verification.md shows is run as it stands there, in a folder of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from solvergen.verify import why_unavailable

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "verification.md"
SPEC = """\
name: signum
summary: The sign of a running mean.
hyperparameters:
  lr: {default: 1e-3, min: 0}
  momentum: {default: 0.9, min: 0, below: 1}
state:
  m: {init: 0}
update:
  - m = momentum*m + (1 - momentum)*grad
  - param = param - lr*sign(m)
"""


def shown() -> str:
    """The example, as the page has it."""
    found = re.search(r"<!-- test: own tests -->\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SOLVERGEN_REPLAY_DIR": str(folder / "replays")}
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a spec, the package made of it, and the test."""
    for backend in ("cpu", "ptx"):
        reason = why_unavailable(backend)
        if reason is not None:
            pytest.skip(reason)
    folder = tmp_path_factory.mktemp("project")
    (folder / "specs").mkdir()
    (folder / "specs" / "signum.yaml").write_text(SPEC)
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    (folder / "test_rules.py").write_text(shown())
    built = run(folder, "solvergen", "build", "specs/", "--out", "my_optimizers")
    assert built.returncode == 0, built.stderr
    return folder


def test_it_has_ten_lines() -> None:
    assert len([line for line in shown().splitlines() if line.strip()]) <= 10


def test_it_passes(project: Path) -> None:
    done = run(project, "pytest", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
    assert not (project / "replays").exists()
    assert not (project / ".hypothesis").exists()


def test_it_finds_a_fault_and_says_how_to_see_it_again(project: Path) -> None:
    for file in ("kernel.c", "kernel.cu"):
        kernel = project / "my_optimizers" / "signum" / file
        right = kernel.read_text()
        assert "one_minus_momentum * grad" in right
        kernel.write_text(right.replace("one_minus_momentum * grad", "one_minus_momentum + grad"))
    done = run(project, "pytest", "-q")
    assert done.returncode == 1
    assert "2 failed, 1 passed" in done.stdout
    for backend in ("cpu", "ptx"):
        assert f"Signum (specs/signum.yaml) on backend {backend} is not its rule" in done.stdout
    assert "equation  m = momentum*m + (1 - momentum)*grad  (specs/signum.yaml:9)" in done.stdout
    assert "from my_optimizers import Signum" in done.stdout
    assert "verify/agreement.py" not in done.stdout  # not how it was found
    files = re.findall(r"solvergen verify --replay (\S+\.json)", done.stdout)
    assert len(set(files)) == 2
    for file in set(files):
        # The compiler's own kernel is right; the package's is looked at by its own test.
        again = run(project, "solvergen", "verify", "--replay", file)
        assert (again.returncode, again.stdout.count("same bits")) == (0, 1), again.stderr
        lines = [
            "from my_optimizers import Signum",
            "from solvergen.verify import replay",
            f"print(replay({file!r}, Signum))",
        ]
        (project / "again.py").write_text("\n".join(lines))
        found = run(project, "again")
        assert "is not its rule" in found.stdout, found.stderr
