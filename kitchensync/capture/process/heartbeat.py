"""A sign of life of the recorder on the disk: after a kill it tells, to half a second, until when it lived.

Beside it the anchors of the recording: what UTC was at which host time, and where that changed.
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
HELD = "held"
"""Beside it: when the recorder itself was last held, so that its children know whether they were held alone."""

PERIOD_NS = 250_000_000

ANCHORS = "anchors"
ANCHOR_PERIOD_NS, CHANGED_NS = 30_000_000_000, 1_000_000
"""An anchor is kept so often, and on both sides of a change by more than this."""

_BEAT = struct.Struct("<qq")
_ANCHOR = struct.Struct("<qqqq?")


class Heartbeat:
    """Writes the time into a file of sixteen bytes, in place: that works on a full disk too."""

    def __init__(self, work: Path) -> None:
        """Begin in a recording's work folder."""
        path = work / NAME
        path.touch(0o600)  # what an earlier run said stays until we say more
        self._held = work / HELD
        self._file = path.open("r+b", buffering=0)
        self._last_ns = 0
        (work / ANCHORS).touch(0o600)
        self._anchors = (work / ANCHORS).open("r+b", buffering=0)
        self._count = (work / ANCHORS).stat().st_size // _ANCHOR.size
        self._kept: UtcAnchor | None = None
        self._read: UtcAnchor | None = None
        self.clock_steps: list[UtcStep] = []
        """Where the computer's clock was set."""

    def beat(self) -> None:
        """Say that we live, if it is time to."""
        anchor = utc_anchor()
        if anchor.host_ns - self._last_ns < PERIOD_NS:
            return
        if self._last_ns and anchor.host_ns - self._last_ns > LATE_NS:
            with contextlib.suppress(OSError):  # the guess gets worse
                self._held.write_bytes(_BEAT.pack(self._last_ns, anchor.host_ns))
        self._last_ns = anchor.host_ns
        self._keep(anchor)
        with contextlib.suppress(OSError):  # the disk is in trouble: others say so, and the guess gets wider
            self._file.seek(0)
            self._file.write(_BEAT.pack(anchor.host_ns, anchor.utc_ns))

    def _keep(self, anchor: UtcAnchor) -> None:
        """Keep an anchor now and then; where UTC moved against the host clock, the one before that as well."""
        kept, read, self._read = self._kept or anchor, self._read, anchor
        moved_ns = abs((anchor.utc_ns - anchor.host_ns) - (kept.utc_ns - kept.host_ns))
        is_moved = moved_ns > CHANGED_NS + kept.bound_ns + anchor.bound_ns
        if self._kept and not is_moved and anchor.host_ns - kept.host_ns < ANCHOR_PERIOD_NS:
            return
        around = (read, anchor) if is_moved and read else (anchor,)
        self.clock_steps += UtcTimes(map(asdict, around)).steps()
        for one in around if read != kept else (anchor,):
            with contextlib.suppress(OSError):  # the disk is in trouble: UTC gets less exact
                self._anchors.seek(self._count * _ANCHOR.size)  # over what a full disk took a part of
                self._count += self._anchors.write(_ANCHOR.pack(*astuple(one))) == _ANCHOR.size
        self._kept = anchor

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        self._anchors.close()


def kept_anchors(work: Path) -> list[Any]:
    """Return the anchors of a work folder, in order, as the manifest has them; a torn last one is left out."""
    try:
        content = (work / ANCHORS).read_bytes()
    except OSError:
        return []
    whole = content[: len(content) - len(content) % _ANCHOR.size]
    return [asdict(UtcAnchor(*one)) for one in _ANCHOR.iter_unpack(whole)]


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
