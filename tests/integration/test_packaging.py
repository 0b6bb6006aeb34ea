"""sdist -> wheel -> a clean environment, away from the checkout: everything works there too."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

pytestmark = pytest.mark.packaging

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
THIS = "{}.{}".format(*sys.version_info)


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command away from the checkout, with nothing of this process's Python in its environment."""
    hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "build", "--sdist", "--outdir", folder, ROOT, cwd=folder)
    (path,) = folder.glob("*.tar.gz")
    return path


@pytest.fixture(scope="module")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder)  # our own archive, made a moment ago
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, unpacked, cwd=folder)
    (path,) = folder.glob("*.whl")
    return path


def interpreter(version: str) -> Path | None:
    """A Python of this version on this machine: on the path, or where pyenv puts it; None without one."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    on_path = [shutil.which(f"python{version}"), shutil.which("python3")]
    installed = sorted(pyenv.glob(f"{version}.*/bin/python{version}"))
    question = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    for path in (sys.executable, *on_path, *installed):
        if path is not None:
            answer = subprocess.run([path, "-c", question], capture_output=True, text=True, check=False)
            if answer.stdout.strip() == version:  # pyenv leaves a shim for versions that are turned off
                return Path(path)
    return None


def environment(path: Path, wheel: Path, extra: str, folder: Path) -> Path:
    """A new environment with nothing in it but the wheel and what it asks for; its interpreter."""
    run(path, "-m", "venv", folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    # Without compiling everything at once: that takes longer than all the rest.
    run(python, "-m", "pip", "install", "--quiet", "--no-compile", f"{wheel}{extra}", cwd=folder)
    return python


@pytest.fixture(scope="module")
def environments(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Path]]]:
    """An environment for each Python of this machine, two made at a time; that of this process first."""
    folder = tmp_path_factory.mktemp("clean")
    extras = dict.fromkeys(PYTHONS, "") | {THIS: "[examples]"}
    with ThreadPoolExecutor(2) as pool:
        found = {version: interpreter(version) for version in (THIS, *PYTHONS)}
        yield {
            version: pool.submit(environment, path, wheel, extras[version], folder / version)
            for version, path in found.items()
            if path is not None
        }


@pytest.fixture(scope="module")
def python(environments: dict[str, Future[Path]]) -> Path:
    """The interpreter of the environment for this Python; it has what the examples need, too."""
    return environments[THIS].result()


def tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_the_wheel_holds_what_it_must_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        held = {name: archive.read(name) for name in names}
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"solvergen"}
    for folder, packed in (
        ("generated", "solvergen/optimizers"),
        ("specs", "solvergen/_data/specs"),
        ("templates", "solvergen/_data/templates"),
    ):
        wanted = {f"{packed}/{path}": data for path, data in tree(ROOT / folder).items()}
        assert wanted
        assert {name: data for name, data in held.items() if name.startswith(f"{packed}/")} == wanted
    sources = {f"solvergen/{path}" for path in tree(ROOT / "solvergen")}
    assert sources <= names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_the_sdist_has_all_that_the_tests_need(unpacked: Path) -> None:
    for folder in ("specs", "templates", "generated", "tests", "examples", "docs"):
        assert tree(unpacked / folder) == tree(ROOT / folder)


def test_the_shipped_optimizers_are_the_generated_ones(python: Path, tmp_path: Path) -> None:
    code = """
import json, numpy, solvergen.optimizers as o
p = numpy.ones(5, numpy.float32)
opt = o.Adam(p)
opt.step(numpy.arange(5, dtype=numpy.float32))
print(json.dumps({"file": o.__file__, "names": o.__all__, "param": p.tobytes().hex()}))
"""
    told = json.loads(run(python, "-c", code, cwd=tmp_path))
    assert not Path(told["file"]).is_relative_to(ROOT)

    import numpy

    import generated

    assert told["names"] == list(generated.__all__)
    param = numpy.ones(5, numpy.float32)
    generated.Adam(param, backend="numpy").step(numpy.arange(5, dtype=numpy.float32))
    assert told["param"] == param.tobytes().hex()


def test_an_installed_solvergen_builds_the_same_package(python: Path, tmp_path: Path) -> None:
    solvergen = python.parent / "solvergen"
    shutil.copytree(ROOT / "specs", tmp_path / "specs")
    run(solvergen, "build", "specs", cwd=tmp_path)
    assert tree(tmp_path / "generated") == tree(ROOT / "generated")
    assert "adam" in run(solvergen, "list", cwd=tmp_path)


def test_an_installed_solvergen_derives_rules_and_holds_constraints(python: Path, tmp_path: Path) -> None:
    code = """
