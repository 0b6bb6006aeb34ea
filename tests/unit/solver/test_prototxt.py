"""What strangers' prototxt files hold is read as Caffe reads it, or refused with the place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from solvergen.solver import NetState, SolverParameters, SolverParametersError
from solvergen.solver.parameters.error import UnreadableParameters
from solvergen.solver.parameters.prototxt import parse_prototxt, read_prototxt
from solvergen.solver.parameters.report import explained

pytest.importorskip("google.protobuf")


def test_one_line_holds_it_all():
    """The fields of pycaffe's own test, on one line."""
    params = parse_prototxt(
        "net: 'n' test_iter: 10 test_interval: 10 base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 "
        "lr_policy: 'inv' gamma: 0.0001 power: 0.75 display: 100 max_iter: 100 snapshot_after_train: false "
        'snapshot_prefix: "model"'
    )
    assert params == SolverParameters(
        net="n",
        test_iter=[10],
        test_interval=10,
        base_lr=0.01,
        momentum=0.9,
        weight_decay=0.0005,
        lr_policy="inv",
        gamma=0.0001,
        power=0.75,
        display=100,
        max_iter=100,
        snapshot_after_train=False,
        snapshot_prefix="model",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"base_lr: 1 # caf\xe9 { net: 'x'\nmax_iter: 2", {"base_lr": 1, "max_iter": 2}),
        ("base_lr: 1\r\nmax_iter: 2\r\n", {"base_lr": 1, "max_iter": 2}),
        ("\tbase_lr:\t1;max_iter : 2,", {"base_lr": 1, "max_iter": 2}),
        ("\ufeffbase_lr: 1", {"base_lr": 1}),
        ("net: 'a' \"b\"\n 'c'", {"net": "abc"}),
        (r"net: 'it\'s \x41 # no comment'", {"net": "it's A # no comment"}),
        ("base_lr: 1e-12", {"base_lr": 1e-12}),
        ("base_lr: .01", {"base_lr": 0.01}),
        ("base_lr: 1.", {"base_lr": 1}),
        ("base_lr: 0.1f", {"base_lr": 0.1}),
        ("clip_gradients: -1", {"clip_gradients": -1}),
        ("clip_gradients: - 1", {"clip_gradients": -1}),
        ("clip_gradients: -\n  # less\n 1.5 base_lr: 1", {"clip_gradients": -1.5, "base_lr": 1}),
        ("clip_gradients: - inf", {"clip_gradients": float("-inf")}),
        ("net: 'a - 1' # - 1", {"net": "a - 1"}),
        ("random_seed: 3405691582", {"random_seed": 3405691582}),
        ("max_iter: 81920000", {"max_iter": 81920000}),
        ("max_iter: 0x10 display: 010", {"max_iter": 16, "display": 8}),
        ("stepvalue: [4000, 6000] stepvalue: 8000", {"stepvalue": [4000, 6000, 8000]}),
        ("test_iter: 1 test_iter: 2", {"test_iter": [1, 2]}),
        (
            'test_state { stage: "x" } test_state: < level: 1 phase: TEST >',
            {"test_state": [NetState(stage=("x",)), NetState(level=1, phase="TEST")]},
        ),
        ("snapshot_format: HDF5 solver_mode: CPU", {"snapshot_format": "HDF5", "solver_mode": "CPU"}),
        ("solver_mode: 0", {"solver_mode": "CPU"}),
        ("solver_mode: 1", {"solver_mode": "GPU"}),
        ("snapshot_format: SAFETENSORS keep_snapshots: 3", {"snapshot_format": 1000, "keep_snapshots": 3}),
        ("snapshot_diff: true debug_info: 0", {"snapshot_diff": True, "debug_info": False}),
        (
            'optimizer: "AdamW" hyperparameter { name: "beta1" value: 0.8 } '
            'hyperparameter { name: "amsgrad" flag: true }',
            {"optimizer": "AdamW", "hyperparameters": {"beta1": 0.8, "amsgrad": True}},
        ),
        (
            'policy_setting { name: "warmup" value: 500 } policy_setting { name: "rates" value: [1, 0.5] } '
            'policy_setting { name: "metric" text: "x" }',
            {"policy": {"warmup": 500, "rates": (1, 0.5), "metric": "x"}},
        ),
    ],
)
def test_accepted(text, expected):
    assert parse_prototxt(text) == SolverParameters(**expected)


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("base_lr: 1\n  type: SGD", "2:9", 'type is a string; write type: "SGD"'),
        ("lr_policy: fixed", "1:12", 'write lr_policy: "fixed"'),
        ("iter_step: 3", "1:1", "no field 'iter_step'; did you mean 'iter_size'?"),
        ("warmup_iter: 3", "1:1", "any policy warms up"),
        ("max_iter: 1\nmax_iter: 2", "2:1", "max_iter is given twice; it stands in line 1"),
        ("device_id: 0,1", "1:14", "device_id takes one value; one solver runs on one device"),
        ("device_id: [0,1,2,3]", "1:1", "device_id takes one value, not a list"),
        ("base_lr: 1\n<<<<<<< HEAD\n", "2:1", "a marker of a merge conflict"),
        ("solver_mode: TPU", "1:14", "solver_mode can't be TPU"),
        ("solver_mode: gpu", "1:14", "did you mean 'GPU'?"),
        ("solver_mode: 2", "1:14", "solver_mode can't be 2"),
        ("snapshot_format: HDF", "1:18", "did you mean 'HDF5'?"),
        ('solver_mode: "GPU"', "1:14", "write solver_mode: GPU, without quotes"),
        ("max_iter: 1e5", "1:11", "max_iter is a whole number, not 1e5; write max_iter: 100000"),
        ("max_iter: 99999999999", "1:11", "it holds numbers up to 2147483647"),
        ("debug_info: yes", "1:13", "write debug_info: true"),
        ('base_lr: "0.1"', "1:10", "write base_lr: 0.1, without quotes"),
        ("base_lr: fast", "1:10", "base_lr is a number, not fast"),
        ("test_state: 3", "1:1", "write test_state { ... }"),
        ("net { name: 'x' }", "1:1", "net takes a value, no braces"),
        ("max_iter 3", "1:10", "expected"),
        ("net: 'caf", "1:6", "quote"),
        ("max_iter: 1 // many", "1:13", "comments begin with #"),
        ("max_iter = 1", "1:10", "a value follows a colon"),
        ("net: \u201cn\u201d", "1:6", "quotes are straight ones"),
        ("name: 'LeNet'\nlayer { name: 'x' }", "1:1", "no field 'name'"),
        ("layer { name: 'x' }", "1:1", "it is a net's"),
        (b"net: 'caf\xe9'", "1:10", "isn't UTF-8"),
        ("base_lr: 1".encode("utf-16-le"), "1:2", "this byte is 0, as in UTF-16; write the file in UTF-8"),
        ("base_lr: 1\0", "1:11", "this byte is 0"),
        (r"display: 1 net: 'C:\377'", "1:17", "net has an escape that stands for no text"),
        (r"net: 'a' '\ud800'", "1:6", "net has an escape that stands for no text"),
        ("max_iter: " + "9" * 5000, "1:11", "max_iter is a whole number, not 9999"),
        ("net_param { name: 'x' }\ntest_net_param {" + "a {" * 500 + "}" * 501, "2:17", "nested too deeply"),
        ("test_iter: 1\n test_net_param {} test_net_param { name: }", "2:43", "expected string"),
        (
            'optimizer: "SGD" hyperparameter { name: "m" value: 1 }\nhyperparameter { name: "m" value: 1 }',
            "2:1",
            "hyperparameter 'm' is given twice",
        ),
        ('policy_setting: [{ name: "a" }, { value: 1 }]', "1:1", "policy_setting 'a' has no value"),
        ("policy_setting { value: 1 }", "1:1", "policy_setting has no name"),
        ('policy_setting { name: "a" value: 1 text: "x" }', "1:1", "has several kinds of values; give one"),
        ("base_lr: 1 }", "1:12", "expected identifier"),
        ("test_state { stge: 'x' }", "1:14", 'no field named "stge"'),
        ("net_param {\n layer { name: 3 } }", "2:16", "expected string"),
    ],
)
def test_refused_with_the_place(text, place, said):
    with pytest.raises(SolverParametersError) as caught:
        parse_prototxt(text, "dir/solver.prototxt")
    assert str(caught.value).startswith(f"dir/solver.prototxt:{place}: error: ")
    assert said in str(caught.value)
    assert len(str(caught.value)) < 500


