"""Preflight of everything that a rig file names: this computer, each headset, each camera."""

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
"""A camera lasts about an hour and a half; less than this is not enough for a session."""


POSE_BYTES = 4 * POSE_FLOATS


def examine_devices(order: RecordingRequest, data: Path, minutes: float, name: str) -> Report:
    """Look over this computer and every device of an order, the devices all at once."""
    report = Report(name)
    with ThreadPoolExecutor(max_workers=1 + len(order.headsets) + len(order.cameras)) as pool:
        asked = {}
        for one in order.headsets:
            profile = Profile(**one.profile)
            asked[one.name] = pool.submit(
                examine_headset, one.host, one.streams, profile, order.accept_version
            )
        for camera, address in order.cameras.items():
            asked[camera] = pool.submit(examine_camera, address, minutes)
        computer = examine_computer(data, minutes, _mb_per_s(order))
        report.take("this computer", computer)
        report.facts = computer.facts
        for device, found in asked.items():
            report.take(device, found.result())
    return report


def _mb_per_s(order: RecordingRequest) -> float:
    """Return what a rig sends: its headsets as they are set, with each packet's pose and index row; its cameras."""
    total = 7.5e6 * len(order.cameras)  # a GoPro at 4K30
    for headset in order.headsets:
        profile = Profile(**headset.profile)
        for stream in map(headset_stream, headset.streams):
            row_bytes = INDEX.itemsize + POSE_BYTES * stream.has_pose
            total += stream.bits_per_s(profile) / 8 + stream.rate_hz(profile) * row_bytes
    return total / 1e6


def examine_camera(address: str, minutes: float) -> Report:
    """Look over a camera for a session of so many minutes; nothing is changed at it."""
    report = Report(address)
    try:
        with open_camera(address) as camera:
            info, state = camera.info(), camera.state()
    except (SensorError, OSError) as error:
        report.add("camera", BAD, str(error), "switch it on, and check its address")
        return report
    report.add("camera", GOOD, f"{info.model_name}, firmware {info.firmware}")
    percent, left_s = state.battery_percent, state.video_seconds_left
    if percent is None:
        report.add("battery", LOOK, "is not told", "look at the camera")
    else:
        few = BAD if percent < LOW_BATTERY_PERCENT else LOOK
        status = GOOD if percent >= ENOUGH_BATTERY_PERCENT else few
        report.add("battery", status, f"{percent} %", "charge it, or have another one at hand")
    if left_s is None:
        report.add("card", LOOK, "is not told", "look at the camera")
    else:
        status = GOOD if left_s >= 60 * minutes else BAD
        seen = f"room for {left_s // 60} min, {minutes:g} are wanted"
        report.add(
            "card", status, seen, "kitchensync gopro fetch --pending, then gopro free; or another card"
        )
    for complaint in state.complaints():
        report.add("state", BAD, complaint, "mend it at the camera")
    if not state.ready:
        report.add("state", LOOK, "it is filming or busy", "end that first")
    return report
