"""Command lines as Caffe's tools take them: gflags has one dash or two, and glog has flags of its own."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import typer
from typer.core import TyperCommand

_FLAG = re.compile(r"--?([A-Za-z][A-Za-z0-9_]+|v)(=.*)?", re.DOTALL)

_SWITCHES = ("alsologtostderr", "colorlogtostderr", "logtostderr", "stop_logging_if_full_disk")
_GLOG = (
    *_SWITCHES,
    *("log_backtrace_at", "log_dir", "log_link", "log_prefix", "logbuflevel", "logbufsecs", "max_log_size"),
    *("minloglevel", "stderrthreshold", "v", "vmodule"),
)
"""Where glog writes, and how much of it. Those of ``_SWITCHES`` take no value but behind ``=``."""


class CaffeCommand(TyperCommand):
    """A command whose flags may have one dash, and that ignores those of glog, and says so."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As scripts for Caffe have them, then as usual."""
        known = {name for parameter in self.params for name in (*parameter.opts, *parameter.secondary_opts)}
        taken, ignored = as_usual(args, known)
        if ignored:
            print(
                f"solvergen: warning: {', '.join(ignored)}: glog isn't here, so its flags do nothing; the "
                "log goes to stderr, and with train's --log FILE to a file, too",
                file=sys.stderr,
            )
        return super().parse_args(ctx, taken)


def as_usual(args: Iterable[str], known: Iterable[str]) -> tuple[list[str], list[str]]:
    """The words with two dashes before every ``known`` flag, and glog's flags that were among them."""
    options = set(known)
    taken: list[str] = []
    ignored: list[str] = []
    words: Iterator[str] = iter(args)
    for word in words:
        if word == "--":
            taken += [word, *words]
            break
        match = _FLAG.fullmatch(word)
        name = match[1] if match is not None else ""
        if match is not None and f"--{name}" in options:
            taken.append(f"--{name}{match[2] or ''}")
        elif match is not None and name in _GLOG:
            ignored.append(f"--{name}")
            if match[2] is None and name not in _SWITCHES:
                next(words, None)
        else:
            taken.append(word)
    return taken, ignored


def devices(text: str) -> tuple[int, ...]:
    """The GPUs that ``--gpu`` names, "all" or numbers with commas between them; none where it says none."""
    if text.strip() == "all":
        return (0,)
    try:
        found = tuple(int(part) for part in text.split(",")) if text.strip() else ()
    except ValueError:
        found = (-1,)
    if any(number < 0 for number in found):
        raise typer.BadParameter(
            f"{text!r}: numbers of GPUs from 0, with commas between them, or all", param_hint="'--gpu'"
        )
    return found
