"""Magnetometer: about 11 samples per packet, 4.5 packets per second; `temperature` is padding."""

from __future__ import annotations

from kitchensync.sensors.hololens.streams.inertial_samples import inertial_stream

STREAM = inertial_stream(
    "magnetometer",
    port=3808,
    nominal_hz=4.5,
    max_payload_bytes=64 << 10,
    module=__name__,
    unit="as sent, thought to be microtesla",
    bits_per_s=0.016e6,
)
