"""A snapshot is there as a whole or not at all, and never costs the one before."""

from __future__ import annotations

import dataclasses
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from solvergen.errors import SnapshotWarning, SolverFileError
from solvergen.runtime.snapshots.atomic import prefix_of
from solvergen.solver.files import pair as pair_module
from solvergen.solver.files import pending, probe_writable, read_pair, read_state, reading, write_pair
from solvergen.solver.files.file_names import FORMATS, pair, pairs
from tests.unit.solver.files.caffe_bytes import same_bits, same_state, small_model, small_state

ROOT = Path(__file__).parents[4]


@pytest.fixture(params=FORMATS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_caffes_names_and_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = write_pair("net", 0, small_model(), small_state(0))
    assert written == ("net_iter_0.caffemodel", "net_iter_0.solverstate")
    assert write_pair("net", 10, small_model(), small_state(10), "HDF5") == (
        "net_iter_10.caffemodel.h5",
        "net_iter_10.solverstate.h5",
    )
    assert write_pair("net", 10, small_model(), small_state(10), "SAFETENSORS") == (
        "net_iter_10.model.safetensors",
        "net_iter_10.state.safetensors",
    )
    assert read_state("net_iter_0.solverstate").learned_net == "net_iter_0.caffemodel"  # as given, relative


def test_a_pair_is_found_again(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    _, path = write_pair("runs/net", 5, small_model(), small_state(5), form)
    state, model = read_pair(path)
    assert same_state(state, small_state(5))
    assert model is not None
    assert [layer.name for layer in model.layers] == ["data", "one", "two"]
    monkeypatch.chdir(tmp_path / "runs")  # the path counted from elsewhere
    with pytest.warns(SnapshotWarning, match="there is no runs/net_iter_5.*is taken"):
        read_pair(os.path.basename(path))
    os.unlink(model_path := pair("net", 5, form).model)  # type: ignore[arg-type]
    with pytest.raises(SolverFileError, match=rf"its model runs/{model_path} is neither there"):
        read_pair(os.path.basename(path))


def test_permissions_follow_the_umask(tmp_path: Path, form: str) -> None:
    before = os.umask(0o027)
    try:
        paths = write_pair(str(tmp_path / "net"), 1, small_model(), small_state(), form)
    finally:
        os.umask(before)
    assert [stat.S_IMODE(os.stat(path).st_mode) for path in paths] == [0o640, 0o640]


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_the_last_ones_are_kept(tmp_path: Path, form: str, keep: int) -> None:
    prefix = str(tmp_path / "net")
    other = str(tmp_path / "net_iter_1_b")  # of another prefix, with much the same name
    write_pair(other, 1, small_model(), small_state(), form)
    write_pair(prefix, 900, small_model(), small_state(900), form)  # of a longer run before
    for iteration in (8, 9, 10, 11):
        write_pair(prefix, iteration, small_model(), small_state(iteration), form, keep=keep)
    assert sorted(p.iter for p in pairs(prefix, form)) == [*range(12 - keep, 12), 900]  # type: ignore[arg-type]
    assert len(names(tmp_path)) == 2 * (keep + 2)


def test_what_can_not_be_removed_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = str(tmp_path / "net")
    write_pair(prefix, 1, small_model(), small_state())

    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pair_module.os, "unlink", refuse)
    with pytest.warns(SnapshotWarning, match="can't be removed: Permission denied"):
        write_pair(prefix, 2, small_model(), small_state(), keep=1)


@pytest.mark.parametrize("keep", [0, -1])
def test_at_least_one_is_kept(tmp_path: Path, keep: int) -> None:
    with pytest.raises(SolverFileError, match="at least 1"):
        write_pair(str(tmp_path / "net"), 1, small_model(), small_state(), keep=keep)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """What a full disk is like, for files beyond ``size``."""
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("room", [0, 100, 250, 600, 1500, 3000])
def test_a_full_disk(tmp_path: Path, form: str, room: int) -> None:
    prefix = str(tmp_path / "net")
    _, path = write_pair(prefix, 1, small_model(), small_state(1), form)
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}
    with files_of_at_most(room):
        for iteration in (1, 2):
            try:
                write_pair(prefix, iteration, small_model(seed=3), small_state(iteration, seed=8), form)
            except SolverFileError as error:
                assert "can't be written, nothing was changed" in str(error)  # noqa: PT017
                assert "allows no file of this size" in str(error)  # noqa: PT017
                assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before
            else:
                assert room >= 250
                return
    assert same_state(read_pair(path)[0], small_state(1))


def test_a_vanished_folder(tmp_path: Path, form: str) -> None:
    with pytest.raises(SolverFileError, match=r"net_iter_1.*the folder .*gone is gone"):
        write_pair(str(tmp_path / "gone" / "net"), 1, small_model(), small_state(), form)


