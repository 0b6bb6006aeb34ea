"""What `solvergen list` says an optimizer costs."""

from __future__ import annotations

import pytest

from solvergen.summary import default_setting, summarise, summary_of
from tests.support.rules import compiled


@pytest.mark.parametrize(
    ("name", "state", "moved"),
    [("adam", 8, 28), ("sgd", 0, 12), ("lion", 4, 20), ("caffe_sgd", 4, 20), ("caffe_adadelta", 8, 28)],
)
def test_bytes(name, state, moved):
    (found,) = (s for s in summarise(["specs"]) if s.name == name)
    assert (found.state_bytes, found.moved_bytes, found.passes) == (state, moved, 1)


def test_derived_options_may_compute(tmp_path):
    unit = compiled(
        tmp_path,
        "- {when: heavy, do: m = m*lr + grad}\n- param = param - lr*where(heavy, m, grad)",
        options='heavy: {default: "sqrt(lr)*2 > 0.5 and not lr**2 >= 1"}',
        state="m: {init: 0, when: heavy}",
    )
    assert default_setting(unit) == {"heavy": True}
    assert summary_of(unit).state_bytes == 4


def test_sources_are_short():
    sources = {s.name: s.source for s in summarise(["specs"])}
    assert sources["adam"] == "Kingma 2015, arXiv:1412.6980"
    assert sources["sgd"] == "Robbins 1951, 10.1214/aoms/1177729586"