import numpy, solvergen
from solvergen.constraints import MaxNorm
cls = solvergen.derive("sgd", penalty="l1*abs(param)", hyperparameters={"l1": 0.5})
p = numpy.array([4.0, 3.0])
opt = cls(p, lr=1.0)
opt.constraint = MaxNorm(1.0)
opt.step(numpy.zeros(2))
print(cls.__name__, *(f"{x:.4f}" for x in p))
"""
    assert run(python, "-c", code, cwd=tmp_path).split() == ["SGDDerived", "0.8137", "0.5812"]


def test_a_rule_of_ones_own_from_nothing_to_a_trained_network(python: Path, tmp_path: Path) -> None:
    solvergen = python.parent / "solvergen"
    run(solvergen, "new", "my_rule", cwd=tmp_path)
    run(solvergen, "build", "specs", "--out", "my_optimizers", cwd=tmp_path)
    shutil.copy(ROOT / "examples" / "train_digits.py", tmp_path)
    arguments = ["--package", "my_optimizers", "--optimizer", "my_rule", "--epochs", "5"]
    text = run(python, "train_digits.py", *arguments, cwd=tmp_path)
    assert "test accuracy" in text
    assert (tmp_path / "runs" / "digits" / "curves.png").is_file()


def test_the_example_reaches_its_accuracy_with_the_shipped_adam(python: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "train_digits.py", tmp_path)
    text = run(python, "train_digits.py", cwd=tmp_path)
    accuracy = float(text.split("\ntest accuracy ")[1].split(",")[0])
    assert accuracy >= 0.96


USE = """
import numpy
from solvergen.optimizers import Adam
params = [numpy.linspace(-1, 1, 7, dtype=dtype) for dtype in (numpy.float32, numpy.float64)]
opt = Adam(params, lr=0.5)
assert opt.step([numpy.cos(p) for p in params]) is True
print(*(p.tobytes().hex() for p in params))
"""


@pytest.mark.parametrize("version", PYTHONS)
def test_wheel_and_sdist_work_on_every_python(
    environments: dict[str, Future[Path]], sdist: Path, version: str, tmp_path: Path
) -> None:
    if version not in environments:
        pytest.skip(f"this machine has no Python {version}")
    python = environments[version].result()
    bits = run(sys.executable, "-c", USE, cwd=ROOT)  # of this checkout
    assert run(python, "-c", USE, cwd=tmp_path) == bits
    solvergen = python.parent / "solvergen"
    (tmp_path / "specs").mkdir()
    shutil.copy(ROOT / "specs" / "adam.yaml", tmp_path / "specs")
    run(solvergen, "build", "specs", cwd=tmp_path)
    assert tree(tmp_path / "generated" / "adam") == tree(ROOT / "generated" / "adam")
    report = json.loads(
        run(solvergen, "verify", "adam", "--backends", "numpy,cpu", "-n", "5", "--json", cwd=tmp_path)
    )
    assert report["ok"] is True
    run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "solvergen", cwd=tmp_path)
    run(python, "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps", sdist, cwd=tmp_path)
    assert run(python, "-c", USE, cwd=tmp_path) == bits


TYPED = """\
from __future__ import annotations
import numpy as np
from solvergen.optimizers import Adam
from solvergen.runtime.optimizer import Optimizer
from solvergen.verify import check_agreement

opt: Optimizer = Adam([np.zeros(3)], lr=1e-3, amsgrad=True, backend="numpy")
done: bool = opt.step([np.ones(3)])
count: int = opt.t
rate: float = opt.lr
check_agreement(Adam, backends=("numpy",), examples=3)
"""
WRONG = (
    'Adam([np.zeros(3)], lr="small")',
    "Adam([np.zeros(3)], learning_rate=1e-3)",
    "check_agreement(Adam, examples=None)",
    "text: str = opt.step([np.ones(3)])",
)


def test_types_are_seen_from_outside(python: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed (extra dev)")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(python)]
    hidden = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "MYPYPATH")}

    def errors(text: str) -> list[str]:
        (tmp_path / "user.py").write_text(text)
        command = [*mypy, "user.py"]
        told = subprocess.run(command, cwd=tmp_path, env=hidden, capture_output=True, text=True, check=False)
        return [line for line in told.stdout.splitlines() if ": error: " in line]

    assert errors(TYPED) == []
    found = errors(TYPED + "\n".join(WRONG) + "\n")
    first = len(TYPED.splitlines()) + 1
    assert [int(line.split(":")[1]) for line in found] == list(range(first, first + len(WRONG)))


def test_there_is_one_version(wheel: Path, sdist: Path) -> None:
    import solvergen

    version = solvergen.__version__
    assert wheel.name.startswith(f"solvergen-{version}-")
    assert sdist.name == f"solvergen-{version}.tar.gz"
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = [line.split()[1] for line in changes.splitlines() if line.startswith("## ")]
    assert next(name for name in released if name != "Unreleased") == version
