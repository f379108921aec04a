"""What recordings will want: disk, cards, batteries and time to fetch films. Pure: rates times minutes."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from typing import Any

from kitchensync.capture.plan import RecordingRequest
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.storage.chunks.layout import INDEX, POSE_FLOATS

POSE_BYTES = 4 * POSE_FLOATS


@dataclass(frozen=True)
class Supplies:
    """What a lab has, of one piece each."""

    camera_mbit_per_s: float
    camera_battery_minutes: float
    headset_battery_minutes: float
    card_gb: float
    fetch_mb_per_s: float


def headset_bytes_per_s(streams: list[str], profile: Profile) -> float:
    """Return what a headset's streams are told to send a second, with each packet's pose and row of the index."""
    return sum(
        one.bits_per_s(profile) / 8 + one.rate_hz(profile) * (INDEX.itemsize + POSE_BYTES * one.has_pose)
        for one in map(headset_stream, streams)
    )


def media_plan(order: RecordingRequest, minutes: float, recordings: int, has: Supplies) -> dict[str, Any]:
    """Return what so many recordings of so many minutes want, device by device, and all in all."""
    seconds = 60 * minutes
    devices = {}
    for headset in order.headsets:
        size = headset_bytes_per_s(headset.streams, Profile(**headset.profile)) * seconds
        devices[headset.name] = _device("headset", size, minutes, recordings, has.headset_battery_minutes)
    for name in order.cameras:
        rate = has.camera_mbit_per_s * 1e6 / 8
        row = _device("camera", rate * seconds, minutes, recordings, has.camera_battery_minutes)
        cards = _filled(row["bytes_each"], recordings, has.card_gb * 1e9)
        fetch_s = row["bytes"] / (has.fetch_mb_per_s * 1e6)
        devices[name] = row | {"cards": cards, "card_swaps": cards - 1, "fetch_hours": fetch_s / 3600}
    total = sum(row["bytes"] for row in devices.values())
    return {
        "minutes": minutes,
        "recordings": recordings,
        "devices": devices,
        "bytes": total,
        "fetch_hours": sum(row.get("fetch_hours", 0.0) for row in devices.values()),
        "not_counted": [sensor.name for sensor in order.sensors],
    }


def _device(
    kind: str, size: float, minutes: float, recordings: int, battery_minutes: float
) -> dict[str, Any]:
    """Return one device's row; `bytes_each` is one recording's."""
    batteries = _filled(minutes, recordings, battery_minutes)
    return {
        "kind": kind,
        "bytes_each": round(size),
        "bytes": round(size) * recordings,
        "batteries": batteries,
        "battery_swaps": batteries - 1,
        "swaps_inside": ceil(minutes / battery_minutes) - 1,
    }


def _filled(each: float, recordings: int, room: float) -> int:
    """Return how many batteries or cards are used up: a recording is begun only with one that will last for it.

    One that needs more than a whole one begins with a full one, and changes in the middle.
    """
    if each > room:
        return recordings * ceil(each / room)
    return ceil(recordings / floor(room / each))
