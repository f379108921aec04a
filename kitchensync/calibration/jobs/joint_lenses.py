"""Calibrate the mount between two cameras that both see a board in a recording: `kitchensync calibrate rig`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from scipy.spatial.transform import Rotation

from kitchensync.calibration.estimate.board import Board, BoardDetection, Detector
from kitchensync.calibration.estimate.choice import motion_px, sample_frames
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

MAX_MOTION_PX = 3.0
"Motion in the front camera between two frames, at 1920 columns, above which rolling shutters distort the board."
MIN_DISTANCE_PX = 8.0
"""Smallest distance of the board from that of earlier instants in the front camera, at 1920 columns.

Instants with the board at the same position are not independent and would make the uncertainty too small."""
MAX_INTERPOLATION_PX = 12.0
"Motion in the GoPro between the two frames around an instant, at 1920 columns, up to which corners are interpolated."
TICKS_PER_S = 1e7
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class RigAnswer:
    """A mount and the files with it."""

    answer: dict[str, Any]
    path: Path
    picture: Path


def calibrate_rig(path: Path, board: Board, data: Path, progress: Progress | None = None) -> list[RigAnswer]:
    """Estimate the pose of each camera of a recording on the headset's front camera, and store it in `data`.

    Raises Refused, NotAligned, StorageError.
    """
    with open_recording(path) as recording:
        return [
            _calibrate_camera(recording, alignment, board, data, progress)
            for alignment in alignments(recording)
        ]


def _calibrate_camera(
    recording: Recording, alignment: FilmClock, board: Board, data: Path, progress: Progress | None
) -> RigAnswer:
    media = open_media(alignment.file)
    serial, mode = media.serial or "unknown", media.mode.lens_name
    filmed = started_at(recording)
    lens_file, lens_answer = lens_result(data, serial, mode, filmed)
    detector = Detector(board)
    pairs = list(_pairs(recording, alignment, media, detector, progress))
    pose = from_board(pairs, board, _lens(lens_answer))
    answer = {
        "recording": recording.id,
        "file": alignment.file.relative_to(recording.readable).as_posix(),
        "headset": alignment.headset,
        "board": board.text(),
        "board_layout": detector.layout,
        "lens": lens_file.name,
        **_pose_facts(pose),
        "by_motion": _by_motion(recording, alignment, pose),
    }
    saved = save(data, serial, "rig", mode, filmed, answer)
    picture = saved.with_suffix(".png")
    write_png(picture, mount_picture(pose))
    return RigAnswer(answer | {"serial": serial, "mode": mode}, saved, picture)


def _lens(answer: dict[str, Any]) -> Intrinsics:
    """Return a stored lens, with the values that a mount needs."""
    lens, covariance = lens_from_words(answer)
    no_poses = np.zeros((0, 4, 4))
    # Results of earlier versions have neither the systematic part nor the degrees of freedom.
    systematic = np.array(answer.get("systematic_covariance", np.zeros_like(covariance)))
    freedom = np.array(list(answer.get("degrees_of_freedom", dict.fromkeys(lens.names, np.inf)).values()))
    size = answer["picture_sigma_px"]["median"]
    return Intrinsics(
        lens, np.array(list(answer["sigma"].values())), freedom, covariance, answer["rms_px"], answer["held_out_px"],
        np.full((1, 1), size), tuple(answer["used"]), answer["left_out"], no_poses, (), answer["covered"], systematic,
    )  # fmt: skip


def _worst(covariance: Floats) -> dict[str, float]:
    turn, place = worst_axes(covariance)
    sizes = [float(np.sqrt(max(axis @ covariance @ axis, 0.0))) for axis in (turn, place)]
    return {"deg": round(float(np.degrees(sizes[0])), 4), "mm": round(1e3 * sizes[1], 3)}


def _pose_facts(pose: RigPose) -> dict[str, Any]:
    turn = Rotation.from_matrix(pose.b_from_a[:3, :3])
    return {
        "camera_from_pv": pose.b_from_a.tolist(),
        "angle_deg": round(float(np.degrees(turn.magnitude())), 4),
        "distance_mm": round(float(1e3 * np.linalg.norm(pose.b_from_a[:3, 3])), 2),
        "covariance": pose.covariance.tolist(),
        "systematic_covariance": pose.systematic.tolist(),
        "sigma_deg": round(pose.sigma_deg, 4),
        "sigma_mm": round(pose.sigma_mm, 3),
        "sigma_parts": {
            "statistical": _worst(pose.covariance - pose.systematic),
            "systematic": _worst(pose.systematic),
        },
        "rms_px": {"pv": round(pose.rms_px[0], 3), "camera": round(pose.rms_px[1], 3)},
        "used": list(pose.used),
        "left_out": pose.left_out,
    }


def _by_motion(recording: Recording, alignment: FilmClock, pose: RigPose) -> dict[str, Any]:
    """Return the rotation from motion and its difference from the board's, or why motion does not determine it."""
    try:
        motion = mount_by_motion(recording, alignment)
    except Refused as refusal:
        return {"refused": refusal.reason}
    difference = np.array(motion["camera_from_pv"]) @ pose.b_from_a[:3, :3].T
    angle = Rotation.from_matrix(difference).magnitude()
    return {
        "camera_from_pv": motion["camera_from_pv"],
        "sigma_deg": motion["sigma_deg"],
        "apart_deg": round(float(np.degrees(angle)), 4),
        "moved": motion["moved"],
    }


