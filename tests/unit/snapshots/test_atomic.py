"""A file is the old snapshot or the new one, whatever happens while it is written."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import pytest

from solvergen.errors import SnapshotError
from solvergen.runtime import snapshots
from solvergen.runtime.snapshots import atomic, formats, hdf5_format
from solvergen.runtime.snapshots.document import slots_of
from solvergen.runtime.snapshots.sink import Sink
from tests.unit.snapshots.support import SUFFIXES, bits, small, snapshot, tensor

ROOT = Path(__file__).parents[3]


@pytest.fixture(params=SUFFIXES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    saved: Path = tmp_path / f"s{request.param}"
    snapshots.save(saved, small())
    return saved


def left_over(path: Path) -> list[str]:
    return sorted(name for name in os.listdir(path.parent) if name != path.name)


KILLED = """
import os, shutil, signal, sys
import h5py, ml_dtypes, safetensors
from solvergen.runtime import snapshots
from solvergen.runtime.snapshots.sink import Sink
from tests.unit.snapshots.support import bits, small, snapshot, tensor

path, data = sys.argv[1], snapshot(*(tensor(f"t{i}", (1000,), seed=i) for i in range(4)))
old, new = bits(small()), bits(data)
count = fatal = 0
WATCHED = ("open", "os.listdir", "os.rename", "os.mkdir", "os.chmod", "shutil.rmtree")

def moment():
    global count
    count += 1
    if count == fatal:
        os.kill(os.getpid(), signal.SIGKILL)

def watch(owner, name):  # before and after each call
    call = getattr(owner, name)
    def watched(*args, **kwargs):
        moment()
        result = call(*args, **kwargs)
        moment()
        return result
    setattr(owner, name, watched)

def child():
    for owner, name in [(os, "fsync"), (os, "replace"), (os, "open"), (os, "close"), (Sink, "write")]:
        watch(owner, name)
    sys.addaudithook(lambda event, _: moment() if event in WATCHED else None)
    snapshots.save(path, data)
    os._exit(0)

seen = []
while True:
    fatal += 1
    process = os.fork()
    if process == 0:
        child()
    status = os.waitpid(process, 0)[1]
    found = bits(snapshots.load(path))
    assert found in (old, new)
    seen.append(found == new)
    for name in os.listdir(os.path.dirname(path)):  # each of them too young to be swept
        if name.endswith(".solvergen-tmp"):
            shutil.rmtree(os.path.join(os.path.dirname(path), name + ".d"), ignore_errors=True)
            os.unlink(os.path.join(os.path.dirname(path), name))
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]
    if status == 0:
        break
    assert os.WTERMSIG(status) == signal.SIGKILL, status
assert found == new
print(seen.count(False), seen.count(True), seen == sorted(seen))
"""


def test_kill_at_every_moment(path: Path) -> None:
    """Killed with SIGKILL around each system call of the writer in turn, until one run gets through."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)], check=True, capture_output=True, text=True, cwd=ROOT
    )
    old, new, in_order = done.stdout.split()
    assert int(old) >= 8
    assert int(new) >= 4  # between the rename and the flush of the folder, and at the end
    assert in_order == "True"


def test_kill_at_random_moments(tmp_path: Path) -> None:
    """A writer that saves over and over, killed from outside: the file always loads."""
    program = """
import sys
from solvergen.runtime import snapshots
from tests.unit.snapshots.support import snapshot, tensor
for i in range(1, 10**6):
    data = snapshot(tensor("a", (200_000,), t=i, seed=i), tensor("b", (), "float64", t=i))
    for path in sys.argv[1:]:
        snapshots.save(path, data)
    print(i, flush=True)
"""
    paths = [tmp_path / f"s{suffix}" for suffix in SUFFIXES]
    for delay in (0.0, 0.01, 0.02, 0.03):
        process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, paths)], stdout=subprocess.PIPE, cwd=ROOT
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay)
        process.kill()
        process.communicate()
        for path in paths:
            loaded = snapshots.load(path)
            assert loaded.tensors[0].t == loaded.tensors[1].t >= 1


def test_several_writers_and_a_reader(path: Path) -> None:
    """Two processes save to the same path over and over; every load meanwhile finds one of the snapshots."""
    program = """
import sys
from solvergen.runtime import snapshots
from tests.unit.snapshots.support import snapshot, tensor
data = snapshot(tensor("a", (50_000,), t=int(sys.argv[2])))
for _ in range(25):
    snapshots.save(sys.argv[1], data)
"""
    writers = [subprocess.Popen([sys.executable, "-c", program, str(path), str(t)], cwd=ROOT) for t in (1, 2)]
    expected = [
        bits(small()),
        *(bits(snapshot(tensor("a", (50_000,), t=t))) for t in (1, 2)),
    ]
    loads = 0
    while loads < 5 or any(writer.poll() is None for writer in writers):
        assert bits(snapshots.load(path)) in expected
        loads += 1
    assert [writer.wait() for writer in writers] == [0, 0]
    assert left_over(path) == []


