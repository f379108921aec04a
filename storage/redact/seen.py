"""Which streams hold pictures or sound: what a privacy pause hides from everybody."""

from __future__ import annotations

from sensors.hololens.headset_stream import DEPTH, FRAMES, SOUND
from sensors.stream import record_of
from storage.manifest import Manifest
from storage.reading.decoded import headset_sensor


def is_seen(manifest: Manifest, stream: str) -> bool:
    """Tell whether a stream holds pictures or sound; what nobody knows may."""
    sensor = headset_sensor(manifest, stream)
    if sensor is not None:
        return sensor.kind in (FRAMES, DEPTH, SOUND)
    return record_of(manifest["streams"][stream].get("format") or {}) is None
