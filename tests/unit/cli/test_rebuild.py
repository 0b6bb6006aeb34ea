"""A build with nothing to do compiles nothing; whatever may have changed, it is a build as any other."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import solvergen
from solvergen import compiler, rebuild
from solvergen.cli.app import run
from solvergen.output.manifest import digest

ROOT = Path(__file__).parents[3]

GOOD = """\
name: plain
summary: Gradient descent.
hyperparameters:
  lr: {default: 0.1, min: 0}
update:
  - param = param - lr*grad
"""

WARNED = GOOD.replace("plain", "warned").replace("update:\n", "update:\n  - param = param\n")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder to work in with two specs, one with a warning, that have been built; a cache of its own."""
    monkeypatch.setenv("SOLVERGEN_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "work" / "specs").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    Path("specs/plain.yaml").write_text(GOOD)
    Path("specs/warned.yaml").write_text(WARNED)
    assert run(["build"]) == 0
    capsys.readouterr()
    return tmp_path / "work"


@pytest.fixture
def compiled(here: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Grows by one whenever specs are compiled."""
    calls: list[Any] = []
    genuine = compiler.build

    def counting(paths: Any, **more: Any) -> compiler.Compiled:
        calls.append(paths)
        return genuine(paths, **more)

    monkeypatch.setattr(compiler, "build", counting)
    return calls


def records(here: Path) -> list[Path]:
    return sorted((here.parent / "cache" / "builds").iterdir())


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(arguments)
    return code, *capsys.readouterr()


def test_nothing_is_compiled_and_the_same_is_said(
    here: Path, compiled: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(here)
    quick = [said(capsys, "build", *options) for options in ((), ("--json",), ("--force",))]
    assert compiled == []
    shutil.rmtree(here.parent / "cache")
    full = [said(capsys, "build"), said(capsys, "build", "--json")]
    assert len(compiled) == 1  # the first of them has kept a record again
    shutil.rmtree(here.parent / "cache")
    full[1] = said(capsys, "build", "--json")
    assert len(compiled) == 2
    assert quick[:2] == full
    assert quick[2] == full[0]
    assert json.loads(quick[1][1])["unchanged"] == sorted(files(here / "generated"))
    assert files(here) == before


def test_warnings_are_told_again(here: Path, compiled: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    err = said(capsys, "build")[2]
    assert "specs/warned.yaml:6:5: warning: SG078" in err
    assert "6 |   - param = param\n" in err
    assert compiled == []
    # Of the same files by another path the warnings say that path.
    assert f"{here}/specs/warned.yaml:6:5: warning" in said(capsys, "build", str(here / "specs"))[2]
    assert len(compiled) == 1


def _append(path: str, text: str = "\n") -> Callable[[], object]:
    return lambda: Path(path).write_text(Path(path).read_text() + text)


CHANGES: dict[str, Callable[[], object]] = {
    "a spec's comment": _append("specs/plain.yaml", "# more\n"),
    "a spec's equation": lambda: Path("specs/plain.yaml").write_text(GOOD.replace("lr*grad", "2*lr*grad")),
    "a spec more": lambda: Path("specs/third.yaml").write_text(GOOD.replace("plain", "third")),
    "a spec less": lambda: Path("specs/plain.yaml").unlink(),
    "a spec's file renamed": lambda: Path("specs/plain.yaml").rename("specs/other.yaml"),
    "an output lost": lambda: Path("generated/plain/kernel.c").unlink(),
    "an empty output lost": lambda: Path("generated/py.typed").unlink(),
    "all outputs lost": lambda: shutil.rmtree("generated"),
    "the manifest lost": lambda: Path("generated/manifest.json").unlink(),
    "the manifest written otherwise": _append("generated/manifest.json"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_built_as_without_a_record(
    change: str, here: Path, compiled: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(here, here.parent / "twin")
    CHANGES[change]()
    quick = said(capsys, "build")
    assert len(compiled) == 1
    built = files(here)
    shutil.rmtree(here.parent / "cache")
    os.chdir(here.parent / "twin")
    CHANGES[change]()
    assert said(capsys, "build") == quick
    assert files(here.parent / "twin") == built
    os.chdir(here)
    assert run(["build", "--check"]) == 0


def test_an_edited_output_is_refused_and_a_stale_one_removed(
    here: Path, compiled: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    path = here / "generated" / "plain" / "kernel.c"
    genuine = path.read_text()
    path.write_text(genuine.replace("lr", "rl", 1))
    code, _, err = said(capsys, "build")
    assert code == 1
    assert "edited by hand" in err
    path.write_text(genuine)
    stale = here / "generated" / "stale.py"
    stale.write_text("old\n")
    listed = json.loads((here / "generated" / "manifest.json").read_text())
    listed["files"]["stale.py"] = digest(b"old\n")
    (here / "generated" / "manifest.json").write_text(json.dumps(listed, indent=2) + "\n")
    assert "removed generated/stale.py" in said(capsys, "build")[1]
    assert not stale.exists()
    assert len(compiled) == 2


def test_somebody_elses_file_is_left_alone(here: Path, compiled: list[Any]) -> None:
    (here / "generated" / "notes.txt").write_text("mine")
    assert run(["build"]) == 0
    assert compiled == []
    assert (here / "generated" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", [".solvergen-pending.json", ".solvergen-staged-0123"])
def test_what_a_killed_build_left_is_settled(name: str, here: Path, compiled: list[Any]) -> None:
    left = here / "generated" / name
    if name.endswith("json"):
        shutil.copy(here / "generated" / "manifest.json", left)
    else:
        left.mkdir()
    assert run(["build"]) == 0
    assert len(compiled) == 1
    assert not left.exists()


@pytest.mark.parametrize("name", ["plain/kernel.c", "manifest.json", "plain"])
def test_an_output_that_became_a_link_is_refused(
    name: str, here: Path, compiled: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    path = here / "generated" / name
    path.rename(here / "moved")
    path.symlink_to(here / "moved")
    code, _, err = said(capsys, "build")
    assert code == 1
    assert "symbolic link" in err
    assert len(compiled) == 1


def test_another_version_compiles_anew(
    here: Path, compiled: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(["build"])
    assert compiled == []
    with monkeypatch.context() as patch:
        patch.setattr(solvergen, "__version__", "99.0")
        run(["build"])
    assert len(compiled) == 1
    for package in rebuild.PACKAGES:
        with monkeypatch.context() as patch:
            genuine = metadata.version
            patch.setattr(
                metadata, "version", lambda name, p=package, g=genuine: "99" if name == p else g(name)
            )
            run(["build"])
    assert len(compiled) == 1 + len(rebuild.PACKAGES)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "version", "4.0")
        run(["build"])
    assert len(compiled) == 2 + len(rebuild.PACKAGES)
    run(["build"])
    assert len(compiled) == 2 + len(rebuild.PACKAGES)


def test_another_template_and_another_source_compile_anew(here: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy" / "solvergen"
    shutil.copytree(ROOT / "solvergen", copy, ignore=shutil.ignore_patterns("__pycache__", "optimizers"))
    environment = {**os.environ, "PYTHONPATH": str(copy.parent), "PYTHONDONTWRITEBYTECODE": "1"}

    def build() -> str:
        command = [sys.executable, "-m", "solvergen", "build"]
        done = subprocess.run(
            command, cwd=here, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout

    assert build() == ""
    for file in ("_data/templates/cpu/kernel.c.j2", "emit/docstring.py"):
        path = copy / file
        genuine = path.read_text()
        status = path.stat()
        if path.suffix == ".j2":
            path.write_text(genuine + "// another\n")
        else:
            path.write_text(genuine.replace('"Args:"', '"ARGS:"'))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert build() != ""
        assert build() == ""


def test_what_a_build_loads_is_what_is_compared(here: Path) -> None:
    shutil.rmtree(here.parent / "cache")
    program = (
        "import sys; from solvergen.cli.app import run; run(['build']);"
        "print(*(m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'solvergen'))"
    )
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True)
    package = Path(solvergen.__file__).parent
    loaded = {Path(name).relative_to(package).as_posix() for name in done.stdout.split()}
    compared = {name for name, _ in rebuild.compiler_files()}
    # The command line asks the run half for the cache folder; import-linter keeps the compiler from it.
    assert {name for name in loaded - compared if not name.startswith("runtime/")} == set()
    assert {"compiler.py", "emit/host.py", "_data/templates/cuda/kernel.cu.j2"} <= compared
    templates = {p.relative_to(ROOT / "templates").as_posix() for p in (ROOT / "templates").rglob("*.j2")}
    assert {f"_data/templates/{name}" for name in templates} <= compared


def test_the_packages_that_the_compiler_imports_are_compared() -> None:
    imported = set()
    for name, path in rebuild.compiler_files():
        if path.suffix != ".py" or name.startswith("cli/"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.split(".")[0])
    # SymPy only looks at what is shown, and pydantic demands one version of its core.
    others = imported - set(sys.stdlib_module_names) - {"solvergen", "sympy", "pydantic_core"}
    assert others == {name.split(".")[0] for name in rebuild.PACKAGES}


def test_nothing_to_do_loads_no_compiler(here: Path) -> None:
    program = (
        "import sys; from solvergen.cli.app import run; assert run(['build']) == 0;"
        "print(*sorted({'jinja2', 'numpy', 'rich', 'ruamel.yaml', 'solvergen.compiler', 'solvergen.ir', "
        "'solvergen.spec.reader', 'sympy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "\n"


def test_a_check_trusts_no_record(
    here: Path, compiled: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*arguments: Any) -> None:
        raise AssertionError("the record was looked at")

    for name in ("fingerprint", "find", "keep"):
        monkeypatch.setattr(rebuild, name, refuse)
    assert said(capsys, "build", "--check")[0] == 0
    assert len(compiled) == 1


SOUND = {
    "code": "SG078",
    "severity": "warning",
    "message": "m",
    "hint": None,
    "file": "f",
    "line": 1,
    "column": 1,
    "end_column": 2,
    "source": None,
}
ZEROS = "0" * 64

UNUSABLE: dict[str, Any] = {
    "nothing": b"",
    "no JSON": b"{",
    "no ASCII": b'{"format": 1, "manifest": "\xff", "warnings": []}',
    "too deep": b"[" * 200_000,
    "a list": [],
    "a pickle": b"\x80\x04K\x01.",
    "no manifest": {"format": 1, "warnings": []},
    "another format": {"format": 2, "manifest": "GOOD", "warnings": []},
    "a switch as format": {"format": True, "manifest": "GOOD", "warnings": []},
    "a key more": {"format": 1, "manifest": "GOOD", "warnings": [], "x": 1},
    "another digest": {"format": 1, "manifest": ZEROS, "warnings": []},
    "no digest": {"format": 1, "manifest": 3, "warnings": []},
    "warnings of another kind": {"format": 1, "manifest": "GOOD", "warnings": {}},
    "a warning that is text": {"format": 1, "manifest": "GOOD", "warnings": ["x"]},
    "a warning that is an error": {
        "format": 1,
        "manifest": "GOOD",
        "warnings": [{**SOUND, "severity": "error"}],
    },
    "a warning with a key more": {"format": 1, "manifest": "GOOD", "warnings": [{**SOUND, "x": 1}]},
    "a warning without a line": {
        "format": 1,
        "manifest": "GOOD",
        "warnings": [{k: v for k, v in SOUND.items() if k != "line"}],
    },
    "a warning at half a line": {"format": 1, "manifest": "GOOD", "warnings": [{**SOUND, "line": 1.5}]},
    "a warning at a true line": {"format": 1, "manifest": "GOOD", "warnings": [{**SOUND, "line": True}]},
    "a warning of no file": {"format": 1, "manifest": "GOOD", "warnings": [{**SOUND, "file": None}]},
    "a hint that is a number": {"format": 1, "manifest": "GOOD", "warnings": [{**SOUND, "hint": 1}]},
}


def plant(here: Path, content: Any) -> None:
    """Put ``content`` where the record is, its checksum right."""
    (record,) = records(here)
    if not isinstance(content, bytes):
        manifest = digest((here / "generated" / "manifest.json").read_bytes())
        content = json.dumps(content).replace("GOOD", manifest).encode()
    key = record.name.split(".")[0]
    record.unlink()
    path = record.with_name(f"{key}.{digest(content)}.json")
    path.write_bytes(content)
    path.chmod(0o400)


def test_a_sound_record_counts(here: Path, compiled: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    plant(here, {"format": 1, "manifest": "GOOD", "warnings": [SOUND]})
    assert said(capsys, "build") == (0, "", "f:1:1: warning: SG078: m\n")
    assert compiled == []


@pytest.mark.parametrize("what", UNUSABLE)
def test_an_unusable_record_means_a_build(
    what: str, here: Path, compiled: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    plant(here, UNUSABLE[what])
    code, out, err = said(capsys, "build")
    assert (code, out) == (0, "")
    assert "SG078" in err
    assert len(compiled) == 1


def test_a_record_with_another_checksum_or_of_others_means_a_build(here: Path, compiled: list[Any]) -> None:
    (record,) = records(here)
    record.chmod(0o600)
    record.write_bytes(record.read_bytes().replace(b"SG078", b"SG079"))
    run(["build"])
    assert len(compiled) == 1
    (record,) = records(here)
    record.chmod(0o666)
    run(["build"])
    assert len(compiled) == 2
    (record,) = records(here)
    record.rename(record.with_name("elsewhere.json"))
    record.symlink_to(record.with_name("elsewhere.json"))
    run(["build"])
    assert len(compiled) == 3


def test_a_spec_that_changes_while_it_is_built_leaves_no_record(
    here: Path, compiled: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = compiler.build
    path = here / "specs" / "plain.yaml"

    def slow(paths: Any, **more: Any) -> compiler.Compiled:
        path.write_text(GOOD.replace("lr*grad", "4*lr*grad"))
        return counting(paths, **more)

    path.write_text(GOOD.replace("lr*grad", "3*lr*grad"))
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "build", slow)
        run(["build"])
    path.write_text(GOOD.replace("lr*grad", "3*lr*grad"))
    run(["build"])
    assert len(compiled) == 2
    assert run(["build", "--check"]) == 0


def test_a_failed_build_leaves_no_record(here: Path, compiled: list[Any]) -> None:
    before = records(here)
    (here / "specs" / "plain.yaml").write_text(GOOD.replace("lr*grad", "rl*grad"))
    assert run(["build"]) == 1
    assert run(["build"]) == 1
    assert records(here) == before


def test_builds_go_on_where_nothing_can_be_kept(
    here: Path, compiled: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "file").write_text("")
    monkeypatch.setenv("SOLVERGEN_CACHE_DIR", str(here / "file"))
    expected = said(capsys, "build", str(here / "specs"))
    assert expected[:2] == (0, "")
    assert "cache" not in expected[2]

    def fail(kind: str) -> None:
        raise OSError("no temporary folder either")

    monkeypatch.setattr(rebuild, "open_cache", fail)
    assert said(capsys, "build", str(here / "specs")) == expected
    assert len(compiled) == 2


def test_a_spec_that_is_no_plain_file_is_not_waited_for(here: Path) -> None:
    os.mkfifo(here / "specs" / "pipe.yaml")
    assert rebuild.fingerprint([here / "specs"]) is None
    assert run(["build"]) == 1


DERIVED = "name: derived\nextends: plain\nsummary: Gradient descent, derived.\n"


def test_a_change_of_what_a_spec_is_derived_from_is_one_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOLVERGEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("rules").mkdir()
    Path("rules/plain.yaml").write_text(GOOD)
    Path("rules/derived.yaml").write_text(DERIVED)
    alone = [Path("rules/derived.yaml")]
    assert run(["build", "rules/derived.yaml"]) == 0
    key = str(rebuild.fingerprint(alone))
    assert rebuild.find(key, Path("generated")) is not None
    Path("rules/plain.yaml").write_text(GOOD.replace("default: 0.1", "default: 0.2"))
    assert rebuild.fingerprint(alone) != key
    assert run(["build", "rules/derived.yaml"]) == 0
    assert "0.2" in Path("generated/derived/schema.py").read_text()
    Path("rules/derived.yaml").write_text(DERIVED.replace("extends", r'"\x65xtends"'))
    key = str(rebuild.fingerprint(alone))
    Path("rules/plain.yaml").write_text(GOOD)
    assert rebuild.fingerprint(alone) != key


def test_a_spec_that_is_too_large_has_no_fingerprint(here: Path) -> None:
    _append("specs/plain.yaml", "#" * rebuild.MAX_BYTES)()
    assert rebuild.fingerprint([here / "specs"]) is None
    assert run(["build"]) == 1


def test_old_records_go(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "MOST", 3)
    for number in range(5):
        Path("specs/plain.yaml").write_text(f"{GOOD}# {number}\n")
        run(["build"])
    assert len(records(here)) == 3
    assert rebuild.find(str(rebuild.fingerprint([Path("specs")])), here / "generated") is not None