@pytest.mark.parametrize("step", ["complete", "record", "replace", "sync"])
@pytest.mark.parametrize("there", [False, True])
def test_a_failure_at_any_step(
    tmp_path: Path, form: str, step: str, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = str(tmp_path / "net")
    if there:
        write_pair(prefix, 1, small_model(), small_state(1), form)
    calls = 0

    def fail(*arguments: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 2 or step == "record":  # the state's turn
            raise OSError(5, "Input/output error")
        original(*arguments)

    place, name = {
        "complete": (pair_module.Temporary, "complete"),
        "record": (pending, "made"),
        "replace": (os, "replace"),
        "sync": (pair_module, "sync_folder"),
    }[step]
    original = getattr(place, name)
    with monkeypatch.context() as patched:
        patched.setattr(place, name, fail)
        try:
            write_pair(prefix, 1, small_model(seed=3), small_state(1, seed=8), form)
        except SolverFileError as error:
            assert "Input/output error" in str(error)  # noqa: PT017
    state = pair(prefix, 1, form).state  # type: ignore[arg-type]
    if os.path.exists(state):
        found, model = read_pair(state)
        new = same_state(found, small_state(1, seed=8))
        assert new or same_state(found, small_state(1))
        assert model is not None
        expected = small_model(seed=3 if new else 0).layers[1].blobs[1]
        assert model.layers[1].blobs[1].tobytes() == expected.tobytes()  # type: ignore[union-attr]
    else:
        assert not there
        assert names(tmp_path) == []
    write_pair(prefix, 1, small_model(seed=4), small_state(1, seed=9), form)  # what is left doesn't hinder
    assert same_state(read_pair(state)[0], small_state(1, seed=9))
    assert len(names(tmp_path)) == 2


def test_probing(tmp_path: Path) -> None:
    probe_writable(str(tmp_path / "net"))
    assert names(tmp_path) == []
    with pytest.raises(SolverFileError, match="No such file or directory: make sure that the folder"):
        probe_writable(str(tmp_path / "none" / "net"))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SolverFileError, match="Not a directory"):
        probe_writable(str(tmp_path / "file" / "net"))
    for most in (0, 100):  # where a part can be written, it is
        with files_of_at_most(most), pytest.raises(SolverFileError, match="can't write to snapshot_prefix"):
            probe_writable(str(tmp_path / "net"))
    assert names(tmp_path) == ["file"]
    for call in (probe_writable, lambda prefix: write_pair(prefix, 1, small_model(), small_state())):
        with pytest.raises(SolverFileError, match="NUL"):
            call("a\0b")


def test_an_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(SolverFileError, match="no snapshot format 'PICKLE'; there are BINARYPROTO"):
        write_pair(str(tmp_path / "net"), 1, small_model(), small_state(), "PICKLE")


def test_a_folder_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "net_iter_1.solverstate").mkdir()
    with pytest.raises(SolverFileError, match="isn't a regular file"):
        write_pair(str(tmp_path / "net"), 1, small_model(), small_state())
    assert names(tmp_path) == ["net_iter_1.solverstate"]


def test_a_record_that_is_none_is_no_matter(tmp_path: Path) -> None:
    prefix = str(tmp_path / "net")
    _, path = write_pair(prefix, 1, small_model(), small_state(1))
    record = tmp_path / os.path.basename(pending.record(str(tmp_path), "net", "net_iter_1", []))
    for content in (b"", b"{}", b'[["../x", "net_iter_1.solverstate"]]', b'[[1, "a"], ["b"]]', b"[[[]]]"):
        record.write_bytes(content)
        assert same_state(read_state(path), small_state(1))
    write_pair(prefix, 2, small_model(), small_state(2))
    assert len(names(tmp_path)) == 4


KILLED = """
import dataclasses, os, random, signal, sys, time
import h5py, safetensors
from solvergen.solver.files import read_pair, write_pair
from solvergen.solver.files.file_names import pairs
from tests.unit.solver.files.caffe_bytes import same_state, small_model, small_state

folder, form, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
prefix, chance = os.path.join(folder, "net"), random.Random(form)

def write(seed):  # twice under each name
    state = dataclasses.replace(small_state(seed // 2, seed=seed), current_step=seed)
    write_pair(prefix, seed // 2, small_model(seed=seed), state, form, keep=2)

def child():
    for seed in range(1, 200):
        write(seed)
    os._exit(0)

write(0)
def timed():
    started = time.perf_counter()
    write(0)
    return time.perf_counter() - started

once = min(0.05, *(timed() for _ in range(4)))
ready, begun = os.pipe()
killed, seen = 0, set()
for number in range(rounds):
    process = os.fork()
    if process == 0:
        os.write(begun, b".")
        child()
    os.read(ready, 1)
    if number % 10 == 9:  # however slow the machine is, some get further than their first pair
        limit = time.monotonic() + 30
        while not any(p.iter for p in pairs(prefix, form)) and time.monotonic() < limit:
            time.sleep(once)
    time.sleep(chance.uniform(0, 3 * once))
    os.kill(process, signal.SIGKILL)
    killed += os.WIFSIGNALED(os.waitpid(process, 0)[1])
    found = sorted(pairs(prefix, form), key=lambda p: p.iter)
    assert found, "no snapshot is left"
    for each in found:
        state, model = read_pair(each.state)
        seed = state.current_step
        assert state.iter == seed // 2
        assert state.history[0].tobytes() == small_state(seed=seed).history[0].tobytes()
        weights = model.layers[1].blobs[1]
        assert weights.tobytes() == small_model(seed=seed).layers[1].blobs[1].tobytes(), "not its model"
        seen.add(seed)
    for each in found[1:]:
        os.unlink(each.state)
        os.unlink(each.model)
# Whatever the killed ones left, the next writers clean up, once it is old enough not to be at work.
for name in os.listdir(folder):
    if name.endswith(".solvergen-tmp"):
        os.utime(os.path.join(folder, name), (0, 0))
write_pair(prefix, 500, small_model(seed=0), small_state(500, seed=0), form, keep=1)
left = sorted(os.listdir(folder))
assert [p.iter for p in pairs(prefix, form)] == [500]
assert not [name for name in left if name.startswith(".")], left
assert all("model" in name for name in left if "_iter_500." not in name), left  # the state's turn
print(killed, len(seen))
"""


