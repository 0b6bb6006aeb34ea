"""``--net module:factory``: what is missing is named, and factories may take what they like to."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from solvergen.errors import MissingLibrary
from solvergen.solver.factory import FactoryError, blaming_the_net, find_factory
from solvergen.solver.net.error import NetError

MODULE = """
import os, signal, sys
from solvergen.cli import signals
from solvergen.solver.net.error import NetError

class Net:
    learnable = layers = ()
    def __init__(self, *seen): self.seen = seen
    def forward(self): return 1 / 0
    def forward_backward(self): return 0.0

number = 3
def nothing(): return Net()
def one(phase): return Net(phase)
def another(what): return Net(what)
def some(state, phase="x", extra=7): return Net(phase, state, extra)
def all_of(params, phase, source, state): return Net(params, phase, source, state)
def by_place(a, b, c, d): return Net(a, b, c, d)
def named(**given): return Net(*given)
def two(a, b): return Net()
def mixed(phase, b): return Net()
def returns_none(): pass
def raises(): raise ValueError("the data are gone")
def refuses(): raise NetError("no")
def exits(): sys.exit(0)
def leaves(): raise GeneratorExit
def interrupts(): raise KeyboardInterrupt
def signalled(): signals._end(signal.SIGUSR1, None)
def moves(): os.chdir("/"); return Net()
def moves_and_fails(): os.chdir("/"); raise ValueError("gone")
class Made(Net):
    def __init__(self, phase): super().__init__(phase)
    @classmethod
    def of(cls, phase): return cls(phase + "!")
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "toy_nets.py").write_text(MODULE)
    (tmp_path / "toy_broken.py").write_text("x = 1\nimport toy_not_there\n")
    (tmp_path / "toy_wrong.py").write_text("x = 1\ny = x.z\n")
    (tmp_path / "toy_script.py").write_text("import argparse\nargparse.ArgumentParser().parse_args(['-x'])\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in [name for name in sys.modules if name.startswith("toy_")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("nothing", ()),
        ("one", ("TEST",)),
        ("another", ("TEST",)),
        ("some", ("TEST", "state", 7)),
        ("all_of", ("params", "TEST", "source", "state")),
        ("by_place", ("params", "TEST", "source", "state")),
        ("named", ("params", "phase", "source", "state")),
        ("Made", ("TEST",)),
        ("Made.of", ("TEST!",)),
    ],
)
def test_what_factories_may_take(name: str, seen: tuple[object, ...]) -> None:
    net = find_factory(f"toy_nets:{name}").make("TEST", params="params", source="source", state="state")
    assert net.seen == seen  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("toy_nets", "it is written module:factory"),
        ("toy_nets.py:one", "it is written module:factory"),
        (":one", "it is written module:factory"),
        ("./toy_nets:one", "it is written module:factory"),
        ("toy_nowhere:one", "there is no module 'toy_nowhere' in "),
        ("toy_nets.sub:one", "there is no module 'toy_nets.sub' in "),
        ("toy_broken:one", r"can't be imported: ModuleNotFoundError: No module named 'toy_not_there'.*:2\)"),
        ("toy_wrong:one", r"can't be imported: AttributeError: .*toy_wrong\.py:2\)"),
        ("toy_script:one", r"toy_script can't be imported: it called sys.exit\(2\) \(.*toy_script\.py:2\)"),
        ("toy_nets:none", "toy_nets has no 'none'; its functions are 'nothing', 'one', 'another'"),
        ("toy_nets:number", "number is an int, not a function; it may be factory()"),
        ("toy_nets:two", "nothing is known to give its argument a, b; it may be factory()"),
        ("toy_nets:mixed", "nothing is known to give its argument b"),
    ],
)
def test_what_is_missing(text: str, says: str) -> None:
    with pytest.raises(FactoryError, match=says.replace("factory()", r"factory\(\)")):
        find_factory(text)


def test_a_factory_that_fails() -> None:
    with pytest.raises(FactoryError, match=r"phase TRAIN: ValueError: the data are gone \(.*:\d+\)"):
        find_factory("toy_nets:raises").make("TRAIN")
    with pytest.raises(NetError, match=r"^no$"):
        find_factory("toy_nets:refuses").make("TRAIN")


