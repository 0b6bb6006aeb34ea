"""Train a small network, in plain NumPy, on the handwritten digits that scikit-learn ships.

    python examples/train_digits.py                            # adam, default hyperparameters
    python examples/train_digits.py --optimizer lion --lr 3e-4 --weight-decay 0.1
    python examples/train_digits.py --optimizer adam --help    # what adam can be told
    python examples/train_digits.py --resume                   # go on after Ctrl-C, kill -9 or a power cut

Any generated optimizer is chosen by name; of your own ones say which package they are in:

    python examples/train_digits.py --package my_optimizers --optimizer my_rule

Everything goes to one folder (--out): snapshots, the settings, the curves as a table and as a picture. A run
that was killed and resumed ends with the same bits as one that never stopped: the snapshot holds parameters
and optimizer, and the order of the data follows from the seed and the number of the step alone.
"""

from __future__ import annotations

import signal

# Before the imports that take a while: until there is a run to save, Ctrl-C just ends the process.
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import csv
import hashlib
import importlib
import io
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from solvergen.errors import SolvergenError
from solvergen.files import write_atomically

Arrays = dict[str, np.ndarray]


# --- the data ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Digits:
    """Images as rows of 64 grey values from 0 to 1 (float32), and the digits they show (int)."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load_digits(seed: int) -> Digits:
    """1,437 digits to learn from and 360 to test with, chosen at random by ``seed``."""
    try:
        from sklearn.datasets import load_digits as load
    except ImportError as problem:
        sys.exit(f"the digits come with scikit-learn ({problem}): pip install 'solvergen[examples]'")

    images, labels = load(return_X_y=True)
    images = (images / 16).astype(np.float32)
    order = np.random.default_rng(seed).permutation(len(images))
    test, train = order[:360], order[360:]
    return Digits(images[train], labels[train], images[test], labels[test])


def batch_of_step(step: int, n: int, size: int, seed: int) -> np.ndarray:
    """Indices of the mini-batch of ``step`` (from 0). Each epoch has its own order."""
    per_epoch = -(-n // size)
    epoch, number = divmod(step, per_epoch)
    order = np.random.default_rng([seed, epoch]).permutation(n)
    return order[number * size : (number + 1) * size]


# --- the network ------------------------------------------------------------------------------------------


def new_parameters(hidden: int, seed: int) -> Arrays:
    """Weights of one hidden layer and an output layer, in float32."""
    random = np.random.default_rng([seed, 2**32])
    return {
        "hidden.weight": random.normal(0, np.sqrt(2 / 64), (64, hidden)).astype(np.float32),
        "hidden.bias": np.zeros(hidden, np.float32),
        "output.weight": random.normal(0, np.sqrt(1 / hidden), (hidden, 10)).astype(np.float32),
        "output.bias": np.zeros(10, np.float32),
    }


def logits_of(params: Mapping[str, np.ndarray], images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The hidden layer's activations, and one score for each of the ten digits."""
    hidden = np.maximum(images @ params["hidden.weight"] + params["hidden.bias"], 0)
    return hidden, hidden @ params["output.weight"] + params["output.bias"]


def loss_and_gradients(params: Arrays, images: np.ndarray, labels: np.ndarray) -> tuple[float, Arrays]:
    """Mean cross-entropy of a batch, and its derivative by each parameter."""
    hidden, logits = logits_of(params, images)
    logits -= logits.max(axis=1, keepdims=True)
    log_probabilities = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    rows = np.arange(len(labels))
    loss = -log_probabilities[rows, labels].mean()

    by_logits = np.exp(log_probabilities)
    by_logits[rows, labels] -= 1
    by_logits /= np.float32(len(labels))
    by_hidden = (by_logits @ params["output.weight"].T) * (hidden > 0)
    return float(loss), {
        "hidden.weight": images.T @ by_hidden,
        "hidden.bias": by_hidden.sum(axis=0),
        "output.weight": hidden.T @ by_logits,
        "output.bias": by_logits.sum(axis=0),
    }


def accuracy_of(params: Arrays, images: np.ndarray, labels: np.ndarray) -> float:
    """Share of the images whose highest score is that of their digit."""
    return float((logits_of(params, images)[1].argmax(axis=1) == labels).mean())


# --- what a run leaves in its folder ----------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """What decides the result of a run. A resumed run takes it from the folder."""

    package: str
    optimizer: str
    hyperparameters: dict[str, float]
    options: dict[str, bool]
    seed: int
    hidden: int
    batch: int