def test_full_disk(path: Path) -> None:
    """The size of files is limited to less than the snapshot needs, at many places.

    In one process, which must be able to go on: a failed write must leave the HDF5 library in order.
    """
    program = """
import resource, signal, sys
from solvergen.errors import SnapshotError
from solvergen.runtime import snapshots
from tests.unit.snapshots.support import bits, small, snapshot, tensor
path, data = sys.argv[1], snapshot(*(tensor(f"t{i}", (5000,)) for i in range(4)))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
for limit in (0, 1, 511, 512, 513, *range(600, 10_000, 499), *range(10_000, 163_000, 9_999)):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    try:
        snapshots.save(path, data)
    except SnapshotError as error:
        assert str(error) == f"{path}: can't be written: File too large", error
    else:
        raise AssertionError(limit)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert bits(snapshots.load(path)) == bits(small())
snapshots.save(path, data)
assert bits(snapshots.load(path)) == bits(data)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], check=False, capture_output=True, text=True, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert left_over(path) == []


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError, OSError(28, "No space left on device")])
@pytest.mark.parametrize("method", ["write", "seek", "readinto", "truncate", "flush"])
def test_interrupted_while_the_library_calls_back(method: str, failure: Any) -> None:
    """HDF5 never hears of it: it closes its file as if all were well, and the exception comes out after."""

    class Failing(io.BytesIO):
        left = 0

    def fail(self: Any, *args: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise failure
        return getattr(io.BytesIO, method)(self, *args)

    setattr(Failing, method, fail)
    pieces = [(slot.spec, array) for slot, array in slots_of(small())]
    happened = 0
    for moment in range(60):
        file = Failing()
        file.left = moment
        sink = Sink(file)
        with contextlib.suppress(OSError, RuntimeError, ValueError, KeyError):
            hdf5_format._fill(h5py, sink, pieces, b"document")
        try:
            sink.check()
        except BaseException as error:
            assert error is failure or type(error) is failure  # noqa: PT017
            happened += 1
        else:
            break
    assert happened > 0 or method in ("readinto", "flush")
    file = io.BytesIO()
    hdf5_format._fill(h5py, Sink(file), pieces, b"document")  # the library is still in order
    with h5py.File(file) as reopened:
        assert reopened["solvergen"][()] == b"document"


def test_interrupted_by_an_exception(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, interrupt)
            with pytest.raises(KeyboardInterrupt):
                snapshots.save(path, snapshot(tensor("w")))
        assert bits(snapshots.load(path)) == bits(small())
        assert left_over(path) == []


def test_order_of_flushing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is flushed before the rename, its folder after it; what is flushed is complete."""
    events: list[str] = []
    fsync, replace = os.fsync, os.replace

    def record_fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            events.append("folder")
        else:
            (name,) = left_over(path)
            complete = path.with_name(f"copy{path.suffix}")
            complete.write_bytes(path.with_name(name).read_bytes())
            assert bits(snapshots.load(complete)) == bits(snapshot(tensor("w")))
            complete.unlink()
            events.append("file")
        fsync(descriptor)

    def record_replace(source: Any, target: Any) -> None:
        events.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "replace", record_replace)
    snapshots.save(path, snapshot(tensor("w")))
    assert events == ["file", "rename", "folder"]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o000, 0o027])
