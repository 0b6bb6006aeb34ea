"""YAML says the same as prototxt, and is refused with line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from solvergen.solver import SolverParameters, SolverParametersError
from solvergen.solver.parameters.prototxt import parse_prototxt
from solvergen.solver.parameters.report import explained
from solvergen.solver.parameters.yaml_form import parse_yaml

YAML = """\
net: n.prototxt          # a path
test_iter: [10, 20]
test_interval: 5
base_lr: 1e-3
lr_policy: multistep
gamma: .5
stepvalue: [4000, 6000]
solver_mode: CPU
test_state: [{stage: [a, b]}, {level: 1}]
optimizer: AdamW
hyperparameters: {beta1: 0.8, amsgrad: true}
policy: {warmup: 500}
snapshot_prefix: x
"""

PROTOTXT = """\
net: "n.prototxt" test_iter: [10, 20] test_interval: 5 base_lr: 1e-3 lr_policy: "multistep" gamma: .5
stepvalue: [4000, 6000] solver_mode: CPU test_state { stage: ["a", "b"] } test_state { level: 1 }
optimizer: "AdamW" hyperparameter { name: "beta1" value: 0.8 } hyperparameter { name: "amsgrad" flag: true }
policy_setting { name: "warmup" value: 500 } snapshot_prefix: "x"
"""


def test_the_same_parameters():
    pytest.importorskip("google.protobuf")
    assert parse_yaml(YAML) == parse_prototxt(PROTOTXT)
    assert parse_yaml(YAML).given == parse_prototxt(PROTOTXT).given


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("base_lr: 1\nbase_lr: 2", "2:1", "duplicate key"),
        ("base_lr: [", "1:11", ""),
        ("a: 1\n\n iter_step: 3", "3:", ""),
        ("base_lr: 1\niter_step: 3", "2:1", "did you mean 'iter_size'?"),
        ("lr: 3", "1:1", "that is base_lr"),
        ("base_lr:", "1:1", "base_lr has no value"),
        ("base_lr: x", "1:1", "base_lr must be a number"),
        ("- base_lr", "1:1", "must be a mapping"),
        ("", "1:1", "holds nothing"),
        ("base_lr: *x", "1:10", "undefined alias"),
        ("base_lr: 1\nnet: \x00", "2:6", "the character U+0000 can't be in YAML"),
        (b"base_lr: 1\nnet: caf\xe9 # ", "2:9", "this byte isn't UTF-8; write the file in UTF-8"),
        ("base_lr: 1\n---\nbase_lr: 2", "2:1", "expected a single document in the stream, but found another"),
        (r'net: "\ud800"', "1:1", "net can't be '\\ud800': U+D800 is half of a character"),
        ("policy: " + "{a: " * 3000, "", "nested too deeply"),
        ("policy: &a {<<: *a}", "", "can't be read as YAML"),
        ("stepsize: " + "9" * 5000, "", "can't be read as YAML"),
        ("{1: 2}", "1:2", "no parameter '1'"),
        ("solver_mode: 3", "1:1", "can't be '3'"),
        ("net: !!python/object/apply:os.system [x]", "1:1", "net must be a string"),
    ],
)
def test_refused_with_the_place(text, place, said):
    with pytest.raises(SolverParametersError) as caught:
        parse_yaml(text, "s.yaml")
    assert f"s.yaml:{place}" in str(caught.value) or not place
    assert "s.yaml" in str(caught.value)
    assert said in str(caught.value)


def test_a_net_need_not_be_named(tmp_path: Path):
    file = tmp_path / "s.yaml"
    file.write_text("base_lr: 1\nlr_policy: fixed\ntest_iter: [3]\ntest_interval: 2\n")
    params = SolverParameters.from_file(file)
    assert params.train_net_source is None
    assert [test.iterations for test in params.test_net_sources] == [3]
    assert params.snapshot_prefix == str(tmp_path / "s")


def test_a_file_that_was_mended_since_is_shown_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    for line in ("iter_sizes: 1", "base_lrs: 0.1"):
        path.write_text(f"{line}\n")
        with pytest.raises(SolverParametersError) as caught:
            SolverParameters.from_yaml(path)
        assert line in explained(caught.value.findings[0])