def _pairs(
    recording: Recording,
    alignment: FilmClock,
    media: GoProMedia,
    detector: Detector,
    progress: Progress | None,
) -> Iterator[BoardPair]:
    """Yield the instants at which both cameras see the board and the front camera is nearly still."""
    stream = recording[f"{alignment.headset}/{FRONT_CAMERA}"]
    taken: list[BoardDetection] = []
    with PictureReader(media) as reader:
        for frame, in_pv in _still_views(recording, stream.name, detector, progress):
            media_s = float(alignment.media_of(np.array([frame.device_ticks]))[0]) - alignment.picture_late_s
            if not np.isfinite(media_s):
                continue
            if any(motion_px(other, in_pv) <= MIN_DISTANCE_PX * in_pv.size[0] / 1920 for other in taken):
                continue
            in_camera = _board_at(reader, media, media_s, detector, in_pv.name)
            if in_camera is not None:
                taken.append(in_pv)
                yield BoardPair(in_pv, in_camera, front_lens(recording, stream.name, frame))


def _still_views(
    recording: Recording, stream: str, detector: Detector, progress: Progress | None
) -> Iterator[tuple[Frame, BoardDetection]]:
    """Yield front-camera frames, at most five a second, in which the board hardly moves until the next frame."""
    source = recording[stream]
    start = int(source.index["device_ticks"][0]) if len(source) else 0
    frames = (
        (frame, (frame.device_ticks - start) / TICKS_PER_S, np.ascontiguousarray(frame.grey()))
        for frame in source.frames()
    )
    for sample in sample_frames(frames, detector, lambda seconds: f"{seconds:.2f} s"):
        if sample.view is not None and sample.motion_px <= MAX_MOTION_PX * sample.view.size[0] / 1920:
            yield sample.frame, sample.view
        if progress is not None:
            progress(stream, sample.at_s)


def _board_at(
    reader: PictureReader, media: GoProMedia, media_s: float, detector: Detector, name: str
) -> BoardDetection | None:
    """Return the board in the camera, interpolated between the frames around an instant; None if it moved too far."""
    times = media.frame_times_s
    index = index_at(times, media_s)
    if index + 1 >= len(times):
        return None
    frames = (cv2.cvtColor(reader.number(i).rgb, cv2.COLOR_RGB2GRAY) for i in (index, index + 1))
    before, after = (detector.find(np.asarray(grey, np.uint8), name) for grey in frames)
    if before is None or after is None:
        return None
    if not motion_px(before, after) <= MAX_INTERPOLATION_PX * before.size[0] / 1920:  # also if it is NaN
        return None
    ids, in_before, in_after = np.intersect1d(before.ids, after.ids, return_indices=True)
    part = (media_s - times[index]) / (times[index + 1] - times[index])
    pixels = before.pixels[in_before] * (1 - part) + after.pixels[in_after] * part
    return BoardDetection(name, ids, pixels, before.size, before.edge_px)