def test_permissions_are_the_umask(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        snapshots.save(path, small())
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_symbolic_link(path: Path) -> None:
    link = path.with_name(f"link{path.suffix}")
    link.symlink_to(path.name)
    snapshots.save(link, snapshot(tensor("w")))
    assert link.is_symlink()
    assert bits(snapshots.load(path)) == bits(snapshot(tensor("w")))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_missing_folder(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(SnapshotError, match="can't be written: No such file or directory"):
        snapshots.save(tmp_path / "none" / f"s{suffix}", small())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_names_as_long_as_the_system_allows(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / ("x" * (255 - len(suffix)) + suffix)
    snapshots.save(path, small())
    assert bits(snapshots.load(path)) == bits(small())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_names_that_are_not_text(tmp_path: Path, suffix: str) -> None:
    path = os.fsencode(tmp_path) + b"/\xff\xfe" + suffix.encode()
    snapshots.save(os.fsdecode(path), small())
    assert bits(snapshots.load(os.fsdecode(path))) == bits(small())
    assert os.path.exists(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_relative_path(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    snapshots.save(f"s{suffix}", small())
    assert bits(snapshots.load(tmp_path / f"s{suffix}")) == bits(small())


def test_what_a_killed_writer_left_is_removed_later(path: Path) -> None:
    with atomic.replacing(str(path)) as temporary:
        prefix = Path(temporary).name.rsplit(".", 2)[0]
        Path(temporary).write_bytes(path.read_bytes())
    old = time.time() - 3600
    stale = path.with_name(f"{prefix}.0123.solvergen-tmp")
    fresh = path.with_name(f"{prefix}.4567.solvergen-tmp")
    other = path.with_name(".0123456789abcdef.0123.solvergen-tmp")
    for file in (stale, fresh, other):
        file.write_bytes(b"x")
        folder = file.with_name(f"{file.name}.d")
        folder.mkdir()
        (folder / ".tmp1234").write_bytes(b"x")
    os.utime(stale, (old, old))
    os.utime(other, (old, old))
    snapshots.save(path, small())
    left = [fresh, other]  # perhaps somebody is just writing it; of another snapshot
    assert left_over(path) == sorted(name for file in left for name in (file.name, f"{file.name}.d"))


def test_what_a_living_writer_writes_stays(path: Path) -> None:
    """Even if it takes hours: the file is locked."""
    with atomic.replacing(str(path)) as temporary:
        Path(temporary).write_bytes(path.read_bytes())
        old = time.time() - 3600
        os.utime(temporary, (old, old))
        snapshots.save(path, snapshot(tensor("w")))
        assert os.path.exists(temporary)
    assert bits(snapshots.load(path)) == bits(small())  # the last to finish wins


def test_hdf5_locking_forced_from_outside(tmp_path: Path) -> None:
    program = (
        "import sys; from solvergen.runtime import snapshots; from tests.unit.snapshots.support import small;"
        "snapshots.save(sys.argv[1], small()); snapshots.load(sys.argv[1])"
    )
    for value in ("TRUE", "FALSE", "BEST_EFFORT"):
        subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "s.h5")],
            check=True,
            cwd=ROOT,
            env={**os.environ, "HDF5_USE_FILE_LOCKING": value},
        )


def test_no_descriptors_are_kept(path: Path) -> None:
    folder = "/proc/self/fd"
    if not os.path.exists(folder):
        pytest.skip("counted in Linux's /proc")
    before = len(os.listdir(folder))
    for _ in range(20):
        snapshots.save(path, small())
        snapshots.load(path)
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(SnapshotError):
            snapshots.load(path)
    assert len(os.listdir(folder)) == before


def test_memory_of_saving_and_loading(tmp_path: Path) -> None:
    """Nothing is copied on the way out, and nothing is held twice on the way in."""
    program = """
import resource, sys
import numpy as np
import h5py, ml_dtypes
from solvergen.runtime import snapshots
from tests.unit.snapshots.support import snapshot, small, tensor
snapshots.save(sys.argv[1], small())
snapshots.load(sys.argv[1])
data = snapshot(tensor("w", (16, 1024, 1024), "bfloat16", states=("m",), param=True))
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
start = peak()
snapshots.save(sys.argv[1], data)
assert peak() - start < 2**24, peak() - start
del data
start = peak()
loaded = snapshots.load(sys.argv[1])
assert peak() - start < 2**24, peak() - start  # fits where the data was
"""
    for suffix in SUFFIXES:
        subprocess.run([sys.executable, "-c", program, str(tmp_path / f"s{suffix}")], check=True, cwd=ROOT)


def test_sizes(tmp_path: Path) -> None:
    """Beside the arrays there is little in a file."""
    data = snapshot(*(tensor(f"layer{i}.weight", (1000,)) for i in range(10)))
    raw = sum(a.nbytes for t in data.tensors for a in t.arrays.values())
    assert raw == 10 * 2 * 4000
    for suffix, most in ((".h5", 14_000), (".safetensors", 8_000)):
        snapshots.save(tmp_path / f"s{suffix}", data)
        assert (tmp_path / f"s{suffix}").stat().st_size - raw < most


@pytest.mark.parametrize("times", [1, 3])
def test_a_file_replaced_while_it_is_opened(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """What the library opens is what was looked at, or all of it is looked at again."""
    small_one, large_one = small(), snapshot(tensor("a", (50_000,), t=7))
    others = []
    for number in range(times):
        others.append(tmp_path / f"other{number}{path.suffix}")
        snapshots.save(others[-1], large_one if number % 2 == 0 else small_one)
    snapshots.save(path, small_one)
    chosen = formats.format_of(str(path))
    really = chosen.opened

    def opened(name: str, file: Any, size: int) -> Any:
        if others:
            os.replace(others.pop(0), name)
        return really(name, file, size)

    monkeypatch.setattr(chosen, "opened", opened)
    assert bits(snapshots.load(path)) == bits(large_one)
    assert not others


def test_a_file_replaced_for_ever(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "_TRIES", 3)
    chosen = formats.format_of(str(path))
    really = chosen.opened

    def opened(name: str, file: Any, size: int) -> Any:
        snapshots.save(name, small())
        return really(name, file, size)

    snapshots.save(path, small())
    monkeypatch.setattr(chosen, "opened", opened)
    with pytest.raises(SnapshotError, match="again and again"):
        snapshots.load(path)
