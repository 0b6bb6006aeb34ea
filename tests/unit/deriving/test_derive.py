"""Optimizers derived while a program runs."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import solvergen
from generated import SGD
from solvergen import Wrappers, derive
from solvergen.compiler import compile_spec
from solvergen.constraints import UnitNorm
from solvergen.deriving import building
from solvergen.errors import OptimizerError, SpecError, SpecWarning, UnknownArgument
from solvergen.spec.reader import read_spec
from tests.integration.test_imports import FORBIDDEN, ROOT
from tests.support.bits import assert_same_bits
from tests.support.shipped import HOST_BACKENDS

F = np.float32
RECURSIVE: dict = {}
RECURSIVE["again"] = RECURSIVE
LIGHT = {"solvergen.output", "solvergen.spec"}  # of the compile half, what reads nothing and compiles nothing


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """A cache of this module's own, in which the first test that asks for a rule builds it.

    Where tests are handed out to processes, one may set this up again with what it has imported before from
    a cache that is gone.
    """
    for name in [name for name in sys.modules if name.startswith("solvergen_derived_")]:
        del sys.modules[name]
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("SOLVERGEN_CACHE_DIR")
    os.environ["SOLVERGEN_CACHE_DIR"] = str(folder)
    yield folder / "derived"
    if before is None:
        del os.environ["SOLVERGEN_CACHE_DIR"]
    else:
        os.environ["SOLVERGEN_CACHE_DIR"] = before


def sparse_sgd():
    return derive("sgd", penalty="l1*abs(param)", hyperparameters={"l1": {"default": 1e-2, "min": 0}})


def forget(cls):
    """As if the process were another."""
    package = cls.__module__.partition(".")[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


def randoms(seed=1):
    rng = np.random.default_rng(seed)
    return {"w": rng.normal(size=(7, 5)).astype(F), "b": rng.normal(size=9).astype(F)}


@pytest.mark.parametrize("backend", HOST_BACKENDS)
def test_a_penalty_does_what_a_wrapper_of_the_same_formula_does(backend):
    ours, theirs = randoms(), randoms()
    one = sparse_sgd()(ours, lr=0.1, l1=0.5, momentum=0.9, backend=backend)
    other = SGD(theirs, lr=0.1, momentum=0.9, backend=backend, wrappers=Wrappers(l1=0.5))
    for step in range(3):
        one.step(randoms(10 + step))
        other.step(randoms(10 + step))
    for name in ours:
        assert_same_bits(ours[name], theirs[name])


def test_it_is_the_rule_that_a_file_would_say(tmp_path):
    cls = derive(
        "adamw",
        name="soft_adamw",
        hyperparameters={"lr": {"default": 3e-4, "min": 0}, "soft": 1e-3},
        changes=[
            {"replace": "exp_avg", "do": "exp_avg = beta1*exp_avg + (1 - beta1)*h"},
            {"before": "exp_avg", "do": ["h = g/(abs(g) + soft)"]},
        ],
        project="clip(param, -1, 1)",
        summary="AdamW with a soft sign.",
    )
    path = tmp_path / "soft_adamw.yaml"
    path.write_text(
        "name: soft_adamw\nsummary: Something else.\nextends: adamw\n"
        "hyperparameters:\n  lr: {default: 3e-4, min: 0}\n  soft: {default: 1e-3}\n"
        "change:\n  - {replace: exp_avg, do: exp_avg = beta1*exp_avg + (1 - beta1)*h}\n"
        "  - {before: exp_avg, do: h = g/(abs(g) + soft)}\n"
        'project: "clip(param, -1, 1)"\n'
    )
    assert cls.definition.digest == compile_spec(read_spec(path)).spec.digest
    assert cls.definition.name == "soft_adamw"
    assert cls.__name__ == "SoftAdamw"
    assert "AdamW with a soft sign." in cls.__doc__


def test_transforms(tmp_path):
    cls = derive("adamw", transform="cautious")
    assert (cls.__name__, cls.definition.name) == ("AdamWDerived", "adamw_derived")
    assert derive("adamw", transform="cautious", class_name="MyAdamW").__name__ == "MyAdamW"
    path = tmp_path / "adamw_derived.yaml"
    path.write_text("name: adamw_derived\nsummary: The same.\nof: adamw\ntransform: [cautious]\n")
    assert cls.definition.digest == compile_spec(read_spec(path)).spec.digest
    assert derive("adamw", transform=("cautious",)) is cls


def test_transforms_of_changed_equations():
    cls = derive(
        "sgd",
        name="mine",
        transform=["lookahead"],
        changes=[{"after": "g", "number": 1, "do": "g = clip(g, -c, c)"}],
        hyperparameters={"c": 0.1, "k": {"default": 2, "min": 1, "integer": True}},
        penalty="c*param**2",
    )
    assert [h.name for h in cls.definition.hyperparameters][-3:] == ["c", "k", "alpha"]
    assert cls.definition.hyperparameters[-2].default == 2
    of = randoms()
    before = of["w"].copy()
    opt = cls(of, lr=0.5, backend="numpy")
    opt.step(randoms(3))
    assert np.abs(of["w"] - before).max() == pytest.approx(0.05, rel=1e-4)


def test_options_state_and_constraints():
    cls = derive(
        "sgd",
        name="counted",
        options={"count": True},
        state={"moved": {"shape": "scalar", "when": "count", "output": True}},
        changes=[{"after": "param", "when": "count", "do": "moved = moved + lr"}],
        constraints=[{"that": "lr < 1", "message": "lr is too large"}],
        hyperparameters={"dampening": {"default": 0.0}},
    )
    opt = cls(randoms(), lr=0.25, backend="numpy")
    opt.step(randoms(3))
    assert opt.state["moved"]["b"] == 0.25
    with pytest.raises(OptimizerError, match="lr is too large"):
        opt.lr = 2.0
    with pytest.raises(OptimizerError, match="the state 'moved' doesn't exist"):
        print(cls(randoms(), lr=0.25, count=False, backend="numpy").state["moved"]["b"])


class TestWhatComesOfIt:
    def test_snapshots(self, tmp_path):
        ours, theirs = randoms(), randoms(2)
        opt = sparse_sgd()(
            ours, lr=0.1, momentum=0.9, l1=0.2, backend="numpy", wrappers=Wrappers(average=0.9)
        )
        opt.step(randoms(3))
        opt.save(tmp_path / "s.safetensors")
        again = sparse_sgd()(theirs, lr=0.3, momentum=0.5, backend="numpy", wrappers=Wrappers(average=0.9))
        again.load(tmp_path / "s.safetensors")
        assert again.l1 == 0.2
        for one in (opt, again):
            one.step(randoms(4))
        for name in ours:
            assert_same_bits(ours[name], theirs[name])
        config = opt.get_config()
        assert sparse_sgd().from_config(randoms(), config).get_config() == config
        with pytest.raises(solvergen.errors.SnapshotMismatch):
            SGD(randoms(), lr=0.1).load(tmp_path / "s.safetensors")

    def test_constraints_and_accumulation(self):
        of = randoms()
        opt = sparse_sgd()(of, lr=0.1, backend="numpy", wrappers=Wrappers(accumulate=2))
        opt.constraint = {"b": UnitNorm()}
        opt.step(randoms(3))
        opt.step(randoms(4))
        assert np.linalg.norm(of["b"]) == pytest.approx(1.0)


class TestTheCache:
    def test_the_same_class_again(self):
        assert sparse_sgd() is sparse_sgd()
        other = derive("sgd", penalty="l1*abs(param)", hyperparameters={"l1": {"default": 1e-3, "min": 0}})
        assert other is not sparse_sgd()

    def test_another_process_loads_no_compiler(self, cache):
        sparse_sgd()
        before = sorted(path.name for path in cache.iterdir())
        code = (
            "import sys; from solvergen import derive; l1 = {'default': 1e-2, 'min': 0}\n"
            "cls = derive('sgd', penalty='l1*abs(param)', hyperparameters={'l1': l1})\n"
            "print(cls.__name__, *sys.modules)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
        )
        name, *loaded = done.stdout.split()
        assert name == "SGDDerived"
        assert FORBIDDEN & set(loaded) == LIGHT
        assert sorted(path.name for path in cache.iterdir()) == before

    def test_what_is_damaged_is_built_again(self, cache, monkeypatch):
        cls = sparse_sgd()
        (folder,) = {Path(cls.definition.folder).parent}
        text = (folder / "sgd_derived" / "kernel.c").read_text()
        (folder / "sgd_derived" / "kernel.c").write_text(text.replace("-", "+", 1))
        forget(cls)
        again = sparse_sgd()
        assert again is not cls
        assert Path(again.definition.folder, "kernel.c").read_text() == text
        built = []
        monkeypatch.setattr(building, "_compiled", lambda request: built.append(request))
        forget(again)
        sparse_sgd()
        assert built == []

    @pytest.mark.parametrize("kind", ["file", "link"])
    def test_what_lies_in_its_place_makes_way(self, cache, tmp_path, kind):
        cls = sparse_sgd()
        folder = Path(cls.definition.folder).parent
        shutil.rmtree(folder)
        if kind == "file":
            folder.write_text("")
        else:
            folder.symlink_to(tmp_path)
        forget(cls)
        again = Path(sparse_sgd().definition.folder).parent
        assert again == folder
        assert again.is_dir()
        assert not again.is_symlink()

    def test_two_at_once(self, cache):
        artifacts = {"__init__.py": "", "py.typed": ""}
        one = building._put(building.open_cache("derived"), "a" * 64, artifacts)
        assert building._put(building.open_cache("derived"), "a" * 64, artifacts) == one
        assert not list(cache.glob("tmp-*"))
        shutil.rmtree(one)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_where_nothing_can_be_written(self, cache):
        cls = sparse_sgd()
        shutil.rmtree(Path(cls.definition.folder).parent)
        forget(cls)
        cache.chmod(0o500)
        try:
            again = sparse_sgd()
            assert not again.definition.folder.startswith(str(cache))
            forget(again)
            assert sparse_sgd().definition.folder == again.definition.folder
        finally:
            cache.chmod(0o700)

    def test_where_nothing_can_be_put(self, cache, monkeypatch):
        cls = sparse_sgd()
        shutil.rmtree(Path(cls.definition.folder).parent)
        forget(cls)
        put = building._put

        def full(to, *rest):
            if to.path == cache:
                raise OSError("disk full")
            return put(to, *rest)

        monkeypatch.setattr(building, "_put", full)
        again = sparse_sgd()
        assert not again.definition.folder.startswith(str(cache))
        forget(again)
        monkeypatch.setattr(building, "_compiled", None)
        assert sparse_sgd().definition.folder == again.definition.folder


class TestSpecsOfOnesOwn:
    @pytest.fixture
    def folder(self, tmp_path):
        (tmp_path / "first.yaml").write_text(
            "name: first\nsummary: Descent.\nhyperparameters:\n  lr: {default: 0.5, above: 0}\n"
            "update:\n  - param = param - lr*grad\n"
        )
        (tmp_path / "second.yaml").write_text(
            "name: second\nclass_name: SECOND\nsummary: More.\nextends: first\nproject: max(param, 0)\n"
        )
        return tmp_path

    def test_a_path(self, folder):
        cls = derive(folder / "second.yaml", penalty="param**2")
        p = np.array([1.0, 0.1])
        opt = cls([p], backend="numpy")
        opt.step([np.array([0.0, 5.0])])
        assert p.tolist() == [0.0, 0.0]
        assert (cls.definition.name, cls.__name__) == ("second_derived", "SECONDDerived")
        (folder / "first.yaml").write_text((folder / "first.yaml").read_text().replace("0.5", "0.25"))
        assert derive(folder / "second.yaml", penalty="param**2")([p], backend="numpy").lr == 0.25

    def test_its_name_is_free(self, folder):
        with pytest.raises(OptimizerError, match=r"there is a spec first\.yaml beside .* name=\.\.\."):
            derive(folder / "second.yaml", name="first")

    def test_its_mistakes(self, folder):
        (folder / "first.yaml").write_text("name: first\n")
        with pytest.raises(SpecError) as caught:
            derive(folder / "second.yaml", penalty="param**2")
        (found,) = caught.value.diagnostics
        assert found.location.file == f"derive('{folder / 'second.yaml'}')"
        assert str(folder / "second.yaml") in found.hint


class TestMistakes:
    def refused(self, *args, **kwargs):
        with pytest.raises(SpecError) as caught:
            derive(*args, **kwargs)
        return caught.value.diagnostics

    def test_of_equations(self):
        (found,) = self.refused("sgd", penalty="l3*abs(param)")
        assert str(found.location) == "derive('sgd'):4:11"
        assert found.source == 'penalty: "l3*abs(param)"'
        assert found.message == "unknown name 'l3'"
        with pytest.raises(SpecError, match=r"unknown name 'l3' \(declare it under hyperparameters\)"):
            derive("sgd", penalty="l3*abs(param)")

    @pytest.mark.parametrize(
        ("args", "kwargs", "codes"),
        [
            (("sdg",), {"penalty": "param"}, {"SG033"}),
            (("sgd",), {"transform": ["causious"]}, {"SG038"}),
            (("sgd",), {"changes": [{"replace": "q", "do": "q = 1"}]}, {"SG036"}),
            (("sgd",), {"hyperparameters": {"l1": "much"}}, {"SG012"}),
            (("sgd",), {"hyperparameters": {"nothing": None}}, {"SG036"}),
            (("sgd",), {"hyperparameters": {"unused": 1.0}}, {"SG064"}),
            (("sgd",), {"state": {"grad": {}}}, {"SG021"}),
            (("sgd",), {"name": "Sgd"}, {"SG020"}),
            (("sgd",), {"name": "s" * 65}, {"SG020"}),
            (("sgd",), {"name": "wrapped_sgd"}, {"SG021"}),
        ],
    )
    def test_of_specs(self, args, kwargs, codes):
        assert {found.code for found in self.refused(*args, **kwargs)} == codes

    @pytest.mark.parametrize(
        ("args", "kwargs", "message"),
        [
            ((3,), {}, "derive needs the name of a spec, or a path of one, not 3"),
            ((SGD,), {}, "derive needs the name of a spec, not of a class: 'sgd', not SGD"),
            (("AdamMini",), {}, "derive needs the name of a spec, not of a class: 'adam_mini', not AdamMini"),
            (("sgd",), {"hyperparameters": 3}, "hyperparameters of derive must be a mapping of names, not 3"),
            (("sgd",), {"changes": {"replace": "g"}}, "changes of derive must be a list, not {'replace'"),
            (
                ("sgd",),
                {"hyperparameters": {1: 2}},
                "hyperparameters of derive has the key 1; keys are names",
            ),
            (("sgd",), {"penalty": print}, "penalty of derive has <built-in function print>, which no spec"),
            (("../sgd.yaml",), {}, r"derive can't find the spec's file '\.\./sgd\.yaml'"),
            (("specs/sgd",), {}, r"a spec's file ends in \.yaml"),
            (("sgd",), {"summary": "\ud800"}, "summary of derive holds half of a surrogate pair"),
            (("sgd",), {"state": {"\udfff": {}}}, "state of derive has the key"),
            (("sgd",), {"name": "../evil"}, "name of derive must be a name as specs have them"),
            (("sgd",), {"name": ""}, "name of derive must be a name as specs have them, not ''"),
            (("sgd",), {"name": 3}, "name of derive must be a name as specs have them, not 3"),
            (("sgd",), {"name": "s" * 300}, "name of derive must be a name as specs have them, not 'sss"),
            (("sgd",), {"hyperparameters": {"l1": math.nan}}, "hyperparameters of derive has nan; numbers"),
            (("sgd",), {"hyperparameters": {"l1": -math.inf}}, "hyperparameters of derive has -inf; numbers"),
            (("sgd",), {"state": RECURSIVE}, "an argument of derive holds itself, or is nested too deeply"),
        ],
    )
    def test_of_arguments(self, args, kwargs, message):
        with pytest.raises(OptimizerError, match=message):
            derive(*args, **kwargs)

    def test_warnings(self):
        with pytest.warns(SpecWarning, match=r"derive\('sgd'\).*SG077") as told:
            derive("sgd", name="idle", changes=[{"before": "param", "do": "h = g*lr"}])
        assert told[0].filename == __file__

    def test_of_keywords(self):
        with pytest.raises(UnknownArgument, match="derive takes no argument 'trasnform'; did you mean 'tra"):
            derive("sgd", trasnform="cautious")


def test_it_takes_what_numpy_counts_and_every_number_and_letter():
    cls = derive(
        "sgd",
        name="letters",
        summary='Says "\N{GREEK SMALL LETTER LAMDA}", \\ and \N{GRINNING FACE}: {a} # b.',
        penalty="l1*abs(param) + tiny*param + huge*param**2",
        hyperparameters={
            "l1": np.float64(0.25),
            "tiny": 1e-5,
            "huge": 1e22,
            "whole": {"default": np.int64(3)},
        },
        project="param*where(whole > 2, 1, 0)",
    )
    assert "\N{GRINNING FACE}: {a} # b." in cls.__doc__
    opt = cls([np.zeros(2)], lr=0.1, backend="numpy")
    assert (opt.l1, opt.tiny, opt.huge, opt.whole) == (0.25, 1e-5, 1e22, 3)


def test_what_is_removed_before_a_transform_stays_removed():
    cls = derive(
        "adamw",
        name="without_decay",
        hyperparameters={"weight_decay": None, "xi": 2.0},
        changes=[{"replace": "param", "do": "param = param - step"}],
        transform="cautious",
    )
    assert [h.name for h in cls.definition.hyperparameters] == ["lr", "beta1", "beta2", "eps", "xi"]
    assert cls.definition.hyperparameters[-1].default == 2.0
