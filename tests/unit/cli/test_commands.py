"""The commands, run in this process: what they print, write and return."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from solvergen import compiler
from solvergen.cli.app import run
from solvergen.errors import CompilerBug
from solvergen.spec.files import shipped_folder

SHIPPED = Path(__file__).parents[3] / "specs"

GOOD = """\
name: plain
summary: Gradient descent.
hyperparameters:
  lr: {default: 0.1, min: 0}
update:
  - param = param - lr*grad
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with one spec in specs/."""
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "plain.yaml").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# build


def test_build_writes_and_then_has_nothing_to_do(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "build")
    assert code == 0
    assert err == ""
    assert "created generated/plain/kernel.cu\n" in out
    assert {line.split()[1] for line in out.splitlines()} == {
        f"generated/{p}" for p in files(here / "generated")
    }
    assert said(capsys, "build", "specs") == (0, "", "")


def test_build_says_what_it_did_as_json(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "build", "--out", "a/b", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["folder"] == "a/b"
    assert sorted(told["created"]) == sorted(files(here / "a" / "b"))
    (here / "specs" / "plain.yaml").write_text(GOOD.replace("lr*grad", "2*lr*grad"))
    told = json.loads(said(capsys, "build", "--out", "a/b", "--json")[1])
    assert "plain/kernel.c" in told["changed"]
    assert told["created"] == told["removed"] == []
    assert "__init__.py" in told["unchanged"]


def test_build_removes_an_optimizer_whose_spec_is_gone(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "specs" / "other.yaml").write_text(GOOD.replace("plain", "other"))
    run(["build"])
    (here / "specs" / "plain.yaml").unlink()
    capsys.readouterr()
    code, out, _ = said(capsys, "build")
    assert code == 0
    assert "removed generated/plain/kernel.c\n" in out
    assert not (here / "generated" / "plain").exists()


def test_build_check_shows_the_drift_and_writes_nothing(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = said(capsys, "build", "--check")
    assert code == 1
    assert "would be created generated/plain/kernel.c\n" in out
    assert "+++" not in out
    assert err.startswith("solvergen: there is no folder generated.")
    assert "--out" in err
    assert not (here / "generated").exists()
    run(["build"])
    capsys.readouterr()
    assert said(capsys, "build", "--check") == (0, "", "")
    kernel = here / "generated" / "plain" / "kernel.c"
    kernel.write_text(kernel.read_text() + "/* faster */\n")
    before = files(here / "generated")
    (here / "generated" / "plain" / "kernel.cu").unlink()
    before = files(here / "generated")
    code, out, err = said(capsys, "build", "--check")
    assert code == 1
    assert "-/* faster */\n" in out
    assert "manifest" not in out
    assert "would be created generated/plain/kernel.cu\n" in out
    assert "not what its specs say: 2 files differ" in err
    assert files(here / "generated") == before
    code, out, _ = said(capsys, "build", "--check", "--json")
    assert code == 1
    assert json.loads(out)["changed"] == ["plain/kernel.c"]
    assert json.loads(out)["created"] == ["plain/kernel.cu"]
    assert "-/* faster */\n" in json.loads(out)["diff"]


def test_build_keeps_an_edit_unless_forced(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["build"])
    kernel = here / "generated" / "plain" / "kernel.c"
    kernel.write_text("mine")
    capsys.readouterr()
    code, out, err = said(capsys, "build")
    assert (code, out) == (1, "")
    assert "edited by hand" in err
    assert "generated/plain/kernel.c" in err
    assert kernel.read_text() == "mine"
    assert said(capsys, "build", "--force")[:2] == (0, "changed generated/plain/kernel.c\n")


def test_build_takes_files_and_folders_together(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "build", "specs", str(SHIPPED / "lion.yaml"), "--out", "both")
    assert (code, err) == (0, "")
    assert (here / "both" / "plain").is_dir()
    assert (here / "both" / "lion").is_dir()
    code, _, err = said(capsys, "build", "specs", "specs/plain.yaml", "--out", "twice")
    assert code == 1
    assert "SG023" in err
    assert not (here / "twice").exists()


def test_build_of_an_invalid_spec_reports_all_findings_and_writes_nothing(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "specs" / "bad.yaml").write_text(
        GOOD.replace("plain", "bad").replace("lr*grad", "lrr*grad").replace("default", "defualt")
    )
    (here / "specs" / "worse.yaml").write_text(
        GOOD.replace("plain", "worse").replace("- lr*grad", "- beta*grad")
    )
    code, out, err = said(capsys, "build")
    assert (code, out) == (1, "")
    assert "did you mean 'default'" in err
    assert "specs/worse.yaml:6:" in err
    assert "beta" in err
    assert not (here / "generated").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("build", "missing"),
        ("build", "--check", "--force"),
        ("build", "--no-such-option"),
        ("bild",),
        ("show",),
        ("show", "plain", "--stage", "cudaa"),
        ("show", "plian"),
        ("show", "missing.yaml"),
        ("list", "--specs", "missing"),
        ("new", "1st"),
        ("schema", "--check"),
    ],
)
def test_wrong_usage_is_exit_code_2(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    before = files(here)
    code, out, err = said(capsys, *arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert err.startswith("Usage: ")
    assert files(here) == before


def test_without_specs_build_says_how_to_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = said(capsys, "build")
    assert code == 2
    assert "solvergen new" in err


def test_near_misses_are_suggested(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'plain'" in said(capsys, "show", "plian")[2]
    for command in ("show", "verify"):
        assert (
            f"specs/ here hides the specs that come with solvergen; --specs {shipped_folder()} uses those"
            in said(capsys, command, "adam")[2]
        )
        assert "hides" not in said(capsys, command, "adaam", "--specs", str(SHIPPED))[2]
    assert "did you mean 'cuda'" in said(capsys, "verify", "--backends", "gpu")[2]
    assert "did you mean 'cuda'" in said(capsys, "show", "plain", "--stage", "cudaa")[2]


def test_an_unwritable_place_is_a_sentence(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "file").write_text("")
    code, out, err = said(capsys, "build", "--out", "file/generated")
    assert (code, out) == (1, "")
    assert err.startswith("solvergen: file/generated")
    assert len(err.splitlines()) == 1


# check


def test_check_of_good_specs_is_silent_in_a_pipe(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "check") == (0, "", "")
    assert said(capsys, "check", str(SHIPPED)) == (0, "", "")


def test_check_reports_findings(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "specs" / "plain.yaml").write_text(GOOD.replace("lr*grad", "lrr*grad"))
    code, out, err = said(capsys, "check")
    assert (code, out) == (1, "")
    assert "specs/plain.yaml:6:21: error: SG" in err
    assert "                    ^^^" in err
    code, out, err = said(capsys, "check", "--json")
    assert (code, err) == (1, "")
    errors = [d for d in json.loads(out)["diagnostics"] if d["severity"] == "error"]
    assert errors[0]["file"] == "specs/plain.yaml"
    assert (errors[0]["line"], errors[0]["column"]) == (6, 21)
    assert "lrr" in errors[0]["message"]


def test_check_lists_the_specs_as_json(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(said(capsys, "check", "--json")[1])
    assert told == {"specs": [{"name": "plain", "file": "specs/plain.yaml"}], "diagnostics": []}


# show


@pytest.mark.parametrize(
    ("stage", "part"),
    [
        ("parsed", "param"),
        ("typed", "param"),
        ("optimised", "param"),
        ("scheduled", "lr"),
        ("wrapped", "wrap_average_new"),
        ("sympy", "lr"),
        ("latex", "lr"),
        ("cuda", "__global__"),
        ("cpu", "sg_kernel"),
        ("numpy", "def update("),
    ],
)
def test_show_prints_each_stage(
    here: Path, capsys: pytest.CaptureFixture[str], stage: str, part: str
) -> None:
    code, out, err = said(capsys, "show", "plain", "--stage", stage)
    assert (code, err) == (0, "")
    assert part in out
    told = json.loads(said(capsys, "show", "specs/plain.yaml", "-s", stage, "--json")[1])
    assert (told["stage"], told["text"].rstrip("\n")) == (stage, out.rstrip("\n"))


def test_show_prints_the_texts_that_build_writes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["build"])
    capsys.readouterr()
    for stage, file in (("cuda", "kernel.cu"), ("cpu", "kernel.c"), ("numpy", "reference.py")):
        assert said(capsys, "show", "plain", "-s", stage)[1] == (here / "generated/plain" / file).read_text()


def test_show_finds_the_shipped_specs_where_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = said(capsys, "show", "adam", "--stage", "numpy")
    assert code == 0
    assert "beta1" in out


# list


def test_list_in_a_pipe_is_tab_separated(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "list")
    assert (code, err) == (0, "")
    rows = [line.split("\t") for line in out.splitlines()]
    assert rows[0] == ["optimizer", "state", "moved", "passes", "source"]
    assert rows[1] == ["plain", "0", "12", "1", ""]


def test_list_counts_state_and_traffic_of_the_shipped_optimizers(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "list", "--json", "--specs", str(SHIPPED))
    table = {row["name"]: row for row in json.loads(out)}
    assert code == 0
    assert set(table) == {path.stem for path in SHIPPED.glob("*.yaml")}
    # Adam reads the gradient, and reads and writes the parameter and two moments.
    assert (table["adam"]["state_bytes"], table["adam"]["moved_bytes"], table["adam"]["passes"]) == (8, 28, 1)
    assert (table["lion"]["state_bytes"], table["lion"]["moved_bytes"]) == (4, 20)
    assert (table["sgd"]["state_bytes"], table["sgd"]["moved_bytes"]) == (0, 12)  # no momentum by default


# new


def test_new_writes_a_spec_that_checks_and_builds_as_it_is(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = said(capsys, "new", "my_rule2")
    assert (code, out, err) == (0, "specs/my_rule2.yaml\n", "")
    assert said(capsys, "check", "specs/my_rule2.yaml") == (0, "", "")
    assert said(capsys, "build", "specs/my_rule2.yaml", "--out", "mine")[0] == 0
    assert (here / "mine" / "my_rule2" / "kernel.cu").is_file()
    assert "MyRule2" in (here / "mine" / "__init__.py").read_text()


def test_new_makes_its_folder_and_leaves_a_file_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "new", "first", "--specs", "deep/er")[0] == 0
    path = here / "deep" / "er" / "first.yaml"
    path.write_text("edited")
    code, _, err = said(capsys, "new", "first", "--specs", "deep/er")
    assert code == 2
    assert "exists already" in err
    assert path.read_text() == "edited"


@pytest.mark.parametrize("name", ["Adam", "a-b", "../up", "sg_x", "lambda", "param", "_x", "option", ""])
def test_new_refuses_names_that_no_spec_may_have(
    here: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    code, out, err = said(capsys, "new", name)
    assert (code, out) == (2, "")
    assert "can't be called" in err
    assert [p.name for p in (here / "specs").iterdir()] == ["plain.yaml"]


def test_the_commented_out_parts_of_the_new_spec_are_valid_too(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["new", "full"])
    path = here / "specs" / "full.yaml"
    sections = [
        f"# {s}:" for s in ("description", "references", "conventions", "counterparts", "constraints")
    ]
    optional = (*sections, "#   - ")
    lines = []
    for line in path.read_text().splitlines():
        lines.append(line[2:] if line.startswith(optional) else line)
    assert sum(not line.startswith("#") for line in lines) > sum(
        not line.startswith("#") for line in path.read_text().splitlines()
    )
    path.write_text("\n".join(lines) + "\n")
    capsys.readouterr()
    assert said(capsys, "check", "specs/full.yaml") == (0, "", "")


# pages for people


def test_list_as_a_page_and_a_spec_in_words(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "list", "--markdown")
    assert (code, err) == (0, "")
    assert out.startswith("# The optimizers\n")
    assert "\n## plain\n" in out
    code, out, err = said(capsys, "list", "--markdown", "--json")
    assert code == 2
    assert "exclude each other" in out + err
    code, out, err = said(capsys, "show", "plain", "--stage", "doc")
    assert (code, err) == (0, "")
    assert "\nArgs:\n" in out
    assert "blocks" not in out
    (here / "specs" / "halves.yaml").write_text(
        "name: halves\nsummary: Steps by the mean of each block.\nhyperparameters: {lr: {default: 0.1}}\n"
        "update: ['param = param - lr*mean(grad, blocks)']\n"
    )
    assert "\n    blocks: into how many equal" in said(capsys, "show", "halves", "--stage", "doc")[1]


# schema


def test_schema_is_printed_written_and_compared(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "schema")
    assert code == 0
    assert "hyperparameters" in json.loads(out)["properties"]
    assert said(capsys, "schema", "--out", "docs/s.json")[0] == 0
    assert (here / "docs" / "s.json").read_text() == out
    assert said(capsys, "schema", "--out", "docs/s.json", "--check")[0] == 0
    (here / "docs" / "s.json").write_text("{}")
    code, _, err = said(capsys, "schema", "--out", "docs/s.json", "--check")
    assert code == 1
    assert "not up to date" in err
    assert (here / "docs" / "s.json").read_text() == "{}"


# errors


def test_a_bug_of_the_compiler_says_so(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for error in (CompilerBug("a node has no type"), KeyError("beta1")):

        def broken(*args: Any, error: Exception = error, **kwargs: Any) -> Any:
            raise error

        monkeypatch.setattr(compiler, "build", broken)
        code, out, err = said(capsys, "build")
        assert (code, out) == (3, "")
        assert "bug in solvergen" in err
        assert "--debug" in err
        assert str(error) in err
        assert "Traceback" not in err
        with pytest.raises(type(error)):
            run(["--debug", "build"])


def test_snapshot_show_refuses_what_is_no_snapshot(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "x.safetensors").write_bytes(b"garbage")
    for name in ("x.safetensors", "missing.h5", "x.txt"):
        code, out, err = said(capsys, "snapshot", "show", name)
        assert (code, out) == (1, "")
        assert err.startswith("solvergen: ")
        assert name in err


@pytest.mark.parametrize("name", ["a.caffemodel", "a.solverstate", "A.CAFFEMODEL.H5"])
def test_snapshot_show_sends_files_of_caffes_to_inspect(
    here: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (here / name).write_bytes(b"garbage")
    code, out, err = said(capsys, "snapshot", "show", name)
    assert (code, out) == (1, "")
    assert err.startswith(f"solvergen: {name}: ")
    assert "`solvergen snapshot inspect`" in err


def test_verify_on_a_terminal_says_why_a_backend_was_not_run(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the table, also where stderr goes elsewhere."""
    from solvergen.verify.report import Report, Row

    rows = (Row("adam", "numpy", "passed", 5), Row("adam", "cuda", "not run", detail="there is no GPU"))
    monkeypatch.setattr("solvergen.verify.verify_all", lambda *_, **__: Report(rows))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    code, out, _ = said(capsys, "verify", "plain", "--backends", "numpy,cuda")
    assert code == 1
    assert "same bits, 5 runs" in out
    assert "cuda was not run: there is no GPU" in out


