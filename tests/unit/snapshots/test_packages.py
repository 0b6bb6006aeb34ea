"""Which packages are needed when, and what is said where one is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from solvergen.errors import SnapshotError
from solvergen.runtime import snapshots
from tests.unit.snapshots.support import small, snapshot, tensor

ROOT = Path(__file__).parents[3]


def test_nothing_is_imported_before_it_is_used(tmp_path: Path) -> None:
    program = """
import sys
import numpy as np
from solvergen.runtime import snapshots
from solvergen.runtime.state import GroupData, SnapshotData, TensorData
foreign = {"h5py", "ml_dtypes", "safetensors", "sympy", "jinja2", "pydantic", "ruamel", "pickle5", "torch"}
def loaded():
    return foreign & {name.split(".")[0] for name in sys.modules}
tensor = TensorData("w", (2,), "float32", 1, {}, {"m": np.zeros(2, np.float32)})
data = SnapshotData("a", "A", "d", "1", (("m", "param"),), (GroupData(("w",), {}, {}, {}),), (tensor,))
assert loaded() == set(), loaded()
snapshots.save(sys.argv[1], data)
snapshots.load(sys.argv[1])
# h5py imports ml_dtypes where it is there, in some versions.
assert sys.argv[2] in loaded() <= {sys.argv[2], "ml_dtypes"}, loaded()
"""
    for suffix, package in ((".h5", "h5py"), (".safetensors", "safetensors")):
        path = f"{tmp_path}/s{suffix}"
        subprocess.run([sys.executable, "-c", program, path, package], check=True, cwd=ROOT)


def test_without_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots.save(tmp_path / "s.h5", small())
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(SnapshotError, match=r"pip install h5py, or use a .safetensors file"):
        snapshots.load(tmp_path / "s.h5")
    with pytest.raises(SnapshotError, match=r"pip install h5py, or use a .safetensors file"):
        snapshots.save(tmp_path / "t.h5", small())
    assert [file.name for file in tmp_path.iterdir()] == ["s.h5"]


def test_without_safetensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots.save(tmp_path / "s.safetensors", small())
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(SnapshotError, match=r"pip install 'safetensors>=0.8', or use a .h5 file"):
        snapshots.load(tmp_path / "s.safetensors")
    with pytest.raises(SnapshotError, match=r"pip install 'safetensors>=0.8', or use a .h5 file"):
        snapshots.save(tmp_path / "t.safetensors", small())
    assert [file.name for file in tmp_path.iterdir()] == ["s.safetensors"]


@pytest.mark.parametrize("suffix", [".h5", ".safetensors"])
def test_without_ml_dtypes(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots.save(tmp_path / f"with{suffix}", small())
    snapshots.save(tmp_path / f"without{suffix}", snapshot(tensor("w", dtype="bfloat16")))
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(SnapshotError, match="pip install ml_dtypes"):
        snapshots.load(tmp_path / f"with{suffix}")
    # The states of a bfloat16 parameter are float32: no need without the parameter itself.
    assert snapshots.load(tmp_path / f"without{suffix}").tensors[0].dtype == "bfloat16"
