"""What `sync` found of a camera file: `sync/alignment/*.json`, read in one place for all who use it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sensors.array_types import Floats, Int64
from storage.errors import OutsideMap
from storage.timeline.clock_map import ClockMap

FOLDER = Path("sync") / "alignment"
SCHEMA = "alignment/1"


@dataclass(frozen=True)
class StoredAlignment:
    """One alignment object; `clock_map` is None where nothing is aligned, `problem` says why it cannot be read."""

    source: str
    body: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    clock_map: ClockMap | None = None

    @property
    def status(self) -> str:
        """`aligned`, `check`, `not_aligned`, or `unreadable`."""
        return str(self.body.get("status", "unreadable")) if not self.problem else "unreadable"

    @property
    def headset(self) -> str:
        """Name of the device whose ticks the map gives, as far as the file says."""
        return str(self.body.get("master", "hololens")).partition("/")[0]

    @property
    def picture_late_s(self) -> float:
        """How much later than their stamps pictures were taken, as `sync-camera` measured it; 0 where nobody did."""
        parts = (self.body.get("sigma") or {}).get("systematic_ms", [])
        measured = [part["value"] for part in parts if part.get("source") == "measured"]
        return float(measured[0]) / 1e3 if measured else 0.0


@dataclass(frozen=True)
class FilmClock:
    """The media seconds of one aligned camera file and the ticks of the headset that it rides with."""

    file: Path
    headset: str
    clock_map: ClockMap
    last_s: float
    "Media time up to which the film's times are handed out."
    picture_late_s: float = 0.0

    def media_of(self, ticks: Int64) -> Floats:
        """Return media seconds (n,) of device ticks (n,); NaN outside of the film."""
        media_s = np.asarray(self.clock_map.to_media(ticks), np.float64)
        return np.where((media_s >= 0.0) & (media_s <= self.last_s), media_s, np.nan)

    def ticks_of(self, media_s: Floats) -> Int64:
        """Return device ticks (n,) of media seconds (n,)."""
        return self.clock_map.to_ticks(media_s)

    def taken_at(self, stamps_s: Floats) -> Int64:
        """Return the device ticks (n,) at which pictures with these stamps (media seconds) were taken."""
        return self.ticks_of(stamps_s + self.picture_late_s)


def alignment_files(recording: Path) -> list[Path]:
    """Return the files that `sync` wrote, in order of name, those of several devices too."""
    return sorted((recording / FOLDER).rglob("*.json"))


def read_alignment(path: Path) -> StoredAlignment:
    """Read one file; one that cannot be read says so in `problem`."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(body, dict) or body.get("schema") != SCHEMA:
            raise ValueError(f"not of schema {SCHEMA}")
        usable = body.get("map") and body.get("status") in ("aligned", "check")
        clock_map = ClockMap.from_object(body) if usable else None
    except (OSError, ValueError, KeyError, TypeError, OutsideMap) as error:
        return StoredAlignment(path.stem, problem=f"{path.name}: {error}; run `kitchensync sync` again")
    return StoredAlignment(str(body.get("source") or path.stem), body, clock_map=clock_map)


def film_clocks(recording: Path, films: Path) -> tuple[list[FilmClock], list[str]]:
    """Return the clocks of the aligned camera files of a recording, and why others have none.

    `films` is the folder in which its camera files can be read.
    """
    found, why = [], []
    for stored in map(read_alignment, alignment_files(recording)):
        file = films / stored.source
        samples = stored.body.get("samples")
        if stored.clock_map is None or not samples or file.suffix.upper() != ".MP4":
            why.append(stored.problem or f"{stored.source} is {stored.status}")
            continue
        late_s = stored.picture_late_s
        found.append(FilmClock(file, stored.headset, stored.clock_map, float(samples[-1][0]), late_s))
    return found, why