@dataclass
class History:
    """The loss of each step, and the test accuracy after some: (number of steps done, value)."""

    losses: list[float]
    accuracies: list[tuple[int, float]]

    def write(self, path: Path) -> None:
        """Write a row for each step; the floats are written so that they read back as the same bits."""
        accuracies = dict(self.accuracies)
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(["step", "loss", "test_accuracy"])
        for step, loss in enumerate(self.losses, 1):
            table.writerow([step, repr(loss), repr(accuracies[step]) if step in accuracies else ""])
        write_atomically(path, text.getvalue().encode())

    @classmethod
    def read(cls, path: Path, steps: int) -> History:
        """What ``write`` wrote, up to and including step ``steps``."""
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))[:steps]
        if len(rows) != steps:
            raise SystemExit(f"{path} has {len(rows)} rows, the snapshot beside it has seen {steps} steps")
        accuracies = [(int(row["step"]), float(row["test_accuracy"])) for row in rows if row["test_accuracy"]]
        return cls([float(row["loss"]) for row in rows], accuracies)


def draw_curves(history: History, title: str, path: Path) -> None:
    """Draw the loss of each step and the test accuracy as one picture (PNG)."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    figure.suptitle(title)
    steps = np.arange(1, len(history.losses) + 1)
    width = min(50, len(steps))
    sums, counts = np.cumsum([0.0, *history.losses]), np.minimum(steps, width)
    smooth = (sums[steps] - sums[steps - counts]) / counts
    left.plot(steps, history.losses, color="tab:blue", alpha=0.25, linewidth=0.8, label="each batch")
    left.plot(steps, smooth, color="tab:blue", label=f"mean of the last {width}")
    left.set(xlabel="step", ylabel="training loss", yscale="log")
    left.legend()
    right.plot(*zip(*history.accuracies, strict=True), color="tab:green", marker=".", label="each epoch")
    right.set(xlabel="step", ylabel="test accuracy")
    right.axhline(0.96, color="grey", linewidth=0.8, linestyle="--", label="96 %: adam should pass it")
    right.legend(loc="lower right")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=110)
    pyplot.close(figure)
    write_atomically(path, data.getvalue())


# --- training ---------------------------------------------------------------------------------------------


class StopRequest:
    """Ctrl-C (SIGINT) or SIGTERM asks the loop to stop after the step at hand, with a snapshot."""

    def __init__(self) -> None:
        self.signal: int | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        signal.signal(number, signal.SIG_DFL)  # a second one ends the process at once


def train(settings: Settings, optimizer_class: Any, arguments: argparse.Namespace) -> int:
    """Train, or go on training, and leave snapshots, curves and picture in the folder. An exit code."""
    out: Path = arguments.out
    snapshot, table = out / "snapshot.safetensors", out / "curves.csv"
    digits = load_digits(settings.seed)
    params = new_parameters(settings.hidden, settings.seed)
    optimizer = optimizer_class(
        params, **settings.hyperparameters, **settings.options, backend=arguments.backend
    )
    history = History([], [])
    if arguments.resume and snapshot.exists():
        optimizer.load(snapshot)
        history = History.read(table, optimizer.t)
        print(f"resumed after step {optimizer.t}")
    elif arguments.resume:
        print(f"there is no snapshot in {out} to resume from: beginning at step 0", flush=True)
    n = len(digits.train_labels)
    per_epoch = -(-n // settings.batch)
    stop = StopRequest()
    started = time.perf_counter()

    def save() -> None:
        # The table first: on resuming it may know more steps than the snapshot, but never fewer.
        history.write(table)
        optimizer.save(snapshot)

    while optimizer.t < arguments.epochs * per_epoch and stop.signal is None:
        batch = batch_of_step(optimizer.t, n, settings.batch, settings.seed)
        loss, gradients = loss_and_gradients(params, digits.train_images[batch], digits.train_labels[batch])
        optimizer.step(gradients)
        history.losses.append(loss)
        if optimizer.t % per_epoch == 0:
            accuracy = accuracy_of(params, digits.test_images, digits.test_labels)
            history.accuracies.append((optimizer.t, accuracy))
            epoch = optimizer.t // per_epoch
            recent = np.mean(history.losses[-per_epoch:])
            print(f"epoch {epoch:3d}   loss {recent:.4f}   test accuracy {accuracy:.4f}", flush=True)
        if optimizer.t % arguments.snapshot_every == 0:
            save()
    save()
    if stop.signal is not None:
        print(f"stopped after step {optimizer.t}; the same command with --resume goes on", flush=True)
        return 128 + stop.signal

    accuracy = accuracy_of(params, digits.test_images, digits.test_labels)
    title = f"{settings.optimizer} on handwritten digits, test accuracy {100 * accuracy:.1f} %"
    draw_curves(history, title, out / "curves.png")
    print(
        f"{optimizer.t} steps on backend {optimizer.backend} in {time.perf_counter() - started:.1f} s\n"
        f"test accuracy {accuracy:.4f}, curves in {out / 'curves.png'}\n"
        f"parameters {digest_of(params)}"
    )
    return 0


def digest_of(params: Arrays) -> str:
    """SHA-256 of all parameters' bits: two runs ended alike if and only if they print the same."""
    digest = hashlib.sha256()
    for name in sorted(params):
        digest.update(params[name].tobytes())
    return digest.hexdigest()


