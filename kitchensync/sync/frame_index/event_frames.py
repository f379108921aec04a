"""The pictures of every camera at events: `sync/events.json`.

An event has a time on the capture clock with an uncertainty. Pictures are converted to the same clock: those of a
headset by its clock exchanges with the recorder, those of a camera by its alignment with that headset. Their bounds
add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.hololens.catalogue import FRONT_CAMERA
from kitchensync.shell.array_types import Int64
from kitchensync.shell.untrusted_json import load_json
from kitchensync.storage.errors import BadEventLog
from kitchensync.storage.events import LogEvent, event_logs, read_lines
from kitchensync.storage.manifest import write_json
from kitchensync.storage.timeline.alignment import Alignment
from kitchensync.storage.timeline.session_time import SessionTime
from kitchensync.sync.align.nearest import strictly_increasing, tolerance_ticks
from kitchensync.sync.answers import EventCounts
from kitchensync.sync.recording.clips_to_align import CameraFile
from kitchensync.sync.recording.sync_session import Headset, Session

NAME, SCHEMA = Path("sync") / "events.json", "event-frames/1"
TOLD = ("step", "position", "error_id", "category_name", "undoes")
STARTS_SERVE_S = 0.5  # maximum uncertainty of a usable start


class PicturePlace(TypedDict, total=False):
    """The picture at a time (`frame` None: none, with the reason), and the range of possible ones."""

    file: str
    frame: int | None
    why: str
    uncertainty_ms: float
    dt_ms: float
    first: int
    last: int
    media_s: float


class PlacedEvent(TypedDict, total=False):
    """An event with its place in the pictures of every stream."""

    writer: str
    op_id: str | None
    kind: str
    session_ns: int
    host_ns: int
    uncertainty_ns: int
    frames: dict[str, PicturePlace]


@dataclass(frozen=True, slots=True)
class PictureTimes:
    """Pictures of one stream or camera file on the capture clock, rising; `row` (n,) are their stored numbers."""

    stream: str
    host_ns: Int64
    row: Int64
    bound_ns: int
    file: str = ""
    media_s: npt.NDArray[np.floating] | None = None

    def place(self, at_ns: int, uncertainty_ns: int) -> PicturePlace:
        """Find the picture at a time."""
        doubt_ns = uncertainty_ns + self.bound_ns
        first, best, last = (self._nearest(at_ns + away_ns) for away_ns in (-doubt_ns, 0, doubt_ns))
        away_ns = int(self.host_ns[best]) - at_ns
        place: PicturePlace = {"file": self.file} if self.file else {}
        uncertainty_ms = round(doubt_ns / 1e6, 3)
        if abs(away_ns) > tolerance_ticks(self.host_ns) + doubt_ns:
            why = "no picture near it"
            if best == 0 and away_ns > 0:
                why = "before the first picture"
            elif best == len(self.host_ns) - 1 and away_ns < 0:
                why = "after the last picture"
            return place | {"frame": None, "why": why, "uncertainty_ms": uncertainty_ms}
        place |= {"uncertainty_ms": uncertainty_ms, "frame": int(self.row[best])}
        place |= {
            "dt_ms": round(away_ns / 1e6, 3),
            "first": int(self.row[first]),
            "last": int(self.row[last]),
        }
        if self.media_s is not None:
            place["media_s"] = round(float(self.media_s[best]), 4)
        return place

    def _nearest(self, at_ns: int) -> int:
        after = min(int(np.searchsorted(self.host_ns, at_ns)), len(self.host_ns) - 1)
        return min((max(after - 1, 0), after), key=lambda k: abs(int(self.host_ns[k]) - at_ns))


def read_noted(recording: Path) -> tuple[list[LogEvent], list[str]]:
    """Return the events by time, and problems of their logs; a damaged log is read up to its damage.

    Each event has a `body` that is an object, an integer `host_ns` and its `writer`.
    """
    events: list[LogEvent] = []
    problems: list[str] = []
    for path in event_logs(recording):
        try:
            for event, _ in read_lines(path):
                body = event["body"] if isinstance(event.get("body"), dict) else {}
                events.append({**event, "body": body, "writer": path.stem, "host_ns": int(event["host_ns"])})
        except (BadEventLog, OSError, KeyError, TypeError, ValueError) as error:
            problems.append(f"events/{path.name}: {' '.join(str(error).split()).rpartition(': ')[2]}")
    return sorted(events, key=lambda event: int(event["host_ns"])), problems


def write_event_frames(session: Session, pairs: list[Alignment]) -> EventCounts:
    """Place events in the pictures by the alignments of this run, and write them, if there are any."""
    events, _ = read_noted(session.recording.path)
    if not events:
        return {"events": 0, "placed": 0}
    streams: dict[str, list[PictureTimes]] = {}
    for pictures in (*_headset_pictures(session), *_camera_pictures(session, pairs)):
        streams.setdefault(pictures.stream, []).append(pictures)
    time = session.recording.session_time
    placed = [_placed(event, streams, time) for event in events]
    about = {
        name: {"bound_ms": round(max(p.bound_ns for p in files) / 1e6, 3)} for name, files in streams.items()
    }
    write_json(session.folder / NAME.name, {"schema": SCHEMA, "streams": about, "events": placed})
    placed_count = sum(
        any(place["frame"] is not None for place in event["frames"].values()) for event in placed
    )
    return {"events": len(placed), "placed": placed_count}


def read_event_frames(recording: Path) -> list[PlacedEvent]:
    """Return the events as placed by an earlier run; empty if it did not, or its file cannot be read."""
    try:
        content = load_json(recording / NAME)
        events = content["events"] if content["schema"] == SCHEMA else []
        return [one for one in events if isinstance(one["frames"], dict) and int(one["host_ns"]) >= 0]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def in_words(frames: dict[str, PicturePlace]) -> str:
    """Report which pictures show an event: `hololens/pv 512 (± 3 ms); GX010001.MP4 498 (± 12 ms)`."""
    return "; ".join(
        f"{Path(place['file']).name if place.get('file') else name} {place['frame']}"
        f" (± {place['uncertainty_ms']:.0f} ms)"
        for name, place in sorted(frames.items())
        if place.get("frame") is not None
    )


def _placed(event: LogEvent, streams: dict[str, list[PictureTimes]], time: SessionTime | None) -> PlacedEvent:
    """Place an event; of several files of a camera the nearest that shows it counts, else the first."""
    at_ns, uncertainty_ns = event["host_ns"], int(event.get("uncertainty_ns") or 0)
    placed: dict[str, object] = {
        "writer": event["writer"],
        "op_id": event.get("op_id"),
        "kind": event.get("kind"),
    }
    placed |= {name: event["body"][name] for name in TOLD if name in event["body"]}
    session_ns = time.of_host([at_ns]) if time is not None else None
    if session_ns is not None:
        placed["session_ns"] = int(session_ns[0])
    frames = {}
    for name, files in streams.items():
        places = [one.place(at_ns, uncertainty_ns) for one in files]
        shown = [place for place in places if place["frame"] is not None]
        frames[name] = min(shown, key=lambda place: abs(place["dt_ms"])) if shown else places[0]
    placed |= {"host_ns": at_ns, "uncertainty_ns": uncertainty_ns, "frames": frames}
    return cast(PlacedEvent, placed)


def _headset_pictures(session: Session) -> Iterator[PictureTimes]:
    for headset in session.headsets:
        if headset.host is not None and headset.has(FRONT_CAMERA):
            name = f"{headset.name}/{FRONT_CAMERA}"
            index = session.recording[name].index
            ticks, arrived = (index[key].astype(np.int64) for key in ("device_ticks", "host_ns"))
            taken = headset.host.to_host_ns(ticks, near_host_ns=arrived)
            order = strictly_increasing(taken)
            yield PictureTimes(name, taken[order.rows], order.rows, headset.host.bound_ns)


def _camera_pictures(session: Session, pairs: list[Alignment]) -> Iterator[PictureTimes]:
    """Place camera files by their alignment; without a headset by the shutter, if its time is known."""
    sigmas = {pair.source: pair.total_ms for pair in pairs}
    for clip in session.clips:
        usable_starts = [start for start in clip.starts if start.serves and start.sigma_s <= STARTS_SERVE_S]
        for file in clip.readable:
            headset, sigma_ms = session.rides_with.get(file.source), sigmas.get(file.source)
            if isinstance(headset, Headset) and headset.host is not None and sigma_ms is not None:
                taken_s = file.frame_times_s + session.picture_late_s.get(file.source, 0.0)
                taken = headset.host.to_host_ns(session.maps[file.source].to_ticks(taken_s))
                yield _of_file(file, taken, headset.host.bound_ns + round(2e6 * float(sigma_ms)))
            elif not session.headsets and usable_starts:
                start = min(usable_starts, key=lambda start_time: start_time.sigma_s)
                taken = start.host_ns + np.rint((file.start_s + file.frame_times_s) * 1e9).astype(np.int64)
                yield _of_file(file, taken, round(2e9 * start.sigma_s))


def _of_file(file: CameraFile, taken: Int64, bound_ns: int) -> PictureTimes:
    order = strictly_increasing(taken)
    media_s = file.frame_times_s[order.rows]
    return PictureTimes(
        f"{file.device}/video", taken[order.rows], order.rows, bound_ns, file.relative, media_s
    )
