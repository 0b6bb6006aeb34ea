"""What somebody probably meant to write."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

_ELSEWHERE = {
    "param_groups": "hyperparameters",
    "params": "hyperparameters",
    "args": "hyperparameters",
    "hparams": "hyperparameters",
    "flags": "options",
    "switches": "options",
    "buffers": "state",
    "slots": "state",
    "equations": "update",
    "rule": "update",
    "step": "update",
    "statements": "update",
    "checks": "constraints",
    "requires": "constraints",
    "notes": "conventions",
    "title": "summary",
    "class": "class_name",
    "value": "default",
    "initial": "init",
    "ge": "min",
    "minimum": "min",
    "low": "min",
    "gt": "above",
    "exclusive_min": "above",
    "le": "max",
    "maximum": "max",
    "high": "max",
    "lt": "below",
    "exclusive_max": "below",
    "type": "integer",
    "int": "integer",
    "if": "when",
    "condition": "when",
    "eq": "do",
    "then": "do",
    "help": "doc",
    "comment": "doc",
    "text": "message",
    "error": "message",
    "author": "authors",
    "eprint": "arxiv",
    "link": "url",
}
"""Keys that other formats have for what a spec calls otherwise."""

SWITCH_WORDS = ("y", "n", "yes", "no", "on", "off", "true", "false")
"""Texts that somebody writes who means true or false."""


def instead_of_key(key: str, known: Iterable[str]) -> str | None:
    """The one of ``known`` that the key is most likely a slip of or another word for."""
    candidates = tuple(known)
    for candidate in candidates:
        if candidate.lower() == re.sub("[^a-z]+", "_", key.lower()).strip("_"):
            return candidate
    meant = _ELSEWHERE.get(key.lower())
    if meant in candidates:
        return meant
    close = get_close_matches(key.lower()[:100], candidates, n=1, cutoff=0.7)
    return close[0] if close else None


def as_name(text: str) -> str | None:
    """The name nearest to ``text`` that a spec may have; None if nothing of it is left."""
    near = re.sub(r"[^A-Za-z0-9]+", "_", text[:200]).strip("_")
    near = re.sub(r"^(sg_|[0-9_])+", "", near)[:64]
    return near or None
