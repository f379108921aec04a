"""A sign of life of the recorder on the disk: after a kill it tells, to half a second, until when it lived."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

from kitchensync.capture.process.pause import LATE_NS
from kitchensync.sensors.host_clock import UtcAnchor, utc_anchor

NAME = "alive"
HELD = "held"
"""Beside it: when the recorder itself was last held, so that its children know whether they were held alone."""

PERIOD_NS = 250_000_000

_BEAT = struct.Struct("<qq")


class Heartbeat:
    """Writes the time into a file of sixteen bytes, in place: that works on a full disk too."""

    def __init__(self, work: Path) -> None:
        """Begin in a recording's work folder."""
        path = work / NAME
        path.touch(0o600)  # what an earlier run said stays until we say more
        self._held = work / HELD
        self._file = path.open("r+b", buffering=0)
        self._last_ns = 0

    def beat(self) -> None:
        """Say that we live, if it is time to."""
        anchor = utc_anchor()
        if anchor.host_ns - self._last_ns < PERIOD_NS:
            return
        if self._last_ns and anchor.host_ns - self._last_ns > LATE_NS:
            with contextlib.suppress(OSError):  # the guess gets worse
                self._held.write_bytes(_BEAT.pack(self._last_ns, anchor.host_ns))
        self._last_ns = anchor.host_ns
        with contextlib.suppress(OSError):  # the disk is in trouble: others say so, and the guess gets wider
            self._file.seek(0)
            self._file.write(_BEAT.pack(anchor.host_ns, anchor.utc_ns))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def last_beat(work: Path) -> UtcAnchor | None:
    """Return until when the recorder of a work folder surely lived; None when it did not say."""
    try:
        return UtcAnchor(*_BEAT.unpack((work / NAME).read_bytes()))
    except (OSError, struct.error):
        return None


def was_held(work: Path, start_ns: int, end_ns: int) -> bool:
    """Return whether the recorder itself was held too, at least half of that time (host_ns)."""
    try:
        first_ns, last_ns = _BEAT.unpack((work / HELD).read_bytes())
    except (OSError, struct.error):
        return False
    return bool(min(last_ns, end_ns) - max(first_ns, start_ns) > (end_ns - start_ns) / 2)
