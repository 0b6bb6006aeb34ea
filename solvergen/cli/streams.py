"""Standard streams that can be written to, whatever the shell or the locale made of them."""

from __future__ import annotations

import io
import os
import sys

from solvergen.cli import exit_codes

_NAMES = {0: "stdin", 1: "stdout", 2: "stderr"}


def make_usable() -> None:
    """Let writing to stdout and stderr never fail for what is written.

    A stream that was closed (``>&-``) goes nowhere, as if the reader of a pipe had gone; its number is
    taken, lest the next file that is opened gets it and receives what is printed. What a stream's encoding
    doesn't have is written with backslashes.
    """
    for number, name in _NAMES.items():
        if not _is_open(number):
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number: this one
        if number == 0:
            continue
        stream = getattr(sys, name)
        if stream is None:
            nowhere = os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
            setattr(sys, name, nowhere)
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def finish(code: int) -> int:
    """Write what stdout still holds; the exit code, given what it would be if that succeeds.

    Nobody reading any more is no error. Anything else, such as a full disk, is one that is told.
    """
    try:
        sys.stdout.flush()
    except (ValueError, AttributeError):  # closed, or taken away, by code of the user's
        return code
    except OSError as error:
        # The interpreter would try again, and complain.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
        if code == exit_codes.OK and not isinstance(error, BrokenPipeError):
            print(f"solvergen: standard output: {error.strerror}", file=sys.stderr)
            return exit_codes.FINDINGS
    return code


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
