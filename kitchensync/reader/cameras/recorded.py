"""Inputs of calibrations from a recording: both gyroscopes on one clock, and the sensors' constants as transforms."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.gopro.files.telemetry import TO_IMAGE_AXES
from kitchensync.sensors.hololens.catalogue import GYROSCOPE, is_front_camera
from kitchensync.shell.array_types import Floats
from kitchensync.storage.errors import StorageError, pass_on_trouble
from kitchensync.storage.geometry.camera_models import Pinhole
from kitchensync.storage.geometry.errors import NotAligned, Refused
from kitchensync.storage.geometry.look_up_table import LookUpTable
from kitchensync.storage.geometry.reference_frames import (
    OPENCV_FROM_PV_AXES,
    Transform,
    inverse,
    rig_from_sensor,
)
from kitchensync.storage.reading.alignments import FilmClock, film_clocks
from kitchensync.storage.reading.device_constants import ConstantTable
from kitchensync.storage.reading.headset_pictures import Frame
from kitchensync.storage.recording import Recording
from kitchensync.storage.timeline.si_units import RAD_PER_S

GRID_HZ = 200.0  # about the sample rate of the camera's gyroscope, the slower one
TICKS_PER_S = 1e7  # device ticks are 100 ns


def started_at(recording: Recording) -> datetime:
    """Return the start of a recording, UTC, by which its calibrations are chosen. Raises Refused."""
    utc_ns = (recording.manifest.get("started") or {}).get("utc_ns")
    if not isinstance(utc_ns, int):
        raise Refused(f"{recording.id}: its start time is unknown, so its calibrations cannot be chosen")
    return datetime.fromtimestamp(utc_ns / 1e9, UTC)


def alignments(recording: Recording) -> list[FilmClock]:
    """Return the clocks of the aligned camera files of a recording. Raises NotAligned if there are none."""
    clocks, reasons = film_clocks(recording.path, recording.readable)
    if not clocks:
        raise NotAligned(recording.id, "; ".join(reasons) or "run `kitchensync sync` first")
    return clocks


@dataclass(frozen=True)
class Turning:
    """Angular velocities of headset and camera at the same instants, 200 per second."""

    start_ticks: int
    of_headset: Floats
    "(n, 3) rad/s in the gyroscope's axes."
    of_camera: Floats
    "(n, 3) rad/s in OpenCV's axes of the camera."


def turning(recording: Recording, alignment: FilmClock) -> Turning:
    """Resample both gyroscopes to one grid in the headset's time; each value is the mean over 5 ms."""
    samples = recording[f"{alignment.headset}/{GYROSCOPE}"].samples()
    film = alignment.gyroscope()
    inside = np.isfinite(alignment.media_of(samples.ticks))
    if np.count_nonzero(inside) < 2:
        raise Refused(f"{alignment.file.name} and the headset's gyroscope do not overlap")
    start, stop = int(samples.ticks[inside][0]), int(samples.ticks[inside][-1])
    edges = np.arange(start, stop, TICKS_PER_S / GRID_HZ).astype(np.int64)
    of_headset = _means((samples.ticks - start) / TICKS_PER_S, samples.xyz, (edges - start) / TICKS_PER_S)
    of_camera = _means(film.t_s, film.xyz, alignment.media_of(edges))
    good = np.isfinite(of_headset).all(1) & np.isfinite(of_camera).all(1)
    of_headset, of_camera = of_headset[good], of_camera[good] @ TO_IMAGE_AXES.T
    scale = recording.si_scale(f"{alignment.headset}/gyroscope")
    if not scale:  # neither rig file nor `sync` states the unit
        spread, spread_of_camera = (np.linalg.norm(xyz - xyz.mean(0)) for xyz in (of_headset, of_camera))
        # Both sensors are on one head: a ratio of spreads near 57 means degrees, one near 1 means radians.
        scale = RAD_PER_S["deg_per_s" if spread / spread_of_camera > 8 else "rad_per_s"]
    return Turning(start, of_headset * scale, of_camera)


def _means(t_s: Floats, values: npt.NDArray[np.float32], edges_s: Floats) -> Floats:
    """Return the means of samples between edges, from differences of their integral."""
    order = np.argsort(t_s, kind="stable")
    t, v = np.asarray(t_s, np.float64)[order], np.asarray(values, np.float64)[order]
    steps = np.diff(t)[:, None] * (v[1:] + v[:-1]) / 2
    integral = np.vstack([np.zeros((1, 3)), np.cumsum(steps, axis=0)])
    at = np.column_stack([np.interp(edges_s, t, column, np.nan, np.nan) for column in integral.T])
    means: Floats = np.diff(at, axis=0) / np.diff(edges_s)[:, None]
    return means


def rig_from(recording: Recording, stream: str) -> Transform:
    """Return the transform from a headset's sensor to the rig (4, 4); for `pv` from OpenCV's axes. Raises Refused."""
    transform = rig_from_sensor(np.asarray(constants_of(recording, stream)["extrinsics"].values))
    return transform @ inverse(OPENCV_FROM_PV_AXES) if is_front_camera(stream) else transform


def look_up_table(recording: Recording, stream: str) -> LookUpTable:
    """Return the camera model of a Research Mode sensor from its downloaded constants. Raises Refused."""
    values = {name: np.asarray(table.values) for name, table in constants_of(recording, stream).items()}
    plane = np.stack((values["uv2x"], values["uv2y"]), axis=-1).astype(np.float32)
    source = np.stack((values["mapx"], values["mapy"]), axis=-1).astype(np.float32)
    fx, fy, cx, cy = (float(value) for value in values["k"])
    return LookUpTable(plane, source, (fx, fy, cx, cy))


def front_lens(recording: Recording, stream: str, frame: Frame) -> Pinhole:
    """Return the front camera's lens for one frame: the frame's focal length and the downloaded distortion.

    Raises Refused.
    """
    if frame.intrinsics is None:
        raise Refused(f"{stream} has no focal length")
    values = constants_of(recording, stream)
    k1, k2, k3 = (float(value) for value in np.asarray(values["radial_distortion"].values))
    p1, p2 = (float(value) for value in np.asarray(values["tangential_distortion"].values))
    size = int(frame.metadata["width"]), int(frame.metadata["height"])
    return Pinhole(*size, *frame.intrinsics, k1, k2, p1, p2, k3)


def constants_of(recording: Recording, stream: str) -> dict[str, ConstantTable]:
    """Return the constants of a headset's sensor by name. Raises Refused."""
    try:
        return recording.calibration(stream)
    except StorageError as error:
        pass_on_trouble(error)
        raise Refused(
            f"{recording.id} has no readable constants of {stream}; the headset sends them when a recording "
            "begins, and without them pixels cannot be placed in the room"
        ) from None
