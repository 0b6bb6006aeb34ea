"""Curves are drawn of what a log has."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from solvergen.solver.logs.plot import draw
from solvergen.solver.logs.reading import LogError, read_log

TEXT = """\
Iteration 0, Testing net (#0)
    Test net output #0: accuracy = 0.5
    Test net output #1: loss = 700 (* 1 = 700 loss)
Iteration 0, loss = 900
    Train net output #0: loss = 700 (* 1 = 700 loss)
Iteration 0, lr = 0.1
Iteration 100, loss = 0.5
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "run.log").write_text(TEXT)
    return tmp_path / "run.log"


@pytest.mark.parametrize(("kind", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_pictures(log: Path, kind: str, begins: bytes) -> None:
    picture = log.with_suffix(f".{kind}")
    draw(picture, read_log(log))
    first = picture.read_bytes()
    assert first.startswith(begins)
    draw(picture, read_log(log))
    assert picture.read_bytes() == first


def test_what_is_drawn(log: Path) -> None:
    picture = log.with_suffix(".svg")
    draw(picture, read_log(log))
    text = picture.read_text()
    # matplotlib draws letters as paths and leaves the text as a comment.
    for words in ("train", "test: loss", "test: accuracy", "learning rate", "iteration", "run.log"):
        assert f"<!-- {words} -->" in text
    assert "<!-- train: loss -->" not in text


def test_a_log_of_nothing_but_rates(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("Iteration 0, lr = 0.1\n")
    draw(tmp_path / "a.png", read_log(tmp_path / "a.log"))
    assert (tmp_path / "a.png").exists()


def test_another_ending(log: Path) -> None:
    with pytest.raises(LogError, match=r"run\.log: a picture is a file that ends in \.png, \.svg, \.pdf"):
        draw(log, read_log(log))


def test_no_such_folder(log: Path) -> None:
    with pytest.raises(LogError, match="No such file"):
        draw(log.parent / "nowhere" / "a.svg", read_log(log))
