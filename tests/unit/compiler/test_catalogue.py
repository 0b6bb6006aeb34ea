"""The page of all optimizers: current, and complete."""

from __future__ import annotations

from pathlib import Path

from solvergen.catalogue import catalogue
from tests.unit.spec.support import write

ROOT = Path(__file__).parents[3]


def test_the_committed_page_is_current(monkeypatch):
    """`solvergen list --markdown > docs/optimizers.md` writes it anew."""
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "optimizers.md").read_text(encoding="utf-8")
    assert page == catalogue(["specs"]), "run: solvergen list --markdown > docs/optimizers.md"


SPEC = """\
name: every_thing
summary: A rule | with bars.
description: "One.\\n\\nTwo, a*b*c."
reference: {title: T, authors: "*C* <D>"}
conventions: [As it is.]
counterparts:
  - {library: torch, name: torch.optim.SGD}
  - {library: optax, name: optax.sgd, maps: {lr: learning_rate, momentum: 1 - decay}, lacks: [nesterov],
     note: another default}
hyperparameters:
  lr: {default: 1e-3, min: 0}
  momentum: {default: 0, min: 0, below: 1}
options:
  nesterov: {default: true, doc: look ahead}
  buffered: {default: momentum != 0}
state:
  m: {when: buffered}
  scale: {init: 1 - momentum, shape: scalar, doc: one a tensor}
update:
  - scale = scale*momentum
  - {when: buffered, do: m = momentum*m + grad}
  - step = where(buffered, m, grad)
  - param = param - lr*scale*where(nesterov, step, 2*step)
"""


def test_a_section_has_all_that_a_spec_says(tmp_path):
    lines = catalogue([write(tmp_path, SPEC)]).splitlines()
    for line in (
        "| [EveryThing](#every_thing) | A rule \\| with bars. | 0 | 12 | `torch.optim.SGD`, `optax.sgd` |",
        "Two, a\\*b\\*c.",
        "when buffered: m = momentum*m + grad",
        "| `lr` | 0.001 | at least 0 |  |",
        "| `nesterov` | true | option | look ahead |",
        "| `buffered` | `momentum != 0` | option |  |",
        "| `m` | 0 | state when `buffered` |  |",
        "| `scale` | `1 - momentum` | one number for each parameter | one a tensor |",
        "* As it is.",
        "| here | `torch.optim.SGD` | `optax.sgd` |",
        "| `lr` | `lr` | `learning_rate` |",
        "| `momentum` | `momentum` | `1 - decay` |",
        "| `nesterov` | `nesterov` | – |",
        "* `optax.sgd`: another default.",
        "* \\*C\\* \\<D>. T.",
    ):
        assert line in lines, line
    assert not any("`buffered` | `buffered`" in line for line in lines)  # nobody else has derived options
