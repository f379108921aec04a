"""Films that were adopted: no clock but their own media time, and no gyroscope."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import numpy.typing as npt

from storage.copies.promised import promised_hashes
from storage.recording import Recording
from storage.trouble import pass_on_trouble
from sync.recording.cameras import CameraFile, CameraTake

KIND = "video"


def film_takes(recording: Recording) -> list[CameraTake]:
    """Read the times of the pictures of every adopted film, each a take of its own; no picture is decoded."""
    devices = [name for name, about in recording.manifest["devices"].items() if about.get("kind") == KIND]
    promised = promised_hashes(recording.readable, recording.manifest) if devices else {}
    return [
        CameraTake(name.partition("/")[0], (_film(recording, name),))
        for name in promised
        if name.partition("/")[0] in devices
    ]


def _film(recording: Recording, name: str) -> CameraFile:
    path, problem = recording.readable / name, ""
    times_s: npt.NDArray[np.floating] = np.empty(0)
    try:
        times_s = _frame_times_s(path)
    except (av.FFmpegError, OSError) as error:
        pass_on_trouble(error)
        problem = f"{path.name}: {(error.strerror or str(error)).lower()}"
    if not len(times_s):
        problem = problem or f"{path.name}: no pictures"
    return CameraFile(name.partition("/")[0], path, name, times_s, 0.0, 0.0, False, problem)


def _frame_times_s(path: Path) -> npt.NDArray[np.floating]:
    """Media time of each picture in order of time, the first is 0."""
    with av.open(str(path), metadata_errors="replace") as container:
        stream = next(iter(container.streams.video), None)
        if stream is None or stream.time_base is None:
            return np.empty(0)
        stamps = [packet.pts for packet in container.demux(stream) if packet.pts is not None and packet.size]
        times = np.array(sorted(stamps), dtype=np.int64)
        return (times - times[:1]) * float(stream.time_base)
