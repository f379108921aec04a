"""Calibrate from the inertial sensors of a recording: the rotation of a mount, and sensors at rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from kitchensync.calibration.estimate.imu_at_rest import (
    STILL_ACCELEROMETER_M_PER_S2,
    STILL_GYROSCOPE_RAD_PER_S,
    allan,
    down,
    rest,
)
from kitchensync.calibration.estimate.motion import MountCheck, check_mount, rotation_from_motion
from kitchensync.reader.cameras.recorded import GRID_HZ, rig_from, started_at, turning
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.hololens.catalogue import FRONT_CAMERA, GYROSCOPE
from kitchensync.storage.geometry.reference_frames import inverse
from kitchensync.storage.reading.alignments import FilmClock
from kitchensync.storage.reading.calibration_results import save
from kitchensync.storage.recording import Recording, open_recording
from kitchensync.storage.timeline.si_units import RAD_PER_S

USUAL_UNIT = "deg_per_s"
"""Unit of headsets' gyroscopes if neither the rig file nor `sync` states it."""


def mount_by_motion(recording: Recording, alignment: FilmClock) -> dict[str, Any]:
    """Return the rotation of a camera from the front camera, and its change over the recording. Raises Refused."""
    rates = turning(recording, alignment)
    rotation = rotation_from_motion(GRID_HZ, rates.of_headset, rates.of_camera)
    checked = check_mount(GRID_HZ, rates.of_headset, rates.of_camera, rotation.b_from_a)
    pv_from_gyroscope = inverse(rig_from(recording, f"{alignment.headset}/{FRONT_CAMERA}")) @ rig_from(
        recording, f"{alignment.headset}/{GYROSCOPE}"
    )
    camera_from_pv = rotation.b_from_a @ pv_from_gyroscope[:3, :3].T
    return {
        "file": alignment.file.relative_to(recording.readable).as_posix(),
        "headset": alignment.headset,
        "serial": open_media(alignment.file).serial,
        "camera_from_pv": camera_from_pv.tolist(),
        "angle_deg": round(float(np.degrees(Rotation.from_matrix(camera_from_pv).magnitude())), 4),
        "sigma_deg": round(rotation.sigma_deg, 4),
        "residual_rad_per_s": round(rotation.residual_rad_per_s, 5),
        "moved": checked.moved,
        "minutes": _minutes(checked),
    }


def _minutes(checked: MountCheck) -> list[dict[str, float | None]]:
    def finite(value: float) -> float | None:
        return round(float(value), 4) if np.isfinite(value) else None

    rows = zip(checked.middle_s, checked.turned_deg, checked.sigma_deg, strict=True)
    return [
        {"middle_s": finite(at), "turned_deg": finite(turn), "sigma_deg": finite(sigma)}
        for at, turn, sigma in rows
    ]


def calibrate_imu(path: Path, data: Path) -> tuple[dict[str, Any], Path]:
    """Measure the headset's gyroscope and accelerometer during the longest rest in a recording, and store the result.

    Values are in the units of the headset. Raises Refused, StorageError.
    """
    with open_recording(path) as recording:
        sensors = {name: recording.sensor(name) for name in recording.streams}
        turning_streams = [name for name, sensor in sensors.items() if sensor and sensor.is_gyroscope]
        headset = turning_streams[0].partition("/")[0] if turning_streams else "hololens"
        answer: dict[str, Any] = {"recording": recording.id, "device": headset}
        scale = recording.si_scale(f"{headset}/{GYROSCOPE}")
        still = STILL_GYROSCOPE_RAD_PER_S / (scale or RAD_PER_S[USUAL_UNIT])
        answer["gyroscope"] = _sensor_at_rest(recording, f"{headset}/{GYROSCOPE}", still)
        still = STILL_ACCELEROMETER_M_PER_S2
        answer["accelerometer"] = _sensor_at_rest(recording, f"{headset}/accelerometer", still)
        direction, excess = down(np.array(answer["accelerometer"]["mean"]))
        answer["down"] = direction.tolist()
        answer["gravity_excess_m_per_s2"] = round(excess, 5)
        measured = started_at(recording)
        device = recording.manifest["devices"].get(headset)
        serial = str((device and (device.get("serial") or device.get("address"))) or headset)
    return answer, save(data, serial, "imu", "rest", measured, answer)


def _sensor_at_rest(recording: Any, stream: str, still: float) -> dict[str, Any]:
    samples = recording[stream].samples()
    seconds = float(samples.vinyl_ns[-1] - samples.vinyl_ns[0]) / 1e9 if len(samples.vinyl_ns) > 1 else 0.0
    rate_hz = (len(samples.vinyl_ns) - 1) / seconds if seconds else 1.0
    values = samples.xyz.astype(np.float64)
    at_rest = rest(values, rate_hz, still)
    curve = allan(values[at_rest.start : at_rest.stop], rate_hz)
    return {
        "rate_hz": round(rate_hz, 3),
        "still_s": round((at_rest.stop - at_rest.start) / rate_hz, 1),
        "mean": at_rest.mean.tolist(),
        "mean_sigma": at_rest.sigma.tolist(),
        "noise": at_rest.noise.tolist(),
        "white_noise_per_sqrt_hz": curve.white_noise.tolist(),
        "bias_instability": curve.bias_instability.tolist(),
        "allan": {"tau_s": curve.tau_s.tolist(), "deviation": curve.deviation.tolist()},
    }
