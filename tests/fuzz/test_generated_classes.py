"""The class that comes of a random spec: its arguments, attributes, configurations and snapshots."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

from solvergen.cli.app import run
from solvergen.verify.fuzzing.rule import AGAIN
from solvergen.verify.fuzzing.spec import DrawnSpec
from solvergen.verify.fuzzing.strategies import specs
from solvergen.verify.fuzzing.style import Style
from solvergen.verify.fuzzing.yaml_text import yaml_of
from tests.fuzz.built import built, spec_file, styles
from tests.fuzz.running import fuzz


def test_a_class_is_what_its_spec_says(tmp_path: Path) -> None:
    def sound(spec: DrawnSpec, style: Style, data: object) -> None:
        with built(yaml_of(spec, style)) as found, np.errstate(all="ignore"):
            cls = found.optimizer
            assert inspect.getdoc(cls)
            assert set(inspect.signature(cls).parameters) >= {*spec.rule.hyperparameters}
            optimizer = cls([np.ones(3), np.zeros((2, 2), np.float32)], backend="numpy")
            for h in found.spec.hyperparameters:
                assert getattr(optimizer, h.name) == h.default
                setattr(optimizer, h.name, h.default)
            assert repr(optimizer)
            for _ in range(2):
                gradients = [np.full(3, 0.5), np.ones((2, 2), np.float32)]
                again = AGAIN in spec.rule.update
                optimizer.step((lambda given=gradients: (0.0, given)) if again else gradients)
            again = cls.from_config([np.ones(3), np.zeros((2, 2), np.float32)], optimizer.get_config())
            assert again.get_config() == optimizer.get_config()
            again.load_state_dict(optimizer.state_dict())
            path = tmp_path / "snapshot.safetensors"
            optimizer.save(path)
            third = cls([np.ones(3), np.zeros((2, 2), np.float32)], backend="numpy")
            third.load(path)
            for other in (again, third):
                assert other.t == optimizer.t
                for name in optimizer.state:
                    _assert_same(optimizer.state[name], other.state[name])

    fuzz(sound, specs(), styles, examples=40)


def _assert_same(one: dict[str, object], other: dict[str, object]) -> None:
    assert one.keys() == other.keys()
    for key, value in one.items():
        np.testing.assert_array_equal(np.asarray(value), np.asarray(other[key]))


@pytest.mark.parametrize("command", ["check", "list", "show", "build"])
def test_commands_print_whatever_a_spec_holds(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prose with brackets, braces and backslashes goes through Rich, JSON and Jinja."""
    count = 0

    def shown(spec: DrawnSpec, style: Style, data: object) -> None:
        nonlocal count
        count += 1
        with spec_file(yaml_of(spec, style)) as path:
            arguments = {
                "check": ["check", str(path)],
                "list": ["list", "--specs", str(path.parent)],
                "show": ["show", str(path), "--stage", "numpy"],
                "build": ["build", str(path), "--out", str(tmp_path / str(count))],
            }[command]
            for extra in ([], ["--json"]):
                code = run((*arguments, *extra))
                printed, problems = capsys.readouterr()
                assert code == 0, problems
                assert not extra or json.loads(printed)

    shown.__qualname__ += f"/{command}"
    fuzz(shown, specs(), styles, examples=8)
