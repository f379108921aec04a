"""Decode the frames and sound of a recording; report frames that do not decode, black frames and silence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.card_names import group_clips
from kitchensync.sensors.hololens.headset_stream import DEPTH, FRAMES, SOUND
from kitchensync.storage.errors import StorageError
from kitchensync.storage.reading.headset_pictures import Frame
from kitchensync.storage.recording import Recording, StoredStream, open_recording
from kitchensync.storage.redact.redactions import PICTURES, done_samples, in_runs
from kitchensync.storage.timeline.stamps import TICKS_PER_S
from kitchensync.storage.verify import thresholds as limits
from kitchensync.storage.verify.findings import WARN, Findings
from kitchensync.storage.verify.suitable_uses import spans_in_words

HEADSET_HZ = 48_000  # rate of all audio profiles of hl2ss
SAMPLE_ROWS = 60
"""Consecutive frames that are decoded in each part of a sample."""
BLACK_STEP = 8
"""Step of rows and columns in the test for black frames, pixels."""
CAMERA_PICTURES = 40
"""Decoded frames of a camera's video, evenly spread: decoding an hour completely would take half an hour."""
Block = tuple[npt.NDArray[np.float32], int]
"""Samples (channels, n) within +-1, and sample rate."""
Facts = dict[str, dict[str, Any]]
Ticks = tuple[int, int]
"""From and to, device ticks."""


def decode(
    recording: Path, names: Sequence[str], findings: Findings, *, most_parts: int | None = None
) -> tuple[Facts, Facts]:
    """Decode frames and sound of `names`, streams and camera files; return facts by stream and by camera.

    Faults are added to `findings`. `most_parts` limits the decoded parts of each camera stream; sound is always
    decoded completely.
    """
    streams: Facts = {}
    cameras: Facts = {}
    with open_recording(recording, with_pauses=True) as opened:
        for name in [name for name in opened.streams if name in names]:
            look = partial(_stream, opened, name, most_parts, findings)
            streams[name] = _guarded(name, look, findings)
        for device, files in opened.gopro_files.items():
            if not files or any(f"{device}/{file.name}" not in names for file in files):
                continue
            cameras[device] = _guarded(device, partial(_camera, opened, device, findings), findings)
    return streams, cameras


def _guarded(name: str, look: Callable[[], dict[str, Any]], findings: Findings) -> dict[str, Any]:
    """Decode one stream; unreadable files are already reported by its balance."""
    try:
        return look()
    except (StorageError, SensorError, OSError, ValueError) as error:
        findings.note(f"{name} was not decoded: {' '.join(str(error).split())}")
        return {}


def _stream(opened: Recording, name: str, most_parts: int | None, findings: Findings) -> dict[str, Any]:
    stream, sensor = opened[name], opened.sensor(name)
    if sensor is None:
        return {}
    if sensor.kind == SOUND:
        return _heard(name, ((samples, HEADSET_HZ) for _, samples in stream.sound()), findings)
    if "codec" not in stream.format:
        return {}
    if sensor.kind == FRAMES:
        black: list[Ticks] = []
        facts = _seen(name, stream, _noting_black(stream, black), most_parts, findings)
        return facts | _black(name, opened, black, findings)
    if sensor.kind == DEPTH:
        return _seen(name, stream, stream.depth, most_parts, findings)
    return {}


def _seen(
    name: str, stream: StoredStream, read: Any, most_parts: int | None, findings: Findings
) -> dict[str, Any]:
    """Decode all rows, or parts of them; count the frames that do not decode."""
    good, tried = 0, 0
    count = len(stream)
    if most_parts is None or count <= most_parts * SAMPLE_ROWS:
        parts = [(0, count)] if count else []
    else:
        starts = np.linspace(0, count - SAMPLE_ROWS, most_parts).astype(int).tolist()
        parts = [(start, start + SAMPLE_ROWS) for start in starts]
    for first, last in parts:
        good += sum(1 for _ in read(first, last))
        tried += last - first
    bad = [row for row in stream.bad if row < len(stream)]
    if tried and 1 - len(bad) / tried < limits.DECODED_WARN:
        findings.add(WARN, f"{name}: {len(bad)} of {tried} pictures do not decode")
    return {"decoded": {"asked": tried, "pictures": good, "undecodable": len(bad)}}


