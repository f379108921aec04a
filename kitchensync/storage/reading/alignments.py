"""Read the alignments of camera files, `sync/alignment/*.json`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.gopro.files.telemetry import ImuTrack
from kitchensync.shell.array_types import Floats, Int64
from kitchensync.shell.files_on_disk import matching
from kitchensync.shell.untrusted_json import load_json
from kitchensync.storage.errors import OutsideMap
from kitchensync.storage.names import is_path_inside
from kitchensync.storage.timeline.alignment import SCHEMA, UNREADABLE, Alignment, AlignmentErrors
from kitchensync.storage.timeline.clock_map import ClockMap

FOLDER = Path("sync") / "alignment"
BOUNDS = 3
"""Number of stated bounds: at the start, the middle and the end of a video."""


@dataclass(frozen=True)
class FilmClock:
    """The map between media seconds of an aligned camera file and ticks of its headset."""

    file: Path
    headset: str
    clock_map: ClockMap
    last_s: float
    "Last media time with a valid map."
    picture_late_s: float = 0.0
    errors: AlignmentErrors | None = None
    telemetry_late_s: float = 0.0

    def gyroscope(self) -> ImuTrack:
        """Read the video's rotation rates, on the time base of its frames. Raises UnreadableMedia."""
        track = open_media(self.file).gyroscope()
        return replace(track, t_s=track.t_s - self.telemetry_late_s)

    def media_of(self, ticks: Int64) -> Floats:
        """Return media seconds (n,) of device ticks (n,); NaN outside of the video."""
        media_s = np.asarray(self.clock_map.to_media(ticks), np.float64)
        return np.where((media_s >= 0.0) & (media_s <= self.last_s), media_s, np.nan)

    def ticks_of(self, media_s: Floats) -> Int64:
        """Return device ticks (n,) of media seconds (n,)."""
        return self.clock_map.to_ticks(media_s)

    def taken_at(self, stamps_s: Floats) -> Int64:
        """Return the device ticks (n,) at which frames with these timestamps (media seconds) were captured."""
        return self.ticks_of(stamps_s + self.picture_late_s)

    def bound_s(self, stamps_s: Floats) -> Floats | None:
        """Return the 95 % bound of `taken_at`, seconds (n,); None if not known.

        The bound of the gyroscopes grows towards the ends; systematic errors are constant.
        """
        if self.errors is None or self.errors.total_ms is None:
            return None
        ends = [float(bound) for bound in self.errors.bound95_ms if bound is not None]
        if len(ends) != BOUNDS:
            return np.full(len(stamps_s), 2e-3 * self.errors.total_ms)
        places = np.linspace(0.0, self.last_s, BOUNDS)
        unseen_ms = 2.0 * float(np.linalg.norm([part.sigma for part in self.errors.systematic]))
        return 1e-3 * np.hypot(np.interp(stamps_s, places, ends), unseen_ms)


def alignment_files(recording: Path) -> list[Path]:
    """Return the alignment files of all devices, in order of name."""
    return matching(recording / FOLDER, "**/*.json")


def read_alignment(path: Path) -> Alignment:
    """Read an alignment file; if it is unreadable, `problem` is set."""
    try:
        body = load_json(path)
        if not isinstance(body, dict) or body.get("schema") != SCHEMA:
            raise ValueError(f"not of schema {SCHEMA}")
        alignment = Alignment.from_object(body)
        if alignment.source and not is_path_inside(alignment.source):
            raise ValueError("it names no film of the recording")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, OutsideMap) as error:
        why = f"{path.name}: {error}; run `kitchensync sync` again"
        return Alignment(source=path.stem, status=UNREADABLE, problem=why)
    return alignment if alignment.source else replace(alignment, source=path.stem)


def film_clocks(recording: Path, films: Path) -> tuple[list[FilmClock], list[str]]:
    """Return the clocks of the aligned camera files in `films`, and why others have none."""
    clocks, reasons = [], []
    for stored in map(read_alignment, alignment_files(recording)):
        file = films / stored.source
        if stored.is_on_camera:
            reasons.append(f"{stored.source} is placed on {stored.master}, and on no clock of the recorder")
            continue
        if stored.clock_map is None or not stored.samples or file.suffix.upper() != ".MP4":
            reasons.append(stored.problem or f"{stored.source} is {stored.status}")
            continue
        last_s = stored.samples[-1][0]
        late_s = stored.picture_late_s, stored.telemetry_late_s
        clocks.append(
            FilmClock(file, stored.headset, stored.clock_map, last_s, late_s[0], stored.errors, late_s[1])
        )
    return clocks, reasons
