"""The programs in docs/snapshots.md read what we write, and what the page says of the document holds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from solvergen.runtime import snapshots
from tests.unit.snapshots.support import bits, small

PAGE = (Path(__file__).parents[3] / "docs" / "snapshots.md").read_text(encoding="utf-8")


def program(first_line: str) -> str:
    (found,) = re.findall(rf"```python\n# {re.escape(first_line)}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


@pytest.mark.parametrize("suffix", [".h5", ".safetensors"])
def test_readers(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    snapshots.save(f"s{suffix}", small())
    names: dict[str, Any] = {}
    exec(program(f"reads: s{suffix}"), names)  # noqa: S102
    assert [t["name"] for t in names["document"]["tensors"]] == ["w", "b"]
    expected = {
        "state/m/w": small().tensors[0].arrays["m"],
        "state/v/w": small().tensors[0].arrays["v"],
        "state/m/b": small().tensors[1].arrays["m"],
        "state/v/b": small().tensors[1].arrays["v"],
        "param/w": small().tensors[0].param,
    }
    assert names["arrays"].keys() == expected.keys()
    for key, array in expected.items():
        assert array is not None
        assert names["arrays"][key].dtype == array.dtype
        assert names["arrays"][key].tobytes() == array.tobytes()


def test_sealer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    snapshots.save("s.h5", small())
    sealed = Path("s.h5").read_bytes()
    Path("s.h5").write_bytes(b"\0" * 512 + sealed[512:])
    exec(program("seals: s.h5"), {})  # noqa: S102
    assert Path("s.h5").read_bytes() == sealed
    assert bits(snapshots.load("s.h5")) == bits(small())


def test_the_documents_keys(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    snapshots.save(tmp_path / "s.safetensors", small())
    content = (tmp_path / "s.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    written = json.loads(header["__metadata__"]["solvergen"].split(" ", 2)[2])

    def keys(document: Any) -> list[set[str]]:
        tensor = document["tensors"][0]
        return [
            set(part)
            for part in (document, document["optimizer"], document["groups"][0], tensor, tensor["param"])
        ] + [set(next(iter(tensor["arrays"].values())))]

    assert keys(json.loads(shown)) == keys(written)
