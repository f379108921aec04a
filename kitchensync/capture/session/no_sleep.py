"""Keep this computer awake while it records, by means of systemd-inhibit."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

WHAT = "sleep:idle:handle-lid-switch"
SETTLE_S = 0.3  # delays the start of every recording
SLEEP_STATES = Path("/sys/power/state")
"""On Linux the sleep states that this computer supports; empty in a virtual machine."""
WARNING = "this computer may fall asleep ({why}); keep its lid open, its power in, and sleep switched off"


@contextlib.contextmanager
def kept_awake(recording: str) -> Iterator[str]:
    """Inhibit sleep while the block runs; yield a warning if that is not possible, else ""."""
    if not _can_sleep():
        yield ""
        return
    program = shutil.which("systemd-inhibit")
    if program is None:
        yield WARNING.format(why="there is no systemd-inhibit to prevent it")
        return
    command = [program, f"--what={WHAT}", "--who=kitchensync", f"--why=recording {recording}", "--mode=block"]
    with subprocess.Popen(
        [*command, "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as inhibitor:  # it runs while its stdin is open, so it ends with this process even after a kill
        try:
            yield _warning(inhibitor)
        finally:
            assert inhibitor.stdin is not None
            inhibitor.stdin.close()


def _can_sleep() -> bool:
    try:
        return bool(SLEEP_STATES.read_text().split())
    except OSError:
        return sys.platform != "linux"


def _warning(inhibitor: subprocess.Popen[bytes]) -> str:
    """Return a warning if systemd-inhibit has ended within a moment, which means that it was refused."""
    try:
        code = inhibitor.wait(SETTLE_S)
    except subprocess.TimeoutExpired:
        return ""
    return WARNING.format(why=f"systemd-inhibit was refused with exit code {code}")
