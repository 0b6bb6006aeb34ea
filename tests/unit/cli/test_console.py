"""What strangers' files hold doesn't act on the terminal that it is shown on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from solvergen.cli.app import run
from solvergen.cli.console import print_table, visible
from solvergen.solver.files import LayerData, ModelData, write_model

HOSTILE = "\x1b[31mred\nrow\ttab\u202e"


def test_what_cannot_be_seen_is_escaped() -> None:
    assert visible(HOSTILE) == r"\x1b[31mred\nrow\ttab\u202e"
    assert visible("fc1.weight ∑ β₁ 学習率") == "fc1.weight ∑ β₁ 学習率"


def test_a_cell_stays_a_cell(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "size"), [(HOSTILE, "3")])
    assert capsys.readouterr().out == "name\tsize\n" + r"\x1b[31mred\nrow\ttab\u202e" + "\t3\n"


def test_names_in_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(tmp_path / f"{i}.caffemodel") for i in range(2)]
    for i, path in enumerate(paths):
        layer = LayerData(HOSTILE, "InnerProduct", (np.full((2,), i, np.float32),))
        write_model(path, ModelData(HOSTILE, (layer,)))
    assert run(["snapshot", "inspect", paths[0]]) == 0
    assert run(["snapshot", "diff", *paths]) == 1
    shown = capsys.readouterr().out
    assert r"\x1b[31mred\nrow\ttab\u202e" in shown
    assert not set("\x1b\u202e") & set(shown)
