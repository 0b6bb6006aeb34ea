"""The code in docs/solver.md that says it runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "solver.md").read_text()
BLOCK = re.compile(r"<!-- (run.*?) -->\n```python\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCK.findall(PAGE))))
def test_it_runs(number, tmp_path):
    mark, code = BLOCK.findall(PAGE)[number]
    if "torch" in mark:
        pytest.importorskip("torch", reason="torch isn't installed: pip install torch")
    (tmp_path / "page.py").write_text(code)
    # One thread: torch's would wait for each other on a busy machine.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "page.py"], cwd=tmp_path, env=environment, check=True)
