"""The digest changes with what a spec means and with nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from solvergen.spec.digest import normalised
from tests.unit.spec.support import read

SPEC = """\
name: rule
summary: A rule.
hyperparameters:
  lr: {default: 0.1, min: 0, max: 1}
  mu: {default: 0.9}
options:
  fast: {default: false}
state:
  m: {init: 0, when: fast}
  v: {init: 1}
constraints:
  - {that: mu < 1, message: too large}
update:
  - {when: fast, do: m = mu*m + grad}
  - v = v + 1
  - param = param - lr*v
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A rule.", "Another rule."),
        (
            "summary",
            "class_name: Other\ndescription: Much.\nreference: {title: T}\nconventions: [c]\nsummary",
        ),
        ("summary", "counterparts: [{library: l, name: l.f, maps: {mu: nu}}]\nsummary"),
        ("{init: 1}", "{init: 1, output: true}"),
        ("too large", "much too large"),
        ("{default: 0.9}", "{default: 9.0e-1, doc: momentum}"),
        ("min: 0, max: 1", "max: 1.0, min: 0.0"),
        ("mu*m + grad", "mu * m+grad"),
        ("- v = v + 1", "-   v=v + 1  # remark"),
        ("- v = v + 1", "- {do: [v = v + 1]}"),
        ("mu < 1", "mu<1"),
        ("{init: 1}", "{init: 1, shape: param, doc: d}"),
        ("{init: 0, when: fast}", "{when: ' fast '}"),
        ("{default: false}", "{}"),
        ("name: rule", "# remark\nname: 'rule'"),
    ],
)
def test_stays(tmp_path, old, new):
    assert old in SPEC
    assert read(tmp_path, SPEC.replace(old, new, 1)).digest == read(tmp_path, SPEC).digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: rule", "name: ruler"),
        ("0.1,", "0.10000000000000002,"),
        ("min: 0", "above: 0"),
        ("max: 1", "max: 2"),
        ("{default: 0.9}", "{default: 1, integer: true}"),
        (
            "lr: {default: 0.1, min: 0, max: 1}\n  mu: {default: 0.9}",
            "mu: {default: 0.9}\n  lr: {default: 0.1, min: 0, max: 1}",
        ),
        ("fast: {default: false}", "fast: {default: true}"),
        ("fast: {default: false}", "fast: {default: mu > 0}"),
        ("init: 1", "init: 2"),
        ("init: 1", "init: param"),
        ("init: 1", "init: mu"),
        ("init: 1", "init: 1, shape: scalar"),
        (", when: fast}", "}"),
        ("mu < 1", "mu <= 1"),
        ("{that: mu < 1,", "{that: mu < 1, when: fast,"),
        ("mu*m + grad", "grad + mu*m"),
        ("{when: fast, do:", "{when: not fast, do:"),
        ("  - v = v + 1\n", ""),
        ("v + 1\n", "v + 1.0\n"),
        ("  - v = v + 1\n  - param = param - lr*v\n", "  - param = param - lr*v\n  - v = v + 1\n"),
    ],
)
def test_changes(tmp_path, old, new):
    assert old in SPEC
    assert read(tmp_path, SPEC.replace(old, new, 1)).digest != read(tmp_path, SPEC).digest


@pytest.mark.parametrize(
    ("equation", "form"),
    [
        ("a = b", "a=b"),
        ("  a  =\n  b + 1 ", "a=b+1"),
        ("a and not b", "a and not b"),
        ("a  and(b)", "a and(b)"),
        ("1 if a else 2", "1 if a else 2"),
        ("a - -b", "a--b"),
    ],
)
def test_blanks_that_mean_nothing(equation, form):
    assert normalised(equation) == form


def test_is_the_same_in_every_process(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC, encoding="utf-8")
    program = f"from solvergen.spec.reader import read_spec; print(read_spec({str(path)!r}).digest)"
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert digests == {read(tmp_path, SPEC).digest + "\n"}


def test_is_known(tmp_path):
    """Snapshots hold digests: a change here makes every one of them look foreign."""
    assert read(tmp_path, SPEC).digest == ("6c72a913e19c0b5bb289cdf7c392c7ba02030cd446239eea8cba4012dbec4a74")
