"""The flag of the CPU backend: what it adds to the compiler's options, and what it refuses."""

from __future__ import annotations

import pytest

from solvergen.errors import BackendUnavailable
from solvergen.runtime import native
from solvergen.runtime.native import compiler, sanitizers
from solvergen.runtime.native.build import _key
from tests.unit.native.support import run_python


def test_names() -> None:
    assert sanitizers.parsed("") == ()
    assert sanitizers.parsed(" undefined, address ,") == ("address", "undefined")
    with pytest.raises(BackendUnavailable, match="names 'memory'; there are address, undefined, thread"):
        sanitizers.parsed("memory")
    with pytest.raises(BackendUnavailable, match="can't be used together"):
        sanitizers.parsed("address,thread")


def test_without_the_flag_nothing_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOLVERGEN_SANITIZE", raising=False)
    assert not any("sanitize=a" in option for option in compiler.find_compiler().options)
    assert sanitizers.compiler_options(()) == ()


def test_a_wrong_name_is_told_by_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOLVERGEN_SANITIZE", "memory")
    reason = native.available()
    assert reason is not None
    assert "SOLVERGEN_SANITIZE names 'memory'" in reason


@pytest.mark.parametrize("name", ["address", "thread"])
def test_a_process_that_began_without_the_library_is_not_ended(name: str) -> None:
    """Loading such a kernel would end it at once."""
    code = (
        "from solvergen.optimizers import SGD; import numpy as np\n"
        "try: SGD([np.zeros(3)], backend='cpu')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = run_python(code, SOLVERGEN_SANITIZE=name)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("BackendUnavailable")
    assert f"begin it with `python -m solvergen.runtime.native.sanitizers {name} ...`" in done.stdout


def test_kernels_of_both_kinds_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOLVERGEN_SANITIZE", raising=False)
    plain = compiler.find_compiler()
    monkeypatch.setenv("SOLVERGEN_SANITIZE", "undefined")  # its library need not be there from the start
    if native.available() is not None:
        pytest.skip(f"the compiler has no such sanitizer: {native.available()}")
    watched = compiler.find_compiler()
    assert "-fno-sanitize-recover=all" in watched.options
    assert _key({"kernel.c": ""}, [], plain) != _key({"kernel.c": ""}, [], watched)


def test_a_compiler_without_the_library() -> None:
    with pytest.raises(BackendUnavailable, match=r"comes without libasan\.so"):
        sanitizers.environment(("address",), ["echo"])
    with pytest.raises(BackendUnavailable, match="can't be asked for"):
        sanitizers.environment(("address",), ["/no/such/compiler"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [([], "usage: python -m"), (["address"], "usage: python -m"), (["memory", "-c", ""], "names 'memory'")],
)
def test_the_way_in_says_what_is_wrong(arguments: list[str], message: str) -> None:
    done = run_python(f"from solvergen.runtime.native.sanitizers import main; main({arguments!r})")
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
