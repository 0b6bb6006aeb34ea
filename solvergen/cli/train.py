"""``solvergen train``, ``test`` and ``time``: what ``caffe train``, ``test`` and ``time`` do, on any net."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from solvergen.cli import specs, training_logs
from solvergen.cli.console import print_json
from solvergen.cli.gflags import devices

if TYPE_CHECKING:
    from solvergen.solver.parameters.model import SolverParameters
    from solvergen.solver.parameters.net_state import NetSource, NetState

EFFECTS = "stop, snapshot or none."
NOT_TIMED = ("display", "snapshot", "test_iter", "test_interval", "test_net", "test_net_param", "test_state")


def _known_backend(name: str | None) -> str | None:
    """A misspelt backend is told before nets are made, which may take long."""
    from solvergen.runtime.backends import NAMES

    if name is not None and name not in ("auto", *NAMES):
        raise specs.unknown("backend", name, NAMES, hint="'--backend'")
    return name


Net = Annotated[
    str,
    typer.Option(
        "--net",
        metavar="MODULE:FACTORY",
        help="The function that makes the nets, in a module in this folder or an installed one.",
        show_default=False,
    ),
]
Backend = Annotated[
    str | None,
    typer.Option(
        "--backend",
        metavar="NAME",
        help="numpy, cpu, cuda or ptx. Default: as solver_mode says.",
        show_default=False,
        callback=_known_backend,
    ),
]
Gpu = Annotated[
    str,
    typer.Option(
        "--gpu",
        metavar="IDS",
        help="Use this GPU, as solver_mode and device_id do: a number, several with commas, or all.",
        show_default=False,
    ),
]
Model = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="FILE",
        help="The net's source, as for Caffe's tool; it is passed to the function.",
        show_default=False,
    ),
]
Iterations = Annotated[int, typer.Option("--iterations", metavar="N", min=1, help="How many passes to make.")]

Level = Annotated[
    int | None, typer.Option("--level", metavar="N", help="Level of the net's state.", show_default=False)
]
Stage = Annotated[
    str | None,
    typer.Option(
        "--stage", metavar="LIST", help="Stages of the net's state, separated by commas.", show_default=False
    ),
]


def train(
    solver: Annotated[
        Path,
        typer.Option(
            "--solver", metavar="FILE", help="The solver: Caffe's prototxt, or YAML.", show_default=False
        ),
    ],
    net: Net,
    snapshot: Annotated[
        Path | None,
        typer.Option("--snapshot", metavar="FILE", help="Solver state to continue from.", show_default=False),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights",
            metavar="FILES",
            help="Models to take parameters from, separated by commas; not with --snapshot.",
            show_default=False,
        ),
    ] = None,
    sigint: Annotated[
        str,
        typer.Option(
            "--sigint-effect", "--sigint_effect", metavar="EFFECT", help=f"What Ctrl-C does: {EFFECTS}"
        ),
    ] = "stop",
    sighup: Annotated[
        str,
        typer.Option(
            "--sighup-effect", "--sighup_effect", metavar="EFFECT", help=f"What SIGHUP does: {EFFECTS}"
        ),
    ] = "snapshot",
    sigterm: Annotated[
        str,
        typer.Option(
            "--sigterm-effect",
            "--sigterm_effect",
            metavar="EFFECT",
            help=f"What SIGTERM, which schedulers send, does: {EFFECTS}",
        ),
    ] = "stop",
    backend: Backend = None,
    gpu: Gpu = "",
    log: Annotated[
        Path | None,
        typer.Option(
            "--log",
            metavar="FILE",
            help="Also append the log to this file: JSON lines if it ends in .jsonl, else Caffe's lines.",
            show_default=False,
        ),
    ] = None,
    level: Level = None,
    stage: Stage = None,
) -> None:
    """Train a net as a solver file says, with Caffe's log lines on stderr.

    Ctrl-C stops after the iteration and snapshots (snapshot_after_train); a second one ends at once.
    """
    from solvergen.solver.factory import blaming_the_net, find_factory, make_nets
    from solvergen.solver.signals import EFFECTS as KNOWN
    from solvergen.solver.signals import handled
    from solvergen.solver.training.solver import Solver

    if snapshot is not None and weights is not None:
        raise typer.BadParameter(
            "give a snapshot to go on from, or weights to begin with, not both", param_hint="'--snapshot'"
        )
    for name, effect in (("sigint", sigint), ("sighup", sighup), ("sigterm", sigterm)):
        if effect not in KNOWN:
            raise typer.BadParameter(f"an effect is {EFFECTS}", param_hint=f"'--{name}-effect'")
    if weights is not None and not _list(weights):
        raise typer.BadParameter("there is no file in it", param_hint="'--weights'")
    params, warnings = _on_gpu(_parameters(solver, net), gpu, backend)
    for file in [*_list(weights or ""), *([] if snapshot is None else [str(snapshot)])]:
        os.stat(file)  # making nets may take long; a file that isn't there is told before
    if snapshot is not None and params.has("weights"):
        params = params.replaced(weights=None)  # as Caffe: the snapshot names its own model
    if weights is not None:
        params = params.replaced(weights=_list(weights))
    if level is not None or stage is not None:
        params = params.replaced(train_state=_state(params.train_state, level, stage))
    with training_logs.opened(params, log) as logs, blaming_the_net(net):
        logs.parameters(params)
        logs.warn(warnings)
        factory = find_factory(net)
        train_net, test_nets = make_nets(factory, params)
        logs.warn(factory.notes)
        with handled(sigint=sigint, sighup=sighup, sigterm=sigterm) as requested:
            for file in params.weights:
                logs.say(f"Finetuning from {file}", "caffe.cpp:155")
            made = Solver(params, train_net, test_nets, backend=backend, log=logs.listeners)
            made.set_action_function(requested)
            if snapshot is not None:
                logs.say(f"Resuming from {snapshot}", "caffe.cpp:233")
            logs.say("Starting Optimization", "caffe.cpp:239")
            made.solve(resume=snapshot)
            logs.say("Optimization Done.", "caffe.cpp:250")
    if requested.stopped_by is not None and made.iter < params.max_iter:
        raise typer.Exit(128 + requested.stopped_by)


def score_model(
    net: Net,
    weights: Annotated[
        str,
        typer.Option(
            "--weights",
            metavar="FILES",
            help="Models to take parameters from, separated by commas.",
            show_default=False,
        ),
    ],
    model: Model = None,
    iterations: Iterations = 50,
    gpu: Gpu = "",
    level: Level = None,
    stage: Stage = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the means as JSON.")] = False,
) -> None:
    """Score a model: the means of a test net's outputs over some batches, in Caffe's log lines on stderr."""
    from solvergen.solver.factory import blaming_the_net, find_factory
    from solvergen.solver.logs.caffe_log import CaffeLog, output_text
    from solvergen.solver.logs.glog import number
    from solvergen.solver.logs.sinks import to_stderr
    from solvergen.solver.parameters.net_state import NetState
    from solvergen.solver.scoring import score
    from solvergen.solver.training.events import Warned
    from solvergen.solver.training.parts import check_net
    from solvergen.solver.training.restoring import load_weights

    files = _list(weights)
    if not files:
        raise typer.BadParameter("need the weights of a model to score", param_hint="'--weights'")
    log = CaffeLog(to_stderr)
    say = log.say
    if devices(gpu):
        log.handle(Warned(0, "--gpu: the function of --net decides where its net is; nothing else runs here"))
    state = _state(NetState(phase="TEST", level=0), level, stage)
    with blaming_the_net(net), _prints_on_stderr(as_json):
        factory = find_factory(net)
        made = factory.make("TEST", source=_source(model), state=state)
        for text in factory.notes:
            log.handle(Warned(0, text))
        check_net(made, trained=False)
        for file in files:
            load_weights(made, file, lambda text: log.handle(Warned(0, text)))
        say(f"Running for {iterations} iterations.", "caffe.cpp:281")

        def tell(batch: int, name: str, value: float) -> None:
            say(f"Batch {batch}, {name} = {number(value)}", "caffe.cpp:304")

        found = score(made, iterations, tell)
    say(f"Loss: {number(found.loss)}", "caffe.cpp:309")
    for each in found.outputs:
        say(output_text(each), "caffe.cpp:321")
    if as_json:
        print_json(found.as_json())


def time_net(
    net: Net,
    solver: Annotated[
        Path | None,
        typer.Option(
            "--solver",
            metavar="FILE",
            help="The solver whose update is timed. Default: SGD with momentum",
            show_default=False,
        ),
    ] = None,
    model: Model = None,
    iterations: Iterations = 50,
    phase: Annotated[
        str,
        typer.Option(
            "--phase",
            metavar="TRAIN",
            help="Phase of the net: only TRAIN, because backward passes are timed, too.",
        ),
    ] = "TRAIN",
    level: Level = None,
    stage: Stage = None,
    backend: Backend = None,
    gpu: Gpu = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the averages as JSON.")] = False,
) -> None:
    """Time a net's passes, layer by layer, and the solver's update, in Caffe's log lines on stderr."""
    from solvergen.solver.choice import chosen
    from solvergen.solver.factory import blaming_the_net, find_factory, make_nets
    from solvergen.solver.logs.caffe_log import OWN, CaffeLog
    from solvergen.solver.logs.glog import number
    from solvergen.solver.logs.sinks import to_stderr
    from solvergen.solver.parameters.model import SolverParameters
    from solvergen.solver.parameters.net_state import NetState
    from solvergen.solver.scoring import measure
    from solvergen.solver.training.events import Warned
    from solvergen.solver.training.solver import Solver

    if phase not in ("", "TRAIN"):
        raise typer.BadParameter(
            f"{phase!r}: what is timed goes forward and backward and is updated, so the phase is TRAIN",
            param_hint="'--phase'",
        )
    if model is not None and solver is not None:
        raise typer.BadParameter("the solver file says which net it is", param_hint="'--model'")
    log = CaffeLog(to_stderr)
    say = log.say
    with blaming_the_net(net), _prints_on_stderr(as_json):
        if solver is None:
            params = SolverParameters(
                net=net, base_lr=0.0, lr_policy="fixed", momentum=0.9, solver_mode="CPU"
            )
            params, warnings = _on_gpu(params, gpu, backend)
            state = _state(NetState(phase="TRAIN", level=0), level, stage)
            factory = find_factory(net)
            made = factory.make("TRAIN", params=params, source=_source(model), state=state)
        else:
            of_file = _parameters(solver, net)
            params, warnings = _on_gpu(of_file.replaced(**dict.fromkeys(NOT_TIMED)), gpu, backend)
            if level is not None or stage is not None:
                params = params.replaced(train_state=_state(params.train_state, level, stage))
            factory = find_factory(net)
            made, _ = make_nets(factory, params)
        # Without a solver file: wherever the net is.
        where = "auto" if solver is None and backend is None and not gpu else backend
        for text in (*warnings, *factory.notes, *(() if where is not None else chosen(params).warnings)):
            log.handle(Warned(0, text))
        trained = Solver(params, made, backend=where)
        say("*** Benchmark begins ***", "caffe.cpp:379")
        say(f"Testing for {iterations} iterations.", "caffe.cpp:380")

        def tell(round_: int, seconds: float) -> None:
            text = f"Iteration: {round_} forward-backward time: {number(1e3 * seconds)} ms."
            say(text, "caffe.cpp:408")

        times = measure(trained, iterations, tell)
    if times.layers:
        say("Average time per layer: ", "caffe.cpp:411")
        for one in times.layers:
            say(f"{one.layer:>10}\tforward: {number(1e3 * one.forward)} ms.", "caffe.cpp:414")
            say(f"{one.layer:>10}\tbackward: {number(1e3 * one.backward)} ms.", "caffe.cpp:417")
    places = {"Forward pass": "caffe.cpp:422", "Backward pass": "caffe.cpp:424"}
    for name, value in times.averages():
        place = OWN if name == "Update" else places.get(name, "caffe.cpp:426")
        say(f"Average {name}: {number(1e3 * value)} ms.", place)
    say(f"Total Time: {number(1e3 * times.total)} ms.", "caffe.cpp:428")
    say("*** Benchmark ends ***", "caffe.cpp:429")
    if as_json:
        print_json(times.as_json())


