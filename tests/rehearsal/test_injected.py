"""The clock and the disk that a rehearsed recorder sees, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from rehearsal import injected

SAY = """
import os, sys, time
print(time.time_ns(), time.time(), flush=True)
input()
print(time.time_ns(), time.time(), flush=True)
start = time.monotonic()
with open(sys.argv[1], "wb") as file:
    os.fsync(file.fileno())
print(time.monotonic() - start, flush=True)
"""


def test_the_clock_steps_back_and_the_disk_is_slow_for_that_process_alone(tmp_path):
    environment = injected.prepare(tmp_path / "injected")
    with subprocess.Popen(
        [sys.executable, "-P", "-c", SAY, str(tmp_path / "file")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as process:
        before = [float(word) for word in process.stdout.readline().split()]
        injected.put(tmp_path / "injected", injected.CLOCK, -3600 * 10**9)
        injected.put(tmp_path / "injected", injected.DISK, 0.3)
        output, _ = process.communicate("\n", timeout=60)
    after = [float(word) for word in output.splitlines()[0].split()]
    assert -3601 < (after[0] - before[0]) / 1e9 < -3500
    assert abs(after[1] - after[0] / 1e9) < 1
    assert float(output.splitlines()[1]) > 0.3
    assert abs(time.time_ns() - before[0]) < 120e9
