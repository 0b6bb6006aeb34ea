"""What importing loads: of a generated optimizer next to nothing, of solvergen itself nothing at all."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# The compile half and its tools, and every framework that a user may happen to have installed.
FORBIDDEN = {
    "cupy",
    "h5py",
    "hypothesis",
    "jax",
    "jinja2",
    "ml_dtypes",
    "pydantic",
    "rich",
    "ruamel",
    "safetensors",
    "solvergen.cli",
    "solvergen.compiler",
    "solvergen.emit",
    "solvergen.frontend",
    "solvergen.ir",
    "solvergen.output",
    "solvergen.passes",
    "solvergen.spec",
    "solvergen.verify",
    "sympy",
    "torch",
    "typer",
    "yaml",
}

# What only some uses need: an optimizer at work on plain gradients has none of it.
LOADED_WHERE_USED = {
    "solvergen.runtime.config",
    "solvergen.runtime.constraining",
    "solvergen.runtime.constraints",
    "solvergen.runtime.given_constraints",
    "solvergen.runtime.ptx",
    "solvergen.runtime.restoring",
    "solvergen.runtime.snapshots",
    "solvergen.runtime.state",
    "solvergen.runtime.wrapped_classes",
    "solvergen.runtime.wrappers",
    "solvergen.runtime.wrapping",
}

# What backends, snapshots and tools need of the standard library, and an import doesn't.
SLOW_OF_THE_STANDARD_LIBRARY = {
    "argparse",
    "asyncio",
    "difflib",
    "hashlib",
    "importlib.metadata",
    "json",
    "logging",
    "pathlib",
    "shutil",
    "signal",
    "subprocess",
    "tempfile",
    "unittest",
    "urllib.parse",
}


def loaded_by(statement: str) -> set[str]:
    """Names of the modules that a fresh interpreter has after ``statement``."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("package", ["generated", "solvergen.optimizers"])
def test_a_generated_optimizer_loads_nothing_of_the_compile_half(package: str) -> None:
    loaded = loaded_by(f"import {package}; {package}.Adam")
    assert f"{package}.adam" in loaded
    assert "solvergen.runtime.optimizer" in loaded
    assert loaded & FORBIDDEN == set()


def test_an_import_loads_no_more_than_every_use_needs() -> None:
    added = loaded_by("import numpy, generated; generated.Adam") - loaded_by("import numpy")
    assert "solvergen.runtime.optimizer" in added
    assert added & (LOADED_WHERE_USED | SLOW_OF_THE_STANDARD_LIBRARY) == set()
    assert {name for name in added if name.startswith("solvergen.runtime.backends.")} == {
        "solvergen.runtime.backends.base"
    }


def test_an_optimizer_at_work_loads_what_it_uses() -> None:
    at_work = (
        "import numpy, generated; p = {'w': numpy.ones((2, 3), numpy.float32)}; g = {'w': p['w'].copy()}\n"
        "o = generated.Adam(p, backend='numpy'); o.step(g); o.lr = 0.1; o.freeze('w'); o.unfreeze()\n"
        "repr(o), o.t, o.state['exp_avg']['w'], o.groups, o.constraint, o.step(g)\n"
    )
    assert loaded_by(at_work) & LOADED_WHERE_USED == set()
    constrained = (
        "from solvergen.constraints import MaxNorm; o.constraint = MaxNorm(); o.step(g); o.constraint\n"
    )
    wrapped = (
        "import solvergen; generated.Adam(p, backend='numpy', wrappers=solvergen.Wrappers(l2=0.1)).step(g)\n"
    )
    wrappers = {f"solvergen.runtime.{name}" for name in ("wrapped_classes", "wrappers", "wrapping")}
    assert loaded_by(at_work + wrapped) & LOADED_WHERE_USED == wrappers
    everything = at_work + constrained + wrapped + "o.get_config(); o.load_state_dict(o.state_dict())"
    assert LOADED_WHERE_USED - loaded_by(everything) == {"solvergen.runtime.ptx"}


def test_an_optimizer_at_work_on_the_host_loads_nothing_of_it_either() -> None:
    loaded = loaded_by(
        "import numpy, generated; p = numpy.ones(3, numpy.float32)\n"
        "o = generated.Adam(p); o.step(p.copy()); o.get_config(); o.state_dict()"
    )
    assert loaded & (FORBIDDEN - {"ml_dtypes"}) == set()


def test_one_optimizer_does_not_load_the_others() -> None:
    loaded = loaded_by("from generated import Adam")
    assert {name for name in loaded if name.startswith("generated.") and name.count(".") == 1} == {
        "generated.adam"
    }


def test_solvergen_itself_loads_nothing() -> None:
    assert loaded_by("import solvergen") - loaded_by("pass") == {"solvergen"}


def test_all_names_are_there_and_a_wrong_one_is_an_attribute_error() -> None:
    import generated

    folders = {path.parent.name for path in (ROOT / "generated").glob("[!_]*/schema.py")}
    classes = [getattr(generated, name) for name in generated.__all__]
    assert {optimizer.definition.name for optimizer in classes} == folders
    assert set(generated.__all__) <= set(dir(generated))
    with pytest.raises(AttributeError, match="Adamm"):
        _ = generated.Adamm


def test_generated_code_imports_only_what_it_may() -> None:
    allowed = {*sys.stdlib_module_names, "numpy", "solvergen"}
    for path in (ROOT / "generated").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [str(node.module)]
            for name in names:
                assert name.split(".")[0] in allowed, path
                if name.startswith("solvergen"):
                    assert name.startswith(("solvergen.runtime", "solvergen.errors")), path


def test_the_checkout_and_the_package_are_the_same_files() -> None:
    for name in ("generated", "specs", "templates"):
        inside = {"generated": "optimizers"}.get(name, f"_data/{name}")
        assert (ROOT / "solvergen" / inside).resolve() == (ROOT / name).resolve()
