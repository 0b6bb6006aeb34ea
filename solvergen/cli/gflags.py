"""Command lines as Caffe's tools take them: gflags has one dash or two, and glog has flags of its own."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Literal

import typer
from typer.core import TyperCommand

_FLAG = re.compile(r"--?([A-Za-z][A-Za-z0-9_-]+|v)(=.*)?", re.DOTALL)

Takes = Literal["nothing", "a value", "a value or none"]

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
        known: dict[str, Takes] = {}
        for parameter in self.params:
            text = parameter.default in (None, "") and parameter.metavar != "N"
            takes: Takes = "a value or none" if text else "a value"
            if getattr(parameter, "is_flag", False):
                takes = "nothing"
            known |= dict.fromkeys((*parameter.opts, *parameter.secondary_opts), takes)
        taken, ignored = as_usual(args, known)
        if ignored:
            print(
                f"solvergen: warning: {', '.join(ignored)}: glog isn't here, so its flags do nothing; the "
                "log goes to stderr, and with train's --log FILE to a file, too",
                file=sys.stderr,
            )
        return super().parse_args(ctx, taken)


def as_usual(args: Iterable[str], known: Mapping[str, Takes]) -> tuple[list[str], list[str]]:
    """The words with two dashes before every flag, and glog's flags that were among them.

    A flag of those that take "a value or none" isn't given if its value is empty, as in gflags: scripts have
    ``--snapshot="$SNAPSHOT"``. Words that are other flags' values stay as they are.
    """
    taken: list[str] = []
    ignored: list[str] = []
    words: Iterator[str] = iter(args)
    for word in words:
        if word == "--":
            taken += [word, *words]
            break
        match = _FLAG.fullmatch(word)
        if match is None:
            taken.append(word)
            continue
        flag, value = f"--{match[1]}", match[2]
        switch = match[1].removeprefix("no")
        if flag in known:
            given = [] if value is not None or known[flag] == "nothing" else [*islice(words, 1)]
            empty = value == "=" or given == [""]
            if not (empty and known[flag] == "a value or none"):
                taken += [flag + (value or ""), *given]
        elif match[1] in _GLOG or switch in _SWITCHES:
            ignored.append(flag)
            if value is None and switch not in _SWITCHES:
                next(words, None)
        else:
            taken.append(flag + (value or ""))  # which isn't known, and is told so under its whole name
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
