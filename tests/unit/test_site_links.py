"""The site's own checks, without building it: links, and kinds of optimizers."""

from __future__ import annotations

from pathlib import Path

from kinds import KINDS, OTHERS, by_kind
from links import faults

ROOT = Path(__file__).parents[2]


def test_links_that_lead_nowhere_and_loads_from_elsewhere_are_found(tmp_path):
    (tmp_path / "a.css").write_text('@import "https://fonts.example.org/x.css"; b { background: url(b.png) }')
    (tmp_path / "b.html").write_text('<h1 id="place">b</h1>')
    (tmp_path / "a.html").write_text(
        """
        <link rel="stylesheet" href="a.css"><link rel="stylesheet" href="https://example.org/a.css">
        <script src="//example.org/a.js"></script><img src="absent.png"><img src="data:image/png;base64,AA==">
        <a href="b.html#place">right</a> <a href="b.html#nowhere">wrong</a> <a href="c.html">wrong</a>
        <a href="#self">wrong</a> <a id="here" href="#here">right</a> <a href="https://example.org/x#y">right</a>
        <a href="http://example.org/">wrong</a> <a href="https://example">wrong</a>
        <a href="https://example.org/a b">wrong</a>
        """
    )
    assert faults(tmp_path) == [
        "a.css: loads https://fonts.example.org/x.css",
        "a.html: #self has no such place",
        "a.html: absent.png leads nowhere",
        "a.html: b.html#nowhere has no such place",
        "a.html: c.html leads nowhere",
        "a.html: http://example.org/ is no address",
        "a.html: https://example is no address",
        "a.html: https://example.org/a b is no address",
        "a.html: loads //example.org/a.js",
        "a.html: loads https://example.org/a.css",
    ]


def test_every_kind_names_specs_that_exist_and_each_once():
    named = [name for _, members in KINDS for name in members]
    assert len(named) == len(set(named))
    assert set(named) <= {path.stem for path in ROOT.glob("specs/*.yaml")}


def test_a_spec_without_a_kind_comes_last():
    assert by_kind(["adam", "mine", "lion"]) == [
        ("By the signs of gradients", ["lion"]),
        ("Adam", ["adam"]),
        (OTHERS, ["mine"]),
    ]
