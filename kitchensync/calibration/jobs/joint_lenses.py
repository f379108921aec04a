"""From a recording in which both cameras see a board to the mount between them: `kitchensync calibrate rig`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from kitchensync.calibration.estimate.board import Board, BoardSeen, Detector
from kitchensync.calibration.estimate.choice import looks, way_px
from kitchensync.calibration.estimate.intrinsics import Intrinsics
from kitchensync.calibration.estimate.joint_cameras import BoardPair, RigPose, from_board, worst_axes
from kitchensync.calibration.jobs.board_pictures import mount_picture, write_png
from kitchensync.calibration.jobs.mount import mount_by_motion
from kitchensync.reader.cameras.recorded import alignments, front_lens, started_at
from kitchensync.sensors.gopro.files.media import GoProMedia, open_media
from kitchensync.sensors.gopro.files.picture_reader import PictureReader, index_at
from kitchensync.sensors.hololens.catalogue import FRONT_CAMERA
from kitchensync.shell.array_types import Floats
from kitchensync.storage.geometry.errors import Refused
from kitchensync.storage.reading.alignments import FilmClock
from kitchensync.storage.reading.calibration_results import lens_from_words, lens_result, save
from kitchensync.storage.reading.headset_pictures import Frame
from kitchensync.storage.recording import Recording, open_recording

FASTEST_PX = 3.0
"In the front camera, from frame to frame, at 1920 columns: beyond, the rolling shutters bend the board."
SAME_PLACE_PX = 8.0
"""In the front camera, at 1920 columns: a board this near to where an earlier instant saw it is at the same place.
Taken again and again, one place would count as many witnesses that agree, and the doubt would come out too small."""
FARTHEST_PX = 12.0
"In the GoPro, between the two frames around an instant, at 1920 columns: corners are interpolated between them."
TICKS_PER_S = 1e7
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class RigAnswer:
    """A mount and where it was put."""

    answer: dict[str, Any]
    path: Path
    picture: Path


def calibrate_rig(path: Path, board: Board, data: Path, progress: Progress | None = None) -> list[RigAnswer]:
    """Estimate how each camera of a recording sits on the headset's front camera, and keep it in `data`.

    Raises Refused, NotAligned, StorageError.
    """
    with open_recording(path) as recording:
        return [_one(recording, alignment, board, data, progress) for alignment in alignments(recording)]


def _one(
    recording: Recording, alignment: FilmClock, board: Board, data: Path, progress: Progress | None
) -> RigAnswer:
    media = open_media(alignment.file)
    serial, mode = media.serial or "unknown", media.mode.lens_name
    filmed = started_at(recording)
    lens_file, lens_answer = lens_result(data, serial, mode, filmed)
    detector = Detector(board)
    pairs = list(_pairs(recording, alignment, media, detector, progress))
    found = from_board(pairs, board, _lens(lens_answer))
    answer = {
        "recording": recording.id,
        "file": alignment.file.relative_to(recording.readable).as_posix(),
        "headset": alignment.headset,
        "board": board.words(),
        "board_layout": detector.layout,
        "lens": lens_file.name,
        **_words(found),
        "by_motion": _by_motion(recording, alignment, found),
    }
    kept = save(data, serial, "rig", mode, filmed, answer)
    write_png(picture := kept.with_suffix(".png"), mount_picture(found))
    return RigAnswer(answer | {"serial": serial, "mode": mode}, kept, picture)


def _lens(answer: dict[str, Any]) -> Intrinsics:
    """Return a stored lens as far as a mount needs it."""
    lens, covariance = lens_from_words(answer)
    nothing = np.zeros((0, 4, 4))
    # Results of earlier versions tell neither this part nor how well the other one is known.
    systematic = np.array(answer.get("systematic_covariance", np.zeros_like(covariance)))
    freedom = np.array(list(answer.get("degrees_of_freedom", dict.fromkeys(lens.names, np.inf)).values()))
    size = answer["picture_sigma_px"]["median"]
    return Intrinsics(
        lens, np.array(list(answer["sigma"].values())), freedom, covariance, answer["rms_px"], answer["held_out_px"],
        np.full((1, 1), size), tuple(answer["used"]), answer["left_out"], nothing, (), answer["covered"], systematic,
    )  # fmt: skip


def _worst(covariance: Floats) -> dict[str, float]:
    turn, place = worst_axes(covariance)
    sizes = [float(np.sqrt(max(axis @ covariance @ axis, 0.0))) for axis in (turn, place)]
    return {"deg": round(float(np.degrees(sizes[0])), 4), "mm": round(1e3 * sizes[1], 3)}


def _words(found: RigPose) -> dict[str, Any]:
    turn = Rotation.from_matrix(found.b_from_a[:3, :3])
    return {
        "camera_from_pv": found.b_from_a.tolist(),
        "angle_deg": round(float(np.degrees(turn.magnitude())), 4),
        "distance_mm": round(float(1e3 * np.linalg.norm(found.b_from_a[:3, 3])), 2),
        "covariance": found.covariance.tolist(),
        "systematic_covariance": found.systematic.tolist(),
        "sigma_deg": round(found.sigma_deg, 4),
        "sigma_mm": round(found.sigma_mm, 3),
        "sigma_parts": {
            "statistical": _worst(found.covariance - found.systematic),
            "systematic": _worst(found.systematic),
        },
        "rms_px": {"pv": round(found.rms_px[0], 3), "camera": round(found.rms_px[1], 3)},
        "used": list(found.used),
        "left_out": found.left_out,
    }


def _by_motion(recording: Recording, alignment: FilmClock, found: RigPose) -> dict[str, Any] | None:
    """Return the rotation by motion beside the board's, and how far they are apart; None where motion is too poor."""
    try:
        motion = mount_by_motion(recording, alignment)
    except Refused as refusal:
        return {"refused": refusal.reason}
    apart = Rotation.from_matrix(np.array(motion["camera_from_pv"]) @ found.b_from_a[:3, :3].T).magnitude()
    return {
        "camera_from_pv": motion["camera_from_pv"],
        "sigma_deg": motion["sigma_deg"],
        "apart_deg": round(float(np.degrees(apart)), 4),
        "moved": motion["moved"],
    }


