"""Curves are drawn of what a log has."""

from __future__ import annotations

import warnings
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


def test_names_and_numbers_of_strangers(tmp_path: Path) -> None:
    names = ["a$b$", r"$\frac{1$", "x" * 10_000, "\x01\x1b[31m", "_hidden", *(f"n{i}" for i in range(300))]
    text = "Iteration 0, Testing net (#0)\n" + "".join(
        f"    Test net output #{index}: {name} = {index}\n" for index, name in enumerate(names)
    )
    for iteration, value in ((10**17, 1), (1, 1e308), (2, -1e308), (3, "nan"), (4, 2)):
        text += f"Iteration {iteration}, loss = {value}\n"
    (tmp_path / "a$1$.log").write_text(text)
    picture = tmp_path / "a.svg"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw(picture, read_log(tmp_path / "a$1$.log"))
    drawn = picture.read_text()
    for words in (
        "test: a$b$",
        r"test: $\frac{1$",
        r"test: \x01\x1b[31m",
        "test: _hidden",
        "a$1$.log",
        "and 285 more",
    ):
        assert f"<!-- {words} -->" in drawn
    assert "<!-- test: n15 -->" not in drawn
    assert "x" * 100 not in drawn


def test_another_ending(log: Path) -> None:
    with pytest.raises(LogError, match=r"run\.log: a picture is a file that ends in \.png, \.svg, \.pdf"):
        draw(log, read_log(log))


def test_no_such_folder(log: Path) -> None:
    with pytest.raises(LogError, match="No such file"):
        draw(log.parent / "nowhere" / "a.svg", read_log(log))
