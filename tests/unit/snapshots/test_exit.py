"""A save that failed leaves an interpreter that can exit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

PROGRAM = """
import io, sys
import h5py
from solvergen.runtime.snapshots import hdf5_format
from solvergen.runtime.snapshots.sink import Sink

class Failing(io.BytesIO):
    left = int(sys.argv[1])

    def seek(self, *args):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().seek(*args)

sink = Sink(Failing())
hdf5_format._fill(h5py, sink, [], b"document")
assert isinstance(sink.failure, KeyboardInterrupt)  # kept until the end, as an uncaught one would be
"""


@pytest.mark.parametrize("moment", [0, 1, 2, 5])
def test_what_failed_inside_hdf5_does_not_crash_the_exit(moment: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(moment)], check=False, capture_output=True, text=True, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, "")
