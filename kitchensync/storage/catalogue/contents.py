"""The contents of a recording for `kitchensync info`: streams, cameras, events, alignments and verdict."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.gopro.mp4.film_part import pictures_of_part
from kitchensync.shell.files_on_disk import matching
from kitchensync.storage.catalogue.listing import RecordingLine, line_of, utc_words
from kitchensync.storage.chunks.chunk_reader import Chunk, chunk_paths
from kitchensync.storage.chunks.layout import INDEX
from kitchensync.storage.errors import BadChunk, BadEventLog, FilesFreed, StorageError, words_of
from kitchensync.storage.events import event_logs, read_lines
from kitchensync.storage.exports.hidden_films import pauses_in_detail
from kitchensync.storage.names import PART_OF
from kitchensync.storage.reading.alignments import alignment_files, read_alignment
from kitchensync.storage.recording import Recording, StoredStream, camera_files
from kitchensync.storage.timeline.utc_times import UtcTimes, utc_times
from kitchensync.storage.verify import kept_verdict
from kitchensync.storage.verify.by_life import RecordingVerification
from kitchensync.storage.verify.verification import FILMS

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import MomentForm
    from kitchensync.storage.timeline.session_time import SessionTime


class StreamContent(TypedDict, total=False):
    packets: int | None
    bytes: int | None
    rate_hz: float | None
    nominal_hz: float | None
    codec: str | None
    from_s: float | None
    to_s: float | None
    from_utc: str | None
    to_utc: str | None
    problem: str


class _VideoContent(TypedDict, total=False):
    name: str
    bytes: int
    seconds: float
    pictures: int
    width: int
    height: int
    fps: str
    codec: str
    problem: str


class _CameraContent(TypedDict, total=False):
    files: list[_VideoContent]
    bytes: int
    seconds: float | None
    problem: str


class _AlignmentContent(TypedDict, total=False):
    source: str
    master: str | None
    status: str
    bound95_ms: float | None
    total_ms: float | None
    bounds: str
    problem: str


class RecordingContents(RecordingLine, total=False):
    """The object `info/1`."""

    devices: dict[str, str | None]
    "Device -> kind."
    streams: dict[str, StreamContent]
    cameras: dict[str, _CameraContent]
    pauses: dict[str, Any]
    events: dict[str, int]
    "Kind -> number."
    alignments: list[_AlignmentContent]
    calibration: list[str]
    "Files in the recording."


def contents_of(recording: Recording) -> RecordingContents:
    """Describe an open recording; unreadable parts have a `problem`.

    Times are seconds of session time, and UTC. If its files were freed and no copy can be reached, the streams come
    from the last answer of `verify`.
    """
    path, devices = recording.path, recording.manifest["devices"]
    contents = cast(RecordingContents, line_of(path, path))
    events, problems = _events(recording)
    try:
        placed = _placing(recording, problems)
        streams = {name: _stream(recording, name, placed) for name in recording.streams}
        films = {
            name: recording.readable / name for name, device in devices.items() if device.get("kind") in FILMS
        }
        is_part = PART_OF in recording.manifest
        cameras = {name: _camera(folder, is_part=is_part) for name, folder in films.items()}
        pauses = _pauses(recording, problems)
    except FilesFreed as error:
        verdict: RecordingVerification = kept_verdict(path) or {}
        streams = {
            name: {
                "packets": stream.get("stored"),
                "rate_hz": stream.get("rate_hz"),
                "nominal_hz": stream.get("nominal_hz"),
                "bytes": stream.get("bytes"),
            }
            for name, stream in verdict.get("streams", {}).items()
        }
        cameras, pauses = {}, {}
        problems.append(str(error))
    contents |= {
        "devices": {name: device.get("kind") for name, device in devices.items()},
        "streams": streams,
        "cameras": cameras,
        "pauses": pauses,
        "events": events,
        "alignments": [_alignment(file) for file in alignment_files(path)],
        "calibration": [file.relative_to(path).as_posix() for file in matching(path, "*/calibration/*.h5")],
    }
    return contents | {"problem": "; ".join(problems)} if problems else contents


def _placing(recording: Recording, problems: list[str]) -> Placing:
    """Return the conversion of packets to session time; if it is not known, by arrival since the start."""
    started = recording.manifest.get("started") or {}
    utc = utc_times(recording.manifest)
    try:
        return Placing(recording.session_time, recording.main_headset, started, utc)
    except FilesFreed:
        raise
    except (StorageError, OSError) as error:
        problems.append(f"times are seconds since the start, by arrival: {words_of(error)}")
        return Placing(None, "", started, utc)


@dataclass(frozen=True)
class Placing:
    """Conversion of the packets of a recording to session time and UTC."""

    session: SessionTime | None
    main_headset: str
    started: MomentForm
    "`host_ns` and `utc_ns` of the same moment."
    times: UtcTimes | None

    def seconds(self, name: str, rows: np.ndarray) -> list[float]:
        """Return seconds of session time; for other devices by arrival, without a headset since the start."""
        arrived = rows["host_ns"].astype(np.int64)
        if self.session is not None and name.startswith(f"{self.main_headset}/"):
            session_ns = self.session.of_ticks(rows["device_ticks"].astype(np.int64), near_host_ns=arrived)
            return [float(ns) / 1e9 for ns in session_ns]
        by_session = self.session.of_host(arrived) if self.session is not None else None
        since_start = arrived - int(self.started.get("host_ns") or arrived[0])
        return [float(ns) / 1e9 for ns in (since_start if by_session is None else by_session)]

    def utc(self, host_ns: int) -> str | None:
        """Return UTC of an arrival; None if it is not known."""
        return None if self.times is None else utc_words(int(self.times.to_utc(host_ns)))


def _stream(recording: Recording, name: str, placed: Placing) -> StreamContent:
    stream, description = recording[name], recording.manifest["streams"].get(name, {})
    index, size, problems = _opened(recording.readable, stream)
    if PART_OF in recording.manifest:
        try:
            index = index[~recording.hides(name, index)]
        except (StorageError, OSError) as error:
            problems.append(f"packets beyond the part are counted too: {words_of(error)}")
    facts: StreamContent = {
        "nominal_hz": description.get("nominal_hz"),
        "codec": (description.get("format") or {}).get("codec"),
        "packets": len(index),
        "bytes": size,
        "rate_hz": None,
        "from_s": None,
        "to_s": None,
        "from_utc": None,
        "to_utc": None,
    }
    if problems:
        facts["problem"] = "; ".join(problems)
    if len(index) == 0:
        return facts
    first_s, last_s = placed.seconds(name, index[[0, -1]])
    facts |= {"from_s": round(first_s, 3), "to_s": round(last_s, 3)}
    facts["rate_hz"] = round((len(index) - 1) / (last_s - first_s), 3) if last_s > first_s else None
    from_utc, to_utc = (placed.utc(int(host_ns)) for host_ns in index["host_ns"][[0, -1]])
    return facts | {"from_utc": from_utc, "to_utc": to_utc}


def _opened(folder: Path, stream: StoredStream) -> tuple[np.ndarray, int, list[str]]:
    """Return the index of all readable chunks, the size of all files, and the problems of the others."""
    paths = chunk_paths(stream.folder)
    try:
        return stream.index, sum(path.stat().st_size for path in paths), []
    except (BadChunk, OSError):
        size, parts, problems = 0, [np.empty(0, INDEX)], list[str]()
        for path in paths:
            try:
                size += path.stat().st_size
                with Chunk(path) as chunk:
                    parts.append(chunk.index)
            except BadChunk as error:
                problems.append(f"{path.relative_to(folder)}: {error.why}")
            except OSError as error:
                problems.append(words_of(error))
        return np.concatenate(parts), size, problems


def _camera(folder: Path, *, is_part: bool) -> _CameraContent:
    files = [_film(path, is_part=is_part) for path in camera_files(folder)]
    lengths = [film["seconds"] for film in files if "seconds" in film]
    bad = [film["problem"] for film in files if "problem" in film]
    camera: _CameraContent = {
        "files": files,
        "bytes": sum(film["bytes"] for film in files),
        "seconds": round(sum(lengths), 3) if lengths else None,
    }
    return camera | {"problem": "; ".join(bad)} if bad else camera


def _film(path: Path, *, is_part: bool) -> _VideoContent:
    facts: _VideoContent = {"name": path.name, "bytes": path.stat().st_size}
    try:
        video = open_media(path).video
        kept = pictures_of_part(path) if is_part else {}
    except (SensorError, OSError) as error:
        return facts | {"problem": words_of(error)}
    if video is None:
        return facts | {"problem": f"{path}: has no pictures"}
    facts |= {"seconds": round(video.duration_s, 3), "pictures": video.frames}
    facts |= {"width": video.width, "height": video.height, "fps": str(video.rate), "codec": video.codec}
    return facts | cast(_VideoContent, kept)


def _pauses(recording: Recording, problems: list[str]) -> dict[str, Any]:
    try:
        return pauses_in_detail(recording) if recording.pauses else {}
    except FilesFreed:
        raise
    except (StorageError, SensorError, OSError) as error:
        problems.append(f"the times of privacy pauses are not known: {words_of(error)}")
        return {}


def _events(recording: Recording) -> tuple[dict[str, int], list[str]]:
    """Count events by kind, up to a damaged line; return the damaged lines."""
    kinds: Counter[str] = Counter()
    problems = []
    for path in event_logs(recording.path):
        try:
            for event, _ in read_lines(path):
                kinds[str(event.get("kind"))] += 1
        except (BadEventLog, OSError) as error:
            problems.append(words_of(error))
    return dict(kinds.most_common()), problems


def _alignment(file: Path) -> _AlignmentContent:
    stored = read_alignment(file)
    facts: _AlignmentContent = {
        "source": stored.source,
        "master": stored.master or None,
        "status": stored.status,
        "bound95_ms": stored.bound95_ms,
        "total_ms": stored.total_ms,
        "bounds": stored.bounds_in_words,
    }
    return facts | ({"problem": stored.problem} if stored.problem else {})