# --- the command line -------------------------------------------------------------------------------------


def find_optimizer(package: str, name: str) -> Any:
    """The optimizer class that the generated ``package`` has for the spec ``name``."""
    sys.path.append(str(Path.cwd()))  # where a package of one's own is
    try:
        root = importlib.import_module(package)
    except ModuleNotFoundError as error:
        raise SystemExit(f"no package {package!r} here ({error}); build one with `solvergen build`") from None
    known = {}
    for class_name in root.__all__:
        optimizer_class = getattr(root, class_name)
        known[optimizer_class.definition.name] = optimizer_class
    if name not in known:
        raise SystemExit(f"no optimizer {name!r} in {package}; there are {', '.join(sorted(known))}")
    return known[name]


def parse(arguments: list[str] | None) -> tuple[argparse.Namespace, Settings, Any]:
    """The command line, the settings that follow from it, and the optimizer's class."""
    first = argparse.ArgumentParser(add_help=False)
    first.add_argument("--package", default="solvergen.optimizers", help="the generated package")
    first.add_argument("--optimizer", default="adam", help="name of the optimizer's spec")
    chosen = first.parse_known_args(arguments)[0]
    optimizer_class = find_optimizer(chosen.package, chosen.optimizer)
    definition = optimizer_class.definition

    parser = argparse.ArgumentParser(
        parents=[first], description="Train a small network on handwritten digits.", allow_abbrev=False
    )
    parser.add_argument("--backend", default="auto", help="numpy, cpu or auto")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=32, help="images a step")
    parser.add_argument("--hidden", type=int, default=128, help="width of the hidden layer")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/digits"), help="folder for what a run leaves")
    parser.add_argument("--snapshot-every", type=int, default=200, metavar="STEPS")
    parser.add_argument(
        "--resume", action="store_true", help="go on from the folder's snapshot, if it has one"
    )
    group = parser.add_argument_group(f"hyperparameters and options of {definition.name}")
    for h in definition.hyperparameters:
        group.add_argument(
            f"--{h.name.replace('_', '-')}",
            dest=h.name,
            type=float,
            metavar="X",
            help=f"{h.doc} ({h.default:g})",
        )
    for option in definition.options:
        group.add_argument(
            f"--{option.name.replace('_', '-')}",
            dest=option.name,
            action=argparse.BooleanOptionalAction,
            help=option.doc,
        )
    given = parser.parse_args(arguments)
    for name in ("epochs", "batch", "hidden", "snapshot_every"):
        if getattr(given, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    names = (*definition.hyperparameter_names, *definition.option_names)
    told = {name: value for name in names if (value := getattr(given, name)) is not None}
    settings = Settings(
        package=given.package,
        optimizer=given.optimizer,
        hyperparameters={k: v for k, v in told.items() if k in definition.hyperparameter_names},
        options={k: v for k, v in told.items() if k in definition.option_names},
        seed=given.seed,
        hidden=given.hidden,
        batch=given.batch,
    )
    return given, settings, optimizer_class


def differences(begun: str, now: str) -> str:
    """What two records of settings differ in, a line each."""
    try:
        pair = [json.loads(text) for text in (begun, now)]
        told = [s.pop("hyperparameters", {}) | s.pop("options", {}) for s in pair]
        then, here = (s | more for s, more in zip(pair, told, strict=True))
    except (ValueError, TypeError, AttributeError):
        return ", which can't be read"
    lines = []
    for name in sorted(then.keys() | here.keys()):
        was, is_now = (s.get(name, "not given") for s in (then, here))
        if was != is_now:
            lines.append(f"\n    {name}: {was} then, {is_now} now")
    return ":" + "".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return an exit code."""
    given, settings, optimizer_class = parse(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    record = given.out / "settings.json"
    text = json.dumps(asdict(settings), indent=2) + "\n"
    if given.resume and record.exists():
        if (begun := record.read_text()) != text:
            raise SystemExit(
                f"this run was begun with other settings ({record}){differences(begun, text)}\n"
                "Resume it with the same ones, or choose another folder with --out."
            )
    else:
        for name in ("snapshot.safetensors", "curves.csv", "curves.png"):
            (given.out / name).unlink(missing_ok=True)
        write_atomically(record, text.encode())
    try:
        return train(settings, optimizer_class, given)
    except SolvergenError as error:
        raise SystemExit(f"{type(error).__name__}: {error}") from None


if __name__ == "__main__":
    sys.exit(main())
