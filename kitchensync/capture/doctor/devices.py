"""Check this computer and every device of a rig file before a session."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kitchensync.capture.doctor.checks import BAD, GOOD, LOOK, Report, examine_computer
from kitchensync.capture.doctor.headset_checks import examine_headset
from kitchensync.capture.monitor.rules import LOW_BATTERY_PERCENT
from kitchensync.capture.plan import RecordingRequest
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.control.open_camera import open_camera
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.storage.chunks.layout import INDEX, POSE_FLOATS

ENOUGH_BATTERY_PERCENT = 60
"""Charge that a session needs; a full battery lasts about an hour and a half."""

POSE_BYTES = 4 * POSE_FLOATS


def examine_devices(order: RecordingRequest, data: Path, minutes: float, name: str) -> Report:
    """Check this computer and every device of an order, the devices in parallel."""
    report = Report(name)
    with ThreadPoolExecutor(max_workers=1 + len(order.headsets) + len(order.cameras)) as pool:
        checks = {}
        for headset in order.headsets:
            profile = Profile(**headset.profile)
            checks[headset.name] = pool.submit(
                examine_headset, headset.host, headset.streams, profile, order.accept_version
            )
        for camera, address in order.cameras.items():
            checks[camera] = pool.submit(examine_camera, address, minutes)
        computer = examine_computer(data, minutes, _mb_per_s(order))
        report.take("this computer", computer)
        report.facts = computer.facts
        for device, check in checks.items():
            report.take(device, check.result())
    return report


def _mb_per_s(order: RecordingRequest) -> float:
    """Return the stored data rate of a rig in MB/s: packets with poses and index rows, and videos."""
    total = 7.5e6 * len(order.cameras)  # a GoPro at 4K30
    for headset in order.headsets:
        profile = Profile(**headset.profile)
        for stream in map(headset_stream, headset.streams):
            row_bytes = INDEX.itemsize + POSE_BYTES * stream.has_pose
            total += stream.bits_per_s(profile) / 8 + stream.rate_hz(profile) * row_bytes
    return total / 1e6


def examine_camera(address: str, minutes: float) -> Report:
    """Check a camera for a session of `minutes`, without changing its settings."""
    report = Report(address)
    try:
        with open_camera(address) as camera:
            info, state = camera.info(), camera.state()
    except (SensorError, OSError) as error:
        report.add("camera", BAD, str(error), "switch it on, and check its address")
        return report
    report.add("camera", GOOD, f"{info.model_name}, firmware {info.firmware}")
    percent, remaining_s = state.battery_percent, state.video_seconds_left
    if percent is None:
        report.add("battery", LOOK, "not reported", "look at the camera")
    else:
        status = BAD if percent < LOW_BATTERY_PERCENT else LOOK
        status = GOOD if percent >= ENOUGH_BATTERY_PERCENT else status
        report.add("battery", status, f"{percent} %", "charge it, or have another one at hand")
    if remaining_s is None:
        report.add("card", LOOK, "not reported", "look at the camera")
    else:
        status = GOOD if remaining_s >= 60 * minutes else BAD
        result = f"room for {remaining_s // 60} min, {minutes:g} are needed"
        report.add("card", status, result, "kitchensync gopro fetch, then gopro free; or another card")
    for complaint in state.complaints():
        report.add("state", BAD, complaint, "fix it at the camera")
    if not state.ready:
        report.add("state", LOOK, "it is recording or busy", "end that first")
    return report