def test_a_factory_that_ends_the_process_has_failed() -> None:
    with pytest.raises(FactoryError, match=r"phase TRAIN: it called sys\.exit\(0\) \(.*toy_nets\.py:\d+\)"):
        find_factory("toy_nets:exits").make("TRAIN")
    with pytest.raises(FactoryError, match="phase TRAIN: GeneratorExit"):
        find_factory("toy_nets:leaves").make("TRAIN")
    for name in ("exits", "leaves"):
        make = find_factory(f"toy_nets:{name}")._function
        with pytest.raises(FactoryError, match="x:y: the net failed: "), blaming_the_net("x:y"):
            make()


def test_what_ends_the_process_from_outside_does() -> None:
    with pytest.raises(KeyboardInterrupt), blaming_the_net("x:y"):
        find_factory("toy_nets:interrupts").make("TRAIN")
    with pytest.raises(SystemExit) as caught, blaming_the_net("x:y"):
        find_factory("toy_nets:signalled").make("TRAIN")
    assert caught.value.code == 128 + signal.SIGUSR1


def test_the_working_folder_stays(tmp_path: Path) -> None:
    factory = find_factory("toy_nets:moves")
    factory.make("TRAIN")
    assert os.getcwd() == str(tmp_path)
    assert factory.notes == [
        f"--net toy_nets:moves changed the working folder to /: it is {tmp_path} again, from which relative "
        "paths count"
    ]
    with pytest.raises(FactoryError, match="gone"):
        find_factory("toy_nets:moves_and_fails").make("TRAIN")
    assert os.getcwd() == str(tmp_path)


def test_files_that_a_net_misses_are_the_nets(tmp_path: Path) -> None:
    (tmp_path / "toy_data.py").write_text("def batch(): open('no.lmdb')\n")
    batch = find_factory("toy_data:batch")._function
    says = r"the net failed: FileNotFoundError.*no\.lmdb.*toy_data\.py:1"
    with pytest.raises(FactoryError, match=says), blaming_the_net("x:y"):
        batch()


def test_no_net() -> None:
    with pytest.raises(FactoryError, match="returned NoneType, which has no forward, forward_backward"):
        find_factory("toy_nets:returns_none").make("TRAIN")


def test_a_net_that_fails_is_blamed() -> None:
    net = find_factory("toy_nets:nothing").make("TRAIN")
    says = r"x:y: the net failed: ZeroDivisionError: .*toy_nets\.py:\d+"
    with pytest.raises(FactoryError, match=says), blaming_the_net("x:y"):
        net.forward()


def test_torch_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toy_torch.py").write_text("from solvergen.adapters.torch_net import TorchNet\n")
    monkeypatch.delitem(sys.modules, "solvergen.adapters.torch_net", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingLibrary, match=r"need torch, .*: pip install torch"):
        find_factory("toy_torch:make")
    with pytest.raises(ImportError):  # what tells Python's own
        importlib.import_module("solvergen.adapters.torch_net")


def test_a_torch_module_that_fails_is_blamed() -> None:
    torch = pytest.importorskip("torch")
    from solvergen.adapters.torch_net import TorchNet

    batch = (torch.zeros(7, 4), torch.zeros(7, dtype=torch.long))
    net = TorchNet(torch.nn.Linear(5, 3), torch.nn.functional.cross_entropy, [batch])
    says = r"x:y: the net failed: RuntimeError: mat1 and mat2 shapes .* \(.*\.py:\d+\)"
    with pytest.raises(FactoryError, match=says), blaming_the_net("x:y"):
        net.forward_backward()


def test_our_own_mistakes_stay_ours() -> None:
    from solvergen.solver.scoring import score

    with pytest.raises(ZeroDivisionError), blaming_the_net("x:y"):
        score(None, 0, print)  # type: ignore[arg-type]


def test_a_working_folder_that_is_gone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(FactoryError, match="the working folder is gone"):
        find_factory("toy_nets:nothing")
