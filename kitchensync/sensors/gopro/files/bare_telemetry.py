"""GPMF payloads without a video, as tools extract them: one after the other, without media times."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from kitchensync.sensors.errors import BadGpmf, UnreadableMedia
from kitchensync.sensors.gopro.files.telemetry import Payload, Telemetry
from kitchensync.sensors.gopro.mp4 import gpmf

MOST_BYTES = 256 * 1024 * 1024
"""Largest file, which is read at once; an hour of telemetry is about 25 MB."""
USUAL_S = 1.001
"""Duration of a payload at NTSC rates, seconds; samples with timestamps are timed by those instead."""


def bare_blocks(path: Path, damage: list[str] | None = None) -> list[memoryview]:
    """Split a bare file into payloads; `damage` as in `split_payloads`. Raises UnreadableMedia, BadGpmf, OSError."""
    if path.stat().st_size > MOST_BYTES:
        raise UnreadableMedia(path, "too large for bare telemetry, and not an MP4")
    return gpmf.split_payloads(path.read_bytes(), damage)


class BareTelemetry(Telemetry):
    """The payloads of a bare file, read on access. Raises UnreadableMedia."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def payloads(self) -> list[Payload]:
        """All payloads in order, each lasting `USUAL_S`."""
        try:
            blocks = bare_blocks(self.path)
        except BadGpmf as error:
            raise UnreadableMedia(self.path, str(error)) from error
        except OSError as error:
            raise UnreadableMedia(self.path, (error.strerror or str(error)).lower()) from error
        return [Payload(number * USUAL_S, USUAL_S, bytes(block)) for number, block in enumerate(blocks)]