def test_what_is_shown_of_a_line_is_short_and_can_be_seen():
    for text, line, carets in (
        ("a: 1 " * 100 + "iter_step: 3 " + "b: 1 " * 100, "iter_step", 9),
        ("momentum:\t\u202e\x1b[31m 0.9", "momentum:\t\\u202e\\x1b[31m 0.9", 6),
        ("base\u202e_lr: 1", "base\\u202e_lr: 1", 1),
        ("\x1b: 1", "\\x1b: 1", 4),
    ):
        with pytest.raises(SolverParametersError) as caught:
            parse_prototxt(text, "s.prototxt")
        shown = explained(
            next(
                one for one in caught.value.findings if "iter_step" not in text or "iter_step" in one.message
            )
        )
        said, source, mark = shown.split("\n")
        assert line in source
        assert len(source) < 140
        assert mark.count("^") == carets
        assert all(part.replace("\t", "").isprintable() for part in (said, source, mark))
        if carets == 9:
            assert source[mark.index("^") :].startswith("iter_step")


def test_many_nets_take_little_time():
    count = 2000
    params = parse_prototxt("test_net_param { name: 'x' } test_iter: 1\n" * count)
    assert params.test_net_param == (" name: 'x' ",) * count


def test_every_mistake_is_said_at_once():
    with pytest.raises(SolverParametersError) as caught:
        parse_prototxt("type: SGD\niter_step: 1\nmax_iter: 1 max_iter: 1")
    assert [finding.location.line for finding in caught.value.findings] == [1, 2, 3]
    assert caught.value.findings[1].source == "iter_step: 1"


