"""The Solver: trains a net as Caffe's solver does, event for event."""

from __future__ import annotations

import math
import operator
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from solvergen.runtime.naming import with_article
from solvergen.solver.net.protocol import Net, Output, Repeatable, Seedable
from solvergen.solver.training import debugging, events, parts, restoring
from solvergen.solver.training.error import TrainingError
from solvergen.solver.training.events import Action, Event
from solvergen.solver.training.fitting import fit, warnings_of
from solvergen.solver.training.participants import Callback, Listeners, Participants
from solvergen.solver.training.reading import read_parameters
from solvergen.solver.training.smoothing import SmoothedLoss
from solvergen.solver.training.testing import checked_outputs, output_values, tested
from solvergen.solver.training.update import Update

if TYPE_CHECKING:
    from solvergen.runtime.optimizer import Optimizer
    from solvergen.solver.choice import Choice
    from solvergen.solver.parameters.model import SolverParameters
    from solvergen.solver.policies.arithmetic import NetType


class Solver:
    """Trains a net by what solver parameters say.

    An iteration does these things, in this order: gradients are cleared; nets are tested if it is time;
    ``on_start`` callbacks; ``iter_size`` passes; display; ``on_gradients_ready`` callbacks; the update, after
    which ``iter`` is one more; the action function is asked; a snapshot if it is time or asked for; a stop
    if asked for.

    Args:
        params: SolverParameters, or the path of a solver file (prototxt or YAML).
        net: what is trained (see ``solvergen.solver.net.protocol``).
        test_nets: one for each ``test_iter``. They use the parameters of ``net``.
        backend: numpy, cpu, ptx, cuda or auto; None: as ``solver_mode`` says.
        log: a listener, or several: each gets every event (``solvergen.solver.training.events``).
        keep_update: after each update the gradients' arrays hold what was subtracted from the parameters, as
            in Caffe. Costs a write for each element; None: with ``snapshot_diff`` alone.

    Raises:
        SolvergenError: what is wrong with the parameters, the net or the backend.
    """

    def __init__(
        self,
        params: SolverParameters | str | os.PathLike[str],
        net: Net,
        test_nets: Sequence[Net] = (),
        *,
        backend: str | None = None,
        log: Listeners | Iterable[Listeners] | None = None,
        keep_update: bool | None = None,
    ) -> None:
        from solvergen.solver.choice import chosen
        from solvergen.solver.policies import policy_of

        self._param = read_parameters(params)
        self._net = net
        self._test_nets = _several(test_nets)
        self._participants = Participants(log)
        self._listeners = self._participants.listeners
        fit(self._param, self._net, self._test_nets)
        self._iter = 0
        first = next(iter(self._net.learnable), None)
        type_: NetType = "float64" if first is not None and first.data.dtype == "float64" else "float32"
        self.policy = policy_of(self._param, type_)
        self.policy_state: Mapping[str, Any] = self.policy.initial()
        if self._param.random_seed >= 0:
            for one in (self._net, *self._test_nets):
                if isinstance(one, Seedable):
                    one.seed(self._param.random_seed)
        self._choice: Choice = chosen(self._param)
        if self._choice.optimizer_class.definition.evaluations:
            parts.check_repeatable(self._net, self.type)
        self._backend = self._choice.backend if backend is None else backend
        self._keeps_update = self._param.snapshot_diff if keep_update is None else keep_update
        self.begin_anew()
        self.smoothing = SmoothedLoss(self._param.average_loss, type_)
        self._keep_window = False
        self._rate_used = 0.0
        # What policies know the loss by: that of the tests where there are some.
        self._loss_name = "train_loss" if self._test_nets else "loss"
        self._noticed: str | None = None
        self._loss_was_finite = True
        self._exit = False
        self._updating = False
        nets = warnings_of(self._net, self._test_nets)
        for text in (*self._param.warnings, *self._choice.warnings, *nets):
            self.say(events.Warned(self._iter, text))
        for files in self._param.weights:
            for path in files.split(","):
                self.load_weights(path.strip())
        if self._param.snapshot > 0:
            restoring.probe(self)

    # What it is made of.

    @property
    def param(self) -> SolverParameters:
        """What it was told."""
        return self._param

    @property
    def net(self) -> Net:
        """The net that is trained."""
        return self._net

    @property
    def test_nets(self) -> tuple[Net, ...]:
        """The nets that are tested."""
        return self._test_nets

    @property
    def optimizer(self) -> Optimizer:
        """The generated optimizer that makes the updates."""
        return self.update.optimizer

    @property
    def type(self) -> str:
        """Caffe's name of the solver, or the name of the optimizer."""
        return self._param.optimizer or self._param.type

    @property
    def iter(self) -> int:
        """How many updates were made."""
        return self._iter

    @property
    def lr(self) -> float:
        """The rate that the next update will use. Reading it changes nothing (Caffe's multistep advances)."""
        return float(self.policy.rate(self._iter, self.policy_state)[0])

    @property
    def history(self) -> tuple[Any, ...]:
        """The optimizer's states, live, in the order of Caffe's files: one state of every parameter, then the
        next."""
        return self.update.history

    @property
    def smoothed_loss(self) -> float:
        """The mean of the last ``average_loss`` losses since ``step`` began."""
        return self.smoothing.value

    # Who takes part.

    def on_start(self, callback: Callback) -> Callback:
        """Call this with the Solver in each iteration, after tests and before the passes."""
        return self._participants.hook("start", callback)

    def on_gradients_ready(self, callback: Callback) -> Callback:
        """Call this with the Solver when gradients are summed, before clipping; it may change them. With an
        optimizer that evaluates gradients several times in a step, that often."""
        return self._participants.hook("gradients_ready", callback)

    def on_update(self, callback: Callback) -> Callback:
        """Call this with the Solver after each update; ``iter`` counts it."""
        return self._participants.hook("update", callback)

    def on_display(self, callback: Callback) -> Callback:
        """Call this with the Solver when an iteration is displayed."""
        return self._participants.hook("display", callback)

    def on_test(self, callback: Callback) -> Callback:
        """Call this with the Solver after each test of all nets."""
        return self._participants.hook("test", callback)

    def on_snapshot(self, callback: Callback) -> Callback:
        """Call this with the Solver when a snapshot was written."""
        return self._participants.hook("snapshot", callback)

    def add_listener(self, listener: Listeners) -> None:
        """Tell this one about every event from now on."""
        self._participants.listeners.append(listener)

    def set_action_function(self, function: Callable[[], Action] | None) -> None:
        """Ask this after each iteration, and before each batch of a test, what to do."""
        self._participants.action_function = function

    def stop(self) -> None:
        """Stop after the iteration that is under way. May be called from callbacks and signal handlers."""
        self._participants.stop_asked = True

    # Training.

    def step(self, iterations: int) -> None:
        """Train so many iterations, unless asked to stop. The smoothed loss begins anew.

        Raises TrainingError for what is no whole number.
        """
        try:
            iterations = operator.index(iterations)
        except TypeError:
            raise TrainingError(
                f"step takes the number of iterations to train, a whole number, not {iterations!r}"
            ) from None
        self._check_at_rest("step")
        self._exit = False
        self._step(iterations)

    def solve(self, resume: str | os.PathLike[str] | None = None) -> None:
        """Train up to ``max_iter``, from a snapshot if one is given.

        Afterwards a snapshot is written (``snapshot_after_train``), and if it is time the loss is displayed
        and nets are tested. A request to stop ends it with the snapshot. That the snapshot can be written is
        tried before anything is trained.
        """
        self._check_at_rest("solve")
        self._exit = False
        if self._param.snapshot_after_train:
            restoring.probe(self)
        self.say(
            events.Started(
                self._iter,
                self._net.name,
                self.type,
                self.policy.name,
                self.optimizer.backend,
                self._param.max_iter,
            )
        )
        if resume is not None:
            self.restore(resume)
            if self._iter >= self._param.max_iter:
                told = f"{os.fspath(resume)} is of iteration {self._iter}, and max_iter is"
                self.say(
                    events.Warned(self._iter, f"{told} {self._param.max_iter}: nothing is left to train")
                )
        self._step(self._param.max_iter - self._iter)
        every = self._param.snapshot
        if self._param.snapshot_after_train and (every <= 0 or self._iter % every != 0):
            self.snapshot()
        if self._exit:
            self.say(events.EarlyStop(self._iter))
            return
        if self._displays():
            as_last = self._param.debug_info and self._param.display == 1
            outputs = checked_outputs(self._net, self._forward(self._net, as_last))
            loss = sum(value.loss for value in output_values(outputs))
            self.smoothing.add(loss, self._iter)
            self.say(events.Iteration(self._iter, loss, self.smoothing.value, self.lr, final=True))
        if self._is_time(self._param.test_interval):
            self.test_all()
        self.say(events.Finished(self._iter))

    def apply_update(self) -> None:
        """Update the parameters by the gradients that are there; ``iter`` is one more then."""
        rate, state = self.policy.rate(self._iter, self.policy_state)
        rate = float(rate)
        if self._listeners:
            self.say(events.RateUsed(self._iter, rate, self._displays()))
        notice = self.policy.notice(self._iter)
        if notice is not None and notice != self._noticed:
            self._noticed = notice
            self.say(events.Warned(self._iter, notice))
        self._check_at_rest("apply_update")
        self._updating = True
        try:
            self.update.apply(rate, self._evaluate_again)
        finally:
            self._updating = False
        self.policy_state, self._rate_used = state, rate
        if 0 <= self._param.clip_gradients < math.inf and self._listeners:
            self._report_clipping(self._param.clip_gradients)
        self._iter += 1

    def _step(self, iterations: int) -> None:
        end = self._iter + iterations
        if self._keep_window:  # a snapshot had it
            self._keep_window = False
        else:
            self.smoothing.begin(self._iter)
        clock, displayed_at = time.perf_counter(), self._iter
        param, net, iter_size = self._param, self._net, self._param.iter_size
        while self._iter < end:
            net.clear_diffs()
            if self.update.evaluates:
                assert isinstance(net, Repeatable)
                net.keep_batches()
            if self._is_time(param.test_interval) and (self._iter > 0 or param.test_initialization):
                self._test_all(observe=True)
                if self._exit:
                    break
            self._call("start")
            displays = self._displays()
            told = displays and param.debug_info and bool(self._listeners)
            with debugging.watching(net, told):
                loss = self._pass(told)
                for _ in range(iter_size - 1):
                    loss += self._pass(told)
            loss /= iter_size
            self.smoothing.add(loss, self._iter)
            self._notice_loss(loss)
            if displays:
                now = time.perf_counter()
                self._display(loss, now - clock, self._iter - displayed_at)
                clock, displayed_at = now, self._iter
            self._call("gradients_ready")
            self.apply_update()
            self._observe({self._loss_name: loss})
            self._call("update")
            if self._listeners:
                # The rate is that of the update that was made.
                self.say(events.Updated(self._iter, loss, self.smoothing.value, self._rate_used))
            action = self._participants.requested()
            if self._is_time(param.snapshot) or action is Action.SNAPSHOT:
                self.snapshot()
            if action is Action.STOP:
                self._exit = True
                break

    def _notice_loss(self, loss: float) -> None:
        """Say so when losses cease to be numbers: Caffe goes on silently, and so does training here."""
        finite = math.isfinite(loss)
        if self._loss_was_finite and not finite and self._listeners:
            told = "training goes on, but parameters probably become NaN, if they aren't yet"
            self.say(events.Warned(self._iter, f"the loss of iteration {self._iter} is {loss}: {told}"))
        self._loss_was_finite = finite

    def _evaluate_again(self) -> None:
        """The gradients of this iteration's batches at the parameters as they are, in the middle of an
        update."""
        assert isinstance(self._net, Repeatable)
        self._net.clear_diffs()
        self._net.pass_again()
        self._call("gradients_ready")

    def _pass(self, told: bool) -> float:
        loss = self._net.forward_backward()
        if told:
            self._say_all(debugging.of_pass(self._iter, self._net))
        try:
            return float(loss)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TrainingError(
                f"forward_backward of the net {self._net.name!r} must return the loss, a number, and "
                f"returned {loss!r}"
            ) from error

    def _display(self, loss: float, seconds: float, iterations: int) -> None:
        self.say(events.Iteration(self._iter, loss, self.smoothing.value, self.lr, seconds, iterations))
        if self._listeners:
            outputs = checked_outputs(self._net, self._net.outputs())
            self.say(events.Outputs(self._iter, output_values(outputs)))
        self._call("display")

    def _forward(self, net: Net, told: bool) -> Sequence[Output]:
        if not (told and self._listeners):
            return net.forward()
        with debugging.watching(net):
            outputs = net.forward()
            self._say_all(debugging.of_forward(self._iter, net))
        return outputs

    def _report_clipping(self, threshold: float) -> None:
        norm = self.update.clip_norm()
        if norm > threshold:
            self.say(events.Clipped(self._iter, norm, threshold, threshold / norm))

    # Testing.

    def test_all(self) -> None:
        """Test every net, unless asked to stop."""
        self._test_all(observe=False)

    def _test_all(self, *, observe: bool) -> None:
        for number in range(len(self._test_nets)):
            if self._exit:
                break
            self._test(number, observe=observe)
        if self._test_nets and not self._exit:
            self._call("test")

    def test(self, net: int = 0) -> tuple[events.OutputValue, ...] | None:
        """Test one net: the means of its outputs over its ``test_iter`` batches; None if asked to stop.

        Policies that measure don't see what is tested by hand.
        """
        return self._test(net, observe=False)

    def _test(self, net: int, *, observe: bool) -> tuple[events.OutputValue, ...] | None:
        if not 0 <= net < len(self._test_nets):
            raise TrainingError(
                f"there is no test net {net}: this Solver has {len(self._test_nets)}, counted from 0"
            )
        self.say(events.TestStarted(self._iter, net))
        one = self._test_nets[net]
        forward = partial(self._forward, one, self._param.debug_info)
        found = tested(one, self._param.test_iter[net], self._interrupted, forward)
        if found is None:
            self.say(events.TestInterrupted(self._iter, net))
            return None
        values, loss = found
        shown = loss if self._param.test_compute_loss else None
        self.say(events.TestOutputs(self._iter, net, values, shown))
        if observe:
            suffix = f"#{net}" if net else ""
            metrics = {f"loss{suffix}": loss}
            for value in values:
                metrics.setdefault(f"{value.name}{suffix}", value.value)
            self._observe(metrics)
        return values

    def _interrupted(self) -> bool:
        """Does what the action function asks for until it asks for nothing; whether to stop."""
        action = self._participants.requested()
        while action is not Action.NONE:
            if action is Action.SNAPSHOT:
                self.snapshot()
            else:
                self._exit = True
            action = self._participants.requested()
        return self._exit

    # Snapshots.

    def snapshot(self) -> tuple[str, str]:
        """Write the model and the state; returns their paths. The names end in the number of updates."""
        self._check_at_rest("snapshot")
        paths = restoring.write(self)
        self._call("snapshot")
        return paths

    def restore(self, path: str | os.PathLike[str], *, history: bool = True) -> None:
        """Go on from a state that was written, of any format: ``iter``, the model that it names, and the
        optimizer's states (not with ``history=False``). Everything is checked before anything changes."""
        self._check_at_rest("restore")
        restoring.restore(self, path, history=history)

    def load_weights(self, path: str | os.PathLike[str]) -> None:
        """Take parameters from a model file, layer by layer of the same name. Training begins at 0."""
        self._check_at_rest("load_weights")
        restoring.load_weights(self._net, path, lambda text: self.say(events.Warned(self._iter, text)))

    def begin_anew(self) -> None:
        """Make the optimizer anew: its states and counts begin from the parameters as they are."""
        self.update = Update(
            self._param,
            self._choice,
            self._net.learnable,
            backend=self._backend,
            keep_update=self._keeps_update,
        )

    def went_back(
        self, iteration: int, policy_state: Mapping[str, Any], smoothed: Mapping[str, Any] | None
    ) -> None:
        """For ``restore``: from here training goes on."""
        self._iter = iteration
        self.policy_state = policy_state
        self._keep_window = smoothed is not None and self.smoothing.restore(smoothed, iteration)

    # The small parts.

    def _check_at_rest(self, what: str) -> None:
        """Raises TrainingError where gradients are evaluated in the middle of an update: parameters aren't
        those of any iteration then."""
        if self._updating:
            raise TrainingError(
                f"{what} in the middle of an update of {self.type}, which evaluates gradients at other "
                "parameters: call it in on_start or on_update"
            )

    def _call(self, name: str) -> None:
        self._participants.call(name, self)

    def say(self, event: Event) -> None:
        """Tell all listeners."""
        self._participants.say(event)

    def _say_all(self, told: Iterable[Event]) -> None:
        for event in told:
            self.say(event)

    def _observe(self, metrics: Mapping[str, float]) -> None:
        self.policy_state = self.policy.observed(self._iter, metrics, self.policy_state)

    def _displays(self) -> bool:
        return self._is_time(self._param.display)

    def _is_time(self, every: int) -> bool:
        return every > 0 and self._iter % every == 0

    def __repr__(self) -> str:
        return f"Solver(type={self.type!r}, net={self._net.name!r}, iter={self._iter})"


def _several(nets: Any) -> tuple[Net, ...]:
    if not isinstance(nets, Iterable):
        raise TrainingError(f"test_nets must be a list of nets, not {with_article(type(nets).__name__)}")
    return tuple(nets)
