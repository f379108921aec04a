"""What is in a recording: streams, cameras, events, alignments and verdict, as `kitchensync info` shows it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from sensors.errors import SensorError
from storage.errors import BadEventLog, FilesFreed, StorageError
from storage.listing import line_of, utc_words
from storage.reading.alignments import alignment_files, read_alignment
from storage.recording import Recording, StoredStream
from storage.verify import kept_verdict


def contents_of(recording: Recording) -> dict[str, Any]:
    """Describe an open recording; what cannot be read says so in `problem`, the rest is there.

    Times are seconds of session time, and UTC. Where its files lie elsewhere and no copy can be reached, its streams
    are told by the last answer of `verify`.
    """
    path = recording.path
    said = line_of(path, path.parent)
    try:
        streams = {name: _stream(recording, name) for name in recording.streams}
        cameras = {name: _camera(recording, name, files) for name, files in recording.gopro_files.items()}
    except FilesFreed as error:
        streams, cameras, said["problem"] = _kept_streams(path), {}, str(error)
    events, problem = _events(recording)
    return said | {
        "devices": {name: device.get("kind") for name, device in recording.manifest["devices"].items()},
        "streams": streams,
        "cameras": cameras,
        "events": events,
        "alignments": [_alignment(file) for file in alignment_files(path)],
        "calibration": sorted(file.relative_to(path).as_posix() for file in path.glob("*/calibration/*.h5")),
        **({"problem": problem} if problem else {}),
    }


def _stream(recording: Recording, name: str) -> dict[str, Any]:
    stream, description = recording[name], recording.manifest["streams"].get(name, {})
    said = {
        "nominal_hz": description.get("nominal_hz"),
        "codec": (description.get("format") or {}).get("codec"),
    }
    try:
        said |= _of_index(recording, stream)
    except (StorageError, OSError) as error:
        said["problem"] = str(error)
    return said


def _of_index(recording: Recording, stream: StoredStream) -> dict[str, Any]:
    index, size = stream.index, sum(file.stat().st_size for file in stream.folder.glob("*.h5"))
    said: dict[str, Any] = {
        "packets": len(index),
        "bytes": size,
        "rate_hz": None,
        "from_s": None,
        "to_s": None,
    }
    if len(index) == 0:
        return said
    ends = index[[0, -1]]
    seconds = _session_s(recording, stream.name, ends)
    whole_s = seconds[1] - seconds[0]
    said |= {"from_s": round(seconds[0], 3), "to_s": round(seconds[1], 3)}
    said["rate_hz"] = round((len(index) - 1) / whole_s, 3) if whole_s > 0 else None
    return said | {
        "from_utc": _utc(recording, int(ends["host_ns"][0])),
        "to_utc": _utc(recording, int(ends["host_ns"][1])),
    }


def _session_s(recording: Recording, name: str, ends: np.ndarray) -> list[float]:
    """Seconds of session time; of another device by its arrivals, without a headset since the start."""
    session = recording.session_time
    arrived = ends["host_ns"].astype(np.int64)
    if session is not None and name.startswith(f"{recording.main_headset}/"):
        found = session.of_ticks(ends["device_ticks"].astype(np.int64), near_host_ns=arrived)
    else:
        by_session = session.of_host(arrived) if session is not None else None
        started_ns = int((recording.manifest.get("started") or {}).get("host_ns") or arrived[0])
        found = arrived - started_ns if by_session is None else by_session
    return [float(ns) / 1e9 for ns in found]


def _utc(recording: Recording, host_ns: int) -> str | None:
    started = recording.manifest.get("started") or {}
    if not started.get("utc_ns") or not started.get("host_ns"):
        return None
    return utc_words(int(started["utc_ns"]) + host_ns - int(started["host_ns"]))


def _camera(recording: Recording, device: str, files: list[Path]) -> dict[str, Any]:
    said: dict[str, Any] = {
        "files": [{"name": file.name, "bytes": file.stat().st_size} for file in files],
        "bytes": sum(file.stat().st_size for file in files),
    }
    if not files:
        return said
    try:
        take = recording.camera(f"{device}/video").take
        video = take.chapters[0].video
        said |= {"seconds": round(float(take.duration_s), 3), "pictures": len(take.frame_times_s)}
        if video is not None:
            said |= {
                "width": video.width,
                "height": video.height,
                "fps": str(video.rate),
                "codec": video.codec,
            }
    except (SensorError, StorageError, OSError) as error:
        said["problem"] = str(error)
    return said


def _kept_streams(path: Path) -> dict[str, Any]:
    kept = (kept_verdict(path) or {}).get("streams", {})
    keys = {"packets": "stored", "rate_hz": "rate_hz", "nominal_hz": "nominal_hz", "bytes": "bytes"}
    return {name: {ours: facts.get(theirs) for ours, theirs in keys.items()} for name, facts in kept.items()}


def _events(recording: Recording) -> tuple[dict[str, int], str]:
    try:
        return dict(Counter(str(event.get("kind")) for event in recording.events()).most_common()), ""
    except BadEventLog as error:
        return {}, str(error)


def _alignment(file: Path) -> dict[str, Any]:
    stored = read_alignment(file)
    sigma = stored.body.get("sigma") or {}
    said: dict[str, Any] = {
        "source": stored.source,
        "master": stored.body.get("master"),
        "status": stored.status,
    }
    said["total_ms"] = sigma.get("total_ms")
    return said | ({"problem": stored.problem} if stored.problem else {})
