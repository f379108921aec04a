"""The decoder of a stream: that of the headset, of an installed plug-in, or of the manifest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from kitchensync.sensors.errors import BadPacket, SensorError
from kitchensync.sensors.hololens.catalogue import known_stream
from kitchensync.sensors.hololens.headset_stream import DEPTH, FRAMES, SOUND, HeadsetStream
from kitchensync.sensors.plugin import installed_stream
from kitchensync.sensors.stream import Format, SensorStream, record_of
from kitchensync.storage.manifest import Manifest

if TYPE_CHECKING:
    from kitchensync.storage.chunks.stored_packets import StoredPackets


def headset_sensor(manifest: Manifest, name: str) -> HeadsetStream | None:
    """Return the object of a headset's stream; None for a plug-in's, even of the same name."""
    device = manifest.get("devices", {}).get(name.partition("/")[0])
    return None if device and device["kind"] == "plugin" else known_stream(name)


def is_seen(manifest: Manifest, stream: str) -> bool:
    """Return whether a stream has pictures or sound; an unknown one may have."""
    sensor = headset_sensor(manifest, stream)
    if sensor is not None:
        return sensor.kind in (FRAMES, DEPTH, SOUND)
    return record_of(manifest["streams"][stream].get("format") or {}) is None


def sensor_stream(manifest: Manifest, name: str) -> SensorStream:
    """Return the object of a stream of a recording; that of an unknown stream returns payloads unchanged."""
    description, (device, _, short) = manifest["streams"].get(name, {}), name.partition("/")
    form, about = description.get("format") or {}, manifest.get("devices", {}).get(device)
    if "module" in form and (own_sensor := headset_sensor(manifest, name)) is not None:
        return own_sensor
    kind = about.get("sensor") if about else None
    installed = installed_stream(kind, about.get("settings") or {}, short) if about and kind else None
    sensor = installed or SensorStream(short)
    # any error of a plug-in means that the packet is bad
    record = record_of(form)

    def check(payload: bytes, form: Format) -> None:
        if record is not None and len(payload) % record.itemsize:
            raise BadPacket(short, f"{len(payload)} bytes, not a multiple of {record.itemsize}")
        try:
            sensor.check(payload, form)
        except SensorError:
            raise
        except Exception as error:
            raise BadPacket(short, f"{type(error).__name__}: {error}") from error

    def decode(payload: bytes) -> Any:
        check(payload, form)
        try:
            decoded = sensor.decode(payload)
        except SensorError:
            raise
        except Exception as error:
            raise BadPacket(short, f"{type(error).__name__}: {error}") from error
        is_bare = record is not None and isinstance(decoded, bytes)
        return np.frombuffer(payload, record) if is_bare else decoded

    return SensorStream(short, record=record, check=check, decode=decode)


def read_decoded(
    stream: StoredPackets, sensor: SensorStream, start: int, stop: int
) -> Iterator[tuple[int, Any]]:
    """Yield (row, decoded payload) of the rows [start, stop); undecodable ones are entered in `stream.bad`."""
    hidden = stream.hidden
    for row, payload in stream.packets(start, stop):
        if hidden[row]:
            continue
        try:
            yield row, sensor.decode(payload)
        except SensorError as error:
            stream.bad[row] = str(error)