def _pairs(
    recording: Recording,
    alignment: FilmClock,
    media: GoProMedia,
    detector: Detector,
    progress: Progress | None,
) -> Iterator[BoardPair]:
    """Yield the instants at which the front camera is nearly still and both see the board."""
    stream = recording[f"{alignment.headset}/{FRONT_CAMERA}"]
    taken: list[BoardSeen] = []
    with PictureReader(media) as reader:
        for frame, in_pv in _still_views(recording, f"{stream.name}", detector, progress):
            media_s = float(alignment.media_of(np.array([frame.device_ticks]))[0]) - alignment.picture_late_s
            if not np.isfinite(media_s):
                continue
            if any(way_px(other, in_pv) <= SAME_PLACE_PX * in_pv.size[0] / 1920 for other in taken):
                continue
            in_camera = _at(reader, media, media_s, detector, in_pv.name)
            if in_camera is not None:
                taken.append(in_pv)
                yield BoardPair(in_pv, in_camera, front_lens(recording, stream.name, frame))


def _still_views(
    recording: Recording, stream: str, detector: Detector, progress: Progress | None
) -> Iterator[tuple[Frame, BoardSeen]]:
    """Yield front-camera frames, five a second, in which the board hardly moved until the next frame."""
    source = recording[stream]
    start = int(source.index["device_ticks"][0]) if len(source) else 0
    frames = (
        (frame, (frame.device_ticks - start) / TICKS_PER_S, np.ascontiguousarray(frame.grey()))
        for frame in source.frames()
    )
    for look in looks(frames, detector, lambda seconds: f"{seconds:.2f} s"):
        if look.seen is not None and look.way_px <= FASTEST_PX * look.seen.size[0] / 1920:
            yield look.frame, look.seen
        if progress is not None:
            progress(stream, look.at_s)


def _at(
    reader: PictureReader, media: GoProMedia, media_s: float, detector: Detector, name: str
) -> BoardSeen | None:
    """Return the board in the camera at an instant, between the two frames around it; None when it moved too far."""
    times = media.frame_times_s
    index = index_at(times, media_s)
    if index + 1 >= len(times):
        return None
    two = [detector.find(_luma(reader.number(i).rgb), name) for i in (index, index + 1)]
    if two[0] is None or two[1] is None:
        return None
    one, next_one = two[0], two[1]
    if not way_px(one, next_one) <= FARTHEST_PX * one.size[0] / 1920:  # NaN: nothing tells
        return None
    ids, mine, other = np.intersect1d(one.ids, next_one.ids, return_indices=True)
    part = (media_s - times[index]) / (times[index + 1] - times[index])
    pixels = one.pixels[mine] * (1 - part) + next_one.pixels[other] * part
    return BoardSeen(name, ids, pixels, one.size, one.edge_px)


def _luma(rgb: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    return np.asarray(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY), np.uint8)
