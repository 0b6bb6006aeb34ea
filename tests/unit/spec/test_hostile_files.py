"""No file, however made, costs more than a moment, and none gets past the diagnostics."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from solvergen.spec.limits import MAX_BYTES
from solvergen.spec.reader import examine
from solvergen.spec.report import format_diagnostics
from tests.unit.spec.support import write

ROOT = Path(__file__).parents[3]
N = MAX_BYTES
SECONDS = 20.0  # of this process alone; about a second on a machine of 2020

HOSTILE = {
    "brackets": "[" * N,
    "braces": "{" * N,
    "dashes": "- " * (N // 2),
    "question marks": "? " * (N // 2),
    "closing brackets": "]" * N,
    "pairs": "[" * 5000 + "]" * 5000,
    "keys": "".join(f"k{i}: 1\n" for i in range(N // 12)),
    "one key again and again": "a: 1\n" * (N // 5),
    "long key": "x" * 1000 + ": 1",
    "longer key": '"' + "x" * 100_000 + '": 1',
    "plain text": "a: " + "x" * (N - 3),
    "quoted text": 'a: "' + "x" * (N - 10) + '"',
    "open quote": 'a: "' + "x" * (N - 4),
    "open single quote": "a: '" + "x\n " * (N // 4),
    "blanks": "a: x" + " " * (N - 10) + "y",
    "empty lines": "a: x" + "\n" * (N - 10) + " y",
    "words": "a: " + "x y " * (N // 4 - 1),
    "lines": "a:\n" + "  x y z\n" * (N // 8 - 1),
    "literal": "a: |\n" + "  x y z\n" * (N // 8 - 1),
    "folded": "a: >\n" + "  x y z\n" * (N // 8 - 1),
    "literal of nothing": "a: |\n" + "\n" * (N - 10) + "  x",
    "escapes": 'a: "' + "\\x41" * (N // 4 - 4) + '"',
    "commas": "[" + "a," * (N // 2 - 1),
    "empty lists": "a: [" + "[]," * (N // 3 - 2),
    "colons": ":" * N,
    "colons and blanks": ": " * (N // 2),
    "comments": "#x\n" * (N // 3),
    "long comment": "a: 1 #" + "x" * (N - 6),
    "newlines": "\n" * N,
    "tabs": "\t" * N,
    "anchors": "&a " * (N // 3),
    "aliases": "- *a\n" * (N // 5),
    "tags": "- !a b\n" * (N // 7),
    "long tag": "!" * N,
    "documents": "---\n" * (N // 4),
    "directives": "%A\n" * (N // 3),
    "digits": "name: " + "9" * (N - 10),
    "hexadecimal digits": "name: 0x" + "f" * (N - 10),
    "octal digits": "name: 0o" + "7" * (N - 10),
    "exponent": "name: 1e" + "9" * (N - 10),
    "signs": "name: " + "-" * (N - 10),
    "hyperparameters": "hyperparameters:\n" + "".join(f"  h{i}: abc\n" for i in range(3000)),
    "long names": "state:\n" + "".join("  " + "x" * 900 + f"{i}: 1\n" for i in range(120)),
    "unknown keys": "".join(f"kkkkkkk{i}: 1\n" for i in range(4000)),
    "updates": "update:\n" + "- a\n" * (N // 5),
    "one long update": "name: a\nsummary: b\nupdate:\n- " + "(" * 100_000,
    "more than a file may have": "a" * (20 * N),
}

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join('*' + chr(97 + i) for _ in range(9))}]\n" for i in range(9)
)


def timed(path):
    """The findings in one file, once it has been read and reported on in good time."""
    start = time.process_time()
    spec, found = examine(path)
    report = format_diagnostics(found)
    assert time.process_time() - start < SECONDS
    assert spec is None
    assert found
    assert len(report) < 200_000
    return found


@pytest.mark.parametrize("kind", HOSTILE)
def test_costs_a_moment(tmp_path, kind):
    timed(write(tmp_path, HOSTILE[kind]))


def test_an_alias_bomb_is_not_lit(tmp_path):
    found = timed(write(tmp_path, BOMB))
    assert {d.code for d in found} == {"SG005"}
    assert len(found) > 9  # each anchor and each alias, at its place


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are not kept elsewhere")
def test_costs_little_memory(tmp_path):
    """A process that may have 200 MB more than it has with everything imported reads them all."""
    for number, content in enumerate([*HOSTILE.values(), BOMB]):
        write(tmp_path, content, f"{number}.yaml")
    program = f"""
import os, resource
from solvergen.spec.reader import examine, read_spec
read_spec({str(ROOT / "specs" / "adam.yaml")!r})
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + 200_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
names = sorted(os.listdir({str(tmp_path)!r}))
assert all(examine(os.path.join({str(tmp_path)!r}, name))[1] for name in names)
print(len(names))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == f"{len(HOSTILE) + 1}\n", done.stderr[-2000:]


TOKENS = (
    "&a ",
    "*a ",
    "!t ",
    "!!str ",
    "!!python/name:os.system ",
    "|",
    "|2-\n",
    ">",
    "'",
    '"',
    "\\",
    "\\u12",
    "\\U99999999",
    "\\N",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    ": ",
    "- ",
    "? ",
    "\t",
    "\n",
    "\r",
    "#",
    " #",
    "%",
    "%YAML 1.3\n---\n",
    "@",
    "`",
    "\x85",
    "\u2028",
    "\0",
    "\ufeff",
    "\ud800",
    "<<: ",
    "---\n",
    "...\n",
    "é",
    "😀",
    "0x",
    "1e999",
    ".nan",
    "~",
    "null",
    "true",
)


def test_a_version_after_the_document(tmp_path):
    """Nothing looks at directives there before the parser does."""
    content = (Path(__file__).parents[3] / "specs/lion.yaml").read_bytes()
    spec, found = examine(write(tmp_path, content + b"...\n%YAML 1.3\n---\n"))
    assert spec is None
    (diagnostic,) = found
    assert diagnostic.code == "SG005"
    assert diagnostic.location.line == content.count(b"\n") + 2


@pytest.mark.parametrize("seed", range(8))
def test_damaged_specs_are_reported_on(tmp_path, seed):
    """Whatever happens to a file, the answer is a spec or diagnostics that point into it."""
    chance = random.Random(seed)
    originals = [
        path.read_text(encoding="utf-8")
        for path in sorted((Path(__file__).parents[3] / "specs").glob("*.yaml"))
    ]
    refused = 0
    for _ in range(40):
        letters = list(chance.choice(originals))
        for _ in range(chance.randint(1, 8)):
            at = chance.randrange(len(letters))
            what = chance.random()
            if what < 0.3:
                del letters[at : at + chance.randint(1, 20)]
            elif what < 0.8:
                letters.insert(at, chance.choice(TOKENS))
            else:
                start = chance.randrange(len(letters))
                letters[at:at] = letters[start : start + chance.randint(1, 40)]
        content = "".join(letters).encode("utf-8", errors="surrogatepass")
        spec, found = examine(write(tmp_path, content))
        assert (spec is None) <= bool(found)
        lines = content.count(b"\n") + content.count(b"\r") + 1
        for diagnostic in found:
            assert diagnostic.code != "SG001"
            assert 1 <= diagnostic.location.line <= lines + 1
            assert 1 <= diagnostic.location.column < diagnostic.location.end_column
        assert format_diagnostics(found) or not found
        refused += bool(found)
    assert refused > 20
