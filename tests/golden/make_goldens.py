"""Makes the golden trajectories, or checks them: ``python tests/golden/make_goldens.py [NAMES] [--check]``.

Needs the packages of the extra ``golden``; the tests themselves read only the files. Each module of
``cases/`` says which package makes its trajectories, all in float64 on the CPU. ``--check`` derives them
again and compares, and looks up what the specs say of their counterparts' arguments; it writes nothing and
exits with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from solvergen.spec.reader import read_specs  # noqa: E402
from tests.golden import cases  # noqa: E402
from tests.golden.signatures import complaints  # noqa: E402

TOLERANCE = 1e-14
"""Of a tensor's largest magnitude: room for another processor's vector unit, not for another rule."""


def derive(name: str) -> dict[str, np.ndarray]:
    """All arrays of one golden file. A state that a case doesn't have is NaN there."""
    module = cases.of(name)
    runs = [module.run(case) for case in module.CASES]
    widths = {state: array.shape for _, states in runs for state, array in states.items()}
    return {
        "cases": np.array([case.id for case in module.CASES]),
        "params": np.array([recorded for recorded, _ in runs]),
        **{
            f"state.{state}": np.array([states.get(state, np.full(shape, np.nan)) for _, states in runs])
            for state, shape in sorted(widths.items())
        },
    }


def differences(name: str, new: Mapping[str, np.ndarray]) -> list[str]:
    """What the committed file says otherwise, in words."""
    path = HERE / f"{name}.npz"
    if not path.is_file():
        return [f"{name}: {path.name} isn't there"]
    with np.load(path, allow_pickle=False) as file:
        old = {key: file[key] for key in file.files}
    if sorted(old) != sorted(new):
        return [f"{name}: arrays {sorted(old)} committed, {sorted(new)} derived"]
    found = []
    for key, array in new.items():
        if array.shape != old[key].shape:
            found.append(f"{name}/{key}: shape {old[key].shape} committed, {array.shape} derived")
        elif array.dtype.kind == "U":
            if list(array) != list(old[key]):
                found.append(f"{name}/{key}: the list of cases has changed")
        else:
            room = TOLERANCE * np.nanmax(np.abs(array))
            if not np.allclose(array, old[key], rtol=0, atol=room, equal_nan=True):
                error = np.nanmax(np.abs(array - old[key]))
                found.append(f"{name}/{key}: off by {error:.3g} (allowed {room:.3g})")
    return found


def main() -> int:
    """Derive, and write or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="specs; all of them if none is given")
    parser.add_argument(
        "--check", action="store_true", help="compare with the committed files, write nothing"
    )
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(cases.NAMES))
    if unknown:
        parser.error(f"no cases for {', '.join(unknown)}; there are {', '.join(cases.NAMES)}")
    found, count = [], 0
    for name in arguments.names or cases.NAMES:
        arrays = derive(name)
        count += len(arrays["cases"])
        if arguments.check:
            found += differences(name, arrays)
        else:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **arrays)
            (HERE / f"{name}.npz").write_bytes(buffer.getvalue())
    if arguments.check:
        found += [
            line
            for spec in read_specs(HERE.parents[1] / "specs")
            if spec.name in arguments.names or not arguments.names
            for counterpart in spec.counterparts
            for line in complaints(spec, counterpart)
        ]
    for line in found:
        print(line, file=sys.stderr)
    if arguments.check:
        print(f"{count} trajectories derived again; {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
