"""Measure a camera's picture latency from one of its files, and store it for `sync`.

`camera-latency.json` beside the recordings has the latency with its error for each camera (serial number) and mode
(size, rate, lens).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.clip import Clip
from kitchensync.sensors.gopro.files.clip_clues import clip_clues
from kitchensync.sensors.gopro.files.clue import disagreements
from kitchensync.sensors.gopro.files.media import GoProMedia, open_media
from kitchensync.shell.files_on_disk import file_sha256
from kitchensync.storage.manifest import write_json
from kitchensync.sync.answers import plain, software_version
from kitchensync.sync.errors import NoCameraName
from kitchensync.sync.fit.resample import make_track
from kitchensync.sync.latency.image_latency import THRESHOLDS, ImageLatency, gopro_to_image, measure_latency
from kitchensync.sync.latency.image_rotation import LENSES, LensModel, image_turns, track
from kitchensync.sync.recording.latency_store import STORE, STORE_SCHEMA, StoredLatency, read_store

SCHEMA = "sync-camera/1"
WIDTH_PX = 640
Progress = Callable[[float, float], None]


def measure_file(path: Path, *, seconds: float, progress: Progress | None = None) -> dict[str, Any]:
    """Measure the latency of a camera by one clip; return the object `sync-camera/1`.

    Reads at most `seconds` of pictures; `progress` gets seconds done and in total. `status` is `measured`, or
    `refused` with reasons and no latency. Raises SensorError if the file cannot be read.
    """
    media = open_media(path)
    latency, lens, why = _measure(media, seconds, progress)
    reasons = [*why, *(latency.refusals if latency else ())]
    answer: dict[str, Any] = {
        "schema": SCHEMA,
        "status": "refused" if reasons else "measured",
        "reasons": reasons,
        "serial": media.serial,
        "model": media.camera_model,
        "mode": media.mode.latency_name if media.video else "no pictures",
        "latency_ms": None,
        "sigma_ms": None,
        "evidence": _evidence(latency, lens) if latency and lens else None,
        "thresholds": dict(THRESHOLDS),
        "input": {"path": path.name, "sha256": file_sha256(path)},
        "version": software_version(),
        "stored": None,
    }
    if latency and not reasons:
        answer |= {
            "latency_ms": round(latency.latency_s * 1e3, 3),
            "sigma_ms": round(latency.sigma_s * 1e3, 3),
        }
    return dict(plain(answer))


def keep(answer: dict[str, Any], data: Path) -> Path:
    """Store a measured latency in the data folder and return the file. Raises NoCameraName, BadLatencyStore."""
    if not answer["serial"]:
        raise NoCameraName(answer["input"]["path"])
    path = data / STORE
    store = read_store(path) or {"schema": STORE_SCHEMA, "cameras": {}}
    entry = {key: answer[key] for key in ("latency_ms", "sigma_ms", "model", "input", "version")}
    entry |= {"r2": answer["evidence"]["r2"], "measured_utc": datetime.now(UTC).isoformat(timespec="seconds")}
    store["cameras"].setdefault(answer["serial"], {})[answer["mode"]] = cast(StoredLatency, entry)
    write_json(path, store)
    return path


def _measure(
    media: GoProMedia, seconds: float, progress: Progress | None
) -> tuple[ImageLatency | None, LensModel | None, list[str]]:
    """Return the latency with the lens model of the best match, and reasons against it."""
    if media.video is None or len(media.frame_times_s) < 2:
        return None, None, ["the file has no pictures"]
    try:
        samples = media.gyroscope()
        gyro = make_track(media.path.name, samples.t_s, gopro_to_image(samples.xyz))
    except SensorError as error:
        return None, None, [" ".join(str(error).split())]
    why = ["the camera stabilised these pictures: film with stabilisation off"] * media.mode.is_stabilised
    why += disagreements(clip_clues(Clip([media])))
    tracks = list(track(_grey_pictures(media, seconds, progress)))
    answers = [(measure_latency(image_turns(tracks, lens), gyro), lens) for lens in LENSES]
    latency, lens = max(answers, key=lambda pair: pair[0].r2)
    return latency, lens, why


def _grey_pictures(
    media: GoProMedia, seconds: float, progress: Progress | None
) -> Iterator[tuple[float, npt.NDArray[np.uint8]]]:
    """Yield (media s, grey picture 640 wide) from the beginning."""
    whole_s = min(seconds, float(media.frame_times_s[-1]))
    for t_s, grey in grey_pictures(media, 0.0, seconds):
        yield t_s, grey
        if progress is not None:
            progress(t_s, whole_s)


def grey_pictures(
    media: GoProMedia, first_s: float, last_s: float
) -> Iterator[tuple[float, npt.NDArray[np.uint8]]]:
    """Yield (media s, grey picture 640 wide) of a span of media time, one in memory at a time."""
    zero, base = int(media.frame_pts[0]), media.time_base
    with media.container() as container:
        stream = container.streams.video[0]
        container.seek(zero + int(max(first_s, 0.0) / base), stream=stream, backward=True)
        for frame in container.decode(stream):
            if frame.pts is None:
                continue
            t_s = float((frame.pts - zero) * base)
            if t_s > last_s:
                return
            if t_s < first_s:
                continue
            width = min(WIDTH_PX, frame.width)
            height = max(2, round(frame.height * width / frame.width))
            grey = frame.reformat(width=width, height=height, format="gray").to_ndarray()
            yield t_s, np.asarray(grey, np.uint8)


def _evidence(latency: ImageLatency, lens: LensModel) -> dict[str, object]:
    return {
        "r2": round(latency.r2, 4),
        "rival": latency.rival,
        "halves_ms": [part * 1e3 for part in latency.parts_s],
        "pairs": latency.pairs,
        "pairs_used": latency.usable,
        "seconds": round(latency.seconds, 3),
        "turning_deg_per_s": round(latency.turning_deg_per_s, 2),
        "lens": {"kind": lens.kind, "view_deg": round(lens.view_deg), "scale": latency.scale.tolist()},
        "upside_down": latency.is_upside_down,
    }