@pytest.mark.parametrize("text", ["net_param {" + " a {" * 5000, "test_state {" * 5000, "{" * 5000])
def test_depth_is_no_crash(text):
    with pytest.raises(SolverParametersError):
        parse_prototxt(text)


NET = """ name: "x" # }
  layer { name: "c" type: "Convolution" convolution_param { num_output: 3 kernel_size: [3, 3] }
    our_fork_param < anything: "goes" > }
"""


def test_inline_nets_are_handed_on_as_they_stand():
    params = parse_prototxt(
        f"train_net_param {{{NET}}} test_net_param: < {NET} > test_iter: 3 test_interval: 1"
    )
    assert params.train_net_param == NET
    assert params.test_net_param == (f" {NET} ",)
    source = params.train_net_source
    assert (source.kind, source.path, source.text) == ("train_net_param", None, NET)
    assert params.test_net_sources[0].source.text == f" {NET} "


def test_states_merge_as_protobuf_merges():
    params = parse_prototxt(
        'net_param { name: "x" state { stage: "own" level: 3 } } train_state { stage: "more" level: 1 } '
        'test_iter: 5 test_iter: 6 test_interval: 1 test_state { stage: "a" } test_state {}'
    )
    assert params.train_net_state == NetState(phase="TRAIN", level=1, stage=("own", "more"))
    first, second = params.test_net_sources
    assert first.state == NetState(phase="TEST", level=3, stage=("own", "a"))
    assert second.state == NetState(phase="TEST", level=3, stage=("own",))
    assert (first.iterations, second.iterations) == (5, 6)


