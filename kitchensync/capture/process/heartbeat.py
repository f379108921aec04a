"""Heartbeat of the recorder on disk: after a kill it shows, to half a second, how long the recorder ran.

The UTC anchors of the recording are kept beside it: UTC at some host times, and where the clock was set.
"""

from __future__ import annotations

import contextlib
import struct
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

from kitchensync.capture.process.pause import LATE_NS
from kitchensync.shell.host_clock import UtcAnchor, utc_anchor
from kitchensync.storage.timeline.utc_times import UtcStep, UtcTimes

NAME = "alive"
PAUSED = "held"
"""File with the last pause of the recorder itself, which shows its children whether only they were paused."""

PERIOD_NS = 250_000_000  # dates a kill to half a second even when one beat comes late

ANCHORS = "anchors"
ANCHOR_PERIOD_NS, CHANGED_NS = 30_000_000_000, 1_000_000
"""Period of the anchors, and the change of UTC from which on one is kept on both sides of it."""

_BEAT = struct.Struct("<qq")
_ANCHOR = struct.Struct("<qqqq?")


class Heartbeat:
    """Overwrites a file of sixteen bytes with the time, which works on a full disk too."""

    def __init__(self, work: Path) -> None:
        """Open the files in a recording's work folder."""
        path = work / NAME
        path.touch(0o600)  # the heartbeat of an earlier run stays until the first of this one
        self._paused_file = work / PAUSED
        self._file = path.open("r+b", buffering=0)
        self._last_ns = 0
        (work / ANCHORS).touch(0o600)
        self._anchors = (work / ANCHORS).open("r+b", buffering=0)
        self._count = (work / ANCHORS).stat().st_size // _ANCHOR.size
        self._kept: UtcAnchor | None = None
        self._read: UtcAnchor | None = None
        self.clock_steps: list[UtcStep] = []
        """Changes of the computer's clock."""

    def beat(self) -> None:
        """Write the time if the period is over."""
        anchor = utc_anchor()
        if anchor.host_ns - self._last_ns < PERIOD_NS:
            return
        if self._last_ns and anchor.host_ns - self._last_ns > LATE_NS:
            with contextlib.suppress(OSError):  # without it a pause is judged less well
                self._paused_file.write_bytes(_BEAT.pack(self._last_ns, anchor.host_ns))
        self._last_ns = anchor.host_ns
        self._keep(anchor)
        with contextlib.suppress(OSError):  # a failing disk is reported elsewhere
            self._file.seek(0)
            self._file.write(_BEAT.pack(anchor.host_ns, anchor.utc_ns))

    def _keep(self, anchor: UtcAnchor) -> None:
        """Keep an anchor periodically; if UTC moved against the host clock, keep the previous reading as well."""
        kept, read, self._read = self._kept or anchor, self._read, anchor
        moved_ns = abs((anchor.utc_ns - anchor.host_ns) - (kept.utc_ns - kept.host_ns))
        is_moved = moved_ns > CHANGED_NS + kept.bound_ns + anchor.bound_ns
        if self._kept and not is_moved and anchor.host_ns - kept.host_ns < ANCHOR_PERIOD_NS:
            return
        around = (read, anchor) if is_moved and read else (anchor,)
        self.clock_steps += UtcTimes(map(asdict, around)).steps()
        for reading in around if read != kept else (anchor,):
            with contextlib.suppress(OSError):  # on a failing disk UTC becomes less accurate
                self._anchors.seek(self._count * _ANCHOR.size)  # overwrites an incomplete anchor
                self._count += self._anchors.write(_ANCHOR.pack(*astuple(reading))) == _ANCHOR.size
        self._kept = anchor

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        self._anchors.close()


def kept_anchors(work: Path) -> list[Any]:
    """Return the anchors of a work folder in order, as written into the manifest; skip an incomplete last one."""
    try:
        content = (work / ANCHORS).read_bytes()
    except OSError:
        return []
    whole = content[: len(content) - len(content) % _ANCHOR.size]
    return [asdict(UtcAnchor(*fields)) for fields in _ANCHOR.iter_unpack(whole)]


def last_beat(work: Path) -> UtcAnchor | None:
    """Return the last heartbeat of the recorder of a work folder, None if there is none."""
    try:
        return UtcAnchor(*_BEAT.unpack((work / NAME).read_bytes()))
    except (OSError, struct.error):
        return None


def was_paused(work: Path, start_ns: int, end_ns: int) -> bool:
    """Return whether the recorder itself was paused too, for more than half of that time (host_ns)."""
    try:
        first_ns, last_ns = _BEAT.unpack((work / PAUSED).read_bytes())
    except (OSError, struct.error):
        return False
    return bool(min(last_ns, end_ns) - max(first_ns, start_ns) > (end_ns - start_ns) / 2)