def test_killed_at_random(tmp_path: Path, form: str) -> None:
    """Seventy times each format, while it writes snapshots under new names and over old ones."""
    result = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), form, "70"], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    killed, seen = map(int, result.stdout.split())
    assert killed == 70
    assert seen > 1


STEPS = """
import os, signal, sys
import h5py, safetensors
from solvergen.solver.files import pending, read_pair, write_pair
from tests.unit.solver.files.caffe_bytes import same_state, small_model, small_state

folder, form = sys.argv[1:]
prefix, fatal, count = os.path.join(folder, "net"), 0, 0
_, path = write_pair(prefix, 1, small_model(seed=0), small_state(1, seed=0), form)

def moment():
    global count
    count += 1
    if count == fatal:
        os.kill(os.getpid(), signal.SIGKILL)

def child():
    for name in ("fsync", "replace", "unlink", "open"):
        def watched(*arguments, call=getattr(os, name), **more):
            moment()
            result = call(*arguments, **more)
            moment()
            return result
        setattr(os, name, watched)
    write_pair(prefix, 1, small_model(seed=1), small_state(1, seed=1), form)
    os._exit(0)

seen = []
while True:
    fatal += 1
    process = os.fork()
    if process == 0:
        child()
    status = os.waitpid(process, 0)[1]
    state, model = read_pair(path)
    seed = int(same_state(state, small_state(1, seed=1)))
    assert same_state(state, small_state(1, seed=seed))
    assert model.layers[1].blobs[1].tobytes() == small_model(seed=seed).layers[1].blobs[1].tobytes()
    seen.append(seed)
    write_pair(prefix, 1, small_model(seed=0), small_state(1, seed=0), form)
    for name in os.listdir(folder):
        if name.endswith(".solvergen-tmp"):
            os.unlink(os.path.join(folder, name))
    if not os.WIFSIGNALED(status):
        break
assert seen == sorted(seen), seen
print(*seen)
"""


def test_killed_at_each_step_of_replacing_a_pair(tmp_path: Path, form: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", STEPS, str(tmp_path), form], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    seen = result.stdout.split()
    assert len(seen) > 30
    assert {"0", "1"} == set(seen)


def test_what_the_state_was_given_is_as_it_was(tmp_path: Path) -> None:
    state = dataclasses.replace(small_state(), learned_net="elsewhere")
    write_pair(str(tmp_path / "net"), 7, small_model(), state)
    assert state.learned_net == "elsewhere"


def test_in_the_present_folder(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{prefix_of('net')}0{'0' * 15}.solvergen-tmp").write_bytes(b"of a writer killed long ago")
    os.utime(tmp_path / names(tmp_path)[0], (0, 0))
    write_pair("net", 1, small_model(), small_state(1), form)
    _, path = write_pair("net", 1, small_model(seed=2), small_state(1, seed=2), form)
    assert len(names(tmp_path)) == 2
    assert same_state(read_pair(path)[0], small_state(1, seed=2))


def test_a_pair_that_is_replaced_while_it_is_read(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state of one is never returned with the model of another."""
    prefix = str(tmp_path / "net")
    _, path = write_pair(prefix, 1, small_model(seed=0), small_state(1, seed=0), form)
    read, turns = reading.read_state, iter(range(1, 4))

    def slowly(name: str) -> object:
        state = read(name)
        for seed in turns:
            write_pair(prefix, 1, small_model(seed=seed), small_state(1, seed=seed), form)
            break
        return state

    monkeypatch.setattr(reading, "read_state", slowly)
    state, model = read_pair(path)
    assert same_state(state, small_state(1, seed=3))
    assert model is not None
    assert same_bits(model.layers[1].blobs[1], small_model(seed=3).layers[1].blobs[1])
