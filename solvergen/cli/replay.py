"""``solvergen verify --replay FILE``: a finding, run again."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from solvergen.cli import exit_codes
from solvergen.cli.console import print_json, print_table

if TYPE_CHECKING:
    from solvergen.runtime.optimizer import Optimizer
    from solvergen.verify import Replay

HEADS = ("optimizer", "backend", "outcome", "detail")


def replay(file: Path, folder: Path | None, backends: Sequence[str], as_json: bool) -> None:
    """Run the finding in ``file`` on ``backends`` (none: on its own). Exits with 1 if it is still one."""
    from solvergen.errors import BackendUnavailable
    from solvergen.verify import read_replay, reproducer
    from solvergen.verify import replay as run_again

    content = read_replay(file)
    rows = []
    reports = []
    with _rule(content, folder) as optimizer:
        for backend in backends or [content.backend]:
            try:
                found = run_again(content, optimizer, backend)
            except BackendUnavailable as reason:
                outcome, detail, data = "not run", str(reason), None
            else:
                outcome = "same bits" if found is None else "differs"
                detail = "" if found is None else found.headline
                data = None if found is None else found.as_json()
                if found is not None:
                    code = reproducer(found)
                    paste = "" if code is None else f"To paste:\n\n{code}\n"
                    print(f"{found}\n\n{paste}", file=sys.stderr)
            rows.append((content.optimizer, backend, outcome, " ".join(detail.split())))
            reports.append({"backend": backend, "outcome": outcome, "detail": detail, "disagreement": data})
    ok = all(report["outcome"] == "same bits" for report in reports)
    if as_json:
        print_json({"ok": ok, "optimizer": content.optimizer, "digest": content.digest, "rows": reports})
    else:
        print_table(HEADS, rows)
    if not ok:
        raise typer.Exit(exit_codes.FINDINGS)


@contextmanager
def _rule(content: Replay, folder: Path | None) -> Iterator[type[Optimizer]]:
    """The optimizer to run it on: of the folder that was given, else the rule as the file has it."""
    from solvergen.verify import ReplayError, built_from, wrapped_of
    from solvergen.verify.replaying.replay import rule_of

    if folder is None:
        with rule_of(content) as optimizer:
            yield optimizer
        return
    is_wrapped = content.optimizer.startswith("wrapped_")
    with built_from([folder], wrap=is_wrapped) as built:
        optimizers = wrapped_of(built) if is_wrapped else built
        if content.optimizer not in optimizers:
            raise ReplayError(f"there is no spec {content.optimizer!r} in {folder}")
        chosen = optimizers[content.optimizer]
        if chosen.definition.digest != content.digest:
            print(
                f"{content.optimizer} in {folder} is another rule than the one the finding is about; "
                "running it on the same numbers",
                file=sys.stderr,
            )
        yield chosen