def test_a_nets_file_gives_its_state(tmp_path: Path):
    file = tmp_path / "net.prototxt"
    file.write_text('name: "x" layer { foo: 1 } state { phase: TEST stage: "file" }')
    params = SolverParameters(net=str(file))
    assert params.train_net_state == NetState(phase="TEST", level=0, stage=("file",))
    assert any("in phase TEST" in warning for warning in params.warnings)
    assert SolverParameters(net=str(tmp_path / "none")).train_net_state == NetState(phase="TRAIN", level=0)


@pytest.mark.parametrize(
    ("content", "said"), [(b"state {", "can't be parsed"), (b"state { stage: '\xe9' }", "isn't UTF-8")]
)
def test_a_nets_file_that_says_nothing_is_warned_of(tmp_path: Path, content: bytes, said: str):
    file = tmp_path / "net.prototxt"
    file.write_bytes(content)
    params = SolverParameters(net=str(file))
    assert params.train_net_state == NetState(phase="TRAIN", level=0)
    assert any(said in warning for warning in params.warnings)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "deep").write_text("state {" + "a {" * 5000)
    with open(tmp_path / "long", "wb") as sparse:
        sparse.truncate(1 << 33)
    for path, told in (
        ("", "is a folder"),
        ("pipe", "isn't a regular file"),
        ("deep", "can't be parsed: braces are nested too deeply"),
        ("long", "has more than 64 MiB"),
        ("a\0b", "can't be a path: it holds a NUL character"),
        ("x" * 5000, "File name too long"),
    ):
        params = SolverParameters(net=f"{tmp_path}/{path}")
        assert any(told in warning and len(warning) < 400 for warning in params.warnings), params.warnings


def test_solver_files_that_are_something_else(tmp_path: Path):
    with open(tmp_path / "long", "wb") as sparse:
        sparse.truncate(1 << 33)
    for path, told in (
        ("long", "more than 64 MiB"),
        ("a\0b", "null byte"),
        ("x" * 5000, "File name too long"),
    ):
        with pytest.raises(UnreadableParameters, match=told):
            read_prototxt(tmp_path / path)
    (tmp_path / "s.prototxt").write_text(f'snapshot_prefix: "{"x" * 5000}"')
    assert read_prototxt(tmp_path / "s.prototxt").snapshot_prefix == "x" * 5000


def test_test_nets_come_in_caffes_order():
    params = parse_prototxt(
        "net: 'n' test_net: 'f' test_net_param { name: 'p' } test_iter: [1, 2, 3, 4] test_interval: 1"
    )
    assert [test.source.kind for test in params.test_net_sources] == [
        "test_net_param",
        "test_net",
        "net",
        "net",
    ]
    assert [test.iterations for test in params.test_net_sources] == [1, 2, 3, 4]


def test_the_prefix_is_completed_as_caffe_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "snaps").mkdir()
    (tmp_path / "a.b").mkdir()
    file = Path("a.b/lenet.solver.prototxt")
    for written, expected in (
        ("", "a.b/lenet.solver"),
        ('snapshot_prefix: "snaps"', "snaps/lenet.solver"),
        ('snapshot_prefix: "snaps/x"', "snaps/x"),
    ):
        file.write_text(written)
        assert read_prototxt(file).snapshot_prefix == expected
    assert parse_prototxt("").snapshot_prefix is None
    assert read_prototxt(file).source == file


def test_places_of_what_was_given():
    params = parse_prototxt("base_lr: 1\n stepvalue: [1,\n 22]", "f")
    assert [str(place) for place in params.locations["stepvalue"]] == ["f:2:14", "f:3:2"]
    assert str(params.finding("base_lr", "x")) == "f:1:1: error: x"
