"""Find the parts of a camera's videos that may be in a privacy pause, and everything that pauses hide."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.gopro.files.card_names import group_clips
from kitchensync.sensors.gopro.files.clip import open_clip
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.mask_runs import marked_runs
from kitchensync.shell.array_types import Floats, Mask
from kitchensync.storage.frame_capture_times import rough_capture_times
from kitchensync.storage.privacy import in_pauses

if TYPE_CHECKING:
    from kitchensync.storage.recording import Recording


def hidden_in_film(recording: Recording, file: Path, media_s: Floats) -> Mask:
    """Return which times of a camera's file, (n,) media seconds, may be in a pause; all if that is unknown."""
    if not recording.pauses:
        return np.zeros(len(media_s), np.bool_)
    camera = file.parent.name
    paths = next((paths for paths in clips_in(recording, camera) if file in paths), (file,))
    clip, chapter = open_clip(*paths), paths.index(file)
    times = rough_capture_times(recording, camera, clip)
    hidden = in_pauses(times.capture_ns, times.bound_ns, recording.pauses)
    first, stamps_s = clip.first_frames[chapter], clip.chapters[chapter].frame_times_s
    hidden = hidden[first : first + len(stamps_s)]
    # At a hidden frame, or next to one.
    after = np.searchsorted(stamps_s, media_s).clip(0, len(stamps_s) - 1)
    is_hidden: Mask = hidden[after] | hidden[np.maximum(after - 1, 0)] & (stamps_s[after] != media_s)
    return is_hidden


def clips_in(recording: Recording, camera: str) -> list[tuple[Path, ...]]:
    """Return the files of each clip of a camera."""
    return [group.paths for group in group_clips(recording.gopro_files.get(camera, []))]


def pauses_in_detail(recording: Recording) -> dict[str, Any]:
    """Return the pauses of a recording: `host_ns`, and the hidden runs of each stream on its own clock.

    `streams`: [first, last] device ticks of each run of hidden packets; `cameras`: [first, last] media seconds.
    """
    streams = {name: recording[name] for name in recording.streams}
    runs = {name: _runs(stream.hidden, stream.index["device_ticks"]) for name, stream in streams.items()}
    films = {}
    for file in (stream for files in recording.gopro_files.values() for stream in files):
        stamps_s = open_media(file).frame_times_s
        hidden_runs = _runs(hidden_in_film(recording, file, stamps_s), stamps_s)
        films[file] = [[float(first_s), float(last_s)] for first_s, last_s in hidden_runs]
    return {
        "host_ns": [list(span) for span in recording.pauses],
        "streams": {name: spans for name, spans in runs.items() if spans},
        "cameras": {
            f"{file.parent.name}/{file.name}": hidden_runs
            for file, hidden_runs in films.items()
            if hidden_runs
        },
    }


def _runs(hidden: Mask, at: npt.NDArray[Any]) -> list[list[Any]]:
    return [[at[first].item(), at[end - 1].item()] for first, end in marked_runs(hidden)]
