"""What `sync` reads of films that were adopted: their pictures' times, and the motion of those of a GoPro."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import numpy.typing as npt

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.media import open_container, open_media
from kitchensync.sensors.gopro.files.pace import pace_words
from kitchensync.storage.copies.read_through import promised_hashes
from kitchensync.storage.errors import pass_on_trouble
from kitchensync.storage.reading.shutter_openings import clip_openings
from kitchensync.storage.recording import Recording
from kitchensync.sync.recording.clips_to_align import CameraClip, CameraFile, read_clip

KIND = "video"


def adopted_clips(recording: Recording) -> list[CameraClip]:
    """Read every adopted film in the order in which it was given; chapters of a GoPro are one clip.

    No picture is decoded, but where the clues of a film contradict each other.
    """
    devices = [name for name, about in recording.manifest["devices"].items() if about.get("kind") == KIND]
    promised = list(promised_hashes(recording.readable, recording.manifest)) if devices else []
    clips = []
    for device in devices:
        films = [recording.readable / name for name in promised if name.partition("/")[0] == device]
        moving = [path for path in films if _has_motion(path)]
        for opening in clip_openings({}, moving):
            clips += read_clip(recording, device, list(opening.files), None)
        clips += [_still_clip(recording, device, path) for path in films if path not in moving]
    return sorted(clips, key=lambda clip: promised.index(clip.files[0].relative))


def _has_motion(path: Path) -> bool:
    try:
        return any(track.format == "gpmd" for track in open_media(path).tracks.values())
    except SensorError as error:
        pass_on_trouble(error)
        return False


def _still_clip(recording: Recording, device: str, path: Path) -> CameraClip:
    """Read the media time of each picture, the first is 0, of a film that says nothing of motion."""
    relative, problem = path.relative_to(recording.readable).as_posix(), ""
    times_s: npt.NDArray[np.floating] = np.empty(0)
    try:
        with open_container(path) as container:
            stream = next(iter(container.streams.video), None)
            if stream is not None and stream.time_base is not None:
                packets = (one for one in container.demux(stream) if one.size and not one.is_discard)
                stamps = np.array(sorted(one.pts for one in packets if one.pts is not None), dtype=np.int64)
                times_s = (stamps - stamps[:1]) * float(stream.time_base)
    except (av.FFmpegError, OSError) as error:
        pass_on_trouble(error)
        problem = f"{path.name}: {(error.strerror or str(error)).lower()}"
    if not len(times_s):
        problem = problem or f"{path.name}: no pictures"
    file = CameraFile(device, path, relative, times_s, 0.0, 0.0, False, problem)
    noted = (f"{path.name}: {words}",) if (words := pace_words(path)) else ()
    return CameraClip(device, (file,), relative, problem=f"{path.name}: no telemetry", noted=noted)