def test_all_exit_codes_are_documented() -> None:
    from solvergen.cli import exit_codes
    from solvergen.cli.app import EPILOG

    for name in ("OK", "FINDINGS", "USAGE", "BUG"):
        assert f"{getattr(exit_codes, name)} " in EPILOG.replace("codes: 0", "codes: 0 ")


def test_errors_are_json_too_where_json_is_asked_for(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One document on stdout, whatever it is; and the sentences on stderr as always."""
    wrong: list[tuple[int, tuple[str, ...]]] = [
        (1, ("build", "--out", "specs/plain.yaml/x")),  # a file is in the way
        (2, ("build", "missing")),
        (2, ("build", "--check", "--force")),
        (2, ("build", "--no-such-option")),
        (2, ("list", "--specs", "missing")),
        (2, ("show", "plian")),
        (2, ("show", "plain", "--stage", "cudaa")),
        (2, ("check", "missing")),
        (2, ("verify", "plian")),
        (2, ("verify", "--backends", "abacus")),
    ]
    for expected, arguments in wrong:
        code, out, err = said(capsys, *arguments, "--json")
        assert (code, set(json.loads(out))) == (expected, {"error", "diagnostics"})
        assert json.loads(out)["error"] in err
        assert json.loads(out)["diagnostics"] == []
    (here / "specs" / "plain.yaml").write_text(GOOD.replace("lr*grad", "lrr*grad"))
    found = json.loads(said(capsys, "check", "--json")[1])["diagnostics"]
    for arguments in (("build",), ("list",), ("show", "plain"), ("verify", "plain")):
        code, out, err = said(capsys, *arguments, "--json")
        assert code == 1
        assert json.loads(out)["diagnostics"] == found
        assert json.loads(out)["error"] in err + "2 errors 1 error 1 warning"
        assert "specs/plain.yaml:6:21" in err

    def broken(*args: Any, **kwargs: Any) -> Any:
        raise KeyError("beta1")

    monkeypatch.setattr(compiler, "build", broken)
    code, out, _ = said(capsys, "build", "--json")
    assert (code, json.loads(out)) == (3, {"error": "KeyError: 'beta1'", "diagnostics": []})


def test_json_as_an_argument_is_no_option(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "show", "--", "--json")[:2] == (2, "")


def test_show_goes_by_the_name_that_a_spec_gives_itself(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "specs" / "plain.yaml").rename(here / "specs" / "first.yaml")
    (here / "specs" / "plain.yaml").write_text(GOOD.replace("plain", "descent"))
    for name, file in (("plain", "specs/first.yaml"), ("descent", "specs/plain.yaml")):
        for asked in (name, file):
            told = json.loads(said(capsys, "show", asked, "--json")[1])
            assert (told["name"], told["file"]) == (name, file)
    assert "did you mean 'descent'" in said(capsys, "show", "descend")[2]
    code, _, err = said(capsys, "show", "first")
    assert code == 2
    assert "specs/first.yaml calls itself 'plain'" in err


def test_show_says_what_is_wrong_with_a_spec_and_not_with_its_neighbours(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "specs" / "torn.yaml").write_text("name: [")
    assert said(capsys, "show", "plain")[0] == 0
    code, _, err = said(capsys, "show", "torn")
    assert code == 1
    assert "specs/torn.yaml:1" in err


def test_show_refuses_a_name_that_two_specs_have(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "specs" / "other.yaml").write_text(GOOD)
    code, out, err = said(capsys, "show", "plain")
    assert (code, out) == (1, "")
    assert "SG023" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("build", "--out", ""),
        ("build", ""),
        ("list", "--specs", ""),
        ("new", "mine", "--specs", ""),
        ("schema", "--out", ""),
        ("verify", "--backends", ""),
        ("verify", "--backends", " , "),
        ("show", ""),
        ("verify", ""),
    ],
)
def test_empty_arguments_are_wrong_usage(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    before = files(here)
    code, out, err = said(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("Usage: ")
    assert files(here) == before


@pytest.mark.parametrize("name", ["my-out", "class", "2nd", "with space"])
def test_a_package_that_cannot_be_named_in_python_is_noted(
    here: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    code, _, err = said(capsys, "build", "--out", f"deep/{name}")
    assert code == 0
    assert "note: no import statement can name" in err
    assert repr(name) in err
    assert said(capsys, "build", "--out", "my-place/my_out")[2] == ""


def test_a_backend_that_is_named_twice_runs_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "verify", "--backends", "numpy, numpy", "-n", "2", "--json")
    assert code == 0
    assert [row["backend"] for row in json.loads(out)["rows"]] == ["numpy"]


def test_unknown_optimizers_get_a_sentence(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no optimizer 'nope'; there is only 'plain'" in said(capsys, "verify", "nope")[2]


@pytest.mark.parametrize(
    "command",
    ["build", "check", "show", "list", "new", "verify", "bench", "schema", "snapshot show"],
)
def test_help_names_values_in_capitals(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, *command.split(), "--help")
    assert code == 0
    usage = out.split("Usage: solvergen ", 1)[1].splitlines()[0].removeprefix(command)
    assert usage == usage.upper()
    # What an option takes has a name, not only a type of Python's: `--seed NUMBER`, not `--seed <int>`.
    assert not [line for line in out.splitlines() if line.lstrip().startswith("-") and " <" in line]
