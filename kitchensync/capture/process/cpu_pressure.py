"""Whether this computer has enough of its processors: how long programs waited for one of late."""

from __future__ import annotations

import os
import re
from pathlib import Path

PRESSURE = Path("/proc/pressure/cpu")
BUSY_PERCENT = 50.0
"""A computer is too busy where some program waited for a processor more than this share of the last ten seconds."""


def waits_percent(pressure: Path = PRESSURE) -> float:
    """Return the share of the last ten seconds in which some program waited for a processor, 0 to 100.

    By the kernel's pressure (https://docs.kernel.org/accounting/psi.html); where it tells none, by the load of the
    last minute: of so many programs that want to run, those that have no processor.
    """
    try:
        found = re.search(r"^some avg10=([0-9.]+)", pressure.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        found = None
    if found is not None:
        return float(found[1])
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    return 100.0 * (1.0 - cores / load) if load > cores else 0.0
