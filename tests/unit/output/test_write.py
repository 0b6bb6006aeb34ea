"""What a build writes, leaves, removes and refuses."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from solvergen.errors import CompilerBug, OutputError
from solvergen.output import compare, unified_diff, write

TREE = {
    "__init__.py": "a\n",
    "adam/__init__.py": "b\n",
    "adam/kernel.c": "int x;\n",
    "sgd/__init__.py": "c\n",
}


def content(folder: Path) -> dict[str, str]:
    """Every file below ``folder``, hidden ones too."""
    return {p.relative_to(folder).as_posix(): p.read_text() for p in folder.rglob("*") if p.is_file()}


def expected(tree: dict[str, str]) -> dict[str, str]:
    digests = {path: hashlib.sha256(tree[path].encode()).hexdigest() for path in sorted(tree)}
    return {**tree, "manifest.json": json.dumps({"format": 1, "files": digests}, indent=2) + "\n"}


def test_first_build_writes_the_tree_and_a_manifest_of_digests(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "er"
    done = write(folder, TREE)
    assert content(folder) == expected(TREE)
    assert done.created == tuple(sorted([*TREE, "manifest.json"]))
    assert (done.changed, done.unchanged, done.removed) == ((), (), ())


def test_second_build_touches_nothing(tmp_path: Path) -> None:
    write(tmp_path / "out", TREE)
    before = {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in (tmp_path / "out").rglob("*")}
    done = write(tmp_path / "out", TREE)
    assert not done.differs
    assert {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in (tmp_path / "out").rglob("*")} == before


def test_only_what_changed_is_written(tmp_path: Path) -> None:
    write(tmp_path, TREE)
    kept = (tmp_path / "adam/__init__.py").stat().st_ino
    done = write(tmp_path, {**TREE, "adam/kernel.c": "int y;\n"})
    assert done.changed == ("adam/kernel.c", "manifest.json")
    assert (tmp_path / "adam/__init__.py").stat().st_ino == kept
    assert (tmp_path / "adam/kernel.c").read_text() == "int y;\n"


def test_stale_files_go_with_their_folder_and_its_caches(tmp_path: Path) -> None:
    write(tmp_path, TREE)
    caches = tmp_path / "adam" / "__pycache__"
    caches.mkdir()
    (caches / "__init__.cpython-310.pyc").write_bytes(b"x")
    rest = {"__init__.py": "a\n", "sgd/__init__.py": "c\n"}
    done = write(tmp_path, rest)
    assert done.removed == ("adam/__init__.py", "adam/kernel.c")
    assert content(tmp_path) == expected(rest)
    assert not (tmp_path / "adam").exists()


def test_files_of_others_stay(tmp_path: Path) -> None:
    write(tmp_path, TREE)
    (tmp_path / "adam" / "notes.txt").write_text("mine")
    (tmp_path / "own.py").write_text("mine")
    write(tmp_path, {"__init__.py": "a\n"})
    assert content(tmp_path) == {
        **expected({"__init__.py": "a\n"}),
        "adam/notes.txt": "mine",
        "own.py": "mine",
    }


@pytest.mark.parametrize("path", ["adam/kernel.c", "sgd/__init__.py"])
@pytest.mark.parametrize("stale", [False, True])
def test_an_edited_file_is_reported_and_kept_unless_forced(tmp_path: Path, path: str, stale: bool) -> None:
    write(tmp_path, TREE)
    (tmp_path / path).write_text("edited")
    before = content(tmp_path)
    tree = {**TREE, path: "new\n"}
    if stale:
        del tree[path]
    with pytest.raises(OutputError, match="edited by hand") as caught:
        write(tmp_path, tree)
    assert caught.value.paths == (path,)
    assert str(tmp_path / path) in str(caught.value)
    assert "--force" in str(caught.value)
    assert content(tmp_path) == before
    write(tmp_path, tree, force=True)
    assert content(tmp_path) == expected(tree)


def test_an_edit_that_equals_the_new_text_is_no_edit(tmp_path: Path) -> None:
    write(tmp_path, TREE)
    (tmp_path / "adam/kernel.c").write_text("int y;\n")
    write(tmp_path, {**TREE, "adam/kernel.c": "int y;\n"})
    assert content(tmp_path) == expected({**TREE, "adam/kernel.c": "int y;\n"})


def test_a_deleted_file_is_written_again(tmp_path: Path) -> None:
    write(tmp_path, TREE)
    (tmp_path / "adam/kernel.c").unlink()
    assert write(tmp_path, TREE).created == ("adam/kernel.c",)
    assert content(tmp_path) == expected(TREE)


def test_a_folder_of_others_is_refused_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputError, match=r"(?s)didn't write.*thesis\.tex.*--out") as caught:
        write(tmp_path, TREE)
    assert caught.value.paths == ("thesis.tex",)
    assert content(tmp_path) == {"thesis.tex": "years of work"}
    write(tmp_path, TREE, force=True)
    assert content(tmp_path) == {**expected(TREE), "thesis.tex": "years of work"}


def test_an_empty_folder_and_python_caches_are_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.pyc").write_bytes(b"x")
    write(tmp_path, TREE)
    assert (tmp_path / "manifest.json").exists()


def test_a_foreign_file_at_a_path_of_the_tree_is_refused_in_a_folder_of_ours(tmp_path: Path) -> None:
    write(tmp_path, TREE)
    (tmp_path / "lion").mkdir()
    (tmp_path / "lion" / "__init__.py").write_text("mine")
    with pytest.raises(OutputError, match="didn't write"):
        write(tmp_path, {**TREE, "lion/__init__.py": "ours\n"})
    assert content(tmp_path) == {**expected(TREE), "lion/__init__.py": "mine"}


def test_a_lost_manifest_is_made_again_when_the_files_are_as_they_should_be(tmp_path: Path) -> None:
    write(tmp_path, TREE)
    (tmp_path / "manifest.json").unlink()
    assert write(tmp_path, TREE).created == ("manifest.json",)


@pytest.mark.parametrize(
    "text",
    [
        "<<<<<<< HEAD\n",
        "[]",
        '{"format": 1}',
        '{"format": 2, "files": {}}',
        '{"format": 1, "files": {"../outside.txt": "' + "0" * 64 + '"}}',
        '{"format": 1, "files": {"/etc/passwd": "' + "0" * 64 + '"}}',
        '{"format": 1, "files": {"a/./b": "' + "0" * 64 + '"}}',
        '{"format": 1, "files": {"x": "123"}}',
        "[" * 100_000,
    ],
)
def test_an_unreadable_manifest_is_refused_and_removes_nothing(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "out"
    write(folder, TREE)
    (tmp_path / "outside.txt").write_text("mine")
    (folder / "manifest.json").write_text(text)
    with pytest.raises(OutputError, match=r"manifest\.json can't be used"):
        write(folder, {"__init__.py": "a\n"})
    write(folder, {"__init__.py": "new\n"}, force=True)
    assert (tmp_path / "outside.txt").read_text() == "mine"
    assert content(folder)["__init__.py"] == "new\n"
    assert content(folder)["sgd/__init__.py"] == "c\n"  # nobody could say whose it was


def test_a_manifest_cannot_make_a_build_remove_files_outside(tmp_path: Path) -> None:
    folder, outside = tmp_path / "out", tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.txt").write_text("mine")
    write(folder, TREE)
    (folder / "link").symlink_to(outside)
    listed = json.loads((folder / "manifest.json").read_text())
    listed["files"]["link/precious.txt"] = hashlib.sha256(b"mine").hexdigest()
    (folder / "manifest.json").write_text(json.dumps(listed))
    for force in (False, True):
        with pytest.raises(OutputError, match="symbolic link"):
            write(folder, TREE, force=force)
    assert (outside / "precious.txt").read_text() == "mine"


def test_links_are_not_written_through(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "adam").symlink_to(tmp_path)
    with pytest.raises(OutputError, match="symbolic link"):
        write(folder, TREE, force=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")
    write(tmp_path / "out", TREE)
    assert content(tmp_path / "real") == expected(TREE)


def test_a_folder_where_a_file_belongs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").mkdir()
    with pytest.raises(OutputError, match="is a folder"):
        write(tmp_path, TREE, force=True)


def test_a_file_where_the_folder_belongs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    with pytest.raises(OutputError, match="is a file"):
        write(tmp_path / "out", TREE)
    (tmp_path / "adam").write_text("x")
    with pytest.raises(OutputError, match="one of its folders is a file"):
        write(tmp_path, TREE, force=True)


def test_names_that_differ_in_case_only_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="ignore case"):
        write(tmp_path, {**TREE, "Adam/__init__.py": "x"})
    assert content(tmp_path) == {}


@pytest.mark.parametrize(
    "path", ["../x", "/x", "a//b", "a/../b", ".hidden", "a/.b", "", "manifest.json", "c:x", "a\\b"]
)
def test_a_path_outside_the_folder_is_a_compiler_bug(tmp_path: Path, path: str) -> None:
    with pytest.raises(CompilerBug):
        write(tmp_path / "out", {path: "x"})
    assert not (tmp_path / "out").exists()


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, TREE)
    before = content(tmp_path)
    calls = []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path, {path: text + "more" for path, text in TREE.items()})
    assert content(tmp_path) == before


def test_check_touches_nothing_and_its_diff_applies(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write(folder, TREE)
    (folder / "adam/kernel.c").write_bytes(b"int x;\f\nint z;")
    new = {
        "__init__.py": "a\n",
        "adam/__init__.py": "b\nmore",
        "adam/kernel.c": "int x;\f\nint w;\n",
        "new.py": "n\n",
    }
    before = content(folder)
    comparison = compare(folder, new)
    diff = unified_diff(comparison)
    assert comparison.differs
    assert content(folder) == before
    assert "manifest" not in diff
    assert "-int z;\n\\ No newline at end of file\n+int w;\n" in diff
    subprocess.run(["patch", "-s", "-p1", "-E"], input=diff.encode(), cwd=folder, check=True)
    assert {**content(folder), "manifest.json": ""} == {**new, "manifest.json": ""}


def test_check_of_a_folder_that_is_up_to_date(tmp_path: Path) -> None:
    write(tmp_path, TREE)
    comparison = compare(tmp_path, TREE)
    assert not comparison.differs
    assert unified_diff(comparison) == ""


def test_a_manifest_that_drifted_alone_is_shown(tmp_path: Path) -> None:
    write(tmp_path, TREE)
    listed = json.loads((tmp_path / "manifest.json").read_text())
    del listed["files"]["adam/kernel.c"]
    (tmp_path / "manifest.json").write_text(json.dumps(listed))
    comparison = compare(tmp_path, TREE)
    assert comparison.differs
    assert "+++ b/manifest.json" in unified_diff(comparison)
