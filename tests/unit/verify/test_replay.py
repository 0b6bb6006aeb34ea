"""Findings as files: written, read back with every bit, run again, and refused where they are damaged."""

from __future__ import annotations

import copy
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvergen.cli.app import run as run_command
from solvergen.errors import AgreementError, ReplayError, VerificationError
from solvergen.runtime.backends.numpy import NumpyBackend
from solvergen.verify import (
    Disagreement,
    check_agreement,
    find_disagreement,
    read_replay,
    replay,
    reproducer,
    shipped,
    verify_all,
    write_replay,
)
from solvergen.verify.collect import built_from
from solvergen.verify.dtypes import LAYOUTS
from solvergen.verify.limits import Limits
from solvergen.verify.replaying.arrays import array_from, array_text
from solvergen.verify.replaying.data import example_data, example_from
from solvergen.verify.settings import space_of
from solvergen.verify.strategies import examples
from tests.unit.verify.support import SPECS, faulty, place_of

FAULT = ("adam", "kernel.c", r"beta1 \* exp_avg \+", "beta1 * exp_avg -")
EQUATION = "exp_avg = beta1*exp_avg + (1 - beta1)*g"
"""What is wrong under FAULT."""
ROOT = Path(__file__).parents[3]


def assert_same(one: Any, other: Any) -> None:
    """Equal, arrays bit by bit, NaN like NaN."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            assert_same(left, right)
    elif isinstance(one, float):
        assert one.hex() == other.hex()
    elif hasattr(one, "__dataclass_fields__"):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    else:
        assert one == other


@given(st.data(), st.sampled_from(["adam", "sgd", "caffe_sgd", "adam_mini"]))
@settings(max_examples=40)
def test_every_bit_of_an_example_survives(data: st.DataObject, name: str) -> None:
    example = data.draw(examples(space_of(shipped()[name].definition), Limits(elements=300)))
    text = json.dumps(example_data(example), allow_nan=False)
    assert_same(example_from(json.loads(text)), example)


@pytest.mark.parametrize("dtype", LAYOUTS)
@given(data=st.data())
@settings(max_examples=30)
def test_every_pattern_of_bits_has_its_word(dtype: str, data: st.DataObject) -> None:
    width = LAYOUTS[dtype].bits
    patterns = data.draw(st.lists(st.integers(0, 2**width - 1), max_size=20))
    real = {
        "float32": np.float32,
        "float64": np.float64,
        "bfloat16": ml_dtypes.bfloat16,
        "float16": np.float16,
    }
    array = np.array(patterns, f"u{width // 8}").view(real[dtype])
    text = array_text(array)
    assert array_from(dtype, array.shape, text).tobytes() == array.tobytes()


def test_words() -> None:
    usual = np.array([1.5, -0.0, np.inf, -np.inf, np.nan], np.float32)
    assert array_text(usual) == "0x1.8p+0 -0x0p+0 inf -inf nan"
    odd = np.array([0x7FA00001, 0xFFC00000], np.uint32).view(np.float32)
    assert array_text(odd) == "nan:7fa00001 nan:ffc00000"


@pytest.mark.parametrize(
    ("dtype", "shape", "text", "message"),
    [
        ("float32", (1,), "0x1.000002p+0 0x1p+0", "2 elements where the shape"),
        ("float32", (1,), "0x1.0000001p+0", r"is not a float32"),
        ("float16", (1,), "0x1p+20", "is not a float16"),
        ("float32", (1,), "1.5", "not a hexadecimal float"),
        ("float32", (1,), "0x1p+99999", "not a hexadecimal float"),
        ("float32", (1,), "0x1p+9999", "too large"),
        ("float32", (1,), "__import__('os')", "not a hexadecimal float"),
        ("float32", (1,), "nan:7f800000", "not a NaN"),
        ("float32", (1,), "nan:7fff", "not a NaN"),
        ("float32", (1,), "٣", "not a hexadecimal float"),
        ("object", (1,), "0x1p+0", "not a storage type"),
        ("float32", (2**40, 0, 2**40), "0x1p+0", "1 elements"),
    ],
)
def test_words_that_are_none(dtype: str, shape: tuple[int, ...], text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        array_from(dtype, shape, text)


@pytest.fixture(scope="module")
def finding() -> Disagreement:
    with faulty(*FAULT) as optimizer:
        found = find_disagreement(optimizer, "cpu")
    assert found is not None
    return found


def test_a_finding_is_written_and_run_again(finding: Disagreement, replays: Path) -> None:
    path = write_replay(finding)
    assert path.parent == replays
    # Once, however often it is found, and whatever addresses an error names.
    assert write_replay(replace(finding, difference=None, error="KernelFault: at 0x7f00\nline")) == path
    assert write_replay(replace(finding, backend="ptx")) != path
    assert write_replay(finding) == path
    content = read_replay(path)
    assert (content.optimizer, content.spec, content.backend) == ("adam", "specs/adam.yaml", "cpu")
    assert content.text == (SPECS / "adam.yaml").read_text()
    assert_same(content.example, finding.example)
    # The kernel that is wrong still differs; the one that the compiler makes doesn't.
    with faulty(*FAULT) as optimizer:
        again = replay(path, optimizer)
        assert again is not None
        assert again.difference == finding.difference
        assert replay(path, optimizer, backend="numpy") is None
        assert replay(path, optimizer, backend=NumpyBackend()) is None
    assert replay(path) is None


def test_the_file_holds_what_people_look_for(finding: Disagreement, tmp_path: Path) -> None:
    data = json.loads(write_replay(finding, tmp_path / "a" / "b").read_text(encoding="ascii"))
    difference = data["finding"]["difference"]
    assert difference["buffer"] == "exp_avg"
    assert float.fromhex(difference["found_hex"]) == pytest.approx(float(difference["found"]), rel=1e-6)
    assert difference["equation"]["place"] == place_of("adam", EQUATION)
    assert data["finding"]["report"] == finding.describe()
    assert data["spec"]["digest"] == shipped()["adam"].definition.digest


def test_the_headline_is_a_line(finding: Disagreement) -> None:
    error = replace(finding, difference=None, error="KernelFault: reads behind\n  block 0 of 1")
    assert error.headline == "cpu raises KernelFault: reads behind"
    assert "block 0 of 1" in error.describe()


def test_a_rule_that_is_not_shipped_is_compiled_from_its_text(tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "mine.yaml").write_text(
        "name: mine\nsummary: A rule.\nhyperparameters: {lr: {default: 0.1, min: 0}}\n"
        "update: ['param = param - lr*grad']\n"
    )

    class Wrong(NumpyBackend):
        def to_host(self, array: Any) -> Any:
            return super().to_host(array) * 2

    with built_from([folder]) as optimizers:
        found = find_disagreement(optimizers["mine"], Wrong())
        assert found is not None
        path = write_replay(found)
    (folder / "mine.yaml").unlink()
    content = read_replay(path)
    assert content.text is not None
    assert "param - lr*grad" in content.text
    assert replay(path) is None
    again = replay(path, backend=Wrong())
    assert again is not None
    assert again.spec == "rules/mine.yaml"
    assert again.difference == found.difference
    with pytest.raises(ReplayError, match=r"doesn't hold the text of 'rules/mine\.yaml'"):
        replay(replace(content, text=None))
    with pytest.raises(ReplayError, match="isn't the one that the digest"):
        replay(replace(content, digest="0" * 64))
    with pytest.raises(ReplayError, match="doesn't compile: line 2: SG004"):
        replay(replace(content, text="name: [\n"))
    for path_ in ("../../etc/x.yaml", "..", "/", "", "a\0b"):
        with pytest.raises(ReplayError):
            replay(replace(content, spec=path_, text="name: ["))


def test_another_optimizer_is_told_what_does_not_fit(finding: Disagreement) -> None:
    path = write_replay(finding)
    with pytest.raises(ReplayError, match="SGD doesn't accept this run: its options are"):
        replay(path, shipped()["sgd"])


def test_the_code_to_paste_runs(finding: Disagreement, tmp_path: Path) -> None:
    code = reproducer(finding)
    assert code is not None
    assert "built_from(['specs/adam.yaml'])" in code  # it was compiled on the spot
    done = _python(code)
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr

    class Wrong(NumpyBackend):
        def to_host(self, array: Any) -> Any:
            return super().to_host(array) * 2

    found = find_disagreement(shipped()["sgd"], Wrong())
    assert found is not None
    code = reproducer(found)
    assert code is not None
    assert "from solvergen.optimizers import SGD" in code
    done = _python(code)
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr
    (tmp_path / "pasted.py").write_text(code.rpartition("\n")[0])
    assert_same(runpy.run_path(str(tmp_path / "pasted.py"))["example"], found.example)


def _python(code: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_large_arrays_are_in_the_file_only(finding: Disagreement) -> None:
    tensor = finding.example.tensors[0]
    large = replace(tensor, param=np.zeros(200, tensor.param.dtype))
    assert reproducer(replace(finding, example=replace(finding.example, tensors=(large,)))) is None


def test_check_agreement_leaves_a_file(replays: Path) -> None:
    with faulty(*FAULT) as optimizer, pytest.raises(AgreementError) as caught:
        check_agreement(optimizer, backends=("cpu",))
    (path,) = replays.iterdir()
    assert f"solvergen verify --replay {path}" in str(caught.value)
    assert "example = Example(" in str(caught.value)


def test_a_file_that_cannot_be_written_does_not_hide_the_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SOLVERGEN_REPLAY_DIR", str(tmp_path / "file"))
    with faulty(*FAULT) as optimizer:
        with pytest.raises(AgreementError) as caught:
            check_agreement(optimizer, backends=("cpu",))
        report = verify_all({"adam": optimizer}, ["cpu"])
    assert "equation  exp_avg" in str(caught.value)
    assert "no replay file could be written" in str(caught.value)
    assert isinstance(report.rows[0].replay, ReplayError)


def test_without_a_folder_they_lie_beside_the_kernels(
    finding: Disagreement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOLVERGEN_REPLAY_DIR")
    monkeypatch.setenv("SOLVERGEN_CACHE_DIR", str(tmp_path / "cache"))
    assert write_replay(finding).parent == tmp_path / "cache" / "replays"
    assert (tmp_path / "cache").stat().st_mode & 0o077 == 0


# Damage


def _damage(path: Path, change: Callable[[Any], None]) -> Path:
    data = json.loads(path.read_text())
    change(data)
    target = path.with_name("damaged.json")
    target.write_text(json.dumps(data))
    return target


def _example(data: Any) -> Any:
    return data["example"]


DAMAGE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "another format": (lambda d: d.update(format="solvergen replay 9"), "its format is"),
    "no format": (lambda d: d.pop("format"), "its format is None"),
    "a key too many": (lambda d: d.update(more=1), "'more' is unknown"),
    "a key too few": (lambda d: d.pop("example"), "'example' is missing"),
    "no spec": (lambda d: d.update(spec=[]), "spec: a mapping is needed"),
    "a backend that is a path": (lambda d: d.update(backend="../x"), "is not a name"),
    "an optimizer that is a module": (lambda d: d.update(optimizer="os.system"), "is not a name"),
    "no tensors": (lambda d: _example(d).update(tensors=[]), "at least"),
    "no steps": (lambda d: _example(d).update(steps=[]), "at least"),
    "another group": (lambda d: _example(d)["tensors"][0].update(group=1), "every group must have one"),
    "a negative group": (lambda d: _example(d)["tensors"][0].update(group=-1), "a whole number from 0"),
    "true as a number": (lambda d: _example(d)["tensors"][0].update(group=False), "a whole number from 0"),
    "a huge offset": (lambda d: _example(d)["tensors"][0].update(offset=2**62), "a whole number from 0"),
    "a huge count": (lambda d: _example(d).update(start=2**53), "a whole number from 0"),
    "a policy": (lambda d: _example(d).update(nonfinite="explode"), "is not one of"),
    "a name with an escape": (lambda d: _example(d)["tensors"][0].update(name="\x1b[2J"), "is not a name"),
    "a shape that isn't filled": (
        lambda d: _example(d)["tensors"][0]["param"].update(shape=[2**39, 2**39]),
        "elements where the shape",
    ),
    "many dimensions": (
        lambda d: _example(d)["tensors"][0]["param"].update(shape=[1] * 9),
        "more than 8 dimensions",
    ),
    "another dtype": (
        lambda d: _example(d)["tensors"][0]["param"].update(dtype="object"),
        "not a storage type",
    ),
    "a gradient of another shape": (
        lambda d: _example(d)["steps"][0]["gradients"][0].update(shape=[1, 1]),
        "its gradient",
    ),
    "a gradient too few": (
        lambda d: _example(d)["steps"][0].update(gradients=[]),
        "one entry for each tensor",
    ),
    "a setting too few": (
        lambda d: _example(d)["steps"][0].update(hyperparameters=[]),
        "one mapping for each group",
    ),
    "a hyperparameter in decimal": (
        lambda d: _example(d)["steps"][0]["hyperparameters"][0].update(lr=0.1),
        "a string is needed",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_a_sentence(finding: Disagreement, damage: str) -> None:
    change, message = DAMAGE[damage]
    path = _damage(write_replay(finding), change)
    with pytest.raises(ReplayError, match=message) as caught:
        read_replay(path)
    assert str(path) in str(caught.value)
    assert "\x1b" not in str(caught.value)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a hyperparameter out of range": (
        lambda d: _example(d)["steps"][0]["hyperparameters"][0].update(beta1="0x1p+1"),
        "out of its range",
    ),
    "a hyperparameter that is NaN": (
        lambda d: _example(d)["steps"][0]["hyperparameters"][0].update(lr="nan"),
        "out of its range",
    ),
    "an unknown hyperparameter": (
        lambda d: _example(d)["steps"][0]["hyperparameters"][0].update(rate="0x1p+1"),
        "its hyperparameters are lr",
    ),
    "an unknown option": (
        lambda d: _example(d)["groups"][0]["options"].update(turbo=True),
        "its options are amsgrad",
    ),
    "an option that isn't derived": (
        lambda d: _example(d)["groups"][0]["options"].update(amsgrad=None),
        "must be true or false",
    ),
    "a negative multiplier": (
        lambda d: _example(d)["groups"][0]["multipliers"].update(lr_mult="-0x1p+0"),
        "lr_mult must be",
    ),
    "an unknown state": (
        lambda d: _example(d)["tensors"][0]["arrays"].update(
            zz=copy.deepcopy(_example(d)["tensors"][0]["param"])
        ),
        "has no state 'zz'",
    ),
    "an unknown scalar": (
        lambda d: _example(d)["tensors"][0]["scalars"].update(zz="0x1p+0"),
        "has no scalar state 'zz'",
    ),
    "a gradient of a type that doesn't go with it": (
        lambda d: _example(d)["steps"][0]["gradients"][0].update(
            dtype="float64" if _example(d)["tensors"][0]["param"]["dtype"] != "float64" else "float32"
        ),
        "gradient for w",
    ),
}


@pytest.mark.parametrize("damage", REFUSED)
def test_runs_that_the_optimizer_does_not_accept(finding: Disagreement, damage: str) -> None:
    change, message = REFUSED[damage]
    with pytest.raises(ReplayError, match=message):
        replay(_damage(write_replay(finding), change))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"nan",
        b"[" * 100_000,
        b'{"format": 1, "format": 1}',
        b"1" * 5000,
        b"\0" * 64,
    ],
)
def test_what_is_no_json(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(data)
    with pytest.raises(ReplayError, match="is not a replay file"):
        read_replay(path)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.json", "a\0b", "\x1b[2J.json"):
        with pytest.raises(ReplayError) as caught:
            read_replay(path)
        assert "\x1b" not in str(caught.value)


@given(data=st.data())
@settings(max_examples=150)
def test_any_damage_is_a_replay_error(
    data: st.DataObject, finding: Disagreement, tmp_path_factory: Any
) -> None:
    """Values exchanged, removed, put elsewhere: nothing but ReplayError comes of it, or the run is valid."""
    content: Any = {
        "format": "solvergen replay 1",
        "solvergen": "",
        "optimizer": "adam",
        "spec": {"path": "specs/adam.yaml", "digest": finding.definition.digest, "text": None},
        "backend": "numpy",
        "finding": {},
        "example": example_data(finding.example),
    }
    for _ in range(data.draw(st.integers(1, 3))):
        place: Any = content
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            if isinstance(place[key], (dict, list)) and data.draw(st.booleans()):
                place = place[key]
                continue
            new = data.draw(
                st.sampled_from(
                    (None, True, 0, 1, -1, 2**70, 1.5, "", "nan", "inf", "0x1p+0", [], {}, [1], {"a": 1})
                )
            )
            if data.draw(st.booleans()):
                place[key] = new
            else:
                del place[key]
            break
    path = tmp_path_factory.mktemp("damaged") / "x.json"
    path.write_text(json.dumps(content))
    try:
        found = replay(path, backend="numpy")
    except ReplayError:
        return
    assert found is None


# The command


def test_the_command_says_where_and_runs_it_again(
    tmp_path: Path, replays: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with faulty(*FAULT) as optimizer:
        monkeypatch.setattr("solvergen.verify.shipped", lambda: {"adam": optimizer})
        monkeypatch.chdir(tmp_path)
        code = run_command(["verify", "--backends", "cpu", "--replay-dir", "kept"])
    assert code == 1
    err = capsys.readouterr().err
    (path,) = (tmp_path / "kept").iterdir()
    assert not replays.exists()
    assert f"solvergen verify --replay {path}" in err
    assert f"equation  {EQUATION}  ({place_of('adam', EQUATION)})" in err
    assert run_command(["verify", "--replay", str(path)]) == 0
    assert "adam\tcpu\tsame bits" in capsys.readouterr().out
    assert run_command(["verify", "--replay", str(path), "--backends", "numpy,cpu", "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert (out["ok"], [row["backend"] for row in out["rows"]]) == (True, ["numpy", "cpu"])

    def wrong(replay: Any, optimizer: Any, backend: str) -> Any:
        with faulty(*FAULT) as broken:
            found = find_disagreement(broken, "cpu")
        return found

    monkeypatch.setattr("solvergen.verify.replay", wrong)
    assert run_command(["verify", "--replay", str(path)]) == 1
    captured = capsys.readouterr()
    assert "adam\tcpu\tdiffers\texp_avg of w" in captured.out
    assert "example = Example(" in captured.err
    assert "is not its rule" in captured.err


def test_the_command_with_another_spec(
    finding: Disagreement, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write_replay(finding))
    changed = tmp_path / "changed"
    changed.mkdir()
    text = (SPECS / "adam.yaml").read_text().replace("exp_avg = beta1*exp_avg +", "exp_avg = beta1*exp_avg -")
    (changed / "adam.yaml").write_text(text)
    assert run_command(["verify", "--replay", path, "--specs", str(changed)]) == 0
    assert "another rule than the one" in capsys.readouterr().err
    (changed / "adam.yaml").write_text(text.replace("name: adam", "name: eve"))
    assert run_command(["verify", "--replay", path, "--specs", str(changed)]) == 1
    assert "there is no spec 'adam' in" in capsys.readouterr().err


def test_wrong_usage_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["verify", "adam", "--replay", "x.json"]) == 2
    assert run_command(["verify", "--replay", ""]) == 2
    assert run_command(["verify", "--replay", str(tmp_path / "none.json")]) == 1
    assert "No such file" in capsys.readouterr().err


def test_a_folder_that_is_no_path_and_a_class_that_is_no_optimizer(
    finding: Disagreement, replays: Path
) -> None:
    with pytest.raises(ReplayError, match="no replay file could be written to"):
        write_replay(finding, "a\x00b")
    with pytest.raises(VerificationError, match="replay needs the class of a generated optimizer, not 3"):
        replay(write_replay(finding, replays), 3)  # type: ignore[arg-type]


def test_a_wrapped_optimizer_is_found_by_its_name() -> None:
    from types import SimpleNamespace

    from solvergen.optimizers import Adam
    from solvergen.runtime.wrapped_classes import wrapped_class
    from solvergen.verify.replaying.replay import rule_of

    cls = wrapped_class(Adam)
    content = SimpleNamespace(
        optimizer="wrapped_adam", digest=cls.definition.digest, text=None, spec="specs/adam.yaml"
    )
    with rule_of(content) as found:
        assert found is cls
    content.digest = "0" * 64
    with pytest.raises(ReplayError, match="doesn't hold the text"), rule_of(content):
        pass
