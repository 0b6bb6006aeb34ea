"""Specs as text, and what the reader says of them."""

from __future__ import annotations

import re

from solvergen.spec.reader import examine

MINIMAL = """\
name: rule
summary: A rule for a test.
hyperparameters:
  lr: {default: 0.1}
update:
  - param = param - lr*grad
"""


def write(folder, content, name="rule.yaml"):
    """The path, as a string, of a new file in ``folder``."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return str(path)


def section(name, body):
    """MINIMAL with a section set to ``body``, given without indentation."""
    lines = "".join(f"  {line}\n" for line in body.strip().splitlines())
    without = re.sub(rf"^{name}:\n(  .*\n)*", "", MINIMAL, flags=re.MULTILINE)
    return f"{without}{name}:\n{lines}"


def findings(folder, content):
    """(code, line, column) of everything that the reader finds."""
    return [(d.code, d.location.line, d.location.column) for d in diagnostics(folder, content)]


def codes(folder, content):
    return [d.code for d in diagnostics(folder, content)]


def diagnostics(folder, content):
    return examine(write(folder, content))[1]


def only(folder, content):
    """The one diagnostic."""
    (found,) = diagnostics(folder, content)
    return found


def read(folder, content):
    """The spec, which must be flawless."""
    spec, found = examine(write(folder, content))
    assert found == (), found
    return spec