@contextlib.contextmanager
def _prints_on_stderr(as_json: bool) -> Iterator[None]:
    """With --json stdout is one document: what a net of the user's prints goes to stderr."""
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        yield


def _parameters(solver: Path, net: str) -> SolverParameters:
    """What the file says. An optimizer that isn't known may be one that the net's module registers."""
    from solvergen.solver.factory import find_factory
    from solvergen.solver.parameters.error import SolverParametersError
    from solvergen.solver.parameters.model import SolverParameters

    try:
        return SolverParameters.from_file(solver)
    except SolverParametersError as error:
        if all(finding.field != "optimizer" for finding in error.findings):
            raise
        find_factory(net)  # importing it may take long, so not before
        return SolverParameters.from_file(solver)


def _on_gpu(
    params: SolverParameters, gpu: str, backend: str | None
) -> tuple[SolverParameters, tuple[str, ...]]:
    """The parameters with the first of the GPUs that ``--gpu`` names, and what is to be said about it."""
    found = devices(gpu)
    if not found:
        return params, ()
    if backend is not None:
        raise typer.BadParameter("give --gpu or --backend, not both", param_hint="'--gpu'")
    told: tuple[str, ...] = ()
    if len(found) > 1:
        told = (
            f"--gpu {gpu}: one GPU trains, {found[0]}: batches aren't multiplied by the number of GPUs, "
            "as Caffe does",
        )
    return params.replaced(solver_mode="GPU", device_id=found[0]), told


def _source(model: Path | None) -> NetSource | None:
    """Where ``--model`` says that the net comes from."""
    from solvergen.solver.parameters.net_state import NetSource

    return None if model is None else NetSource("net", path=str(model))


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _state(given: NetState | None, level: int | None, stage: str | None) -> NetState:
    """A state with the command line's level, and its stages added."""
    from solvergen.solver.parameters.net_state import NetState

    told = NetState(level=level, stage=tuple(_list(stage or "")))
    return told if given is None else given.merged_with(told)
