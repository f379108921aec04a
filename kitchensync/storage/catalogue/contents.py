"""The contents of a recording for `kitchensync info`: streams, cameras, events, alignments and verdict."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.gopro.mp4.film_part import pictures_of_part
from kitchensync.shell.files_on_disk import matching
from kitchensync.storage.catalogue.listing import line_of, utc_words
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
from kitchensync.storage.verify.verification import FILMS

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import MomentForm
    from kitchensync.storage.timeline.session_time import SessionTime


def contents_of(recording: Recording) -> dict[str, Any]:
    """Describe an open recording; unreadable parts have a `problem`.

    Times are seconds of session time, and UTC. If its files were freed and no copy can be reached, the streams come
    from the last answer of `verify`.
    """
    path, devices = recording.path, recording.manifest["devices"]
    line = line_of(path, path)
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
        kept = (kept_verdict(path) or {}).get("streams", {})
        keys = {"packets": "stored", "rate_hz": "rate_hz", "nominal_hz": "nominal_hz", "bytes": "bytes"}
        streams = {n: {ours: facts.get(theirs) for ours, theirs in keys.items()} for n, facts in kept.items()}
        cameras, pauses = {}, {}
        problems.append(str(error))
    return line | {
        "devices": {name: device.get("kind") for name, device in devices.items()},
        "streams": streams,
        "cameras": cameras,
        "pauses": pauses,
        "events": events,
        "alignments": [_alignment(file) for file in alignment_files(path)],
        "calibration": [file.relative_to(path).as_posix() for file in matching(path, "*/calibration/*.h5")],
        **({"problem": "; ".join(problems)} if problems else {}),
    }


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


def _stream(recording: Recording, name: str, placed: Placing) -> dict[str, Any]:
    stream, description = recording[name], recording.manifest["streams"].get(name, {})
    index, size, problems = _opened(recording.readable, stream)
    if PART_OF in recording.manifest:
        try:
            index = index[~recording.hides(name, index)]
        except (StorageError, OSError) as error:
            problems.append(f"packets beyond the part are counted too: {words_of(error)}")
    facts = {
        "nominal_hz": description.get("nominal_hz"),
        "codec": (description.get("format") or {}).get("codec"),
        "packets": len(index),
        "bytes": size,
        **dict.fromkeys(("rate_hz", "from_s", "to_s", "from_utc", "to_utc")),
        **({"problem": "; ".join(problems)} if problems else {}),
    }
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


def _camera(folder: Path, *, is_part: bool) -> dict[str, Any]:
    files = [_film(path, is_part=is_part) for path in camera_files(folder)]
    lengths = [film["seconds"] for film in files if "seconds" in film]
    bad = [film["problem"] for film in files if "problem" in film]
    return {
        "files": files,
        "bytes": sum(film["bytes"] for film in files),
        "seconds": round(sum(lengths), 3) if lengths else None,
        **({"problem": "; ".join(bad)} if bad else {}),
    }


def _film(path: Path, *, is_part: bool) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": path.name, "bytes": path.stat().st_size}
    try:
        video = open_media(path).video
        kept = pictures_of_part(path) if is_part else {}
    except (SensorError, OSError) as error:
        return facts | {"problem": words_of(error)}
    if video is None:
        return facts | {"problem": f"{path}: has no pictures"}
    picture = {"width": video.width, "height": video.height, "fps": str(video.rate), "codec": video.codec}
    return facts | {"seconds": round(video.duration_s, 3), "pictures": video.frames, **picture, **kept}


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


def _alignment(file: Path) -> dict[str, Any]:
    stored = read_alignment(file)
    facts: dict[str, Any] = {
        "source": stored.source,
        "master": stored.master or None,
        "status": stored.status,
        "bound95_ms": stored.bound95_ms,
        "total_ms": stored.total_ms,
        "bounds": stored.bounds_in_words,
    }
    return facts | ({"problem": stored.problem} if stored.problem else {})
