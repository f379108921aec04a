"""Keeps this computer awake while something is recorded, where the system can be asked to."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

WHAT = "sleep:idle:handle-lid-switch"
SETTLE_S = 0.3
SLEEPS = Path("/sys/power/state")
"""Ways in which this computer can sleep, on Linux; a virtual machine has none."""
NOT_KEPT = "this computer may fall asleep ({why}); keep its lid open, its power in, and sleep switched off"


@contextlib.contextmanager
def kept_awake(recording: str) -> Iterator[str]:
    """Inhibit sleep while the block runs; yield why that is not possible here, or nothing."""
    if not _can_sleep():
        yield ""
        return
    program = shutil.which("systemd-inhibit")
    if program is None:
        yield NOT_KEPT.format(why="there is no systemd-inhibit to prevent it")
        return
    command = [program, f"--what={WHAT}", "--who=kitchensync", f"--why=recording {recording}", "--mode=block"]
    with subprocess.Popen(
        [*command, "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as holder:  # it holds for as long as its stdin is open: it ends with us, however we end
        try:
            yield _refused(holder)
        finally:
            assert holder.stdin is not None
            holder.stdin.close()


def _can_sleep() -> bool:
    try:
        return bool(SLEEPS.read_text().split())
    except OSError:
        return sys.platform != "linux"


def _refused(holder: subprocess.Popen[bytes]) -> str:
    """Return why it does not hold, as far as its quick end tells."""
    try:
        code = holder.wait(SETTLE_S)
    except subprocess.TimeoutExpired:
        return ""
    return NOT_KEPT.format(why=f"systemd-inhibit was refused with exit code {code}")
