"""CPU pressure: how long programs recently waited for a processor."""

from __future__ import annotations

import os
import re
from pathlib import Path

PRESSURE = Path("/proc/pressure/cpu")
BUSY_PERCENT = 50.0
"""Pressure above which a computer counts as too busy."""


def waits_percent(pressure: Path = PRESSURE) -> float:
    """Return the share of the last ten seconds in which some program waited for a processor, 0 to 100.

    It is the kernel's pressure stall information (https://docs.kernel.org/accounting/psi.html). Without that it is
    the share of the runnable programs that have no processor, from the load of the last minute.
    """
    try:
        match = re.search(r"^some avg10=([0-9.]+)", pressure.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        match = None
    if match is not None:
        return float(match[1])
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    return 100.0 * (1.0 - cores / load) if load > cores else 0.0
