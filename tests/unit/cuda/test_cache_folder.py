"""The folder of compiled kernels: private, whole, checked, and never in the way."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from solvergen.errors import CacheWarning
from solvergen.runtime import cache_folder
from solvergen.runtime.cache_folder import open_cache

KEY = "0123456789abcdef"


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("SOLVERGEN_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(cache_folder, "_warned", set())
    # What another test's process-wide stand-in holds isn't this test's.
    monkeypatch.setattr(cache_folder, "_private", {})


def test_the_variables_are_asked_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_cache("cuda").path == tmp_path / "home/.cache/solvergen/cuda"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored
    assert open_cache("cuda").path == tmp_path / "home/.cache/solvergen/cuda"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert open_cache("native").path == tmp_path / "xdg/solvergen/native"
    monkeypatch.setenv("SOLVERGEN_CACHE_DIR", str(tmp_path / "chosen"))
    assert open_cache("cuda").path == tmp_path / "chosen/cuda"


def test_only_the_owner_may_read_and_write(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        folder = open_cache("cuda")
        path = folder.store(KEY, b"code", ".cubin")
    finally:
        os.umask(previous)
    assert path is not None
    for part in (folder.path.parent, folder.path):
        assert stat.S_IMODE(part.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_what_is_stored_is_found_and_nothing_else() -> None:
    folder = open_cache("cuda")
    assert folder.load(KEY, ".cubin") is None
    path = folder.store(KEY, b"\0code\xff", ".cubin")
    assert folder.load(KEY, ".cubin") == b"\0code\xff"
    assert folder.find(KEY, ".cubin") == path
    assert folder.load(KEY, ".so") is None
    assert folder.load(KEY[:-1], ".cubin") is None
    assert sorted(os.listdir(folder.path)) == [path.name] if path else False


@pytest.mark.parametrize("damage", ["flip", "truncate", "extend", "empty"])
def test_damage_is_noticed_and_removed(damage: str) -> None:
    folder = open_cache("cuda")
    path = folder.store(KEY, b"0123456789", ".cubin")
    assert path is not None
    data = {"flip": b"0123456788", "truncate": b"01234", "extend": b"0123456789\0", "empty": b""}[damage]
    path.chmod(0o600)
    path.write_bytes(data)
    assert folder.load(KEY, ".cubin") is None
    assert not path.exists()
    folder.store(KEY, b"0123456789", ".cubin")
    assert folder.load(KEY, ".cubin") == b"0123456789"


@pytest.mark.parametrize("trick", ["link", "folder", "writable by others"])
def test_what_others_could_have_laid_there_is_not_taken(trick: str, tmp_path: Path) -> None:
    folder = open_cache("cuda")
    path = folder.store(KEY, b"code", ".cubin")
    assert path is not None
    if trick == "writable by others":
        path.chmod(0o622)
    else:
        elsewhere = tmp_path / "elsewhere"
        path.rename(elsewhere)
        path.symlink_to(elsewhere) if trick == "link" else path.mkdir()
    assert folder.load(KEY, ".cubin") is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_can_write_is_refused(
    mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(mode)
    monkeypatch.setenv("SOLVERGEN_CACHE_DIR", str(open_folder))
    with pytest.warns(CacheWarning, match="chmod go-w"):
        folder = open_cache("cuda")
    assert open_folder not in folder.path.parents
    assert stat.S_IMODE(folder.path.parent.stat().st_mode) == 0o700
    assert open_cache("cuda").path == folder.path  # warned once, and the same folder all along
    folder.store(KEY, b"code", ".cubin")
    assert folder.load(KEY, ".cubin") == b"code"


def test_a_parent_that_anybody_can_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    public = tmp_path / "public"
    public.mkdir()
    public.chmod(0o777)
    monkeypatch.setenv("SOLVERGEN_CACHE_DIR", str(public / "mine"))
    with pytest.warns(CacheWarning, match="anybody may rename"):
        open_cache("cuda")
    public.chmod(0o1777)  # sticky, as /tmp: only owners rename
    assert open_cache("cuda").path == public / "mine/cuda"


def test_somebody_elses_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOLVERGEN_CACHE_DIR", str(tmp_path / "theirs"))
    (tmp_path / "theirs").mkdir(mode=0o700)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.warns(CacheWarning, match="belongs to another user"):
        open_cache("cuda")


def test_a_file_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SOLVERGEN_CACHE_DIR", str(tmp_path / "file"))
    with pytest.warns(CacheWarning, match="can't keep compiled kernels"):
        assert open_cache("cuda").store(KEY, b"code", ".cubin") is not None


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc to tell which file is synced")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_full_or_read_only_disk_is_tolerated(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = open_cache("cuda")
    sync = os.fsync

    def failing(descriptor: int) -> None:
        if str(folder.path) in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(code, os.strerror(code))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    path = folder.store(KEY, b"code", ".so")
    assert path is not None
    assert path.read_bytes() == b"code"
    assert os.listdir(folder.path) == []  # no temporary file is left behind
    assert folder.load(KEY, ".so") == b"code"  # from where it went instead
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(code, "full")))
    assert folder.store("f" * 16, b"code", ".so") is None


def test_threads_may_store_the_same_key_at_once() -> None:
    folder = open_cache("cuda")
    failures: list[Any] = []

    def work() -> None:
        for _ in range(50):
            folder.store(KEY, b"code" * 1000, ".cubin")
            if folder.load(KEY, ".cubin") != b"code" * 1000:
                failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_the_private_folder_goes_with_its_process_and_not_with_its_child() -> None:
    script = (
        "import os, warnings; warnings.simplefilter('ignore')\n"
        "os.environ['SOLVERGEN_CACHE_DIR'] = '/proc/nowhere'\n"
        "from solvergen.runtime.cache_folder import open_cache\n"
        "folder = open_cache('cuda').path\n"
        "child = os.fork()\n"
        "if child == 0: raise SystemExit(0)\n"
        "os.waitpid(child, 0)\n"
        "assert folder.is_dir()\n"
        "print(folder)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip()
    assert not Path(run.stdout.strip()).exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_forked_while_another_thread_uses_the_folder_can_use_it() -> None:
    script = (
        "import os, signal, threading, warnings; warnings.simplefilter('ignore')\n"
        "os.environ['SOLVERGEN_CACHE_DIR'] = '/proc/nowhere'\n"
        "from solvergen.runtime import cache_folder\n"
        "making, forked = threading.Event(), threading.Event()\n"
        "make = cache_folder.tempfile.mkdtemp\n"
        "def slow(**options):\n"
        "    making.set(); forked.wait(); return make(**options)\n"
        "cache_folder.tempfile.mkdtemp = slow\n"
        "thread = threading.Thread(target=cache_folder.open_cache, args=('native',))\n"
        "thread.start(); making.wait()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(10)\n"
        "    cache_folder.tempfile.mkdtemp = make\n"
        "    folder = cache_folder.open_cache('native').path\n"
        "    assert folder.is_dir()\n"
        "    raise SystemExit(7)\n"
        "forked.set(); thread.join()\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "7"
