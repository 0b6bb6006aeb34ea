"""The same specs give the same bytes, whatever the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from solvergen.compiler import build

DIGEST = """
import hashlib, json, sys
from solvergen.compiler import build
tree = build(sys.argv[1:]).artifacts
print(hashlib.sha256(json.dumps(tree).encode()).hexdigest())
"""
SPECS = ("specs", "tests/support/specs")


@pytest.mark.parametrize("specs", SPECS)
def test_hash_seeds_change_nothing(specs):
    outputs = set()
    for seed in ("0", "1", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run(
            [sys.executable, "-c", DIGEST, specs], env=environment, capture_output=True, text=True, check=True
        )
        outputs.add(run.stdout)
    assert len(outputs) == 1


def test_the_folder_that_specs_lie_in_changes_nothing(tmp_path):
    copy = tmp_path / "elsewhere" / "specs"
    copy.mkdir(parents=True)
    for file in Path("specs").glob("*.yaml"):
        (copy / file.name).write_bytes(file.read_bytes())
    assert build([copy]).artifacts == build(["specs"]).artifacts


def test_generated_is_what_the_specs_say():
    for name, text in build(["specs"]).artifacts.items():
        assert (Path("generated") / name).read_text(encoding="utf-8") == text, (
            f"{name}: run `solvergen build specs/`"
        )