def _noting_black(stream: StoredStream, black: list[Ticks]) -> Any:
    """Return a reader like `stream.frames` that appends the spans of black frames to `black`."""

    def read(first: int, last: int) -> Iterator[Frame]:
        since: int | None = None
        at = 0
        for frame in stream.frames(first, last):
            at = frame.device_ticks
            is_black = int(frame.grey()[::BLACK_STEP, ::BLACK_STEP].max()) <= limits.BLACK_LUMA
            if is_black and since is None:
                since = at
            elif not is_black and since is not None:
                black.append((since, at))
                since = None
            yield frame
        if since is not None:
            black.append((since, at))

    return read


def _black(name: str, opened: Recording, black: list[Ticks], findings: Findings) -> dict[str, Any]:
    """Report long spans of black frames, seconds since the first packet of the headset."""
    long = [ticks for ticks in black if ticks[1] - ticks[0] >= limits.LOST_S * TICKS_PER_S]
    if not long:
        return {}
    device = name.partition("/")[0]
    indexes = [opened[stream].index for stream in opened.streams if stream.startswith(f"{device}/")]
    zero = min(int(index["device_ticks"][0]) for index in indexes if len(index))
    spans = [((first - zero) / TICKS_PER_S, (last - zero) / TICKS_PER_S) for first, last in long]
    findings.add(WARN, f"{name}: pictures are black {spans_in_words(spans)}")
    return {"black": [[round(first, 3), round(last, 3)] for first, last in spans]}


def _camera(opened: Recording, device: str, findings: Findings) -> dict[str, Any]:
    from kitchensync.sensors.gopro.files.clip import open_clip
    from kitchensync.storage.reading.camera_streams import CameraStream

    clips = [open_clip(*group.paths) for group in group_clips(opened.gopro_files[device])]
    sound = chain.from_iterable(CameraStream(f"{device}/audio", clip).sound() for clip in clips)
    facts = _heard(device, ((block.samples, block.rate_hz) for block in sound), findings)
    tried, bad = 0, 0
    for clip in clips:
        here = np.ones(len(clip.frame_times_s), np.bool_)
        for first, chapter in zip(clip.first_frames, clip.chapters, strict=True):
            count = len(chapter.frame_times_s)
            destroyed = done_samples(opened.manifest, f"{device}/{chapter.path.name}", PICTURES)
            here[first : first + count] &= ~in_runs(destroyed, count)
        there = np.flatnonzero(here)
        spread = np.linspace(0, len(there) - 1, min(CAMERA_PICTURES, len(there))).astype(int)
        numbers = np.unique(there[spread]).tolist()
        tried += len(numbers)
        with clip.pictures() as pictures:
            for number in numbers:
                try:
                    pictures.number(number, width=64)
                except (SensorError, IndexError):
                    bad += 1
    if bad:
        findings.add(WARN, f"{device}: {bad} of {tried} pictures tried do not decode")
    return facts | {"decoded": {"asked": tried, "pictures": tried - bad, "undecodable": bad}}


def _heard(name: str, blocks: Iterable[Block], findings: Findings) -> dict[str, Any]:
    """Return the level of the loudest second; report silence."""
    loudest_level = max(_levels(blocks), default=None)
    if loudest_level is None:
        return {"loudest_dbfs": None}
    if loudest_level < limits.SILENT_DBFS:
        findings.add(WARN, f"{name}: its sound is silent, at most {_written(loudest_level)} dBFS")
    return {"loudest_dbfs": _written(loudest_level)}


def _written(level: float) -> float:
    return round(max(level, -200.0), 1)


def _levels(blocks: Iterable[Block]) -> Iterator[float]:
    """Yield the level of every second, dB against full scale: the root of the mean square."""
    power, count = 0.0, 0
    for samples, rate_hz in blocks:
        with np.errstate(invalid="ignore"):  # damaged sound may decode to NaN
            power += float(np.square(samples, dtype=np.float64).sum())
        count += samples.size
        if count >= rate_hz * samples.shape[0]:
            yield _level(power / count)
            power, count = 0.0, 0
    if count:
        yield _level(power / count)


def _level(mean_square: float) -> float:
    return 10 * math.log10(mean_square) if mean_square > 0 else -math.inf
