"""The manifest of a recording at its start, before any packet."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from kitchensync.capture.plan import Plan, RecordingRequest
from kitchensync.capture.zone import local_zone
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.sensors.plugin import load_sensor
from kitchensync.shell.host_clock import utc_anchor
from kitchensync.storage.manifest import SCHEMA, Manifest
from kitchensync.storage.names import MADE_FROM


def first_manifest(order: RecordingRequest, plan: Plan, devices: dict[str, Any]) -> Manifest:
    """Return the manifest; plug-in sensors are added to `devices`."""
    anchor = utc_anchor()
    streams: dict[str, Any] = {}
    for headset in order.headsets:
        profile = Profile(**headset.profile)
        for short in headset.streams:
            stream = headset_stream(short)
            streams[f"{headset.name}/{short}"] = {
                "device": headset.name,
                "port": stream.port,
                "nominal_hz": stream.rate_hz(profile),
                "adaptive": stream.adaptive,
                "format": stream.describe(profile),
            }
    for sensor in order.sensors:
        devices[sensor.name] = {"kind": "plugin", "sensor": sensor.kind, "settings": sensor.settings}
        for sensor_stream in load_sensor(sensor.kind, sensor.settings).streams():
            if sensor_stream.name in sensor.streams:
                streams[f"{sensor.name}/{sensor_stream.name}"] = {
                    "device": sensor.name,
                    "nominal_hz": sensor_stream.nominal_hz,
                    "adaptive": sensor_stream.adaptive,
                    "format": sensor_stream.kept_format,
                }
    replayed = sorted({device["replays"] for device in devices.values() if "replays" in device})
    is_virtual = bool(devices) and all("virtual" in device for device in devices.values())
    return {
        "schema": SCHEMA,
        "recording": plan.recording,
        "uuid": plan.uuid,
        "state": "recording",
        "retake_of": order.retake_of,
        "started": {"host_ns": anchor.host_ns, "utc_ns": anchor.utc_ns},
        "stopped": None,
        "zone": local_zone(anchor.utc_ns),
        "consent": order.consent,
        "pseudonym": order.participant,
        "place": order.place,
        "recipe": None,
        "devices": devices,
        "profile": {headset.name: headset.profile for headset in order.headsets},
        "streams": streams,
        "software": {"kitchensync": version("kitchensync")},
        "files": {},
        **({"virtual": True} if is_virtual else {}),
        **({MADE_FROM: replayed} if replayed else {}),
    }
