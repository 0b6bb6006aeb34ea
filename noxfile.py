"""Long checks, each with one command: ``nox -s NAME``; what follows ``--`` goes to pytest or to the command.

Each session makes an environment of its own; ``nox --no-venv -s NAME`` takes the one that is active.
"""

from __future__ import annotations

import os
import random

import nox

nox.options.sessions = ["tests"]
nox.options.reuse_existing_virtualenvs = True

# In kernels, in the pool and in the reader of gradients.
SANITIZERS = ("address,undefined", "thread")


def install(session: nox.Session) -> None:
    """The package and what its tests need."""
    if session.virtualenv.venv_backend != "none":
        session.install("-e", ".[test]")


@nox.session
def tests(session: nox.Session) -> None:
    """All tests that need neither a GPU nor a package index."""
    install(session)
    session.run("python", "-m", "pytest", "-n", "auto", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Random specs, valid and hostile: twenty times as many as in the tests, other ones each time."""
    install(session)
    seed = os.environ.get("SOLVERGEN_FUZZ_SEED") or str(random.getrandbits(32))
    session.log(f"SOLVERGEN_FUZZ_SEED={seed}")  # to draw the same again
    variables = {"SOLVERGEN_FUZZ": os.environ.get("SOLVERGEN_FUZZ", "20"), "SOLVERGEN_FUZZ_SEED": seed}
    session.run("python", "-m", "pytest", "tests/fuzz", *session.posargs, env=variables)


@nox.session
def mutations(session: nox.Session) -> None:
    """Every mutant of the emitted texts, instead of a sample of each class."""
    install(session)
    command = ("python", "-m", "pytest", "-s", "tests/property/test_mutations.py", *session.posargs)
    session.run(*command, env={"SOLVERGEN_MUTATIONS": "all"})


@nox.session
def sanitizers(session: nox.Session) -> None:
    """The CPU backend under ASan, UBSan and TSan: planted faults, then drawn runs of every spec."""
    install(session)
    session.run("python", "-m", "pytest", "tests/sanitizers", *session.posargs)
    # A folder of its own: kernels of both kinds are kept apart by their key, but these are large.
    cache = os.path.join(session.create_tmp(), "kernels")
    for names in SANITIZERS:
        watched = ("python", "-m", "solvergen.runtime.native.sanitizers", names)
        verify = ("-m", "solvergen", "verify", "--backends", "cpu", "-n", "50")
        for specs in ("specs", "tests/support/specs"):
            session.run(*watched, *verify, "--specs", specs, env={"SOLVERGEN_CACHE_DIR": cache})


@nox.session
def site(session: nox.Session) -> None:
    """The documentation as a site, in build/site or in the folder after ``-- --out``; its links checked."""
    if session.virtualenv.venv_backend != "none":
        session.install("-e", ".[docs]")
    session.run("python", "docs/site/build_site.py", *session.posargs)


@nox.session
def static(session: nox.Session) -> None:
    """What NVRTC and the C compiler make of every kernel, for every compute capability."""
    install(session)
    session.run("solvergen", "verify", "--static", "--dtypes", "all", *session.posargs)
    # And what only the shipped ones are held to: words, registers, bytes in flight.
    files = ("tests/compiler/test_cuda_compiles.py", "tests/unit/ptx/test_decode_nvrtc.py")
    session.run("python", "-m", "pytest", *files, env={"SOLVERGEN_STATIC": "all"})
